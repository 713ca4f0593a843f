// Several processes on one file of SQLite: each sees what the others write, and one that is killed loses nothing that it has answered.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { SqliteStorage } from '../../src/storage/sqlite/index.ts';
import type { StorageEvent } from '../../src/storage/storage.ts';
import { component, isMissing } from '../components.ts';
import { runs } from '../runs.ts';

const missing = isMissing(component('node:sqlite'));
const ROUNDS = runs(15);
const directory = mkdtempSync(join(tmpdir(), 'watchmux-sqlite-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const WRITER = ts.transpileModule(readFileSync(new URL('sqlite-writer.ts', import.meta.url), 'utf8'), {
  compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
}).outputText;

interface Thing {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly n: number;
}
/** A number of a key and the version of its write. */
type Answer = readonly [name: string, n: number, version: string];

/** Runs a writer to its end, or until it has answered so many writes; tells what it has noted. */
async function write(file: string, { limit, killAfter }: { limit: number; killAfter?: number }): Promise<Answer[]> {
  const notes = join(directory, `notes-${crypto.randomUUID()}`);
  writeFileSync(notes, '');
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-', file, notes, `${limit}`], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(WRITER);
  let noted = 0;
  await new Promise<void>((resolve) => {
    child.on('close', () => resolve());
    child.stdout.on('data', (some: Buffer) => {
      noted += some.length;
      if (killAfter !== undefined && noted > killAfter) child.kill('SIGKILL');
    });
  });
  const lines = readFileSync(notes, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Answer);
}

function open(name: string): { readonly file: string; readonly storage: SqliteStorage } {
  const file = join(directory, name);
  const storage = new SqliteStorage({ file, synchronous: 'NORMAL' });
  onTestFinished(() => storage.close());
  return { file, storage };
}

const shown = ({ type, object }: StorageEvent<Thing>): string => {
  const { metadata, n } = object as Thing;
  return `${type} ${metadata.name}=${n}@${metadata.resourceVersion}`;
};

test.skipIf(missing)(
  'writers in three processes: every watch has all of their writes, in order, with their versions',
  async () => {
    const { file, storage } = open('shared');
    const things = storage.scope<Thing>('things/');
    const watch = await things.watch({ resourceVersion: await storage.currentVersion() });
    const own = async (): Promise<Answer[]> => {
      const answers: Answer[] = [];
      for (let n = 1; n <= 40; n++) {
        const { metadata } = await things.update('own', () => ({ metadata: { name: 'own' }, n }), { createIfMissing: true });
        answers.push(['own', n, metadata.resourceVersion as string]);
      }
      return answers;
    };
    // The keys of the two others are the same.
    const answers = (await Promise.all([own(), write(file, { limit: 20 }), write(file, { limit: 20 })])).flat();
    expect(answers).toHaveLength(40 + 2 * 4 * 20);
    const seen: StorageEvent<Thing>[] = [];
    // An update whose result is there already writes nothing: it has the version of the other's write.
    const written = new Map(answers.map((answer) => [answer[2], answer]));
    while (seen.length < written.size) seen.push((await watch.next()).value as StorageEvent<Thing>);
    const inOrder = [...written.values()].sort(([, , one], [, , other]) => Number(one) - Number(other));
    expect(seen.map((event) => shown(event).replace(/^\w+ /, ''))).toEqual(inOrder.map(([name, n, at]) => `${name}=${n}@${at}`));
    await watch.return();
  },
);

test.skipIf(missing)(
  `what was answered is there after SIGKILL, ${ROUNDS} times, and others go on`,
  {
    timeout: 30_000 + ROUNDS * 5_000,
  },
  async () => {
    const { file, storage } = open('killed');
    const things = storage.scope<Thing>('things/');
    let version = await storage.currentVersion();
    for (let round = 0; round < ROUNDS; round++) {
      const answers = await write(file, { limit: 1_000_000, killAfter: (round * 37) % 150 });
      const own = await things.update('own', () => ({ metadata: { name: 'own' }, n: round + 1 }), { createIfMissing: true });
      const seen = new Map<string, string>();
      const watch = await things.watch({ resourceVersion: version });
      for (let last = ''; last !== `own=${round + 1}`; ) {
        const { metadata, n } = ((await watch.next()).value as StorageEvent<Thing>).object as Thing;
        last = `${metadata.name}=${n}`;
        seen.set(metadata.resourceVersion as string, last);
      }
      await watch.return();
      for (const [name, n, at] of answers) expect(seen.get(at)).toBe(`${name}=${n}`);
      version = own.metadata.resourceVersion as string;
    }
  },
);
