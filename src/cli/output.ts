import { setImmediate } from 'node:timers';
import { whenAborted } from '../watch/abort.ts';
import { type Clock, systemClock, upkeepClock } from '../watch/clock.ts';

/** The part of a standard stream that {@link Output} needs. */
interface StandardStream {
  write(text: string, written?: (error?: Error | null) => void): boolean;
  on(event: 'drain', listener: () => void): unknown;
  on(event: 'error', listener: (error: NodeJS.ErrnoException) => void): unknown;
  readonly writableLength: number;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** The part of standard error that code needs if it does not wait for its reader. */
export interface UnwaitedStream {
  write(text: string): unknown;
  readonly writableLength: number;
}

/** The most that waits for a reader: further lines are only counted. */
export const MAX_WAITING_BYTES = 65_536;

/** How long a reader of the output has after a signal to take what it has not read. */
const PATIENCE_MS = 5_000;

/**
 * Standard output, or standard error. Waits for its reader, and notices when nothing more can be written.
 *
 * A reader that has ended, such as that of `| head`, is not a failure: nobody wants the rest. Anything else is a failure, for
 * example a full disk.
 */
export class Output {
  /** Nothing more can be written. */
  gone: boolean = false;
  /** Why, unless the reader has ended. */
  failure: string | undefined = undefined;
  /** Called once, when it turns out that nothing more can be written. */
  onGone: () => void = () => {};
  private readonly stream: StandardStream;
  private relieve: () => void = () => {};

  constructor(stream: StandardStream) {
    this.stream = stream;
    stream.on('drain', () => this.relieve());
    stream.on('error', ({ code, message }) => {
      if (this.gone) return;
      this.gone = true;
      if (code !== 'EPIPE') this.failure = message;
      this.relieve();
      this.onGone();
    });
  }

  get isTTY(): boolean {
    return this.stream.isTTY === true;
  }

  /** Width of the terminal, in characters. 0 if the terminal does not know. */
  get columns(): number {
    return this.stream.columns || 80;
  }

  /** Writes a text. Resolves when there is room for more, or nothing more can be written. */
  async write(text: string): Promise<void> {
    if (this.gone || this.stream.write(text)) return;
    await new Promise<void>((resolve) => {
      this.relieve = resolve;
    });
  }

  /** Resolves when everything has been written, or nothing more can be. */
  flushed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.gone) {
        resolve();
        return;
      }
      this.relieve = resolve;
      // The callback may come before the event that reports the same error, but in the same turn of the event loop.
      this.stream.write('', () => setImmediate(resolve));
    });
  }

  /** The process is asked to end: a reader that does not read, but has not ended either, cannot hold it up for long. */
  hurry(clock: Clock = systemClock): void {
    upkeepClock(clock).schedule(PATIENCE_MS, () => {
      if (this.gone || this.stream.writableLength === 0) return;
      this.gone = true;
      this.relieve();
      this.onGone();
    });
  }
}

/** Resolves when a signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void whenAborted(signal, () => resolve()));
}

/**
 * The first line of a server: where it listens. If nobody reads it, the server is useless; a reader that has read it and ended
 * is not a failure.
 */
export function announce(output: Output, lines: readonly string[], stop: AbortController): void {
  output.onGone = () => {
    if (output.failure !== undefined) stop.abort('output');
  };
  void output.write(`${lines.join('\n')}\n`);
}

/** A number and what is counted. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
