import type { ServerResponse } from 'node:http';
import type { Clock } from '../../watch/clock.ts';
import { systemClock } from '../../watch/clock.ts';

/** Bytes that may wait in a narrowed response before it reports that it is full. */
export const LINE_BYTES = 4_096;
/** The highest rate that may be requested. A higher one would not be slow. */
export const MAX_BYTES_PER_SECOND = 10_000_000;

const TICKS_PER_SECOND = 10;

/**
 * Limits the rate of a response, to show what happens to a slow client. A client that merely stops reading shows nothing at
 * first, because the buffers of the system, the browser and the server take 5 to 7 MB. A narrowed response holds little: it
 * reports that it is full at once, and emits `drain` when all bytes are sent.
 */
export function narrow(response: ServerResponse, options: { bytesPerSecond: number; clock?: Clock }): void {
  const { bytesPerSecond, clock = systemClock } = options;
  const line = new NarrowLine(response, { bytesPerSecond, clock });
  response.write = (chunk: string | Uint8Array) => line.push(chunk);
  response.end = ((chunk?: string | Uint8Array) => {
    line.end(chunk);
    return response;
  }) as ServerResponse['end'];
  Object.defineProperty(response, 'writableLength', { get: () => line.bytes });
  response.once('close', () => line.close());
}

/**
 * The line itself.
 *
 *     push --> waiting --(ten times per second, as many bytes as are due)--> the response's ownState write
 */
class NarrowLine {
  /** Bytes waiting. */
  bytes: number = 0;
  private readonly waiting: Uint8Array[] = [];
  private readonly response: ServerResponse;
  /** The response's ownState methods, before they were replaced. */
  private readonly own: { write(chunk: Uint8Array): boolean; end(): void };
  private readonly bytesPerTick: number;
  private readonly clock: Clock;
  private due: number = 0;
  private ended: boolean = false;
  private cancel: (() => void) | undefined = undefined;

  constructor(response: ServerResponse, { bytesPerSecond, clock }: { bytesPerSecond: number; clock: Clock }) {
    this.response = response;
    this.own = { write: response.write.bind(response), end: response.end.bind(response) };
    this.bytesPerTick = bytesPerSecond / TICKS_PER_SECOND;
    this.clock = clock;
  }

  /** Returns whether there is room for more. */
  push(chunk: string | Uint8Array): boolean {
    const copy = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    this.waiting.push(copy);
    this.bytes += copy.length;
    this.schedule();
    return this.bytes < LINE_BYTES;
  }

  end(chunk: string | Uint8Array | undefined): void {
    this.ended = true;
    if (chunk !== undefined) this.push(chunk);
    if (this.bytes === 0) this.own.end();
  }

  /** The response is closed. */
  close(): void {
    this.cancel?.();
  }

  private schedule(): void {
    if (!this.response.destroyed) this.cancel ??= this.clock.schedule(1_000 / TICKS_PER_SECOND, () => this.tick());
  }

  private tick(): void {
    this.cancel = undefined;
    // Fractions of a byte add up.
    this.due += this.bytesPerTick;
    for (let part = this.take(); part.length > 0; part = this.take()) {
      this.due -= part.length;
      this.bytes -= part.length;
      this.own.write(part);
    }
    if (this.bytes > 0) {
      this.schedule();
      return;
    }
    // Idle time does not add up.
    this.due = 0;
    if (this.ended) this.own.end();
    else this.response.emit('drain');
  }

  /** Removes the bytes that are due from the first chunk, and keeps the rest of it. */
  private take(): Uint8Array {
    const first = this.waiting[0];
    const count = Math.floor(this.due);
    if (first === undefined || count === 0) return new Uint8Array(0);
    if (first.length <= count) this.waiting.shift();
    else this.waiting[0] = first.subarray(count);
    return first.subarray(0, count);
  }
}
