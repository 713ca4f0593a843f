import { jsonLines, serverSentEvents } from './client-lines.ts';
import { ENDED, LOST, UNREADABLE } from './client-machine.ts';
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
    if (signal.aborted) return;
    abort.abort();
    receiver.over({ hintMs, ...end });
  };
  const onField = (name: string, value: string): void => {
    if (name === '') receiver.alive(true);
    if (name === 'retry') hintMs = Number(value) || hintMs;
  };

  const run = async (): Promise<void> => {
    const { fetch, url, headers, sse, maxFrameChars } = opening;
    const wanted = sse ? EVENT_STREAM : JSON_LINES;
    const response = await fetch(url, { headers: { ...headers, accept: wanted }, signal, cache: 'no-store' });
    const { status, body, headers: answered } = response;
    const reader = body?.getReader();
    // A fetch of one's own need not heed the signal.
    const letGo = (): void => void reader?.cancel().catch(() => {});
    if (signal.aborted) letGo();
    else signal.onabort = letGo;
    if (signal.aborted || !reader) return over({ code: status });
    let refusal = '';
    let frame = receiver.frame.bind(receiver);
    let end = (): End => ({ code: ENDED, why: 'the stream ended' });
    if (status === 200) {
      const type = answered.get('content-type');
      if (!type?.includes(sse ? wanted : 'json')) return over({ code: UNREADABLE, why: `the server answered with ${type}` });
      receiver.opened();
    } else {
      frame = (text) => {
        if (refusal.length < MAX_REFUSAL_CHARS) refusal += text;
      };
      end = () => toRefusal(status, refusal, answered.get('retry-after'));
    }
    const parse = sse && status === 200 ? serverSentEvents(maxFrameChars, onField) : jsonLines(maxFrameChars);
    while (!signal.aborted) {
      const { done, value } = await reader.read();
      if (signal.aborted) return;
      receiver.alive();
      try {
        for (const { text, id } of parse(value)) {
          if (gate) await gate;
          if (signal.aborted) return;
          frame(text, id);
        }
      } catch (error) {
        // What the end has cut off counts if it can be read, and is nothing if it cannot.
        if (!done) over(status === 200 ? { code: UNREADABLE, why: messageOf(error) } : end());
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
