// S12: writes through a cacher, and gets and lists without a version, are linearizable, however late the cache hears of a write.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cacher } from '../../src/storage/index.ts';
import { checkLinearizable, FakeClock, GUARANTEES, type StorageRequest } from '../../src/testing/index.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { runs } from '../runs.ts';
import { type Pod, Pods, pod, settle } from '../unit/faulty-storage.ts';

const RUNS = runs(1_500);

const step = fc.record({
  key: fc.constantFrom('x/a', 'x/b'),
  do: fc.constantFrom('get' as const, 'list', 'list', 'page', 'create', 'update', 'delete', 'compareAndSet'),
  turns: fc.nat(6),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** Clients of a cacher, and what they saw. */
class Clients {
  readonly pods: Pods = new Pods();
  readonly requests: StorageRequest[] = [];
  readonly cacher: Cacher<Pod> = new Cacher<Pod>(this.pods.storage, { clock: new FakeClock() });
  #time: number = 0;
  #made: number = 0;

  async run(steps: readonly Step[], client: string): Promise<void> {
    for (const each of steps) {
      await turns(each.turns);
      const seen = each.do === 'compareAndSet' ? await this.cacher.get(each.key) : undefined;
      if (each.do === 'compareAndSet' && !seen) continue;
      await this.#ask(each, { client, seen });
    }
  }

  async #ask({ key, do: verb, turns: count }: Step, { client, seen }: { client: string; seen: Pod | undefined }): Promise<void> {
    const n = ++this.#made;
    const from = ++this.#time;
    const { call, ask } = this.#request(verb, { key, n, seen, count });
    let answer: StorageRequest['answer'];
    try {
      answer = { is: 'done', value: (await ask())?.spec?.n };
    } catch (error) {
      if (!isWatchError(error, 'REFUSED')) throw error;
      answer = { is: 'refused' };
    }
    this.requests.push({ key, call, client, from, to: ++this.#time, answer });
  }

  #request(
    verb: Step['do'],
    { key, n, seen, count }: { key: string; n: number; seen: Pod | undefined; count: number },
  ): { call: StorageRequest['call']; ask: () => Promise<Pod | undefined> } {
    const { cacher } = this;
    const find = (items: readonly Pod[]): Pod | undefined => items.find(({ metadata }) => key === `x/${metadata?.name}`);
    const change = (): Promise<Pod> => turns(count).then(() => pod(key, { n }));
    const precondition = { resourceVersion: seen?.metadata?.resourceVersion };
    switch (verb) {
      case 'get':
        return { call: { do: 'read' }, ask: () => cacher.get(key) };
      case 'list':
        return { call: { do: 'read' }, ask: async () => find((await cacher.list()).items) };
      case 'page':
        return { call: { do: 'read' }, ask: async () => find((await cacher.scope<Pod>('x/').list({ limit: 5 })).items) };
      case 'create':
        return { call: { do: 'write', value: n, if: { value: undefined } }, ask: () => cacher.create(key, pod(key, { n })) };
      case 'delete':
        return { call: { do: 'delete' }, ask: () => cacher.delete(key) };
      case 'update':
        return { call: { do: 'write', value: n }, ask: () => cacher.update(key, change, { createIfMissing: true }) };
      default:
        return {
          call: { do: 'write', value: n, if: { value: seen?.spec?.n } },
          ask: () => cacher.update(key, change, precondition),
        };
    }
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await undefined;
}

describe(`Linearizable: ${GUARANTEES.Linearizable}`, { timeout: 30_000 + RUNS * 40 }, () => {
  test('through a cacher, whose storage tells of writes late', async () => {
    const holds = fc.array(fc.record({ after: fc.nat(20), turns: fc.nat(60) }), { maxLength: 4 });
    const clients = fc.array(fc.array(step, { maxLength: 6 }), { minLength: 2, maxLength: 4 });
    const property = fc.asyncProperty(clients, holds, async (each, delays) => {
      const world = new Clients();
      const { storage } = world.pods;
      const network = async (): Promise<void> => {
        for (const { after, turns: count } of delays) {
          await turns(after);
          storage.hold();
          await turns(count);
          storage.release();
        }
      };
      await Promise.all([network(), ...each.map((steps, at) => world.run(steps, `client ${at}`))]);
      expect(checkLinearizable({ requests: world.requests })).toBeUndefined();
      await world.cacher.close();
      await settle();
      expect(world.pods.memory.stats.watches).toBe(0);
    });
    await fc.assert(property, { numRuns: RUNS });
  });
});
