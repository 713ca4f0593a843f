// `watchmux new operator`: which files it writes, and what they are called. test/e2e/new.test.ts builds and runs them.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import ts from 'typescript';
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { parseCommand } from '../../src/cli/args.ts';
import { newProject } from '../../src/cli/new/new.ts';
import { NAMES_IN_USE, type NewCommand, PACKAGES } from '../../src/cli/new/new-args.ts';
import { Output } from '../../src/cli/output.ts';
import { UsageError } from '../../src/cli/usage.ts';
import { faultsOf } from '../compile.ts';

const template = fileURLToPath(new URL('../../src/cli/new/template', import.meta.url));
const parent = mkdtempSync(join(tmpdir(), 'watchmux-new-'));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1))
    .sort();

/** Runs the command, and returns what it prints. */
async function run(line: string): Promise<string> {
  let printed = '';
  const stream = {
    write: (text: string, written?: () => void): boolean => {
      printed += text;
      written?.();
      return true;
    },
    on: () => undefined,
    writableLength: 0,
  };
  expect(await newProject(parseCommand(line.split(' ')) as NewCommand, new Output(stream), parent)).toBe(0);
  return printed;
}

/** All words that have a meaning in TypeScript, and the names that no binding may have. */
const reservedWords = (): string[] => {
  const all = Array.from({ length: ts.SyntaxKind.LastKeyword - ts.SyntaxKind.FirstKeyword + 1 }, (_, at) =>
    ts.tokenToString(ts.SyntaxKind.FirstKeyword + at),
  );
  return [...all.filter((word) => word !== undefined), 'arguments', 'eval'];
};

function isBindable(name: string): boolean {
  try {
    return new Script(`'use strict'; const ${name} = 0;`) !== undefined;
  } catch {
    return false;
  }
}

/** What is no TypeScript, or no YAML with these texts. */
function faultsIn(folder: string, kind: string): unknown[] {
  return filesIn(folder).flatMap((file): unknown[] => {
    const text = readFileSync(join(folder, file), 'utf8');
    if (file.endsWith('.ts')) {
      const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022) as ts.SourceFile & { parseDiagnostics: unknown[] };
      const bound = Array.from(text.matchAll(/^export const (\w+)/gm), ([, name = '']) => name);
      return [...source.parseDiagnostics, ...bound.filter((name) => !isBindable(name))];
    }
    if (!file.endsWith('crd.yaml')) return [];
    const { names } = parse(text, { version: '1.1' }).spec;
    return Object.values(names).filter(
      (name) => typeof name !== 'string' || !name.toLowerCase().startsWith(kind.toLowerCase().slice(0, -1)),
    );
  });
}

