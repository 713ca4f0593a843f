// A server that speaks gRPC as etcd does, and answers what a test wants: also what no etcd would. The real one is in test/peers.
import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { FrameReader, toFrame } from '../../src/storage/etcd/wire/call-stream.ts';
import { RANGE } from '../../src/storage/etcd/wire/channel.ts';
import { ProtoWriter } from '../../src/storage/etcd/wire/messages.ts';

export const STATUS = '/etcdserverpb.Maintenance/Status';
const text = new TextEncoder();

/** A message of etcd's answers. */
export const header = (revision: number, term = 2): Uint8Array =>
  new ProtoWriter().int64(1, 1).int64(3, revision).int64(4, term).finish();
export const keyValue = (key: string, value: string, { created = 1, modified = 1 } = {}): Uint8Array =>
  new ProtoWriter().bytes(1, text.encode(key)).int64(2, created).int64(3, modified).bytes(5, text.encode(value)).finish();
export function range(revision: number, kvs: readonly Uint8Array[] = [], term = 2): Uint8Array {
  const writer = new ProtoWriter().message(1, header(revision, term));
  for (const kv of kvs) writer.message(2, kv);
  return writer.int64(4, kvs.length).finish();
}
export const status = (version: string): Uint8Array =>
  new ProtoWriter().message(1, header(1)).bytes(2, text.encode(version)).finish();
export const put = (kv: Uint8Array, previous?: Uint8Array): Uint8Array =>
  new ProtoWriter().message(2, kv).bytes(3, previous).finish();
export function watchResponse(
  revision: number,
  events: readonly Uint8Array[] = [],
  { created = false, compacted = 0, fragment = false } = {},
): Uint8Array {
  const writer = new ProtoWriter()
    .message(1, header(revision))
    .bool(3, created)
    .bool(4, compacted > 0)
    .int64(5, compacted)
    .bool(7, fragment);
  for (const event of events) writer.message(11, event);
  return writer.finish();
}

/** One call, as a test answers it. */
export class FakeCall {
  readonly path: string;
  readonly stream: ServerHttp2Stream;
  readonly headers: Record<string, unknown>;
  readonly messages: Uint8Array[] = [];
  #take: ((message: Uint8Array) => void) | undefined;

  constructor(stream: ServerHttp2Stream, headers: Record<string, unknown>) {
    this.stream = stream;
    this.headers = headers;
    this.path = String(headers[':path']);
    stream.on('error', () => {});
    const frames = new FrameReader(2 ** 30);
    stream.on('data', (chunk: Uint8Array) => {
      frames.push(chunk);
      for (let message = frames.read(); message; message = frames.read()) {
        this.messages.push(message);
        this.#take?.(message);
      }
    });
  }

  /** Hands over the messages that come from now on. */
  each(take: (message: Uint8Array) => void): void {
    this.#take = take;
  }

  /** Begins an answer that goes on. */
  open(more: Record<string, string | number> = {}): this {
    this.stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...more }, { waitForTrailers: true });
    return this;
  }

  send(message: Uint8Array): this {
    this.stream.write(toFrame(message));
    return this;
  }

  end(code = 0, message = ''): void {
    this.stream.on('wantTrailers', () => {
      this.stream.sendTrailers({ 'grpc-status': `${code}`, ...(message && { 'grpc-message': encodeURIComponent(message) }) });
    });
    this.stream.end();
  }

  answer(message: Uint8Array): void {
    this.open().send(message).end();
  }

  refuse(code: number, message: string): void {
    this.open().end(code, message);
  }
}

/** How a test answers the calls of a path. Others are answered as an etcd of 3.7 with nothing in it does. */
export type Answers = Partial<Record<string, (call: FakeCall, count: number) => void>>;

export class FakeEtcd {
  readonly calls: FakeCall[] = [];
  pings: number = 0;
  readonly #server: Http2Server = createServer();
  readonly #sessions: Set<ServerHttp2Session> = new Set();
  readonly #answers: Answers;

  constructor(answers: Answers) {
    this.#answers = answers;
    this.#server.on('session', (session) => {
      this.#sessions.add(session);
      session.on('error', () => {});
      session.on('ping', () => this.pings++);
      session.on('close', () => this.#sessions.delete(session));
    });
    this.#server.on('stream', (stream, headers) => this.#answer(new FakeCall(stream, headers)));
  }

  static async start(answers: Answers = {}): Promise<FakeEtcd> {
    const fake = new FakeEtcd(answers);
    fake.#server.listen(0, '127.0.0.1');
    await once(fake.#server, 'listening');
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  /** The calls of a path. */
  of(path: string): FakeCall[] {
    return this.calls.filter((call) => call.path === path);
  }

  /** Breaks every connection. */
  cut(): void {
    for (const session of this.#sessions) session.destroy();
  }

  /** Says on every connection that it takes no new calls. Those that are open go on. */
  leave(): void {
    for (const session of this.#sessions) session.goaway();
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #answer(call: FakeCall): void {
    this.calls.push(call);
    const answer = this.#answers[call.path];
    if (answer) answer(call, this.of(call.path).length);
    else if (call.path === STATUS) call.answer(status('3.7.0'));
    else if (call.path === RANGE) call.answer(range(7));
    else call.refuse(12, `nobody answers ${call.path}`);
  }
}
