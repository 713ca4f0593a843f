// A program of another language in which a client of Kubernetes runs, for one test. It prints what its client is told, one line of
// JSON each, and reads lines: `dump` prints what the client has, and `quit`, or the end of the input, ends it.
//
//   program                                                              the test
//     {"type":"added","key":"default/a","resourceVersion":"12"}  ----->
//     {"type":"synced"}                                          ----->
//                                                                <-----  dump
//     {"type":"store","objects":{"default/a":"12"}}              ----->
//                                                                <-----  quit
//
// It ends when the test process does, however that dies: the kernel closes its standard input.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { onTestFailed, TestRunner } from 'vitest';

/** What a program has printed. Each type of line has some of these. */
export interface ProgramLine {
  /** `synced`; `added`, `modified`, `deleted`; `error`; `ended`; `leading`, `stopped`, `leader`; `wrote`, `failed`; `store`. */
  readonly type: string;
  readonly key?: string;
  readonly resourceVersion?: string;
  /** Of an error: that of its Status, or 0. */
  readonly code?: number;
  readonly message?: string;
  /** Of a leader. */
  readonly identity?: string;
  /** Of a write: `create`, `update`, `delete` and so on. */
  readonly verb?: string;
  /** Of a scale. */
  readonly replicas?: number;
  readonly selector?: string;
  /** Versions by `namespace/name`, of a store. */
  readonly objects?: Readonly<Record<string, string>>;
}

/** Versions by `namespace/name`. */
export type Versions = Readonly<Record<string, string>>;

interface Asked {
  readonly resolve: (objects: Versions) => void;
  readonly reject: (error: Error) => void;
}

const END_MS = 5_000;
const LOG_CHARS = 4_000;

/** A running program. See the top of this file. */
export class ClientProgram {
  /** All that it has printed but stores, in order. */
  readonly lines: ProgramLine[] = [];
  /** Settles when it has ended: its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** The end of what it has logged. */
  log: string = '';
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #asked: Asked[] = [];

  constructor(path: string, args: readonly string[]) {
    const child = spawn(path, args);
    this.#child = child;
    // A step that never ends says nothing itself.
    if (TestRunner.getCurrentTest()) {
      onTestFailed(() => console.error([...this.lines.map((line) => JSON.stringify(line)), this.log].join('\n')));
    }
    // It may be gone when it is asked. Its end rejects the promises that wait for it.
    child.stdin.on('error', () => {});
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.log = (this.log + text).slice(-LOG_CHARS);
    });
    createInterface(child.stdout).on('line', (text) => this.#take(JSON.parse(text) as ProgramLine));
    this.ended = new Promise((resolve) => {
      child.on('error', (error) => {
        this.log += String(error);
        resolve(-1);
      });
      child.on('close', (code, signal) => resolve(code ?? (signal as NodeJS.Signals)));
    });
    void this.ended.then((how) => {
      for (const { reject } of this.#asked.splice(0)) reject(new Error(`the program has ended (${how}):\n${this.log}`));
    });
  }

  /** The lines of some types. */
  of(...types: readonly string[]): ProgramLine[] {
    return this.lines.filter(({ type }) => types.includes(type));
  }

  /** What its client has. Rejects if it ends before it says so. */
  dump(): Promise<Versions> {
    return new Promise((resolve, reject) => {
      const { exitCode, signalCode } = this.#child;
      if (exitCode !== null || signalCode !== null) reject(new Error(`the program has ended:\n${this.log}`));
      else {
        this.#asked.push({ resolve, reject });
        this.#child.stdin.write('dump\n');
      }
    });
  }

  /** Writes it a line. */
  tell(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Asks it to end, and kills it if it does not. Resolves as `ended`. */
  async end(): Promise<number | NodeJS.Signals> {
    this.#child.stdin.end('quit\n');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), END_MS);
    const how = await this.ended;
    clearTimeout(late);
    return how;
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  #take(line: ProgramLine): void {
    if (line.type === 'store') this.#asked.shift()?.resolve(line.objects ?? {});
    else this.lines.push(line);
  }
}
