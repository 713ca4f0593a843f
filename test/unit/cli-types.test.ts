// `watchmux types`: what is written for definitions and OpenAPI documents, and which input is refused.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ApiServer } from '../../src/apiserver/index.ts';
import { parseCommand } from '../../src/cli/args.ts';
import type { Output } from '../../src/cli/output.ts';
import { types } from '../../src/cli/types/types.ts';
import type { TypesCommand } from '../../src/cli/types/types-args.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { faultsOf } from '../compile.ts';
import { listening } from '../listening.ts';
import { crdOf } from './crd-rig.ts';

const folder = mkdtempSync(join(tmpdir(), 'types-'));
afterAll(() => rmSync(folder, { recursive: true }));

const WEBSITE = fileURLToPath(new URL('../types/website-crd.yaml', import.meta.url));

/** Writes files, and returns the path of the folder that has them. */
function filesOf(files: Readonly<Record<string, unknown>>): string {
  const path = mkdtempSync(join(folder, 'f-'));
  for (const [name, value] of Object.entries(files)) {
    writeFileSync(join(path, name), typeof value === 'string' ? value : JSON.stringify(value));
  }
  return path;
}

async function written(...args: string[]): Promise<string> {
  let text = '';
  const output = {
    write: async (part: string) => {
      text += part;
    },
  };
  expect(await types(parseCommand(['types', ...args]) as TypesCommand, output as Output)).toBe(0);
  expect(faultsOf({ 'out.ts': text })).toEqual([]);
  return text;
}

/** The names of what is exported. */
const exported = (text: string): string[] =>
  [...text.matchAll(/^export (?:interface|const|type) (\w+)/gm)].map(([, name = '']) => name);

const METADATA = ['ManagedFieldsEntry', 'ObjectMeta', 'OwnerReference'];
const schemaOf = (properties: object): object => ({
  schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
});

const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
const KIND = { group: 'apps', version: 'v1', kind: 'Tool' };
const document = (schemas: object, paths?: object): object => ({
  openapi: '3.0.0',
  ...(paths && { paths }),
  components: { schemas },
});
const tool = (properties: object, kind: object = KIND): object => ({
  ...{ type: 'object', properties: { metadata: {}, ...properties } },
  'x-kubernetes-group-version-kind': [kind],
});

describe('the arguments', () => {
  const NOTHING = { headers: {}, responseTimeoutMs: 60_000, file: undefined, context: undefined, out: undefined, kinds: [] };

  test('have defaults, and all of them are read', () => {
    expect(parseCommand(['types', 'a.yaml', 'b/'])).toEqual({ command: 'types', from: ['a.yaml', 'b/'], ...NOTHING });
    const asked = ['--kind', 'Pod', '--kind', 'sites.example.com/v1', '--kind', 'pods/v1', '--out', 'o', '--timeout', '1'];
    expect(parseCommand(['types', 'http://h:1/x', ...asked, '--token', 't', '--header', 'A: b'])).toEqual({
      ...{ command: 'types', from: new URL('http://h:1/x'), out: 'o', file: undefined, context: undefined },
      ...{ headers: { authorization: 'Bearer t', a: 'b' }, responseTimeoutMs: 1_000 },
      kinds: [
        { text: 'Pod', name: 'pod', group: undefined, version: undefined },
        { text: 'sites.example.com/v1', name: 'sites', group: 'example.com', version: 'v1' },
        { text: 'pods/v1', name: 'pods', group: '', version: 'v1' },
      ],
    });
    expect(parseCommand(['types', '--kubeconfig', 'f', '--context', 'c'])).toEqual({
      ...{ command: 'types', from: [], ...NOTHING, file: 'f', context: 'c' },
    });
  });

  test.each([
    ['', 'missing FILE or URL, or --kind or --context for a cluster'],
    ['a.yaml --token t', '--token goes with a server, not with files'],
    ['a.yaml --context c', '--context goes with a server, not with files'],
    ['http://h --context c', '--context goes with a kubeconfig, not with a URL'],
    ['http://h http://i', 'types takes several files, or one URL'],
    ['http://', 'not an HTTP URL: "http://"'],
    ['http://u:%@h', '"http://h": expected %25 for % in the user and the password'],
    ['http://u:secret@h:x', 'not an HTTP URL: "http://h:x"'],
    ['http://h --token t --header Authorization:x', '--token and --header "authorization: ..." cannot be combined'],
    ['a.yaml --kind=', '--kind takes NAME, NAME.GROUP or NAME.GROUP/VERSION, not ""'],
    ['a.yaml --kind a/b/c', '--kind takes NAME'],
    ['a.yaml --out=', '--out takes a non-empty value'],
    ['a.yaml b.yaml --out ./b.yaml', '--out is "./b.yaml", which is read: expected another file'],
    ['a.yaml --kinds x', "Unknown option '--kinds': did you mean --kind?"],
    ['--context c --header x', '--header takes "NAME: VALUE"'],
  ])('are refused: %s', (line, why) => {
    expect(() => parseCommand(['types', ...line.split(' ').filter(Boolean)])).toThrow(`watchmux types: ${why}`);
  });
});

