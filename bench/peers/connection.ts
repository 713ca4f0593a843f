/** Connections over TLS, with HTTP/1.1 written and read by hand: what costs the load little, and both servers the same. */
import { connect, type TLSSocket } from 'node:tls';

/** Where a server is, and who may ask it. */
export interface Access {
  readonly port: number;
  readonly ca: string;
  readonly token: string;
}

export function open({ port, ca }: Access): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ca, servername: 'localhost', checkServerIdentity: () => undefined });
    socket
      .setNoDelay(true)
      .once('secureConnect', () => resolve(socket))
      .once('error', reject);
  });
}

/** The head of a request. */
export function headOf(
  method: string,
  path: string,
  { token, body, type = 'json' }: { token: string; body?: string | undefined; type?: string },
): string {
  const about = body === undefined ? '' : `Content-Type: application/${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nAuthorization: Bearer ${token}\r\n${about}\r\n`;
}

const END = Buffer.from('\r\n\r\n');
const LAST = Buffer.from('\r\n0\r\n\r\n');

/** What was answered. */
export interface Answered {
  readonly code: number;
  readonly bytes: number;
  readonly firstByteMs: number;
  readonly body: Buffer;
}

/** One connection for one request after the other. */
export class Requester {
  readonly #socket: TLSSocket;
  readonly #token: string;

  private constructor(socket: TLSSocket, token: string) {
    this.#socket = socket;
    this.#token = token;
  }

  static async open(access: Access): Promise<Requester> {
    return new Requester(await open(access), access.token);
  }

  /** Sends a request, and reads the whole answer. A PATCH is an apply. A body in chunks is returned with its framing. */
  ask(method: string, path: string, object?: object): Promise<Answered> {
    const type = method === 'PATCH' ? 'apply-patch+yaml' : 'json';
    const body = object && JSON.stringify(object);
    return new Promise((resolve, reject) => {
      const began = performance.now();
      const chunks: Buffer[] = [];
      let head: string | undefined;
      let bytes = 0;
      let wanted = Number.POSITIVE_INFINITY;
      let firstByteMs = 0;
      const done = (error?: Error): void => {
        this.#socket.off('data', onData).off('close', onClose);
        if (error || head === undefined) reject(error ?? new Error('no head'));
        else resolve({ code: Number(head.slice(9, 12)), bytes, firstByteMs, body: Buffer.concat(chunks) });
      };
      const onClose = (): void => done(new Error('the connection was closed'));
      const onData = (chunk: Buffer): void => {
        let rest = chunk;
        if (head === undefined) {
          chunks.push(chunk);
          const all = Buffer.concat(chunks);
          const end = all.indexOf(END);
          if (end < 0) return;
          head = all.toString('latin1', 0, end);
          wanted = Number(/content-length: *([0-9]+)/i.exec(head)?.[1] ?? Number.POSITIVE_INFINITY);
          chunks.length = 0;
          rest = all.subarray(end + END.length);
          firstByteMs = performance.now() - began;
        }
        if (rest.length > 0) chunks.push(rest);
        bytes += rest.length;
        if (bytes >= wanted || (wanted === Number.POSITIVE_INFINITY && endsWith(chunks, LAST))) done();
      };
      this.#socket.on('data', onData).on('close', onClose);
      this.#socket.write(headOf(method, path, { token: this.#token, body, type }) + (body ?? ''));
    });
  }

  end(): void {
    this.#socket.destroy();
  }
}

/** Whether the last bytes of some chunks are these. */
function endsWith(chunks: readonly Buffer[], end: Buffer): boolean {
  const last = chunks.at(-1) as Buffer;
  if (last.length >= end.length) return last.compare(end, 0, end.length, last.length - end.length) === 0;
  return Buffer.concat(chunks.slice(-8)).subarray(-end.length).equals(end);
}

/** Takes a body apart that comes in chunks: what is in them is passed on, whatever their borders are. */
export class Unchunked {
  private readonly pass: (bytes: Buffer) => void;
  /** What is left of the chunk. */
  private left: number = 0;
  /** The line with the length of the next chunk, as far as it was read. */
  private line: string = '';

  constructor(pass: (bytes: Buffer) => void) {
    this.pass = pass;
  }

  read(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.left > 0) {
        const end = Math.min(bytes.length, at + this.left);
        this.pass(bytes.subarray(at, end));
        this.left -= end - at;
        at = end;
        continue;
      }
      const end = bytes.indexOf(0x0a, at);
      this.line += bytes.toString('latin1', at, end < 0 ? bytes.length : end + 1);
      if (end < 0) return;
      at = end + 1;
      // The line behind a chunk is empty.
      if (this.line !== '\r\n') this.left = Number.parseInt(this.line, 16);
      this.line = '';
    }
  }
}
