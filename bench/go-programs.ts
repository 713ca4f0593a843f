import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { BENCH } from './paths.ts';
import { CLIENT_GO, CLIENT_GO_FOLDER, CLIENT_GO_PROGRAM } from './stack/client-go.ts';
import type { Entry } from './workload.ts';

/** The Go original: the Broadcaster of Kubernetes' apimachinery, in a separate program that checks its own answers. */
export const GO: Entry = { name: 'Go Broadcaster', queue: 'bounded' };
/** The work queue of Kubernetes' client-go, in another. */
export const GO_QUEUE: Entry = { name: 'client-go queue', queue: 'bounded' };

/** A program in Go, by its name. The informer is in `bench/stack/go`, a module of its own; the others are in `bench/go`. */
type Program = 'fanout' | 'workqueue' | 'informer';

const PROGRAMS: readonly { readonly entry: Entry; readonly program: Program }[] = [
  { entry: GO, program: 'fanout' },
  { entry: GO_QUEUE, program: 'workqueue' },
  { entry: CLIENT_GO, program: 'informer' },
];
const GO_FOLDER = fileURLToPath(new URL('go/', BENCH));
/** Where the sources of a program are, and where it is once it is built. */
const PLACES: Readonly<Record<Program, { readonly module: string; readonly source: string; readonly path: string }>> = {
  fanout: { module: GO_FOLDER, source: '.', path: `${GO_FOLDER}.build/fanout` },
  workqueue: { module: GO_FOLDER, source: './workqueue', path: `${GO_FOLDER}.build/workqueue` },
  informer: { module: CLIENT_GO_FOLDER, source: '.', path: CLIENT_GO_PROGRAM },
};
/** The informer takes a minute or two of processor time, once: on a busy machine that is long. */
const BUILD_LIMIT_MS = 600_000;

/** Where a program is, once it is built. */
export function pathOf(program: Program): string {
  return PLACES[program].path;
}

/** Builds a program. Returns why it is unavailable, or undefined. */
export async function buildGo(program: Program): Promise<string | undefined> {
  const { module, source, path } = PLACES[program];
  try {
    await promisify(execFile)('go', ['build', '-trimpath', '-o', path, source], { cwd: module, timeout: BUILD_LIMIT_MS });
    return undefined;
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    return code === 'ENOENT' ? 'there is no `go` on the PATH' : `go build: ${stderr?.trim().split('\n')[0] ?? error}`;
  }
}

/** Builds the programs that take part, each once. Those that cannot be built are left out, for the reason that is told and returned. */
export async function absentGo(takesPart: (entry: Entry) => boolean): Promise<Map<string, string>> {
  const absent = new Map<string, string>();
  for (const { entry, program } of PROGRAMS) {
    if (!takesPart(entry)) continue;
    process.stderr.write(`building ${entry.name}\n`);
    const why = await buildGo(program);
    if (why === undefined) continue;
    absent.set(entry.name, why);
    process.stderr.write(`${entry.name} is left out: ${why}\n`);
  }
  return absent;
}

/** A dialogue with a program: one line per line. Its answers to `round` have at least `ok`. */
export class GoProgram<Answer extends { readonly ok: boolean }> {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly lines: AsyncIterator<string>;
  private complaint: string = '';

  private constructor(program: Program, args: readonly string[]) {
    this.child = spawn(pathOf(program), args);
    this.child.stderr.on('data', (text) => (this.complaint += text));
    this.child.stdin.on('error', () => {}); // its stdout also ends, and that is handled
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  /** Starts a program, and waits until it is ready. */
  static async start<Answer extends { readonly ok: boolean }>(
    program: Program,
    args: readonly string[],
  ): Promise<GoProgram<Answer>> {
    const started = new GoProgram<Answer>(program, args);
    await started.answer();
    return started;
  }

  async round(): Promise<Answer> {
    this.child.stdin.write('round\n');
    const answer = (await this.answer()) as Answer;
    if (!answer.ok) throw new Error('wrong answer from the Go program');
    return answer;
  }

  end(): void {
    this.child.stdin.end();
  }

  private async answer(): Promise<unknown> {
    const { done, value } = await this.lines.next();
    if (done === true) throw new Error(`the Go program ended: ${this.complaint.trim() || 'without a word'}`);
    return JSON.parse(value);
  }
}