describe('a file', () => {
  const asked = (file: string) => types(parseCommand(['types', file]) as TypesCommand, {} as Output);

  test('that never ends is refused at the limit', async () => {
    await expect(asked('/dev/zero')).rejects.toThrow('watchmux types: "/dev/zero": it has more than 67108864 bytes');
  });

  test('of YAML that is none: one line', async () => {
    const file = join(filesOf({ 'a.yaml': 'a: [' }), 'a.yaml');
    await expect(asked(file)).rejects.toThrow(/^watchmux types: .*a\.yaml": Flow sequence .* at line 1, column 5$/);
  });

  test('is no folder, whatever that is called', async () => {
    const files = filesOf({ 'a.json': crdOf({}, schemaOf({})) });
    mkdirSync(join(files, 'b.yaml'));
    symlinkSync('a.json', join(files, 'b.yaml', 'not.txt'));
    expect(exported(await written(files))).toContain('Widget');
  });

  test('may begin with the mark of UTF-8, and is nothing but UTF-8', async () => {
    const crd = JSON.stringify(crdOf({}, schemaOf({})));
    const marked = filesOf({ 'a.json': `\ufeff${crd}` });
    expect(await written(marked)).toBe(await written(filesOf({ 'a.json': crd })));
    const file = join(filesOf({}), 'wide.json');
    writeFileSync(file, Buffer.from(`\ufeff${crd}`, 'utf16le'));
    await expect(asked(file)).rejects.toThrow('wide.json": it is not UTF-8');
  });
});

describe('the types of a definition', () => {
  test('are those that the tests of types use', async () => {
    const known = readFileSync(WEBSITE.replace('-crd.yaml', '.ts'), 'utf8');
    expect(await written(WEBSITE)).toBe(known.replace('../../src/operator/index.ts', 'watchmux/operator'));
  });

  test('do not depend on the order of the input', async () => {
    const crd = JSON.parse(JSON.stringify(crdOf({}, schemaOf({ b: { type: 'string' }, a: { type: 'integer' } })))) as object;
    const turned = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(turned);
      if (typeof value !== 'object' || value === null) return value;
      const entries = Object.entries(value).map(([key, each]) => [key, turned(each)] as const);
      return Object.fromEntries(entries.reverse());
    };
    const parts = {
      'a.v1.Part': { type: 'object', properties: { b: {}, a: {} } },
      'b.v1.Part': { type: 'object', properties: { c: {} } },
    };
    const tools = document({
      Tool: tool({ y: ref('b.v1.Part'), x: ref('a.v1.Part') }),
      Gear: tool({}, { ...KIND, kind: 'Gear' }),
      ...parts,
    });
    expect(await written(filesOf({ 'a.json': tools }))).toBe(await written(filesOf({ 'a.json': turned(tools) })));
    const gear = crdOf({}, {}, 'gears', 'Gear');
    expect(await written(filesOf({ 'a.json': crd, 'b.json': gear }))).toBe(
      await written(filesOf({ 'a.json': { kind: 'List', items: [turned(gear), turned(crd)] } })),
    );
  });

  test('have the versions that are served, the best without its name', async () => {
    const versions = ['v1alpha1', 'v2', 'v1', 'v10beta2'].map((name) => ({ name, served: name !== 'v1', storage: false }));
    const path = filesOf({ 'a.json': crdOf({ versions }) });
    expect(exported(await written(path)).filter((name) => !METADATA.includes(name))).toEqual([
      ...['Widget', 'WIDGETS', 'WidgetV10beta2', 'WIDGETS_V10BETA2', 'WidgetV1alpha1', 'WIDGETS_V1ALPHA1'],
    ]);
    expect(exported(await written(path, '--kind', 'widgets.example.com/v1alpha1'))).toContain('WIDGETS');
  });

  test('do not share names, whatever these are', async () => {
    const widget = crdOf(
      {},
      schemaOf({
        'a-b': { type: 'object', properties: { c: { type: 'string' } } },
        aB: { type: 'object', properties: { d: { type: 'string' } } },
      }),
    );
    const other = crdOf({ group: 'other.org' });
    const spec = crdOf({}, {}, 'widgetspecs', 'WidgetSpec');
    const meta = crdOf({}, {}, 'objectmetas', 'ObjectMeta');
    const words = ['Kind', 'Record', 'Array', 'Object', 'String', '9'].map((kind, at) =>
      crdOf({}, schemaOf({ a: { type: 'array', items: {} } }), `${at}s`, kind),
    );
    const text = await written(filesOf({ 'a.json': { kind: 'List', items: [widget, other, spec, meta, ...words] } }));
    const names = exported(text);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toEqual(
      expect.arrayContaining(['Widget', 'OtherWidget', 'WIDGETS', 'OTHER_WIDGETS', 'WidgetSpec', 'WidgetSpec2']),
    );
    expect(names).toEqual(
      expect.arrayContaining(['WidgetSpec2AB', 'WidgetSpec2AB2', 'ExampleKind', 'Record', 'Kind9', 'KIND_5S']),
    );
    expect(text).toContain('metadata: MetaObjectMeta & { name: string }');
  });

  test('are of the objects of anything if it has no schema', async () => {
    const text = await written(filesOf({ 'a.json': crdOf({ scope: 'Cluster' }, { schema: undefined }) }));
    expect(text).toContain('  metadata: ObjectMeta & { name: string };\n  [key: string]: unknown;\n}\n');
    expect(text).toContain('namespaced: false');
  });

  test('have literals for enumerations, and null where it is allowed', async () => {
    const path = filesOf({
      'a.json': crdOf(
        {},
        schemaOf({
          a: { type: 'string', enum: ["it's", 'b', null], nullable: true },
          b: { type: 'array', items: { type: 'integer', enum: [1, -2.5] }, nullable: true },
          c: { type: 'object', additionalProperties: { type: 'array', items: { 'x-kubernetes-int-or-string': true } } },
          d: { enum: [{}], type: 'object' },
          e: { type: 'string', enum: ['a | null | b'], nullable: true },
          f: { type: 'object', additionalProperties: { type: 'string', enum: ['a', null, 'b'] }, nullable: true },
          g: { type: ['string', 'null', 'string'], nullable: true },
          h: { anyOf: [{ type: 'string', nullable: true }, { type: ['null', 'integer'] }] },
        }),
      ),
    });
    const text = await written(path);
    expect(text).toContain(`  a?: "it's" | 'b' | null;\n  b?: (1 | -2.5)[] | null;\n`);
    expect(text).toContain(`  c?: { [key: string]: (number | string)[] };\n  d?: object;\n`);
    expect(text).toContain(`  e?: "a | null | b" | null;\n  f?: { [key: string]: 'a' | null | 'b' } | null;\n`);
    expect(text).toContain('  g?: string | null;\n  h?: string | null | number;\n');
  });

  test('have the members of an object once, whatever else it may be', async () => {
    let schema: object = { type: 'string' };
    for (let n = 0; n < 20; n++) {
      schema = { type: ['object', 'object', 'null', 'array', 'list'], properties: { a: schema }, items: { type: 'string' } };
    }
    const text = await written(
      filesOf({ 'a.json': document({ Tool: tool({ spec: schema, other: { type: ['object', 'array'] } }) }) }),
    );
    expect(text).toContain('  spec?: unknown;\n');
    expect(text).toContain('  other?: object | unknown[];\n');
    expect(text.match(/^export interface ToolSpec/gm)).toHaveLength(20);
  });
});

