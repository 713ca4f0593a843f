import { connect, type Socket } from 'node:net';

/** A connection that asks when the last answer is there. Its requests cost as little as possible. */
export class Connection {
  readonly #socket: Socket;
  #read: Buffer[] = [];
  #length: number = 0;
  #settle: ((answer: Buffer) => void) | undefined;

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1').setNoDelay(true);
    this.#socket.on('data', (chunk: Buffer) => {
      this.#read.push(chunk);
      this.#length += chunk.length;
      if (isWhole(this.#read, this.#length)) {
        const answer = Buffer.concat(this.#read);
        this.#read = [];
        this.#length = 0;
        this.#settle?.(answer);
      }
    });
  }

  get(target: string): Promise<string> {
    return this.#ask(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  }

  put(target: string, body: string): Promise<string> {
    const head = `PUT ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`;
    return this.#ask(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  async #ask(request: string): Promise<string> {
    const answer = await new Promise<Buffer>((resolve, reject) => {
      if (this.#socket.destroyed) reject(new Error('a connection was closed while it was idle'));
      this.#settle = resolve;
      this.#socket.once('close', () => reject(new Error('a connection was closed')));
      this.#socket.once('error', reject);
      this.#socket.write(request);
    });
    this.#socket.removeAllListeners('close').removeAllListeners('error');
    const text = answer.toString();
    if (!text.startsWith('HTTP/1.1 200 ')) throw new Error(`a request was answered with ${text.slice(0, 300)}`);
    return text;
  }
}

const END_OF_CHUNKS = Buffer.from('\r\n0\r\n\r\n');

/** Whether these are a whole answer, with a length or in chunks. */
function isWhole(chunks: readonly Buffer[], length: number): boolean {
  const [first] = chunks;
  const head = first?.toString('latin1', 0, 2_000) ?? '';
  const end = head.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const [, size] = /content-length: (\d+)/i.exec(head.slice(0, end)) ?? [];
  if (size !== undefined) return length >= end + 4 + Number(size);
  const tail = Buffer.concat(chunks.slice(-2));
  return tail.subarray(-END_OF_CHUNKS.length).equals(END_OF_CHUNKS);
}
