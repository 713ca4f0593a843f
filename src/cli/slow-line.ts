import type { ServerResponse } from 'node:http';
import type { Clock } from '../watch/clock.ts';
import { systemClock } from '../watch/clock.ts';

/** Bytes that wait in a narrow line before it says that it is full. */
export const LINE_BYTES = 4_096;
/** The most that may be asked for: more is no narrow line. */
export const MAX_BYTES_PER_SECOND = 10_000_000;

const TICKS_PER_SECOND = 10;

/**
 * Makes the way out of a response narrow, so that one can see what becomes of a slow client. A client that merely stops reading
 * shows nothing for long: buffers of the system, of the browser and of the server take 5 to 7 MB first. Here that much does not
 * fit: whoever writes is told at once that there is no room, and of a drain when all has gone.
 *
 *     write --> waiting --(so many bytes, ten times a second)--> the response's own write
 */
export function narrow(response: ServerResponse, options: { bytesPerSecond: number; clock?: Clock }): void {
  const { bytesPerSecond, clock = systemClock } = options;
  const own = { write: response.write.bind(response), end: response.end.bind(response) };
  const waiting: Uint8Array[] = [];
  let bytes = 0;
  let due = 0;
  let ended = false;
  let cancel: (() => void) | undefined;

  const tick = (): void => {
    cancel = undefined;
    // What is less than a byte per tick adds up.
    due += bytesPerSecond / TICKS_PER_SECOND;
    for (let part = take(waiting, Math.floor(due)); part.length > 0; part = take(waiting, Math.floor(due))) {
      due -= part.length;
      bytes -= part.length;
      own.write(part);
    }
    if (bytes > 0) {
      schedule();
      return;
    }
    // Time in which there was nothing to send is not made up for.
    due = 0;
    if (ended) own.end();
    else response.emit('drain');
  };
  const schedule = (): void => {
    if (!response.destroyed) cancel ??= clock.schedule(1_000 / TICKS_PER_SECOND, tick);
  };
  const push = (chunk: string | Uint8Array): boolean => {
    const copy = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    waiting.push(copy);
    bytes += copy.length;
    schedule();
    return bytes < LINE_BYTES;
  };

  response.write = push;
  response.end = ((chunk?: string | Uint8Array) => {
    ended = true;
    if (chunk !== undefined) push(chunk);
    if (bytes === 0) own.end();
    return response;
  }) as ServerResponse['end'];
  Object.defineProperty(response, 'writableLength', { get: () => bytes });
  response.once('close', () => cancel?.());
}

/** Takes so many bytes off the front; of a chunk that is cut, the rest stays. */
function take(chunks: Uint8Array[], count: number): Uint8Array {
  const first = chunks[0];
  if (first === undefined || count === 0) return new Uint8Array(0);
  if (first.length <= count) chunks.shift();
  else chunks[0] = first.subarray(count);
  return first.subarray(0, count);
}