describe('what is refused', () => {
  const refused = (path: string, ...args: string[]): Promise<string> => written(path, ...args).catch(String);

  test('names the place, and what is wrong', async () => {
    let deep: object = { type: 'string' };
    for (let n = 0; n < 101; n++) deep = { type: 'array', items: deep };
    expect(await refused(filesOf({ 'a.json': crdOf({}, schemaOf({ deep })) }))).toMatch(
      /f-\w+: WidgetSpecDeepItem.*: expected a schema of at most 100 levels/,
    );
    const lost = document({ Tool: tool({ spec: ref('nowhere') }) });
    expect(await refused(filesOf({ 'a.json': lost }))).toContain('there is no schema "nowhere", but another one refers to it');
    const none = crdOf({ versions: 'v1' });
    expect(await refused(filesOf({ 'a.json': none }))).toContain('a.json": spec.versions: expected a list, not ""v1""');
    expect(await refused(filesOf({ 'a.json': { openapi: '4.0' } }))).toContain('openapi: expected 3.0 or 3.1, not "4.0"');
    const many = Array.from({ length: 12 }, (_, at) => crdOf({}, {}, `w${at}s`, `W${at}`));
    expect(await refused(filesOf({ 'a.json': { kind: 'List', items: many } }), '--kind', 'x')).toContain(', 2 others');
  });
});

