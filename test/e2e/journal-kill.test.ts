// A process that writes into a file is killed again and again, at any moment: what it had answered is there, and versions go on.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, expect, test } from 'vitest';
import { runs } from '../runs.ts';

const ROUNDS = runs(15);
const directory = mkdtempSync(join(tmpdir(), 'watchmux-kill-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const WRITER = ts.transpileModule(readFileSync(new URL('journal-kill.ts', import.meta.url), 'utf8'), {
  compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
}).outputText;

/** A number of a key and the version of its write; null: deleted. */
type Answer = readonly [name: string, n: number | null, version: number];
interface Begin {
  readonly begin: number;
  readonly state: Readonly<Record<string, readonly [n: number, version: number]>>;
}

/** Runs the writer until it has answered so many writes, kills it, and tells what it has noted. */
async function writeUntilKilled(answers: number): Promise<{ begin: Begin; answers: Answer[] }> {
  const notes = join(directory, 'notes');
  const child = spawn(process.execPath, ['--input-type=module', '-', join(directory, 'data'), notes], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(WRITER);
  let noted = 0;
  await new Promise<void>((resolve) => {
    child.on('close', () => resolve());
    child.stdout.on('data', (some: Buffer) => {
      noted += some.length;
      if (noted > answers + 1) child.kill('SIGKILL');
    });
  });
  const [begin, ...lines] = readFileSync(notes, 'utf8').split('\n').slice(0, -1);
  return { begin: JSON.parse(begin as string) as Begin, answers: lines.map((line) => JSON.parse(line) as Answer) };
}

test(`what was answered is there after SIGKILL, ${ROUNDS} times`, { timeout: 30_000 + ROUNDS * 5_000 }, async () => {
  /** What was answered of each key last, in the order of versions. */
  const known = new Map<string, Answer>();
  let version = 1;
  for (let round = 0; round < ROUNDS; round++) {
    const { begin, answers } = await writeUntilKilled((round * 37) % 150);
    expect(begin.begin).toBeGreaterThanOrEqual(version);
    for (const [name, n, answered] of known.values()) {
      const found = begin.state[name];
      // The writer may have written once more, without an answer; never less.
      if (found) expect(found[1]).toBeGreaterThanOrEqual(answered);
      if (found && found[1] === answered) expect(found[0]).toBe(n);
      if (!found && n !== null) expect(begin.begin).toBeGreaterThan(answered); // deleted without an answer
      if (!found && n !== null) expect(n % 7).toBe(0);
      if (found && found[1] > answered) expect(found[0]).toBe(n === null ? found[0] : n + 1);
    }
    version = begin.begin;
    known.clear();
    for (const [name, [n, at]] of Object.entries(begin.state)) known.set(name, [name, n, at]);
    for (const answer of [...answers].sort((a, b) => a[2] - b[2])) {
      expect(answer[2]).toBeGreaterThan(begin.begin);
      known.set(answer[0], answer);
      version = Math.max(version, answer[2]);
    }
  }
});
