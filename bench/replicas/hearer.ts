import { connect, type Socket } from 'node:net';
import { THINGS_PATH } from '../server/contenders.ts';
import { faultOf } from '../server/objects.ts';

const LINE_END = 10;
const RETURN = 13;
const NOTHING = Buffer.alloc(0);

/** Counts the events in what is read of a watch over HTTP, and keeps the last one. A line that ends with `\r\n` is HTTP's own. */
export class EventCounter {
  count: number = 0;
  /** JSON. */
  last: Buffer = NOTHING;
  #rest: Buffer = NOTHING;

  read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let from = 0;
    for (let at = bytes.indexOf(LINE_END); at >= 0; at = bytes.indexOf(LINE_END, from)) {
      if (bytes[at - 1] !== RETURN) {
        this.count++;
        this.last = bytes.subarray(from, at);
      }
      from = at + 1;
    }
    this.#rest = bytes.subarray(from);
  }
}

/**
 * A watch of all Things that counts what it is told. To parse every event would cost more than what is measured; all are counted, and
 * the last one is compared with what was written.
 */
export class Hearer {
  readonly port: number;
  /** The version after which it began. */
  readonly #from: string;
  readonly #events: EventCounter;
  #due: number = 0;
  #socket: Socket | undefined;
  #awaited: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined;
  #failed: Error | undefined;

  constructor(port: number, from: string, events: EventCounter = new EventCounter()) {
    this.port = port;
    this.#from = from;
    this.#events = events;
  }

  /** Resolves when the watch is accepted. */
  open(): Promise<void> {
    const socket = connect(this.port, '127.0.0.1');
    this.#socket = socket;
    socket.write(`GET ${THINGS_PATH}?watch=true&resourceVersion=${this.#from} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    return new Promise((resolve, reject) => {
      let head = NOTHING;
      const onHead = (chunk: Buffer): void => {
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        if (head.toString('latin1', 0, 13) !== 'HTTP/1.1 200 ') {
          this.#fail(`was answered with ${head.toString()}`);
          socket.destroy();
          return;
        }
        socket.off('data', onHead).on('data', (more: Buffer) => this.#take(more));
        this.#take(head.subarray(end + 4));
        resolve();
      };
      socket.on('data', onHead);
      socket.on('error', (error) => this.#fail(`failed: ${error.message}`));
      socket.on('close', () => {
        this.#fail('has ended');
        reject(this.#failed);
      });
    });
  }

  close(): void {
    this.#socket?.removeAllListeners('close').destroy();
  }

  /** A watch that goes on where this one is, at the same replica. */
  successor(): Hearer {
    const version = /"resourceVersion":"(\d+)"/.exec(this.#events.last.toString('latin1'))?.[1] ?? this.#from;
    const next = new Hearer(this.port, version, this.#events);
    next.#due = this.#due;
    return next;
  }

  /** Resolves when one more event has come than at the last call. */
  heard(): Promise<void> {
    this.#due++;
    return new Promise((resolve, reject) => {
      if (this.#failed) reject(this.#failed);
      else if (this.#events.count >= this.#due) resolve();
      else this.#awaited = { resolve, reject };
    });
  }

  /** Throws if it has not heard of exactly as many changes as were awaited, or if the last one is not that of this number. */
  check(number: number, bytes: number): void {
    if (this.#failed) throw this.#failed;
    const { count, last } = this.#events;
    if (count !== this.#due) throw new Error(`wrong answer: ${count} events instead of ${this.#due}`);
    const fault = faultOf(JSON.parse(last.toString()), number, bytes);
    if (fault !== undefined) throw new Error(`wrong answer: ${fault}`);
  }

  #take(chunk: Buffer): void {
    this.#events.read(chunk);
    if (this.#events.count < this.#due) return;
    this.#awaited?.resolve();
    this.#awaited = undefined;
  }

  #fail(why: string): void {
    this.#failed ??= new Error(`a watch ${why}`);
    this.#awaited?.reject(this.#failed);
  }
}
