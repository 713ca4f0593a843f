import type { ClientState, StateDetail, WebSocketConstructor } from '../bridge/client.ts';
import { connect } from '../bridge/client.ts';
import { WATCH_PATH } from '../bridge/protocol.ts';
import type { Codec } from '../decode/codec.ts';
import { jsonCodec } from '../decode/codec.ts';
import type { Status, WatchEvent } from '../watch/event.ts';
import { isErrorEvent } from '../watch/event.ts';
import type { WatchCommand } from './args.ts';
import { UsageError } from './args.ts';
import { excerpt, MAX_LINE_BYTES } from './lines.ts';
import { request } from './request.ts';

/**
 * An event and the line it came in. The line is printed exactly as it was sent, without leading white space. Only an ERROR
 * created by the client has no line.
 */
interface Printed extends WatchEvent {
  readonly line?: string;
}

/** `watchmux watch`: prints the events of a server as lines on stdout. Returns the exit code. */
export async function watch(command: WatchCommand): Promise<number> {
  const { url, transport, resume, reconnect } = command;
  const target = new URL(url.pathname === '/' ? WATCH_PATH : url.pathname, url);
  target.search = url.search;
  const output = new Output();
  const story = new Story(target);
  const events = connect<Printed>(target, {
    transport,
    WebSocket: transport === 'websocket' ? await loadWebSocket() : undefined,
    fetch: story.fetch,
    resourceVersion: resume,
    codec: LINES,
    // The path of another server is requested as it is, including its query.
    bookmarks: target.pathname === WATCH_PATH,
    // Reading is as fast as the reader of the output, so a large buffer in between is useless.
    ...{ capacity: 100, maxBufferedBytes: 1_048_576 },
    // With escapes, a line can be six times as long as the server's input.
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
    if (story.belongs(event)) await output.write(`${event.line ?? JSON.stringify(event)}\n`);
    if (output.gone) return 0;
  }
  if (output.gone) return 0;
  const failure = story.told ?? (last !== undefined && isErrorEvent(last) ? story.ending(last) : undefined);
  if (failure === undefined) return 0;
  note(failure);
  return 1;
}

const json = jsonCodec<Printed>();
const text = new TextDecoder();
const LINES: Codec<Printed> = { decode: (frame) => ({ ...json.decode(frame), line: text.decode(frame).trimStart() }) };

/** The history of the connection, for the one line that says why the output ends. */
class Story {
  private opened: boolean = false;
  private failure: Status | undefined = undefined;
  private response: Response | undefined = undefined;
  private readonly target: URL;

  constructor(target: URL) {
    this.target = target;
  }

  readonly fetch: typeof request = async (...asked) => {
    this.response = undefined;
    this.response = await request(...asked);
    return this.response;
  };

  /** Takes a change of state. Returns false to give up. */
  goesOn(state: ClientState, { error, delayMs }: StateDetail): boolean {
    if (state === 'open') this.opened = true;
    if (state === 'closed') this.failure ??= error;
    if (state !== 'waiting' || error === undefined) return true;
    if (this.opened) {
      note(`${excerpt(error.message)}; retrying in ${((delayMs ?? 0) / 1_000).toFixed(1)} s`);
      return true;
    }
    // A connection that cannot be made at all is more likely a user's mistake than a temporary failure.
    this.failure = error;
    return false;
  }

  /** Whether to print an event: all that the server sent, and the client's own ERROR if it is about the server's answer. */
  belongs(event: Printed): boolean {
    if (event.line !== undefined) return true;
    const { code } = event.object as Status;
    return this.opened && (code === 422 || code === this.response?.status);
  }

  /** Why the watch could not start. */
  get told(): string | undefined {
    const { failure, response, opened } = this;
    const { href } = this.target;
    if (opened || failure === undefined) return undefined;
    if (response === undefined) return `cannot connect to ${href}: ${excerpt(failure.message)}`;
    if (response.status === 200) {
      const type = response.headers.get('content-type') ?? 'no content type';
      return `${href} is not a watch: it answered with ${excerpt(type)}`;
    }
    return `${href} answered ${response.status}: ${excerpt(failure.message)}`;
  }

  /** Why the watch ended with an ERROR. */
  ending(last: Printed): string {
    if (!this.belongs(last) && this.response?.status === 200) return 'the connection broke';
    return `the stream ended with an error: ${excerpt((last.object as Status).message)}`;
  }
}

/** Loads the optional peer package ws. Without it the host's own WebSocket is used, if there is one. */
async function loadWebSocket(): Promise<WebSocketConstructor | undefined> {
  try {
    return (await import('ws')).WebSocket as unknown as WebSocketConstructor;
  } catch {
    if (globalThis.WebSocket === undefined) throw new UsageError('--transport websocket needs the package ws', 'watch');
    return undefined;
  }
}

/** Standard output. Waits for its reader, and detects when there is none any more. */
class Output {
  gone: boolean = false;
  onGone: () => void = () => {};
  private relieve: () => void = () => {};

  constructor() {
    process.stdout.on('drain', () => this.relieve());
    process.stdout.on('error', () => {
      // Usually EPIPE: the reader, such as `| head`, has ended. After any error, nobody reads the rest.
      this.gone = true;
      this.relieve();
      this.onGone();
    });
  }

  async write(line: string): Promise<void> {
    if (this.gone || process.stdout.write(line)) return;
    await new Promise<void>((resolve) => {
      this.relieve = resolve;
    });
  }
}

function note(text: string): void {
  process.stderr.write(`watchmux watch: ${text}\n`);
}