describe('the project', () => {
  test('has these files, and nothing else', async () => {
    const said = await run('new operator website-operator');
    const folder = join(parent, 'website-operator');
    expect(filesIn(folder)).toEqual([
      '.gitignore',
      'Dockerfile',
      'README.md',
      'manifests/crd.yaml',
      'manifests/deployment.yaml',
      'manifests/rbac.yaml',
      'package.json',
      'src/main.ts',
      'src/website.ts',
      'test/website.test.ts',
      'tsconfig.json',
    ]);
    expect(readFileSync(join(folder, 'README.md'), 'utf8').split('\n').length - 1).toBeLessThanOrEqual(20);
    expect(said).toContain('website-operator/ has an operator for websites.example.com. Next:\n\n  cd website-operator\n');
    const readme = readFileSync(join(parent, 'website-operator/README.md'), 'utf8');
    for (const text of [said, readme]) expect(text).toContain('npm pkg set dependencies.watchmux=file:PATH');
    for (const peer of ['re2js', '@marcbachmann/cel-js']) expect(readme).toContain(`npm i -D ${peer}`);
    expect(filesIn(folder).filter((file) => /sample/i.test(readFileSync(join(folder, file), 'utf8')))).toEqual([]);
    const { name, dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    expect({ name, dependencies }).toEqual({
      name: 'website-operator',
      dependencies: { watchmux: `^${manifest.version}` },
    });
  });

  test.each([
    ['bus', '', 'Bus', 'buses.example.com'],
    ['gateway', '--group net.example.org', 'Gateway', 'gateways.net.example.org'],
    ['policy-controller', '', 'Policy', 'policies.example.com'],
    ['inbox', '--kind=HTTPBox', 'HTTPBox', 'httpboxes.example.com'],
    ['operator', '', 'Operator', 'operators.example.com'],
    ['big-web-shop', '', 'BigWebShop', 'bigwebshops.example.com'],
  ])('%s %s: the kind %s, %s', async (name, options, kind, resource) => {
    await run(`new operator ${name} ${options}`.trim());
    const [crd] = parseAllDocuments(readFileSync(join(parent, name, 'manifests/crd.yaml'), 'utf8'));
    expect(crd?.toJS()).toMatchObject({ metadata: { name: resource }, spec: { names: { kind } } });
  });

  test.each(['main', 'main-operator', 'x --kind Main'])('%s: no two of its files have one path', async (line) => {
    await expect(run(`new operator ${line}`)).rejects.toThrow(
      new UsageError('--kind is "Main": expected one whose file is not src/main.ts, which the project already has', 'new'),
    );
    expect(existsSync(join(parent, line.split(' ')[0] ?? ''))).toBe(false);
  });

  test('has names that YAML and JavaScript take for names, whatever word these are; it is refused otherwise', async () => {
    const words = [
      'I',
      'A',
      'Y',
      'N',
      'Ye',
      'Yes',
      'No',
      'On',
      'Off',
      'True',
      'False',
      'Null',
      'Satisfy',
      'Event',
      'Key',
      'Proce',
      'Operator',
    ];
    const stems = reservedWords().flatMap((word) => (word.endsWith('s') ? [word, word.replace(/e?s$/, '')] : []));
    const kinds = new Set([...words, ...stems].map((word) => word.charAt(0).toUpperCase() + word.slice(1)));
    const refused: string[] = [];
    for (const kind of kinds) {
      const name = `k-${kind.toLowerCase()}`;
      const written = await run(`new operator ${name} --kind ${kind} --group x.example`).catch((error: Error) => error);
      if (written instanceof Error) refused.push(kind);
      else expect([kind, faultsIn(join(parent, name), kind)]).toEqual([kind, []]);
    }
    expect(refused.sort()).toEqual([
      'Argument',
      'Extend',
      'False',
      'Implement',
      'N',
      'No',
      'Null',
      'Off',
      'On',
      'Thi',
      'True',
      'Y',
      'Ye',
      'Yes',
    ]);
  });

  test('is written into an empty folder, but not beside what is there', async () => {
    mkdirSync(join(parent, 'empty'));
    await run('new operator empty');
    await expect(run('new operator empty')).rejects.toThrow(
      new UsageError('the folder "empty" is not empty: choose another name, or empty it', 'new'),
    );
    writeFileSync(join(parent, 'file'), '');
    await expect(run('new operator file')).rejects.toThrow('watchmux new: "file" is a file: choose another name');
    expect(readFileSync(join(parent, 'file'), 'utf8')).toBe('');
  });

  test('that cannot be written is one line, and exit code 1', async () => {
    symlinkSync('gone/too', join(parent, 'dangling'));
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestFinished(() => said.mockRestore());
    const command = parseCommand(['new', 'operator', 'dangling']) as NewCommand;
    expect(await newProject(command, new Output({ write: () => true, on: () => undefined, writableLength: 0 }), parent)).toBe(1);
    expect(said.mock.calls).toEqual([
      [expect.stringMatching(/^watchmux new: cannot write "dangling\/[^"]+": E[A-Z]+: [^\n]+\n$/)],
    ]);
  });
});

describe('the template', () => {
  const packages = JSON.parse(readFileSync(join(template, 'package.json'), 'utf8'));

  test('has the versions that this package is tested with', () => {
    const { '@types/node': types, 'typescript-7': typescript, yaml } = manifest.devDependencies;
    expect(packages.devDependencies).toEqual({
      '@types/node': `^${types}`,
      typescript: `^${typescript.slice('npm:typescript@'.length)}`,
      yaml: `^${yaml}`,
    });
    const { engines, dependencies, devDependencies } = packages;
    expect(engines).toEqual(manifest.engines);
    const names = Object.keys({ ...dependencies, ...devDependencies }).filter((name) => !name.startsWith('@'));
    expect(names.sort()).toEqual(PACKAGES);
  });

  test('names nothing as a kind may be called', () => {
    const names = filesIn(template).flatMap((file) => {
      if (!file.startsWith('src/sample')) return [];
      const source = ts.createSourceFile(file, readFileSync(join(template, file), 'utf8'), ts.ScriptTarget.ES2022);
      const found: string[] = [];
      source.forEachChild(function visit(node): void {
        if (ts.isImportSpecifier(node)) found.push(node.name.text);
        node.forEachChild(visit);
      });
      return found;
    });
    expect(names.filter((name) => /^[A-Z]/.test(name)).sort()).toEqual(NAMES_IN_USE);
  });

  test('its image copies what is there', () => {
    const copied = readFileSync(join(template, 'Dockerfile'), 'utf8').matchAll(/^COPY (?!--from)(.*) \S+$/gm);
    const paths = Array.from(copied, ([, list = '']) => list.split(' ')).flat();
    expect(paths.length).toBeGreaterThan(4);
    // npm install, which comes first, writes the lock.
    expect(paths.filter((path) => path !== 'package-lock.json' && !existsSync(join(template, path)))).toEqual([]);
  });
});

test('its compiler accepts the most usual lines about a status', () => {
  const { compilerOptions } = JSON.parse(readFileSync(join(template, 'tsconfig.json'), 'utf8'));
  const { strict, noUncheckedIndexedAccess, exactOptionalPropertyTypes = false } = compilerOptions;
  const text = `
    interface Site { metadata: { generation?: number }; status?: { observedGeneration?: number; url?: string } }
    export function mutate(draft: Site, { url }: { url?: string }): void {
      draft.status ??= {};
      draft.status.observedGeneration = draft.metadata.generation;
      draft.status = { ...draft.status, url };
    }`;
  expect(faultsOf({ 'site.ts': text }, { strict, noUncheckedIndexedAccess, exactOptionalPropertyTypes })).toEqual([]);
});
