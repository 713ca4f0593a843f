import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CAPACITY } from './contender.ts';
import { BENCH } from './paths.ts';
import type { Entry, Prepared, Settings } from './workload.ts';

/** The Go original: the Broadcaster of Kubernetes' apimachinery, in a separate program that checks its own answers. */
export const GO: Entry = { name: 'Go Broadcaster', queue: 'bounded' };

const GO_FOLDER = fileURLToPath(new URL('go/', BENCH));
const PROGRAM = `${GO_FOLDER}.build/fanout`;
const BUILD_LIMIT_MS = 300_000;
const FIRST_DELIVERIES = 100_000;

/** Builds the Go program. Returns why it is unavailable, or undefined. */
export async function buildGo(): Promise<string | undefined> {
  try {
    await promisify(execFile)('go', ['build', '-o', '.build/fanout', '.'], { cwd: GO_FOLDER, timeout: BUILD_LIMIT_MS });
    return undefined;
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    return code === 'ENOENT' ? 'there is no `go` on the PATH' : `go build: ${stderr?.trim().split('\n')[0] ?? error}`;
  }
}

interface Answer {
  readonly deliveries: number;
  readonly seconds: number;
  readonly ok: boolean;
}

/** A dialogue with the Go program: one line per line. */
class GoProgram {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly lines: AsyncIterator<string>;
  private complaint: string = '';

  constructor(options: { watchers: number; burst: number; deliveries: number }) {
    const args = Object.entries({ ...options, queue: CAPACITY }).flatMap(([name, value]) => [`--${name}`, String(value)]);
    this.child = spawn(PROGRAM, args);
    this.child.stderr.on('data', (text) => (this.complaint += text));
    this.child.stdin.on('error', () => {}); // its stdout also ends, and that is handled
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  async answer(): Promise<unknown> {
    const { done, value } = await this.lines.next();
    if (done === true) throw new Error(`the Go program ended: ${this.complaint.trim() || 'without a word'}`);
    return JSON.parse(value);
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
}

async function start(size: { watchers: number; burst: number }, deliveries: number): Promise<GoProgram> {
  const program = new GoProgram({ ...size, deliveries });
  await program.answer();
  return program;
}

/** Go publishes its bursts back to back, which suits it best: its watchers run in parallel with the publisher. */
export async function prepareGo(size: { watchers: number; burst: number }, settings: Settings): Promise<Prepared> {
  const least = size.watchers * size.burst;
  const probe = await start(size, Math.max(least, FIRST_DELIVERIES));
  let speed = 0;
  for (let i = 0; i < 3; i++) {
    const { deliveries, seconds } = await probe.round();
    speed = deliveries / seconds;
  }
  probe.end();
  const program = await start(size, Math.max(least, Math.round(speed * (settings.roundMs / 1000))));
  await program.round();
  return {
    async round() {
      const { deliveries, seconds } = await program.round();
      return [deliveries / seconds / 1e6];
    },
    end: () => program.end(),
  };
}

/** Go measures itself, in a new process each time. */
export async function prepareGoLatency({ watchers, events }: { watchers: number; events: number }): Promise<Prepared> {
  const args = ['latency', '--watchers', watchers, '--events', events, '--queue', CAPACITY].map(String);
  return {
    async round() {
      const { stdout } = await promisify(execFile)(PROGRAM, args);
      const { p50Us, p99Us, p999Us, ok } = JSON.parse(stdout) as { p50Us: number; p99Us: number; p999Us: number; ok: boolean };
      if (!ok) throw new Error('wrong answer from the Go program');
      return [p50Us, p99Us, p999Us];
    },
  };
}
