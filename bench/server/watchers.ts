/** The watches of the load: raw sockets, whose bytes are compared with each other, and decoded once. */
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { decode } from '../bridge/protocols.ts';
import { SharedStream } from '../bridge/shared-stream.ts';
import { faultOf, THINGS, type Thing } from './objects.ts';

/** What the watchers of one stream are told of: all changes, or those of one Thing. */
export interface Audience {
  readonly path: string;
  readonly watchers: number;
  readonly thing?: number | undefined;
  /** Whether it is noted when their events come. */
  readonly timed?: boolean;
}

/** Changes that were made: numbers from `from` on. */
export interface Changes {
  readonly from: number;
  readonly count: number;
  /** The step from one number to the next. */
  readonly step: number;
  /** Whether they were made one after the other. */
  readonly inOrder: boolean;
  readonly thingBytes: number;
  /** What the server has written, for all watchers together. */
  readonly bytes: number;
}

export class Watchers {
  readonly #sockets: Socket[] = [];
  readonly #streams: { readonly audience: Audience; readonly stream: SharedStream }[] = [];
  #bytes: number = 0;
  /** When each event of each watcher has come, by the clock of the machine. */
  readonly #arrivals: number[][] = [];
  readonly #stalled: Socket[] = [];

  /** When the events of each watcher have come since somebody asked last, in ms by the clock of the machine. */
  arrivals(): readonly (readonly number[])[] {
    return this.#arrivals.map((each) => each.splice(0));
  }

  /** Opens a watch that takes nothing but its head. */
  async stall(port: number, path: string): Promise<void> {
    const socket = await this.#open(port, path, () => {});
    this.#stalled.push(socket.pause());
  }

  async join(port: number, audiences: readonly Audience[]): Promise<void> {
    const all: (() => Promise<Socket>)[] = [];
    for (const audience of audiences) {
      const stream = new SharedStream(audience.watchers);
      this.#streams.push({ audience, stream });
      for (let i = 0; i < audience.watchers; i++)
        all.push(() => {
          const arrivals: number[] = [];
          if (audience.timed) this.#arrivals.push(arrivals);
          return this.#open(port, audience.path, (chunk) => {
            stream.read(i, chunk);
            if (audience.timed) note(arrivals, chunk);
          });
        });
    }
    for (let at = 0; at < all.length; at += 100) {
      this.#sockets.push(...(await Promise.all(all.slice(at, at + 100).map((open) => open()))));
    }
  }

  #open(port: number, path: string, read: (chunk: Buffer) => void): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      let head = '';
      let isOpen = false;
      socket.on('error', reject);
      socket.on('close', () => reject(new Error('a watch was closed')));
      socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n`);
      socket.on('data', (chunk: Buffer) => {
        if (isOpen) {
          this.#bytes += chunk.length;
          read(chunk);
          return;
        }
        head += chunk.toString('latin1');
        if (!head.includes('\r\n\r\n')) return;
        isOpen = true;
        if (head.startsWith('HTTP/1.1 200 ') && head.endsWith('\r\n\r\n')) resolve(socket);
        else reject(new Error(`a watch was answered with ${head.slice(0, 300)}`));
      });
    });
  }

  /** Waits until everybody has read everything, and checks it. */
  async expect({ bytes, thingBytes, ...changes }: Changes): Promise<void> {
    const began = performance.now();
    while (this.#bytes < bytes) {
      if (performance.now() - began > 30_000) throw new Error(`the watchers have read ${this.#bytes} bytes of ${bytes}`);
      await setImmediate();
    }
    // What is sent twice would come now.
    for (let i = 0; i < 20; i++) await setImmediate();
    if (this.#bytes > bytes) throw new Error(`the watchers have read ${this.#bytes} bytes, and ${bytes} were sent`);
    this.#bytes = 0;
    for (const { audience, stream } of this.#streams) {
      const due = numbersOf(changes, audience.thing);
      if (!stream.all(stream.longest)) throw new Error('a watcher has read less than the others');
      const events = stream.longest === 0 ? [] : decode(stream.take(), 'http');
      if (!changes.inOrder) events.sort((a, b) => turnOf(a.object) - turnOf(b.object));
      checkEvents(events, due, thingBytes);
    }
  }

  leave(): void {
    for (const socket of [...this.#sockets, ...this.#stalled]) socket.destroy();
    this.#sockets.length = this.#stalled.length = 0;
    this.#streams.length = 0;
  }
}

const EVENT_END = Buffer.from('}\n');

/** Notes that the events have come now that end in a chunk. */
function note(arrivals: number[], chunk: Buffer): void {
  const now = machineMs();
  for (let at = chunk.indexOf(EVENT_END); at >= 0; at = chunk.indexOf(EVENT_END, at + 2)) arrivals.push(now);
}

/** The clock that all processes of a machine share, in ms. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Throws if these are not exactly the events of these numbers. */
export function checkEvents(events: readonly unknown[], due: readonly number[], thingBytes: number): void {
  if (events.length !== due.length) throw new Error(`${events.length} events instead of ${due.length}`);
  for (const [at, event] of events.entries()) {
    const fault = faultOf(event, due[at] as number, thingBytes);
    if (fault !== undefined) throw new Error(fault);
  }
}

const turnOf = (object: unknown): number => (object as Thing).spec.turn;

/** The changes that an audience is told of. */
export function numbersOf({ from, count, step }: Pick<Changes, 'from' | 'count' | 'step'>, thing: number | undefined): number[] {
  const all = Array.from({ length: count }, (_, i) => from + i * step);
  return thing === undefined ? all : all.filter((number) => number % THINGS === thing);
}
