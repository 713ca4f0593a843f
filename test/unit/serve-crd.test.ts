// `watchmux serve --crd`: which files are read, and what becomes of what is in them.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { applyCrds, readCrdFiles } from '../../src/cli/serve/crd-files.ts';
import { withBuiltIn } from '../../src/cli/serve/serve.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { crdOf } from './crd-rig.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

function folder(files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'crd-'));
  ends.push(() => rmSync(path, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(path, name, '..'), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

const json = (...args: Parameters<typeof crdOf>): string => JSON.stringify(crdOf(...args));
const names = async (...paths: string[]): Promise<unknown[]> => (await readCrdFiles(paths)).map(({ crd }) => crd.metadata?.name);

describe('files of definitions', () => {
  test('are all of a folder, at any depth, with several documents in each, and other kinds left out', async () => {
    const other = '---\nkind: Role\napiVersion: rbac.authorization.k8s.io/v1\n---\n';
    const list = JSON.stringify({ kind: 'List', items: [crdOf({}, {}, 'gears', 'Gear'), { kind: 'ConfigMap' }] });
    const path = folder({ 'b.yaml': `${other}${json()}\n---\n`, 'deep/a.json': list, 'readme.md': '#', 'c.yml': other });
    expect(await names(path)).toEqual(['widgets.example.com', 'gears.example.com']);
    expect(await names(join(path, 'b.yaml'))).toEqual(['widgets.example.com']);
    await expect(names(join(path, 'c.yml'))).rejects.toThrow(/c\.yml": there is no CustomResourceDefinition/);
  });

  test('have each definition once, and do not contradict each other', async () => {
    const path = folder({ 'a.json': json(), 'b.json': json(), 'c/d.json': json({}, { served: false }) });
    expect(await names(join(path, 'a.json'), join(path, 'b.json'))).toEqual(['widgets.example.com']);
    await expect(names(path)).rejects.toThrow(
      /"[^"]+d\.json": "widgets\.example\.com" is in it and, with other content, in .*a\.json$/,
    );
  });

  test.each([
    ['no.yaml', undefined, 'ENOENT'],
    ['a.yaml', 'a: [', 'a.yaml": '],
    [
      'b.json',
      json().replace('/v1"', '/v1beta1"'),
      'apiVersion: expected apiextensions.k8s.io/v1, not "apiextensions.k8s.io/v1beta1"',
    ],
    ['c.json', json().replace('"widgets.example.com"', '1'), 'metadata.name: expected'],
  ])('are refused by name: %s', async (name, text, why) => {
    const path = folder(text === undefined ? {} : { [name]: text });
    await expect(names(join(path, name))).rejects.toThrow(/^watchmux serve: --crd "/);
    await expect(names(join(path, name))).rejects.toThrow(why);
  });
});

describe('definitions of files', () => {
  const started = (): ApiServer<string> => {
    const server = new ApiServer<string>({ storage: new MemoryStorage(), resources: [], customResourceDefinitions: true });
    ends.push(() => server.shutdown());
    return server;
  };
  const warned: unknown[] = [];
  const log = { warn: (...args: unknown[]) => void warned.push(args) };
  const apply = async (server: ApiServer<string>, ...texts: string[]): Promise<void> => {
    const path = folder(Object.fromEntries(texts.map((text, at) => [`${at}.json`, text])));
    await applyCrds(server, await readCrdFiles([path]), log);
  };

  test('are served when they have been applied, and updated if they differ', async () => {
    const server = started();
    await apply(server, json());
    expect(server.resource('widgets.example.com/v1').type.kind).toBe('Widget');
    const crds = server.resource('customresourcedefinitions.apiextensions.k8s.io/v1');
    const { resourceVersion } = (await crds.get('widgets.example.com')).metadata ?? {};
    await apply(server, json());
    expect((await crds.get('widgets.example.com')).metadata?.resourceVersion).toBe(resourceVersion);
    await apply(server, json({ names: { plural: 'widgets', kind: 'Widget', shortNames: ['wid'] } }));
    expect(await crds.get('widgets.example.com')).toMatchObject({ spec: { names: { shortNames: ['wid'] } } });
  });

  test('are applied by several servers that begin at once', async () => {
    const server = started();
    await apply(server, json());
    const next = json({ names: { plural: 'widgets', kind: 'Widget', shortNames: ['wid'] } });
    const definitions = server.resource('customresourcedefinitions.apiextensions.k8s.io/v1');
    let others = 3;
    const get = async (name: string): Promise<object> => {
      const found = await definitions.get(name);
      const metadata = { ...found.metadata, labels: { other: String(others) } };
      if (others-- > 0) await definitions.update({ ...found, metadata });
      return found;
    };
    const raced = {
      create: definitions.create.bind(definitions),
      update: definitions.update.bind(definitions),
      watch: definitions.watch.bind(definitions),
      get,
    };
    await apply({ resource: () => raced } as never, next);
    expect(await definitions.get('widgets.example.com')).toMatchObject({ spec: { names: { shortNames: ['wid'] } } });
  });

  test('are served without what no definition has, such as a misspelt keyword, and a warning names it, each time', async () => {
    const server = started();
    const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'string', maxLenght: 3 } } };
    const misspelt = json({}, { schema: { openAPIV3Schema }, selectableField: [] });
    warned.length = 0;
    await apply(server, misspelt);
    await apply(server, misspelt);
    const message = expect.stringMatching(
      /unknown field "spec\.versions\[0\]\.schema\..*maxLenght", unknown field ".*selectableField"/,
    );
    const warning = ['crd-fields', { file: expect.stringMatching(/0\.json$/), definition: 'widgets.example.com', message }];
    expect(warned).toEqual([warning, warning]);
    expect(server.resource('widgets.example.com/v1').type.kind).toBe('Widget');
    warned.length = 0;
  });

  test('are refused with the file and the field, or told if others have their names', async () => {
    const server = started();
    await expect(apply(server, json({ scope: 'None' }))).rejects.toThrow(
      /^watchmux serve: --crd ".*0\.json": .*spec\.scope: Unsupported/,
    );
    await apply(server, json(), json({}, {}, 'others', 'Widget'));
    const message = 'ListKindConflict: "WidgetList" is already in use';
    expect(warned).toMatchObject([['crd-not-served', { definition: 'others.example.com', message }]]);
  });
});

describe('a kind of the command line that is built in', () => {
  const CRDS = { group: 'apiextensions.k8s.io', version: 'v1', plural: 'customresourcedefinitions' };
  const crds = { ...CRDS, kind: 'CustomResourceDefinition', namespaced: false, status: false };
  const leases = {
    group: 'coordination.k8s.io',
    version: 'v1',
    plural: 'leases',
    kind: 'Lease',
    namespaced: true,
    status: false,
  };

  test('is served once', () => expect(withBuiltIn([crds, leases])).toHaveLength(withBuiltIn([]).length));

  test.each([
    [{ ...leases, version: 'v1beta1' }, 'leases.coordination.k8s.io/v1=Lease,'],
    [{ ...leases, kind: 'Hire' }, 'leases.coordination.k8s.io/v1=Lease,'],
    [{ ...crds, namespaced: true }, 'customresourcedefinitions.apiextensions.k8s.io/v1=CustomResourceDefinition:cluster,'],
  ])('is refused if it is another: %j', (named, expected) => expect(() => withBuiltIn([named])).toThrow(expected));
});
