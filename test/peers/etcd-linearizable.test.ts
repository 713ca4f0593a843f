// Writes and reads of five clients of a real etcd, through links that break at any byte and a crash: per key, all of them fit into
// one order. A write whose answer did not come may have happened, or not; it must not have happened twice.
import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { checkLinearizable, type StorageRequest } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { component, isMissing } from '../components.ts';
import { startTcpProxy } from '../tcp-proxy.ts';
import { startEtcd } from './etcd-server.ts';
import { randomOf } from './proxy.ts';

const missing = isMissing(component('kube-apiserver'));
const CLIENTS = 5;
const KEYS = 8;
const REQUESTS = 900;

interface Thing extends KubernetesObject {
  readonly data: number;
}

const closing = closers();

/** What the error of a request says: that it was refused, or nothing. */
function answerOf(error: unknown): StorageRequest['answer'] {
  const { code, status } = error as { code?: string; status?: { code: number } };
  return code === 'REFUSED' && [404, 409].includes(status?.code ?? 0) ? { is: 'refused' } : undefined;
}

class Client {
  readonly #storage: EtcdStorage<Thing>;
  readonly #history: StorageRequest[];
  readonly #random: () => number;
  readonly #name: string;

  constructor(storage: EtcdStorage<Thing>, options: { history: StorageRequest[]; random: () => number; name: string }) {
    this.#storage = storage;
    this.#history = options.history;
    this.#random = options.random;
    this.#name = options.name;
  }

  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) await this.#step(`k${Math.floor(this.#random() * KEYS)}`);
  }

  async #step(key: string): Promise<void> {
    const value = Math.floor(this.#random() * 2 ** 50);
    const thing: Thing = { metadata: { name: key }, data: value };
    const what = this.#random();
    if (what < 0.3) await this.#read(key);
    else if (what < 0.45)
      await this.#ask(key, { do: 'write', value }, () => this.#storage.update(key, () => thing, { createIfMissing: true }));
    else if (what < 0.6)
      await this.#ask(key, { do: 'write', value, if: { value: undefined } }, () => this.#storage.create(key, thing));
    else if (what < 0.75) await this.#ask(key, { do: 'delete' }, () => this.#storage.delete(key));
    else {
      const seen = await this.#read(key);
      const resourceVersion = seen?.metadata?.resourceVersion;
      if (!seen || resourceVersion === undefined) return;
      const call = { do: 'write', value, if: { value: seen.data } } as const;
      // As a hint, what was read is not read again.
      const cached = this.#random() < 0.5 ? seen : undefined;
      await this.#ask(key, call, () => this.#storage.update(key, () => thing, { cached, resourceVersion }));
    }
  }

  /** A read that fails says nothing. */
  async #read(key: string): Promise<Thing | undefined> {
    const from = performance.now();
    try {
      const seen = await this.#storage.get(key);
      const answer = { is: 'done', value: seen?.data } as const;
      this.#history.push({ key, from, to: performance.now(), call: { do: 'read' }, answer, client: this.#name });
      return seen;
    } catch {
      return undefined;
    }
  }

  async #ask(key: string, call: StorageRequest['call'], work: () => Promise<unknown>): Promise<void> {
    const from = performance.now();
    let answer: StorageRequest['answer'] = { is: 'done' };
    await work().catch((error: unknown) => {
      answer = answerOf(error);
    });
    this.#history.push({ key, from, ...(answer && { to: performance.now(), answer }), call, client: this.#name });
  }
}

describe.skipIf(missing)('Linearizable, a real etcd', () => {
  it('whatever breaks, requests fit into one order', async () => {
    const etcd = await startEtcd();
    closing.push(() => etcd.stop());
    const proxy = await startTcpProxy(etcd.port);
    closing.push(() => proxy.close());
    const random = randomOf(11);
    proxy.cutAfter(() => 500 + Math.floor(random() * 12_000));
    const history: StorageRequest[] = [];
    const isOver = (): boolean => history.length >= REQUESTS;
    const clients = Array.from({ length: CLIENTS }, (_, at) => {
      const storage = new EtcdStorage<Thing>({ endpoints: [proxy.url], requestTimeoutMs: 1_000, connectTimeoutMs: 500 });
      closing.push(() => storage.close());
      return new Client(storage, { history, random: randomOf(100 + at), name: `client ${at}` });
    });
    const crash = async (): Promise<void> => {
      while (history.length < REQUESTS / 2) await new Promise((resolve) => setTimeout(resolve, 5));
      await etcd.kill();
      await etcd.start();
    };
    await Promise.all([crash(), ...clients.map((client) => client.run(isOver))]);
    expect(proxy.cuts).toBeGreaterThan(10);
    expect(checkLinearizable({ requests: history })).toBeUndefined();
    const unknown = history.filter(({ answer }) => !answer).length;
    expect(unknown).toBeLessThan(history.length / 2);
    expect(unknown).toBeGreaterThan(0);
  }, 90_000);
});
