import { jsonLines, serverSentEvents } from './client-lines.ts';
import { LOST, UNREADABLE } from './client-machine.ts';
import type { Connection, End, Opening, Receiver } from './client-transport.ts';
import { MAX_REFUSAL_CHARS, messageOf, toRefusal } from './client-transport.ts';
import { EVENT_STREAM, JSON_LINES } from './protocol.ts';

/** What is used of `fetch`. */
export type FetchLike = (
  url: URL,
  init: { headers: Record<string, string>; signal: AbortSignal; cache: 'no-store' },
) => Promise<Response>;

/** How to ask. */
export interface StreamOpening extends Opening {
  readonly fetch: FetchLike;
  readonly sse: boolean;
}

/**
 * A GET whose answer does not end, as lines of JSON or as Server-Sent Events. While it is paused nothing is read, so that the
 * server feels it; what the last read of the network brought is kept until then.
 */
export function openStream(opening: StreamOpening, receiver: Receiver): Connection {
  const abort = new AbortController();
  const { signal } = abort;
  let hintMs: number | undefined;
  let gate: Promise<void> | undefined;
  let open = (): void => {};

  const over = (end: End): void => {
    if (!signal.aborted) receiver.over({ ...end, hintMs: end.hintMs || hintMs });
  };
  const onField = (name: string, value: string): void => {
    if (name === '') receiver.alive(true);
    if (name === 'retry' && /^\d+$/.test(value)) hintMs = Number(value);
  };

  const run = async (): Promise<void> => {
    const { fetch, url, headers, sse, maxFrameChars } = opening;
    const accept = sse ? EVENT_STREAM : JSON_LINES;
    const response = await fetch(url, { headers: { ...headers, accept }, signal, cache: 'no-store' });
    const { status, body, headers: answered } = response;
    const reader = body?.getReader();
    // A fetch of one's own need not heed the signal.
    const letGo = (): void => void reader?.cancel().catch(() => {});
    signal.onabort = letGo;
    if (signal.aborted) return letGo();
    if (!reader) return over({ code: status });
    const streams = status === 200;
    const type = answered.get('content-type');
    if (streams) {
      if (!type?.includes(sse ? accept : 'json')) return over({ code: UNREADABLE, why: `the server answered ${type}` });
      receiver.opened();
    }
    let refusal = '';
    const end = (): End => toRefusal(status, refusal, answered.get('retry-after'));
    const parse = sse && streams ? serverSentEvents(maxFrameChars, onField) : jsonLines(maxFrameChars);
    while (!signal.aborted) {
      const { done, value } = await reader.read();
      if (signal.aborted) return;
      receiver.alive();
      try {
        for (const { text, id } of parse(value)) {
          if (gate) await gate;
          if (signal.aborted) return;
          if (streams) receiver.frame(text, id);
          else if (refusal.length < MAX_REFUSAL_CHARS) refusal += text;
        }
      } catch (error) {
        // What the end has cut off counts if it can be read, and is nothing if it cannot.
        if (!done) over(streams ? { code: UNREADABLE, why: messageOf(error) } : end());
      }
      if (done) over(end());
    }
  };

  run().catch((error) => over({ code: LOST, why: messageOf(error) }));
  return {
    pause: (paused) => {
      open();
      gate = paused
        ? new Promise((resolve) => {
            open = resolve;
          })
        : undefined;
    },
    close: () => {
      abort.abort();
      open();
    },
  };
}
