import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CLIENT_GO, CLIENT_GO_PROGRAM } from './client-go.ts';
import type { Step } from './measure.ts';

const CLIENT = fileURLToPath(new URL('./client.js', import.meta.url));

/** It is profiled if this process is. */
const PROFILING = process.execArgv.filter((each) => each.startsWith('--cpu-prof'));

/** What a contender must have come to. */
export interface Truth {
  readonly objects: number;
  readonly updates: number;
  readonly sum: string;
}

/** A fresh process with one contender's live copy of the server's collection: a dialogue, one line per line. */
export class ContenderProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;
  #complaint: string = '';

  constructor(contender: string, { url, objects }: { url: string; objects: number }) {
    this.#child =
      contender === CLIENT_GO.name
        ? spawn(CLIENT_GO_PROGRAM, ['--url', url])
        : spawn(process.execPath, [...PROFILING, CLIENT, contender, url, String(objects)]);
    this.#child.stderr.on('data', (text) => (this.#complaint += text));
    this.#child.stdin.on('error', () => {}); // its stdout also ends, and that is handled
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#child.on('error', (error) => (this.#complaint += error.message));
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Resolves when it is synced. */
  async synced(truth: Truth): Promise<Step> {
    return this.#step(truth);
  }

  /** Resolves when it has handled the update of this version. `begin` is called when it waits for that. */
  async updated(version: string, truth: Truth, begin: () => unknown): Promise<Step> {
    this.#child.stdin.write(`updates ${version}\n`);
    await this.#line();
    await begin();
    return this.#step(truth);
  }

  /** Lets the process exit by itself, so that it writes its profile, or kills it. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 5_000);
    await this.#ended;
    clearTimeout(late);
  }

  async #step(truth: Truth): Promise<Step> {
    return checked((await this.#line()) as Step, truth);
  }

  async #line(): Promise<unknown> {
    const { done, value } = await this.#lines.next();
    if (done === true) throw new Error(`the contender's process ended: ${this.#complaint.trim() || 'without a word'}`);
    return JSON.parse(value);
  }
}

/** Returns the same step, or throws if it came to anything but the truth. */
export function checked(step: Step, { objects, updates, sum }: Truth): Step {
  const got = JSON.stringify({ size: step.size, added: step.added, updated: step.updated, sum: step.sum });
  const due = JSON.stringify({ size: objects, added: objects, updated: updates, sum });
  if (got !== due) throw new Error(`wrong answer: ${got} instead of ${due}`);
  return step;
}
