// `watchmux types` as a program: files, a server and a cluster, and what the compiler says of the result beside the built package.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { faultsOf } from '../compile.ts';
import { killAll, run, serve } from './cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'watchmux-types-'));
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const WEBSITE = here('../types/website-crd.yaml');

afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});

/** What a run prints, and its exit code. */
async function types(...args: string[]): Promise<{ code: unknown; out: string; err: string }> {
  const done = run('types', ...args);
  const code = await done.exit;
  return { code, out: done.out(), err: done.err() };
}

function fileOf(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

describe('watchmux types FILE', () => {
  test('writes to stdout, or to a file, the same', async () => {
    const out = join(folder, 'out.ts');
    const printed = await types(WEBSITE);
    expect([printed.code, printed.err]).toEqual([0, '']);
    expect(await types(WEBSITE, '--out', out)).toEqual({ code: 0, out: '', err: '' });
    expect(readFileSync(out, 'utf8')).toBe(printed.out);
    const known = readFileSync(here('../types/website.ts'), 'utf8');
    expect(printed.out).toBe(known.replace('../../src/operator/index.ts', 'watchmux/operator'));
  });

  test('what it writes compiles as a module of its own, and runs', async () => {
    const project = join(folder, 'project');
    mkdirSync(join(project, 'src'), { recursive: true });
    expect((await types(WEBSITE, '--out', join(project, 'src', 'website.ts'))).code).toBe(0);
    writeFileSync(
      join(project, 'src', 'main.ts'),
      `import { controller } from 'watchmux/operator';
import { WEBSITES } from './website.js';
export const websites: unknown = controller({ for: WEBSITES, reconcile: ({ object }) => void object?.spec.image.length });
console.log(JSON.stringify(WEBSITES));
`,
    );
    writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(here('../..'), join(project, 'node_modules', 'watchmux'));
    const strict = ['strict', 'exactOptionalPropertyTypes', 'isolatedDeclarations', 'declaration', 'verbatimModuleSyntax'];
    const compilerOptions = {
      ...Object.fromEntries([...strict, 'noUncheckedIndexedAccess', 'noUnusedLocals'].map((name) => [name, true])),
      ...{ module: 'nodenext', target: 'es2022', outDir: 'out', rootDir: 'src', skipLibCheck: true, types: [] },
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['src'] }));
    const execute = promisify(execFile);
    const compiler = here('../../node_modules/typescript-7/bin/tsc');
    await execute(process.execPath, [compiler, '-p', project]).catch(({ stdout }: { stdout: string }) => {
      throw new Error(stdout);
    });
    const { stdout } = await execute(process.execPath, [join(project, 'out', 'main.js')]);
    expect(JSON.parse(stdout)).toMatchObject({ plural: 'websites', kind: 'Website' });
  });

  test.each([
    [
      'a.yaml',
      'kind: ConfigMap\n',
      /a\.yaml": there is no CustomResourceDefinition of apiextensions\.k8s\.io\/v1 with a version/,
    ],
    ['b.yaml', 'a: 1\n---\na: [\n', /b\.yaml": /],
    [
      'c.yaml',
      'a: 1\n---\nkind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1beta1\n',
      /c\.yaml": document 2: apiVersion: expected apiextensions\.k8s\.io\/v1, not "apiextensions/,
    ],
    [
      'd.yaml',
      'a: 1\n---\nkind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: { name: a }\nspec: { group: 1 }\n',
      /d\.yaml": document 2: spec\.group: expected a text, not "1"\n/,
    ],
    ['e.json', '{ "swagger": "2.0" }', /e\.json": swagger: expected an OpenAPI v3 document, not "2\.0"\n/],
  ])('names the file, the document, and what was expected: %s', async (name, text, expected) => {
    const { code, out, err } = await types(fileOf(name, text));
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(expected);
  });

  test('names what is missing, and what does not fit', async () => {
    expect(await types(WEBSITE, '--kind', 'shops')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^watchmux types: --kind "shops": expected a kind of .*, which has Website\.example\.com\n$/),
    });
    expect(await types(join(folder, 'none.yaml'))).toMatchObject({ code: 2, err: expect.stringContaining('ENOENT') });
    expect(await types(WEBSITE, '--out', folder)).toMatchObject({ code: 1, err: expect.stringContaining('cannot write') });
    expect(await types()).toMatchObject({ code: 2, err: expect.stringContaining('missing FILE or URL') });
    const twice = fileOf('twice.yaml', `${readFileSync(WEBSITE, 'utf8').replace('minimum: 0', 'minimum: 1')}`);
    expect(await types(WEBSITE, twice)).toMatchObject({
      code: 2,
      err: expect.stringMatching(
        /Website of example\.com\/v1 is in ".*website-crd\.yaml" and, with other content, in ".*twice\.yaml"/,
      ),
    });
    expect((await types(WEBSITE, WEBSITE)).code).toBe(0);
  });
});

describe('watchmux types of a server', () => {
  test('by its URL, with a token, and by a context of a kubeconfig', async () => {
    const server = await serve('--crd', WEBSITE, '--token', 'secret');
    const file = await types(WEBSITE, '--kind', 'web.example.com/v1');
    const byUrl = await types(server.url, '--token', 'secret', '--kind', 'website/v1', '--kind', 'websites.example.com/v1');
    expect(byUrl).toMatchObject({ code: 2, err: expect.stringContaining('--kind "website/v1"') });
    const served = await types(server.url, '--token', 'secret', '--kind', 'websites.example.com/v1');
    expect(served).toEqual({ code: 0, out: file.out, err: '' });
    expect(await types(server.url, '--kind', 'pods')).toMatchObject({ code: 1, err: expect.stringContaining('401') });
    const config = fileOf(
      'config',
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: server.url } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        users: [{ name: 'u', user: {} }],
        'current-context': 'none',
      }),
    );
    // Over plain HTTP a cluster sends no token.
    const header = ['--header', 'authorization: Bearer secret'];
    const all = await types('--kubeconfig', config, '--context', 'x', ...header);
    expect([all.code, all.err]).toEqual([0, '']);
    expect(faultsOf({ 'kinds.ts': all.out })).toEqual([]);
    expect(all.out).toContain('export const CONFIGMAPS: ');
    expect(all.out).toContain('export interface WebsiteV1beta1Spec {');
    expect(await types('--kubeconfig', config, ...header)).toMatchObject({ code: 2, err: expect.stringContaining('context') });
  });

  test('that is not there, or is none', async () => {
    const server = await serve();
    expect(await types(`${server.url}/nothing`)).toMatchObject({ code: 1, err: expect.stringContaining('404') });
    server.child.kill('SIGKILL');
    await server.exit;
    expect(await types(server.url)).toMatchObject({ code: 1, err: expect.stringMatching(/^watchmux types: cannot read http/) });
  });
});
