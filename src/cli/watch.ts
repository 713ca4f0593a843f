import type { IncomingMessage } from 'node:http';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { JSON_LINES, WATCH_PATH } from '../bridge/protocol.ts';
import type { Codec } from '../decode/codec.ts';
import { jsonCodec } from '../decode/codec.ts';
import { toDecoder } from '../decode/decoder.ts';
import { StreamWatcher } from '../decode/stream-watcher.ts';
import type { Status, WatchEvent } from '../watch/event.ts';
import { isErrorEvent, isStatus } from '../watch/event.ts';
import type { WatchCommand } from './args.ts';
import { excerpt, MAX_LINE_BYTES } from './lines.ts';

/** An event and the line that it came in: what is printed is what was sent, to the digit. Only our own ERROR has no line. */
interface Printed extends WatchEvent {
  readonly line?: string;
}

/** `watchmux watch`: the events of a server as lines on stdout. Answers the exit code. */
export async function watch({ url }: WatchCommand): Promise<number> {
  const target = new URL(url.pathname === '/' ? WATCH_PATH : url.pathname, url);
  target.search = url.search;
  let response: IncomingMessage;
  try {
    response = await request(target);
  } catch (error) {
    return fail(`cannot connect to ${target.href}: ${reason(error)}`);
  }
  const type = response.headers['content-type'] ?? 'no content type';
  if (response.statusCode !== 200) return fail(`${target.href} answered ${response.statusCode}: ${await said(response)}`);
  if (!type.startsWith(JSON_LINES)) {
    response.destroy();
    return fail(`${target.href} is no watch: it answered with ${excerpt(type)}`);
  }
  return print(response);
}

async function print(response: IncomingMessage): Promise<number> {
  const output = new Output();
  // Escaped, a line of text can be six times as long as it was in the server's input.
  const decoder = toDecoder<Printed>(response, { codec: LINES, maxFrameBytes: 8 * MAX_LINE_BYTES });
  const events = new StreamWatcher<Printed>(decoder);
  output.onGone = () => events.stop();
  let failure: Status | undefined;
  for await (const event of events) {
    failure = isErrorEvent(event) ? event.object : undefined;
    await output.write(`${event.line ?? JSON.stringify(event)}\n`);
    if (output.gone) break;
  }
  if (output.gone) return 0;
  if (failure !== undefined) return fail(`the stream ended with an error: ${excerpt(failure.message)}`);
  return response.complete ? 0 : fail('the connection broke');
}

const json = jsonCodec();
const text = new TextDecoder();
const LINES: Codec<Printed> = { decode: (frame) => ({ ...json.decode(frame), line: text.decode(frame) }) };

/** Standard output: waits for its reader, and knows when there is none any more. */
class Output {
  gone: boolean = false;
  onGone: () => void = () => {};
  private relieve: () => void = () => {};

  constructor() {
    process.stdout.on('drain', () => this.relieve());
    process.stdout.on('error', () => {
      // EPIPE, as a rule: `| head` has seen enough. Whatever it is, nobody reads on.
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

/** Not fetch: that gives up on a stream that says nothing for five minutes. */
function request(target: URL): Promise<IncomingMessage> {
  const get = target.protocol === 'https:' ? getHttps : getHttp;
  return new Promise((resolve, reject) => {
    get(target, { headers: { accept: JSON_LINES }, agent: false }, resolve).on('error', reject);
  });
}

/** Why a server said no: the message of its Status, or the start of its text. */
async function said(response: IncomingMessage): Promise<string> {
  let body = '';
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      body += chunk;
      if (body.length > 10_000) break;
    }
    const status: unknown = JSON.parse(body);
    if (isStatus(status)) return excerpt(String(status.message));
  } catch {
    // No Status, then.
  }
  return excerpt(body.trim());
}

function reason(error: unknown): string {
  const { code, message, errors } = error as NodeJS.ErrnoException & { errors?: readonly Error[] };
  return message || errors?.[0]?.message || code || 'unknown error';
}

function fail(text: string): number {
  process.stderr.write(`watchmux watch: ${text}\n`);
  return 1;
}
