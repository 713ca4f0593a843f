// Programs that write into a collection all the time, whatever happens to its server.
import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiServer, RefusedError } from './apiserver.ts';
import { randomOf } from './proxy.ts';

const WRITERS = 4;
const NAMES = 24;
/** How long a writer waits after each write, or when there is no server: they are to write all the time, not to keep a machine busy. */
const PAUSE_MS = 10;

export class Writers {
  /** Number of writes that the server has acknowledged. */
  written: number = 0;
  readonly #server: ApiServer;
  readonly #path: string;
  readonly #random: () => number;
  readonly #loops: Promise<void>[];
  #stopped: boolean = false;

  constructor(server: ApiServer, path: string, seed: number) {
    this.#server = server;
    this.#path = path;
    this.#random = randomOf(seed);
    this.#loops = Array.from({ length: WRITERS }, () => this.#loop());
  }

  /** Resolves when no write is in progress. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #loop(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#write();
        this.written++;
      } catch (error) {
        // It is refused if the object is there already, or is not. Otherwise the server is not there.
        if (error instanceof RefusedError) continue;
      }
      await sleep(PAUSE_MS);
    }
  }

  /** Creates, changes or deletes one of a few objects, so that all of it happens to each of them often. */
  async #write(): Promise<void> {
    const name = `n${Math.floor(this.#random() * NAMES)}`;
    const labels = { parity: this.#random() < 0.5 ? 'odd' : 'even' };
    const metadata = { labels, annotations: { text: 'x'.repeat(Math.floor(this.#random() * 200)) } };
    const what = this.#random();
    if (what < 0.25) await this.#server.create(this.#path, { metadata: { name, ...metadata } });
    else if (what < 0.85) await this.#server.patch(`${this.#path}/${name}`, { metadata });
    else await this.#server.delete(`${this.#path}/${name}`);
  }
}
