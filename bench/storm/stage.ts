import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePorts } from '../../test/peers/ports.ts';
import { Dialogue } from '../dialogue.ts';
import type { ClientDeeds } from './clients.ts';
import { Gate, type Request } from './gate.ts';
import type { ServerDeeds } from './server.ts';
import { COPIED, numberAt, turnsAfter, WINDOW } from './things.ts';

/**
 * What befalls all clients at once.
 *
 * - `cut`: their connections break, and the server stays.
 * - `restart`: the server is killed, and started again; nothing is written in between.
 * - `expired`: their connections break, and cannot be made again until more has changed than the server keeps.
 */
export type Fault = 'cut' | 'restart' | 'expired';

/** What a storm was like. */
export interface Storm {
  /** When it began, by `Date.now`. */
  readonly beganMs: number;
  readonly requests: readonly Request[];
  /** Answers with 410. */
  readonly gone: number;
  /** How long after the beginning each client had the change that was made last. Sorted. */
  readonly liveAfterMs: readonly number[];
  /** Processor time of the server, from the fault or from when it was started again. */
  readonly serverMs: number;
}

/** So that no watch is taken for one that ends as soon as it has begun. */
const CALM_MS = 1_100;

/** A server, the gate before it, and its clients: three processes. */
export class StormStage {
  readonly #dir: string = mkdtempSync(join(tmpdir(), 'watchmux-storm-'));
  readonly #clients: Dialogue<ClientDeeds> = new Dialogue('storm-clients');
  readonly #port: number;
  readonly #gate: Gate;
  #server: Dialogue<ServerDeeds> = new Dialogue('storm-server');
  /** How many changes there were, those that made the Things among them. */
  #changes: number = COPIED;

  private constructor(port: number) {
    this.#port = port;
    this.#gate = new Gate(port);
  }

  /** Starts everything. All clients are live then. */
  static async open(contender: string, clients: number): Promise<StormStage> {
    const [port] = await freePorts(1);
    const stage = new StormStage(port as number);
    await stage.#start();
    await stage.#clients.ask('join', { contender, url: await stage.#gate.open(), clients });
    await stage.#change(1);
    await stage.#heard();
    return stage;
  }

  async play(fault: Fault): Promise<Storm> {
    await setTimeout(CALM_MS);
    this.#gate.take();
    await this.#server.ask('took', {});
    const beganMs = Date.now();
    if (fault === 'restart') {
      await this.#server.kill();
      this.#server = new Dialogue('storm-server');
      await this.#start();
    } else this.#gate.cut();
    this.#gate.refuse(fault === 'expired');
    await this.#change(fault === 'expired' ? 3 * WINDOW : 1);
    this.#gate.refuse(false);
    const times = await this.#heard();
    const serverMs = await this.#server.ask('took', {});
    const liveAfterMs = times.map((each) => each - beganMs).sort((a, b) => a - b);
    return { ...this.#gate.take(), beganMs, liveAfterMs, serverMs };
  }

  async end(): Promise<void> {
    this.#gate.close();
    await Promise.all([this.#server.kill(), this.#clients.kill()]);
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #start(): Promise<void> {
    return this.#server.ask('start', { port: this.#port, file: join(this.#dir, 'things') });
  }

  async #change(count: number): Promise<void> {
    await this.#server.ask('change', { from: this.#changes, count });
    this.#changes += count;
  }

  /** Waits until all clients have the last change. */
  #heard(): Promise<readonly number[]> {
    const last = this.#changes - 1;
    return this.#clients.ask('heard', { number: numberAt(last), turns: turnsAfter(last) });
  }
}
