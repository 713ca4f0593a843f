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

/** What a browser's global object has. */
interface Page {
  addEventListener?(type: string, listener: () => void, options: { signal: AbortSignal }): void;
}

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
    if (!name) receiver.alive(true);
    if (name === 'retry' && /^\d+$/.test(value)) hintMs = Number(value);
  };

  const run = async (): Promise<void> => {
    const { fetch, url, headers, sse, maxFrameChars } = opening;
    const accept = sse ? EVENT_STREAM : JSON_LINES;
    const { status, body, headers: answered } = await fetch(url, { signal, cache: 'no-store', headers: { ...headers, accept } });
    const streams = status === 200;
    const type = answered.get('content-type');
    let refusal = '';
    const end = (): End => toRefusal(status, refusal, answered.get('retry-after'));
    const parse = sse && streams ? serverSentEvents(maxFrameChars, onField) : jsonLines(maxFrameChars);
    const feed = async (chunk?: Uint8Array): Promise<void> => {
      for (const { text, id } of parse(chunk)) {
        if (gate) await gate;
        if (signal.aborted) return;
        if (streams) receiver.frame(text, id);
        else if (refusal.length < MAX_REFUSAL_CHARS) refusal += text;
      }
    };
    const write = (chunk: Uint8Array): Promise<void> => {
      receiver.alive();
      return feed(chunk).catch((error) => over(streams ? { code: UNREADABLE, why: messageOf(error) } : end()));
    };

    if (streams && !type?.includes(sse ? accept : 'json')) over({ code: UNREADABLE, why: `not a stream: ${type}` });
    else if (streams && !signal.aborted) receiver.opened();
    // Also if all is over by now: the signal lets go of the body, which a fetch of one's own need not do.
    await body?.pipeTo(new WritableStream({ write }), { signal });
    // What the end has cut off counts if it can be read, and is nothing if it cannot.
    await feed().catch(() => {});
    over(end());
  };

  run().catch((error) => over({ code: LOST, why: messageOf(error) }));
  // Firefox ends what a page reads as it begins to leave it, and what is asked for after that never: it outlives the page.
  (globalThis as Page).addEventListener?.('pagehide', () => over({ code: LOST, why: 'pagehide' }), { signal });
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
