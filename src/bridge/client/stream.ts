import { tried } from '../../watch/errors.ts';
import { EVENT_STREAM, JSON_LINES } from '../protocol.ts';
import { LOST, UNREADABLE } from './machine.ts';
import {
  type Connection,
  type ConnectionEnd,
  MAX_REFUSAL_CHARS,
  messageOf,
  type Opening,
  type Receiver,
  toRefusal,
} from './transport.ts';

/** The part of `fetch` that the client uses. */
export type FetchLike = (
  url: URL,
  init: { headers: Record<string, string>; signal: AbortSignal; cache: 'no-store'; redirect?: 'manual' },
) => Promise<Response>;

/** The part of a browser's global object that the client uses. */
interface Page {
  addEventListener?(type: string, listener: () => void, options: { signal: AbortSignal }): void;
}

interface StreamOpening extends Opening {
  readonly fetch: FetchLike;
  readonly sse: boolean;
}

const lost = (error: unknown): ConnectionEnd => ({
  // Node's fetch says so of what it was asked: no other attempt would go better.
  code: /^(bad port|invalid.+ header)$/.test(messageOf(error)) ? 400 : LOST,
  why: messageOf(error),
});

/**
 * Opens an endless GET response of JSON lines or Server-Sent Events. While it is paused, nothing is read from the network, so the
 * server feels the backpressure. Data of the last network read is kept meanwhile.
 */
export function openStream(opening: StreamOpening, receiver: Receiver): Connection {
  const abort = new AbortController();
  const { signal } = abort;
  let hintMs: number | undefined;
  let refusal = '';
  /** What came last, without a line end. */
  let tail = '';
  let gate: Promise<void> | undefined;
  let open = (): void => {};

  const over = (end: ConnectionEnd): void => {
    if (!signal.aborted) receiver.over({ ...end, hintMs: end.hintMs || hintMs });
  };
  const onField = (name: string, value: string): void => {
    if (!name) receiver.alive(true);
    if (name === 'retry' && /^\d+$/.test(value)) hintMs = +value;
  };

  const run = async (): Promise<ConnectionEnd> => {
    const { fetch, url, headers, sse, maxFrameChars } = opening;
    const accept = sse ? EVENT_STREAM : JSON_LINES;
    const init = { signal, cache: 'no-store', headers: { ...headers, accept } } as const;
    // `fetch` would pass on the caller's headers, all but `authorization`, to wherever a redirect leads.
    const answer = await fetch(url, headers ? { ...init, redirect: 'manual' } : init);
    const { body, headers: answered } = answer;
    const status = answer.status || 302; // browsers show neither where a redirect leads nor its status
    const location = status < 400 && answered.get('location');
    const streams = status === 200;
    const type = answered.get('content-type');
    const end = (): ConnectionEnd =>
      toRefusal(status, location ? `a redirect to ${location.split('?')[0]}` : refusal, {
        retryAfter: answered.get('retry-after'),
        date: answered.get('date'),
      });
    const limit = streams ? maxFrameChars : MAX_REFUSAL_CHARS;
    const parse = streams && sse ? serverSentEvents(limit, onField) : jsonLines(limit);
    const feed = async (chunk?: Uint8Array): Promise<void> => {
      for (const { text, id } of parse(chunk)) {
        if (gate) await gate;
        if (signal.aborted) return;
        if (!chunk) tail = text;
        if (streams) receiver.frame(text, id);
        else refusal += text;
        checkLength(refusal.length, limit);
      }
    };
    const write = (chunk: Uint8Array): Promise<void> => {
      receiver.alive();
      return feed(chunk).catch((error) => over({ code: UNREADABLE, why: messageOf(error) }));
    };

    if (streams && !type?.toLowerCase().includes(sse ? accept : 'json')) over({ code: UNREADABLE, why: `not a stream: ${type}` });
    else if (!signal.aborted) {
      if (streams) receiver.opened();
      else receiver.refusal = end;
    }
    // Even if the connection has already ended: the aborted signal then releases the body, because a custom `fetch` may not.
    const broken = await body?.pipeTo(new WritableStream({ write }), { signal }).catch(lost);
    // JSON that is left without a line end is an event if it can be decoded. Otherwise it was cut off, however the connection has
    // ended; unless it is JSON, as the answer of a server that has no watch here.
    const cut = await feed().catch((error) => ({ ...lost(error), code: isJson(tail) ? UNREADABLE : LOST }));
    return broken ?? cut ?? end();
  };

  run().catch(lost).then(over);
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

const isJson = (text: string): boolean => tried(() => JSON.parse(text)) !== undefined;

/**
 * Takes a chunk of bytes and returns the frames that it completes. Without a chunk, it returns what is left at the end of the
 * stream.
 */
export type Parser = (chunk?: Uint8Array) => Iterable<Frame>;

export interface Frame {
  readonly text: string;
  readonly id?: string | undefined;
}

/** Throws if a frame is longer than `maxFrameChars`. */
export function checkLength(length: number, limit: number): void {
  if (length > limit) throw new RangeError(`longer than maxFrameChars (${limit})`);
}

/**
 * Splits bytes into lines, which end in LF or CRLF. Buffers only the start of one unfinished line. Throws if that is longer than
 * `limit`, and `state` characters around a frame, and for invalid UTF-8.
 */
function splitter(limit: number, extra: number = 0): (chunk?: Uint8Array) => string[] {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  return (chunk) => {
    const lines = utf8.decode(chunk, { stream: !!chunk }).split('\n');
    // Only the new chunk is searched for line ends, so a long line costs O(length) however it is cut into chunks.
    lines[0] = rest + lines[0];
    rest = chunk ? (lines.pop() as string) : '';
    checkLength(rest.length - extra, limit);
    return lines.map((line) => line.replace(/\r$/, ''));
  };
}

/** Parses one frame per line and skips blank lines. The last line needs no line end. */
export function jsonLines(limit: number): Parser {
  const split = splitter(limit);
  return function* (chunk) {
    for (const text of split(chunk)) {
      if (text.trim()) yield { text };
    }
  };
}

/**
 * Parses Server-Sent Events. A blank line completes a message. Throws if the stream ends within a message or a line.
 *
 * Differs from the HTML standard in three points: a bare CR does not end a line, an id belongs to its own message only, and
 * messages with an `event` name are skipped, because a watch has none. A property test compares the rest with eventsource-parser.
 *
 * `onField` receives what does not belong to a message: `retry`, and comments, which have an empty name.
 */
export function serverSentEvents(limit: number, onField: (name: string, value: string) => void): Parser {
  const split = splitter(limit, 'data: '.length);
  let data = '';
  let type = '';
  let id: string | undefined;
  return function* (chunk) {
    const lines = split(chunk);
    if (!chunk && data + lines) throw new Error('cut off');
    for (const line of lines) {
      // The flag `s` is needed because JSON may contain an unescaped U+2028, at which `.` would stop.
      const [, name, value] = /([^:]*):? ?(.*)/s.exec(line) as unknown as [string, string, string];
      if (!line) {
        if (data && /^(message)?$/.test(type)) yield { text: data.slice(0, -1), id };
        data = type = '';
        id = undefined;
      } else if (name === 'data') {
        checkLength(data.length + value.length, limit);
        data += `${value}\n`;
      } else if (name === 'id') {
        if (!value.includes('\0')) id = value;
      } else if (name === 'event') type = value;
      else onField(name, value);
    }
  };
}
