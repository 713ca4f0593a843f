import type { IncomingMessage } from 'node:http';
import { type ClientState, connect, type FetchLike, type StateDetail, type WebSocketConstructor } from '../bridge/client.ts';
import { WATCH_PATH } from '../bridge/protocol.ts';
import { type Codec, jsonCodec } from '../decode/codec.ts';
import { createNodeFetch, type NodeFetch } from '../kubernetes/node-fetch.ts';
import { excerpt } from '../pages/words.ts';
import { isErrorEvent, type Status, type WatchEvent } from '../watch/event.ts';
import type { WatchCommand } from './args.ts';
import { harmless, hinted, MAX_LINE_BYTES, withoutSecret } from './lines.ts';
import type { Output } from './output.ts';
import { UsageError } from './usage.ts';

/**
 * An event and the line it came in. The line is printed as it was sent, without leading white space, and with escapes in place of
 * characters that a terminal would act on. Only an ERROR created by the client has no line.
 */
interface Printed extends WatchEvent {
  readonly line?: string;
}

/** `watchmux watch`: prints the events of a server as lines. Returns the exit code. */
export async function watch(command: WatchCommand, output: Output): Promise<number> {
  const { url, transport, resume, reconnect } = command;
  const target = new URL(url.pathname === '/' ? WATCH_PATH : url.pathname, url);
  target.search = url.search;
  const story = new ConnectionStory(target);
  const events = connect<Printed>(target, {
    transport,
    WebSocket: transport === 'websocket' ? story.listenTo(await loadWebSocket()) : undefined,
    fetch: story.fetch,
    resourceVersion: resume,
    codec: story,
    // The path of another server is requested as it is, including its query.
    bookmarks: target.pathname === WATCH_PATH,
    // Reading is only as fast as the reader of the output, so a large buffer in between is useless.
    ...{ capacity: 100, maxBufferedBytes: 1_048_576 },
    // Longer than a hub sends by default, because its limit is an option.
    maxFrameChars: 8 * MAX_LINE_BYTES,
    maxAttempts: reconnect ? undefined : 0,
    reconnectOnEnd: false,
    onStateChange: (state, detail) => {
      if (!story.goesOn(state, detail)) events.stop();
    },
  });
  output.onGone = () => events.stop();
  let last: Printed | undefined;
  for await (const event of events as AsyncIterable<Printed>) {
    last = event;
    if (story.belongs(event)) await output.write(`${harmless(event.line ?? JSON.stringify(event))}\n`);
    if (output.gone) return 0;
  }
  if (output.gone) return 0;
  const failure = story.told ?? (last?.type === 'ERROR' ? story.ending(last) : undefined);
  if (failure === undefined) return 0;
  note(failure);
  return 1;
}

/** A replacement for fetch, which ends a stream that is silent for five minutes. Does not follow redirects. */
const request: NodeFetch = createNodeFetch();

const json = jsonCodec<Printed>();
const text = new TextDecoder();

/** What a server has answered, on either kind of transport. */
interface ServerAnswer {
  readonly status: number;
  readonly type: string | undefined;
  readonly location: string | undefined;
}

/** The history of the connection, for the one line that says why the output ends. */
class ConnectionStory implements Codec<Printed> {
  private opened: boolean = false;
  private failure: Status | undefined = undefined;
  private answer: ServerAnswer | undefined = undefined;
  /** The line that is not an event. */
  private unread: string | undefined = undefined;
  private readonly target: URL;

  constructor(target: URL) {
    this.target = target;
  }

  readonly fetch: FetchLike = async (...asked) => {
    this.answer = this.unread = undefined;
    const response = await request(...asked);
    const { status, headers } = response;
    this.answer = { status, type: headers.get('content-type') ?? undefined, location: headers.get('location') ?? undefined };
    return response;
  };

  /** Returns a WebSocket that reports what a server has answered in place of a handshake, if it is the one of ws. */
  listenTo(type: WebSocketConstructor | undefined): WebSocketConstructor | undefined {
    if (type === undefined || !('on' in type.prototype)) return type;
    const told = (_request: unknown, { statusCode, headers }: IncomingMessage): void => {
      this.answer = { status: statusCode as number, type: headers['content-type'], location: headers.location };
    };
    return class extends type {
      constructor(...asked: ConstructorParameters<WebSocketConstructor>) {
        super(...asked);
        this.on?.('unexpected-response', told as (...args: never[]) => void);
      }
    };
  }

  decode(frame: Uint8Array): Printed {
    const line = text.decode(frame).trimStart();
    try {
      return { ...json.decode(frame), line };
    } catch (error) {
      this.unread = line;
      throw error;
    }
  }

  /** Takes a change of state. Returns false to give up. */
  goesOn(state: ClientState, { error, delayMs }: StateDetail): boolean {
    if (state === 'open') this.opened = true;
    if (state === 'closed') this.failure ??= error;
    if (state !== 'waiting' || error === undefined) return true;
    if (this.opened) {
      note(`${excerpt(wordsOf(error))}; retrying in ${((delayMs ?? 0) / 1_000).toFixed(1)} s`);
      return true;
    }
    // A connection that cannot be made at all is more likely a user's mistake than a temporary failure.
    this.failure = error;
    return false;
  }

  /** Whether to print an event: everything the server sent, and the client's own ERROR if it is about the server's answer. */
  belongs(event: Printed): boolean {
    if (event.line !== undefined) return true;
    const { code } = event.object as Status;
    return this.opened && (code === 422 || code === this.answer?.status);
  }

  /** Why the watch could not start. */
  get told(): string | undefined {
    const { failure, answer, opened } = this;
    if (opened || failure === undefined) return undefined;
    const where = excerpt(withoutSecret(this.target), 200);
    const why = excerpt(hinted(wordsOf(failure)), 200);
    if (answer === undefined) return `cannot connect to ${where}: ${why}`;
    const { status, type, location } = answer;
    if (status === 200) return `${where} is not a watch: it answered with ${excerpt(type ?? 'no content type')}`;
    if (location === undefined || !URL.canParse(location, this.target)) return `${where} answered ${status}: ${why}`;
    return `${where} answered ${status}: try ${excerpt(withoutSecret(new URL(location, this.target)), 200)}`;
  }

  /** Why the watch ended with an ERROR. */
  ending(last: Printed): string {
    if (!this.belongs(last) && this.answer?.status === 200) {
      // A server of something else, or a response that was cut off.
      const { unread } = this;
      return unread === undefined
        ? 'the connection broke'
        : `the stream ended with a line that is not an event: ${excerpt(unread)}`;
    }
    const why = isErrorEvent(last) ? wordsOf(last.object) : JSON.stringify(last.object);
    return `the stream ended with an error: ${excerpt(why)}`;
  }
}

/** What a Status says. Any server may have sent it, without some of its members. */
const wordsOf = ({ message, reason, code }: Partial<Status>): string => `${message || reason || `code ${code}`}`;

/** Loads the optional peer package ws. Without it the host's own WebSocket is used, if there is one. */
async function loadWebSocket(): Promise<WebSocketConstructor | undefined> {
  try {
    return (await import('ws')).WebSocket as unknown as WebSocketConstructor;
  } catch {
    if (globalThis.WebSocket === undefined)
      throw new UsageError('WebSocket needs the package ws here; or use --transport http', 'watch');
    return undefined;
  }
}

function note(text: string): void {
  process.stderr.write(`watchmux watch: ${text}\n`);
}
