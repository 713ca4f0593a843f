import { type ChildProcess, fork } from 'node:child_process';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Running } from './contenders.ts';
import type { Order, Reply } from './load.ts';
import { THINGS, thingOf } from './objects.ts';
import { type Audience, machineMs } from './watchers.ts';

/** An order as the stage gets it: it adds the port. */
type Asked = Order extends infer O ? (O extends Order ? Omit<O, 'port'> : never) : never;

/** What something took. */
export interface Took {
  readonly wallMs: number;
  /** Processor time of the server. */
  readonly cpuMs: number;
}

/** Changes to make. */
interface Bursts {
  readonly bursts: number;
  readonly burst: number;
  readonly thingBytes: number;
  /** Each change concerns one watcher at most. */
  readonly sparse?: boolean;
  /** Always the same Thing, instead of one after the other. */
  readonly onlyFirst?: boolean;
}

/** If a socket buffers more than this, the next burst waits: the same for all. */
const AHEAD_BYTES = 131_072;

/** One server, running in this process, and its clients in another one. */
export class Stage {
  readonly running: Running;
  readonly #load: ChildProcess;
  readonly #sockets: Set<Socket> = new Set();
  #watching: readonly Socket[] = [];
  #port: number = 0;
  /** Numbers below are those of the Things that are there from the beginning. */
  #next: number = THINGS;

  private constructor(running: Running) {
    this.running = running;
    this.#load = fork(fileURLToPath(new URL('./load.js', import.meta.url)), { execArgv: [] });
    // Connections of the load wait while other contenders have their turn, on a busy machine for longer than Node would keep them.
    running.server.keepAliveTimeout = 0;
    running.server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async open(running: Running): Promise<Stage> {
    const stage = new Stage(running);
    await new Promise<void>((resolve) => stage.running.server.listen(0, '127.0.0.1', resolve));
    stage.#port = (stage.running.server.address() as AddressInfo).port;
    return stage;
  }

  /** Opens watches that see every change from now on. */
  async join(audiences: readonly Audience[]): Promise<void> {
    const version = await this.running.version();
    const paths = audiences.map((each) => ({ ...each, path: `${each.path}&resourceVersion=${version}` }));
    await this.ask({ do: 'join', audiences: paths });
    this.#watching = [...this.#sockets];
  }

  async leave(): Promise<void> {
    await this.ask({ do: 'leave' });
    while (this.#sockets.size > 0) await setTimeout(1);
  }

  end(): void {
    this.running.server.close();
    this.#load.kill();
  }

  /** Changes Things in bursts, and lets the load check that all watchers hear of all that concerns them. */
  async change({ bursts, burst, thingBytes, sparse = false, onlyFirst = false }: Bursts): Promise<Took> {
    const { running } = this;
    const step = onlyFirst ? THINGS : 1;
    const count = bursts * burst;
    const from = this.#take(count * step, step);
    const made = Array.from({ length: bursts }, (_, at) =>
      Array.from({ length: burst }, (_, i) => thingOf(from + (at * burst + i) * step, thingBytes)),
    );
    const before = this.#bytesWritten;
    const took = await timed(async () => {
      for (const things of made) {
        await running.change(things);
        await setImmediate();
        // To look at all sockets costs more than a change that concerns one.
        if (!sparse) await this.#calm(AHEAD_BYTES);
      }
      await this.#quiet();
    });
    const bytes = this.#bytesWritten - before;
    await this.ask({ do: 'expect', from, count, step, inOrder: true, thingBytes, bytes });
    return took;
  }

  /** Changes Things one at a time. Returns after how many ms each watcher was told of each, sorted. */
  async latencies(count: number, thingBytes: number): Promise<Float64Array> {
    const from = this.#take(count, 1);
    const before = this.#bytesWritten;
    const made: number[] = [];
    for (let i = 0; i < count; i++) {
      made.push(machineMs());
      await this.running.change([thingOf(from + i, thingBytes)]);
      await this.#quiet();
    }
    const bytes = this.#bytesWritten - before;
    await this.ask({ do: 'expect', from, count, step: 1, inOrder: true, thingBytes, bytes });
    const { arrivals = [] } = await this.ask({ do: 'arrivals' });
    if (arrivals.some((each) => each.length !== count)) throw new Error('a watcher has not told when its events came');
    return Float64Array.from(arrivals.flatMap((each) => each.map((ms, at) => ms - (made[at] as number)))).sort();
  }

  /** Lets writers change Things, with watchers that are told of it, if there are any. */
  async write(order: { path: string; connections: number; count: number; thingBytes: number; watched?: boolean }): Promise<Took> {
    const from = this.#take(order.count, 1);
    const before = this.#bytesWritten;
    const took = await timed(async () => {
      await this.ask({ do: 'write', from, ...order });
      await this.#quiet();
    });
    if (order.watched === false) return took;
    const bytes = this.#bytesWritten - before;
    const { count, thingBytes } = order;
    await this.ask({ do: 'expect', from, count, step: 1, inOrder: false, thingBytes, bytes });
    return took;
  }

  /** Returns what the load says. */
  ask(asked: Asked): Promise<Reply> {
    const load = this.#load;
    return new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error('the load has ended'));
      load.once('exit', ended);
      load.once('message', (reply: Reply) => {
        load.off('exit', ended);
        if (reply.error === undefined) resolve(reply);
        else reject(new Error(reply.error));
      });
      load.send({ ...asked, port: this.#port });
    });
  }

  /** Returns the number of the first of so many changes. */
  #take(count: number, step: number): number {
    const from = Math.ceil(this.#next / step) * step;
    this.#next = from + count;
    return from;
  }

  /** For all watchers together. */
  get #bytesWritten(): number {
    let bytes = 0;
    for (const socket of this.#watching) bytes += socket.bytesWritten;
    return bytes;
  }

  async #calm(bytes: number): Promise<void> {
    for (const socket of this.#watching) while (socket.writableLength > bytes) await setTimeout(1);
  }

  /** Waits until nothing more is written. */
  async #quiet(): Promise<void> {
    for (let last = -1, turns = 0; turns < 3; turns++) {
      await setImmediate();
      await this.#calm(0);
      const bytes = this.#bytesWritten;
      if (bytes !== last) turns = 0;
      last = bytes;
    }
  }
}

/** Returns what a piece of work took in this process. */
export async function timed(work: () => Promise<unknown>): Promise<Took> {
  const cpu = process.cpuUsage();
  const from = performance.now();
  await work();
  const wallMs = performance.now() - from;
  const { user, system } = process.cpuUsage(cpu);
  return { wallMs, cpuMs: (user + system) / 1_000 };
}
