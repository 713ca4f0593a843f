import { EVENT_STREAM, JSON_LINES } from '../protocol.ts';
import { jsonLines, serverSentEvents } from './lines.ts';
import { LOST, UNREADABLE } from './machine.ts';
import type { Connection, End, Opening, Receiver } from './transport.ts';
import { MAX_REFUSAL_CHARS, messageOf, toRefusal } from './transport.ts';

/** The part of `fetch` that the client uses. */
export type FetchLike = (
  url: URL,
  init: { headers: Record<string, string>; signal: AbortSignal; cache: 'no-store'; redirect?: 'manual' },
) => Promise<Response>;

/** The part of a browser's global object that the client uses. */
interface Page {
  addEventListener?(type: string, listener: () => void, options: { signal: AbortSignal }): void;
}

export interface StreamOpening extends Opening {
  readonly fetch: FetchLike;
  readonly sse: boolean;
}

const lost = (error: unknown): End => ({ code: LOST, why: messageOf(error) });

/**
 * Opens an endless GET response of JSON lines or Server-Sent Events. While it is paused, nothing is read from the network, so the
 * server feels the backpressure. Data of the last network read is kept meanwhile.
 */
export function openStream(opening: StreamOpening, receiver: Receiver): Connection {
  const abort = new AbortController();
  const { signal } = abort;
  let hintMs: number | undefined;
  let refusal = '';
  let gate: Promise<void> | undefined;
  let open = (): void => {};

  const over = (end: End): void => {
    if (!signal.aborted) receiver.over({ ...end, hintMs: end.hintMs || hintMs });
  };
  const onField = (name: string, value: string): void => {
    if (!name) receiver.alive(true);
    if (name === 'retry' && /^\d+$/.test(value)) hintMs = +value;
  };

  const run = async (): Promise<void> => {
    const { fetch, url, headers, sse, maxFrameChars } = opening;
    const accept = sse ? EVENT_STREAM : JSON_LINES;
    const init = { signal, cache: 'no-store', headers: { ...headers, accept } } as const;
    // `fetch` would pass on the caller's headers, all but `authorization`, to wherever a redirect leads.
    const answer = await fetch(url, headers ? { ...init, redirect: 'manual' } : init);
    const { body, headers: answered } = answer;
    const status = answer.status || 302; // browsers do not show where a redirect leads, nor that it is one
    const location = status < 400 && answered.get('location');
    const streams = status === 200;
    const type = answered.get('content-type');
    const [retryAfter, date] = [answered.get('retry-after'), answered.get('date')];
    const end = (): End =>
      toRefusal(status, location ? `a redirect to ${location.split('?')[0]}` : refusal, { retryAfter, date });
    const parse = !streams
      ? jsonLines(MAX_REFUSAL_CHARS)
      : sse
        ? serverSentEvents(maxFrameChars, onField)
        : jsonLines(maxFrameChars);
    const feed = async (chunk?: Uint8Array): Promise<void> => {
      for (const { text, id } of parse(chunk)) {
        if (gate) await gate;
        if (signal.aborted) return;
        if (streams) receiver.frame(text, id);
        else refusal += text;
        if (refusal.length > MAX_REFUSAL_CHARS) over(end());
      }
    };
    const write = (chunk: Uint8Array): Promise<void> => {
      receiver.alive();
      return feed(chunk).catch((error) => over(streams ? { code: UNREADABLE, why: messageOf(error) } : end()));
    };

    if (streams && !type?.toLowerCase().includes(sse ? accept : 'json')) over({ code: UNREADABLE, why: `not a stream: ${type}` });
    else if (streams && !signal.aborted) receiver.opened();
    // Even if the connection has already ended: the aborted signal then releases the body, because a custom `fetch` may not.
    const broken = await body?.pipeTo(new WritableStream({ write }), { signal }).catch(lost);
    // A frame cut off by the end of the stream, or of the connection, counts only if it can be decoded.
    await feed().catch(() => {});
    over(broken ?? end());
  };

  run().catch((error) => over(lost(error)));
  // Firefox aborts a page's requests when the user leaves, and never settles a request made after that. If the page is restored
  // from the cache, the client needs a new connection.
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
