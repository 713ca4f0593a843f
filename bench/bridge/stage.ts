import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { WatchEvent } from '../../src/watch/event.ts';
import type { BridgeContender, Sender } from './contenders.ts';
import { CYCLE, roomOf, toEvent } from './events.ts';
import type { Answer, Request } from './readers.ts';

/** A piece of work. Everything is sent to all clients, or to all rooms. */
interface Stretch {
  readonly bursts: number;
  readonly burst: number;
  readonly eventBytes: number;
  /** Number of rooms, each of which gets events of its own. */
  readonly rooms?: number | undefined;
}

/** Its cost. */
export interface Took {
  readonly wallMs: number;
  /** Processor time of the server. */
  readonly cpuMs: number;
  /** Processor time of the load. */
  readonly loadMs: number;
}

/**
 * If a socket buffers more than this, the next burst waits: the same for all, and less than what watchmux treats as backpressure.
 */
const AHEAD_BYTES = 131_072;

/** One contender, serving in this process, and its clients in another one. */
export class Stage {
  private readonly contender: BridgeContender;
  private readonly sender: Sender;
  private readonly load: ChildProcess;
  private readonly sockets: Set<Socket> = new Set();

  private constructor(contender: BridgeContender, sender: Sender) {
    this.contender = contender;
    this.sender = sender;
    this.load = fork(fileURLToPath(new URL('./readers.js', import.meta.url)), { execArgv: [] });
    sender.server.on('connection', (socket: Socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
  }

  static async open(contender: BridgeContender): Promise<Stage> {
    const stage = new Stage(contender, await contender.start());
    await new Promise<void>((resolve) => stage.sender.server.listen(0, '127.0.0.1', resolve));
    return stage;
  }

  async join(count: number, rooms?: number): Promise<void> {
    const { port } = this.sender.server.address() as AddressInfo;
    await this.ask({ do: 'join', port, count, protocol: this.contender.protocol, rooms });
  }

  async leave(): Promise<void> {
    await this.ask({ do: 'leave' });
    while (this.sockets.size > 0) await setTimeout(1);
  }

  end(): void {
    this.sender.server.close();
    this.load.kill();
  }

  /** Sends, waits until the kernel has taken everything, and then lets the clients check that each has every event, in order. */
  async run({ bursts, burst, eventBytes, rooms }: Stretch): Promise<Took> {
    const { sender } = this;
    const names = rooms === undefined ? [undefined] : Array.from({ length: rooms }, (_, room) => roomOf(room));
    // The rooms get their events in turn: all of them the first one, then all of them the second one.
    const made = Array.from({ length: CYCLE }, (_, turn) =>
      Array.from({ length: burst }, (_, i) => names.map((room) => toEvent(turn * burst + i, eventBytes, room))).flat(),
    );
    const before = this.bytesWritten;
    const cpu = process.cpuUsage();
    const from = performance.now();
    for (let i = 0; i < bursts; i++) {
      sender.send(made[i % CYCLE] as WatchEvent[]);
      await setImmediate();
      await this.calm(AHEAD_BYTES);
    }
    // A flush may be due in the next turn, and sockets then take the rest.
    await setImmediate();
    await setImmediate();
    await this.calm(0);
    const wallMs = performance.now() - from;
    const { user, system } = process.cpuUsage(cpu);
    const bytes = this.bytesWritten - before;
    const loadMs = await this.ask({ do: 'expect', bytes, bursts, burst, eventBytes });
    return { wallMs, cpuMs: (user + system) / 1_000, loadMs };
  }

  /** For all sockets together. */
  private get bytesWritten(): number {
    let bytes = 0;
    for (const socket of this.sockets) bytes += socket.bytesWritten;
    return bytes;
  }

  private async calm(bytes: number): Promise<void> {
    const { sender, sockets } = this;
    const busy = (): boolean => bytes === 0 && sender.waits?.() === true;
    for (const socket of sockets) while (socket.writableLength > bytes) await rest();
    while (busy()) {
      await rest();
      for (const socket of sockets) while (socket.writableLength > bytes) await rest();
    }
  }

  /** Returns the processor time of the load since the last request. */
  private ask(request: Request): Promise<number> {
    const { load } = this;
    return new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error('the load has ended'));
      load.once('exit', ended);
      load.once('message', ({ error, cpuMs }: Answer) => {
        load.off('exit', ended);
        if (error === undefined) resolve(cpuMs);
        else reject(new Error(error));
      });
      load.send(request);
    });
  }
}

/** Waits until readers have read more. A timer, because turns of the event loop would cost processor time, which is measured. */
function rest(): Promise<void> {
  return setTimeout(1);
}
