// What a server does about namespaces that are about to go: when it tries to end them, and for how long.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Terminating, type TerminatingDeps } from '../../src/apiserver/terminating.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock, FakeWatcher } from '../../src/testing/index.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { macrotask } from './support.ts';

const stopping: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stopping.splice(0)) await stop();
});

const going = (name: string, uid = 'u', finalizers?: string[]): KubernetesObject => ({
  metadata: { name, uid, deletionTimestamp: '2026-01-02T03:04:05Z', ...(finalizers && { finalizers }) },
});

/** Follows a storage. `finish` answers with what is next in a list; with false at its end. */
async function rig(answers: (boolean | Error | Promise<boolean>)[] = [], objects: KubernetesObject[] = []) {
  const [clock, storage, errors, asked] = [new FakeClock(), new MemoryStorage(), [] as unknown[], [] as string[]];
  for (const object of objects) await storage.create(object.metadata?.name ?? '', object);
  const watches = vi.spyOn(storage, 'watch');
  const finish: TerminatingDeps['finish'] = async (name, uid) => {
    asked.push(`${name} ${uid}`);
    const answer = answers.shift() ?? false;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const terminating = new Terminating({
    clock,
    random: () => 0,
    onError: (error) => errors.push(error),
    finish,
    ...OF_NAMESPACES,
  });
  stopping.push(() => terminating.stop());
  await terminating.start(storage);
  const pass = async (ms: number): Promise<void> => {
    await macrotask();
    clock.advance(ms);
    await macrotask();
  };
  return { clock, storage, errors, asked, terminating, pass, watches };
}

/** Those of which no finalizer is left, and nobody else looks. */
const OF_NAMESPACES: Pick<TerminatingDeps, 'isDue' | 'observer'> = {
  isDue: ({ metadata }) => (metadata?.finalizers ?? []).length === 0,
  observer: { whole: () => {}, changed: () => {} },
};

describe('a namespace that is about to go', () => {
  test('is ended after a second; if it cannot be yet, again, later and later, up to a minute', async () => {
    const { clock, asked, pass } = await rig([], [going('a')]);
    for (const [at, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
      await pass(seconds * 1_000 - 1);
      expect(asked).toHaveLength(at);
      await pass(1);
      expect(asked).toHaveLength(at + 1);
    }
    expect([new Set(asked), clock.pending]).toEqual([new Set(['a u']), 1]);
  });

  test('is not looked at again once it is gone', async () => {
    const { clock, asked, pass, terminating } = await rig([true], [going('a')]);
    await pass(1_000);
    expect([asked, clock.pending]).toEqual([['a u'], 0]);
    terminating.hurry('a');
    await pass(100_000);
    expect(asked).toHaveLength(1);
  });

  test('is tried at once if something in it has gone, and once more if that happens meanwhile', async () => {
    let answer: (gone: boolean) => void = () => {};
    const running = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    const { asked, clock, pass, terminating } = await rig([running, false], [going('a')]);
    terminating.hurry('b');
    terminating.hurry('a');
    await macrotask();
    expect([asked, clock.pending]).toEqual([['a u'], 0]);
    terminating.hurry('a');
    terminating.hurry('a');
    await macrotask();
    expect(asked).toHaveLength(1);
    answer(false);
    await macrotask();
    expect(asked).toHaveLength(2);
    expect(clock.pending).toBe(1);
    await pass(1_999);
    expect(asked).toHaveLength(2);
    await pass(1);
    expect(asked).toHaveLength(3);
  });

  test('waits for finalizers of its own, and is left alone if it does not go at all', async () => {
    const { asked, clock, storage, pass } = await rig([], [going('a', 'u', ['x/y']), { metadata: { name: 'b', uid: 'u' } }]);
    await pass(100_000);
    expect([asked, clock.pending]).toEqual([[], 0]);
    await storage.update('a', () => going('a', 'u', []));
    await pass(1_000);
    expect(asked).toEqual(['a u']);
  });

  test('that is gone is forgotten; another one of its name is one of its own', async () => {
    const { asked, clock, storage, pass } = await rig([], [going('a', 'one')]);
    await pass(999);
    await storage.delete('a');
    await pass(1_000);
    expect([asked, clock.pending]).toEqual([[], 0]);
    await storage.create('a', going('a', 'two'));
    await pass(999);
    await storage.update('a', () => going('a', 'three'));
    await pass(999);
    expect(asked).toEqual([]);
    await pass(1);
    expect(asked).toEqual(['a three']);
    await storage.update('a', () => ({ metadata: { name: 'a', uid: 'three' } }));
    await pass(100_000);
    expect([asked.length, clock.pending]).toEqual([1, 0]);
  });

  test('a change of it does not begin its time anew', async () => {
    const { asked, storage, pass } = await rig([], [going('a')]);
    await pass(900);
    await storage.update('a', () => ({ ...going('a'), spec: 1 }) as KubernetesObject);
    await pass(100);
    expect(asked).toEqual(['a u']);
  });
});

describe('what fails', () => {
  test('is told, and tried again; not that the server has closed', async () => {
    const error = new Error('oops');
    const { asked, errors, pass } = await rig([error, new WatchError('CLOSED', 'closed'), true], [going('a')]);
    await pass(1_000);
    expect([asked.length, errors]).toEqual([1, [error]]);
    await pass(2_000);
    expect([asked.length, errors]).toEqual([2, [error]]);
    await pass(4_000);
    expect(asked).toHaveLength(3);
  });

  test('a watch that ends is begun again from a list, longer and longer later; what has gone meanwhile is forgotten', async () => {
    const [clock, errors, asked] = [new FakeClock(), [] as unknown[], [] as string[]];
    const watchers: FakeWatcher<never>[] = [];
    let items = [going('a'), going('b')];
    const list = vi.fn(async () => ({ items, resourceVersion: `${list.mock.calls.length}` }));
    const watch = vi.fn(async ({ signal }: { signal: AbortSignal; resourceVersion?: string }) => {
      const watcher = new FakeWatcher<never>();
      signal.addEventListener('abort', () => watcher.stop());
      watchers.push(watcher);
      return watcher;
    });
    const finish = async (name: string): Promise<boolean> => {
      asked.push(name);
      return true;
    };
    const terminating = new Terminating({
      clock,
      random: () => 1,
      onError: (error) => errors.push(error),
      finish,
      ...OF_NAMESPACES,
    });
    stopping.push(() => terminating.stop());
    await terminating.start({ list, watch, cacheStats: {} } as never);
    const again = async (ms: number, lists: number): Promise<void> => {
      await macrotask();
      clock.advance(ms - 1);
      await macrotask();
      expect(list).toHaveBeenCalledTimes(lists - 1);
      clock.advance(1);
      await macrotask();
      expect(list).toHaveBeenCalledTimes(lists);
    };
    items = [going('b')];
    void watchers[0]?.action('ERROR' as never, { code: 410 } as never);
    await again(100, 2);
    expect(watch.mock.calls.map(([{ resourceVersion }]) => resourceVersion)).toEqual(['1', '2']);
    const failure = new Error('no watch');
    watch.mockRejectedValueOnce(failure).mockRejectedValueOnce(new WatchError('REFUSED', 'told already'));
    watchers[1]?.stop();
    await again(200, 3);
    expect(errors).toEqual([failure]);
    await again(400, 4);
    expect(errors).toEqual([failure]);
    await again(800, 5);
    // What is told begins the count anew.
    void watchers[2]?.action('MODIFIED' as never, going('c') as never);
    void watchers[2]?.action('ERROR' as never, { code: 410 } as never);
    items = [going('b'), going('c')];
    await again(100, 6);
    clock.advance(2_000);
    await macrotask();
    expect(asked.sort()).toEqual(['b', 'c']);
  });
});

test('a list in between does not begin the time of a namespace anew', async () => {
  const { asked, clock, storage, pass, watches } = await rig([], [going('a')]);
  await pass(500);
  const list = vi.spyOn(storage, 'list');
  const [watch] = watches.mock.results;
  (await (watch as { value: Promise<{ stop: () => void }> }).value).stop();
  await pass(200);
  expect([list.mock.calls.length, asked]).toEqual([1, []]);
  await pass(300);
  expect([clock.now(), asked]).toEqual([1_000, ['a u']]);
});

describe('its end', () => {
  test('leaves no timer, and waits for what runs', async () => {
    let answer: (gone: boolean) => void = () => {};
    const running = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    const { asked, clock, errors, storage, terminating } = await rig([running], [going('a'), going('b')]);
    terminating.hurry('a');
    await macrotask();
    let stopped = false;
    const stopping = terminating.stop().then(() => {
      stopped = true;
    });
    expect(clock.pending).toBe(0);
    await macrotask();
    expect(stopped).toBe(false);
    answer(false);
    await stopping;
    await storage.create('c', going('c'));
    await macrotask();
    expect([asked, clock.pending, errors]).toEqual([['a u'], 0, []]);
  });
});