describe('a schema that is hostile, or broken,', () => {
  const refused = (path: string): Promise<string> => written(path).catch(String);

  test('contains itself: it is refused, with its file', async () => {
    const yaml = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  names: { kind: Widget, plural: widgets }
  versions: [{ name: v1, served: true, schema: { openAPIV3Schema: &a { type: object, properties: { spec: *a } } } }]
`;
    expect(await refused(filesOf({ 'a.yaml': yaml }))).toMatch(
      /f-\w+\/a\.yaml": expected a value that JSON can represent, but an alias contains itself/,
    );
    // That one thing stands in several places is no such thing.
    const shared = yaml.replace(
      '&a { type: object, properties: { spec: *a } }',
      '{ properties: { a: &a { type: object }, b: *a } }',
    );
    expect(await written(filesOf({ 'a.yaml': shared }))).toContain('  a?: object;\n  b?: object;\n');
  });

  test('has types without end: they end at a limit, which names the kind and its file', async () => {
    const long = 'x'.repeat(20_000);
    let deep: object = { type: 'string' };
    for (let n = 0; n < 95; n++) deep = { type: 'object', properties: { [long]: deep } };
    expect(await refused(filesOf({ 'a.json': crdOf({}, schemaOf({ deep })) }))).toMatch(
      /Widget of ".*f-\w+\/a\.json": expected types of at most 67108864 characters, together with all others/,
    );
  });

  test('has many objects of one name, and long texts of nothing: neither takes longer for each', async () => {
    const items = { type: 'object', properties: { a: { type: 'string' } } };
    const names = Array.from({ length: 20_000 }, (_, at) => [`${'-'.repeat(at % 10)}x${'-'.repeat(at / 10)}`, items]);
    const text = await written(
      filesOf({ 'a.json': document({ Tool: tool({ spec: { type: 'object', properties: Object.fromEntries(names) } }) }) }),
    );
    expect(text).toContain('export interface ToolSpecX20000 {');
    const list = { kind: 'List', items: Array.from({ length: 200_000 }, () => ({})) };
    expect(await refused(filesOf({ 'a.json': list }))).toContain('there is no CustomResourceDefinition');
  });
});

describe('the types of an OpenAPI document', () => {
  test('follow references, and name a kind without a place by its version', async () => {
    const text = await written(
      filesOf({
        'a.json': document({
          'io.k8s.api.apps.v1.Tool': tool({
            spec: { allOf: [ref('io.k8s.api.apps.v1.ToolSpec')], default: {}, description: 'S.' },
          }),
          'io.k8s.api.apps.v1.ToolSpec': {
            type: 'object',
            properties: { next: ref('io.k8s.api.apps.v1.ToolSpec'), size: ref('q'), policy: { type: 'string', enum: ['A'] } },
          },
          q: { oneOf: [{ type: 'string' }, { type: 'number' }] },
          unused: { type: 'object', properties: { a: ref('nowhere') } },
        }),
      }),
    );
    expect(text).toContain(
      "  /** S. */\n  spec?: ToolSpec;\n}\n\nexport const TOOL: Kind<Tool> = kind<Tool>({ apiVersion: 'apps/v1', kind: 'Tool' });\n",
    );
    expect(text).toContain("  next?: ToolSpec;\n  policy?: 'A' | (string & {});\n  size?: Q;\n");
    expect(text).toContain('export type Q = string | number;\n');
    expect(exported(text)).not.toContain('Unused');
  });

  test('are only of what has a place, if there are paths; what is not kept needs no name', async () => {
    const operation = (action: string, kind: object): object => ({
      'x-kubernetes-action': action,
      'x-kubernetes-group-version-kind': kind,
    });
    const review = { ...KIND, kind: 'Review' };
    const text = await written(
      filesOf({
        'a.json': document(
          { Tool: tool({}), Review: tool({}, review), Eviction: tool({}, { ...KIND, kind: 'Eviction' }) },
          {
            '/apis/apps/v1/namespaces/{namespace}/tools': { get: operation('list', KIND), post: operation('post', KIND) },
            '/apis/apps/v1/tools': { get: operation('list', KIND) },
            '/apis/apps/v1/reviews': { post: operation('post', review) },
            '/apis/apps/v1/namespaces/{namespace}/tools/{name}/eviction': {
              post: operation('post', { ...KIND, kind: 'Eviction' }),
            },
          },
        ),
      }),
    );
    expect(exported(text).filter((name) => !METADATA.includes(name))).toEqual(['Review', 'REVIEWS', 'Tool', 'TOOLS']);
    expect(text).toMatch(/interface Review \{\n.*\n.*\n {2}metadata\?: ObjectMeta;\n\}/);
    expect(text).toMatch(/plural: 'tools',\n {2}kind: 'Tool',\n {2}namespaced: true/);
    expect(text).toMatch(/plural: 'reviews',\n {2}kind: 'Review',\n {2}namespaced: false/);
  });
});

describe('watchmux types URL', () => {
  test('writes for a definition that a server serves what it writes for its file', async () => {
    const server = new ApiServer<string>({ storage: new MemoryStorage(), resources: [], customResourceDefinitions: true });
    const { url, close } = await listening(server);
    try {
      await server
        .resource('customresourcedefinitions.apiextensions.k8s.io/v1')
        .create(parse(readFileSync(WEBSITE, 'utf8')) as object);
      await expect.poll(async () => (await fetch(`${url}/openapi/v3/apis/example.com/v1beta1`)).status).toBe(200);
      const own = (await written(WEBSITE)).replace('/** @deprecated use v1 */\n', '');
      expect(await written(url, '--kind', 'websites')).toBe(own);
      expect(await written(`${url}/openapi/v3`, '--kind', 'Website.example.com/v1')).toContain('export interface WebsiteSpec {');
    } finally {
      await close();
    }
  });
});
