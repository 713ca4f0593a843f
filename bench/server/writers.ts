/** The writers of the load: connections that each send a PUT when the last one is answered. */
import { connect, type Socket } from 'node:net';
import { THINGS, thingOf } from './objects.ts';

export interface WriteOrder {
  readonly path: string;
  readonly connections: number;
  readonly from: number;
  readonly count: number;
  readonly thingBytes: number;
}

export class Writers {
  #sockets: Writer[] = [];

  /** Writes so many changes. Each connection has Things of its own, so the changes of one Thing are in order. */
  async write(port: number, { path, connections, from, count, thingBytes }: WriteOrder): Promise<void> {
    while (this.#sockets.length < connections) this.#sockets.push(new Writer(connect(port, '127.0.0.1')));
    await Promise.all(
      this.#sockets.slice(0, connections).map(async (writer, mine) => {
        for (let number = from; number < from + count; number++) {
          if ((number % THINGS) % connections === mine) await writer.put(path, thingOf(number, thingBytes));
        }
      }),
    );
  }

  end(): void {
    for (const { socket } of this.#sockets) socket.destroy();
    this.#sockets = [];
  }
}

class Writer {
  readonly socket: Socket;
  #read: string = '';
  #done: ((answer: string) => void) | undefined;

  constructor(socket: Socket) {
    this.socket = socket.setNoDelay(true).on('data', (chunk) => this.#take(chunk.toString('latin1')));
  }

  async put(path: string, thing: ReturnType<typeof thingOf>): Promise<void> {
    const body = JSON.stringify(thing);
    const head = `PUT ${path}/${thing.metadata.name} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const answer = await new Promise<string>((resolve) => {
      this.#done = resolve;
      this.socket.write(head + body, 'latin1');
    });
    if (!answer.startsWith('HTTP/1.1 200 ')) throw new Error(`a write was answered with ${answer.slice(0, 500)}`);
    if (!answer.includes(`"turn":${thing.spec.turn},`)) throw new Error(`a write was answered with another object: ${answer}`);
  }

  #take(text: string): void {
    this.#read += text;
    const end = this.#read.indexOf('\r\n\r\n');
    if (end < 0) return;
    const length = Number(/content-length: ([0-9]+)/i.exec(this.#read.slice(0, end))?.[1]);
    if (this.#read.length < end + 4 + length) return;
    const answer = this.#read;
    this.#read = '';
    this.#done?.(answer);
  }
}
