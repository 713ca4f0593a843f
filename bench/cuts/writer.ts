import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../../src/cache/object.ts';
import type { ApiServer } from '../../test/peers/apiserver.ts';
import { randomOf } from '../../test/peers/proxy.ts';

const NAMES = 12;
const PAUSE_MS = 80;
/** Bytes of a text that cannot be compressed by much, so that a list is longer than the faults that cut it. */
const TEXT_BYTES = 300;

/** A change that the server has acknowledged. */
export interface Write {
  readonly id: string;
  readonly beganMs: number;
}

/** What tells one state of an object, or its end, from all others. */
export function idOf(what: 'there' | 'gone', { metadata }: KubernetesObject): string {
  return `${metadata?.uid} ${what === 'gone' ? what : metadata?.resourceVersion}`;
}

/** Creates, changes and deletes objects, and keeps a record of it. It writes past the proxies. */
export class Writer {
  readonly writes: Write[] = [];
  readonly #server: ApiServer;
  readonly #path: string;
  readonly #random: () => number;
  readonly #objects: Map<string, KubernetesObject> = new Map();
  #stopped: boolean = false;

  constructor(server: ApiServer, path: string, seed: number) {
    this.#server = server;
    this.#path = path;
    this.#random = randomOf(seed);
  }

  /** There are some objects at the beginning. */
  async fill(): Promise<void> {
    for (let i = 0; i < NAMES; i += 2) await this.#put(`n${i}`);
  }

  /** Writes until it is stopped. While there is no server, it tries. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      const name = `n${Math.floor(this.#random() * NAMES)}`;
      const isEnd = this.#objects.has(name) && this.#random() < 0.25;
      await (isEnd ? this.#delete(name) : this.#put(name)).catch(() => this.#objects.delete(name));
      await sleep(PAUSE_MS);
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  async #put(name: string): Promise<void> {
    const beganMs = performance.now();
    const annotations = { text: randomBytes(TEXT_BYTES).toString('hex') };
    const object = await this.#server.put(this.#path, name, { metadata: { name, annotations } });
    this.#objects.set(name, object);
    this.writes.push({ id: idOf('there', object), beganMs });
  }

  async #delete(name: string): Promise<void> {
    const beganMs = performance.now();
    await this.#server.delete(`${this.#path}/${name}`);
    const object = this.#objects.get(name) as KubernetesObject;
    this.#objects.delete(name);
    this.writes.push({ id: idOf('gone', object), beganMs });
  }
}
