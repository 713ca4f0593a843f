import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isInitialEventsEnd, type KubernetesObject } from '../../src/cache/index.ts';
import { type ObjectEvent, toStatus, type Watch } from '../../src/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeListWatcher } from '../../src/testing/index.ts';
import { runs } from '../runs.ts';
import { fate, turn } from './support.ts';

const named = (name: string): KubernetesObject => ({ metadata: { name } });
const shown = (event: ObjectEvent<KubernetesObject> | undefined): string => {
  if (!event) return 'nothing';
  if (event.type === 'ERROR') return `ERROR ${event.object.code}`;
  const { name = '', resourceVersion } = event.object.metadata as { name?: string; resourceVersion?: string };
  return `${event.type} ${name}@${resourceVersion}${isInitialEventsEnd(event) ? ' end' : ''}`;
};
const readNow = (watch: Watch<ObjectEvent<KubernetesObject>>): string[] => {
  const seen: string[] = [];
  for (let event = watch.tryNext(); event; event = watch.tryNext()) seen.push(shown(event));
  return seen;
};
const readAll = async (watch: Watch<ObjectEvent<KubernetesObject>>): Promise<string[]> => {
  const seen: string[] = [];
  for await (const event of watch) seen.push(shown(event));
  return seen;
};
const refusal = (code: number, reason: string): object => ({
  code: 'REFUSED',
  status: expect.objectContaining({ code, reason }),
});

describe('a FakeListWatcher', () => {
  it('has versions, and begins a watch without one with its state', async () => {
    const source = new FakeListWatcher({ objects: [named('a')] });
    expect(source.resourceVersion).toBe('1');
    expect(source.add(named('b'))).toEqual({ metadata: { name: 'b', resourceVersion: '2' } });
    expect(source.delete(named('nobody'))).toBeUndefined();
    for (const resourceVersion of [undefined, '', '0']) {
      const watch = await source.watch({ resourceVersion });
      expect(readNow(watch)).toEqual(['ADDED a@1', 'ADDED b@2']);
      await watch.return();
    }
    const watch = await source.watch({ sendInitialEvents: true });
    source.modify(named('a'));
    source.delete(named('b'));
    source.bookmark();
    expect(readNow(watch)).toEqual(['ADDED a@1', 'ADDED b@2', 'BOOKMARK @2 end', 'MODIFIED a@3', 'DELETED b@4', 'BOOKMARK @4']);
    expect(source.requests.map(({ verb }) => verb)).toEqual(['watch', 'watch', 'watch', 'watch']);
  });

  it('sends BOOKMARKs only to watches that allow them', async () => {
    const source = new FakeListWatcher();
    const [with_, without] = [await source.watch({ allowWatchBookmarks: true }), await source.watch()];
    source.bookmark();
    expect([readNow(with_), readNow(without)]).toEqual([['BOOKMARK @1'], []]);
    await expect(source.watch({ sendInitialEvents: true, allowWatchBookmarks: false })).rejects.toMatchObject(
      refusal(422, 'Invalid'),
    );
  });

  it('cuts connections: what was sent stays readable, and whoever resumes misses nothing', async () => {
    const source = new FakeListWatcher();
    const watch = await source.watch({ resourceVersion: '1' });
    source.add(named('a'));
    source.cut();
    source.add(named('b'));
    expect(source.openWatches).toBe(0);
    expect(await readAll(watch)).toEqual(['ADDED a@2']);
    const next = await source.watch({ resourceVersion: '2' });
    expect(readNow(next)).toEqual(['ADDED b@3']);
    expect(source.openWatches).toBe(1);
  });

  it('sends an ERROR to all, and ends them', async () => {
    const source = new FakeListWatcher();
    const watches = [await source.watch(), await source.watch()];
    source.sendError(toStatus({ code: 500, reason: 'InternalError', message: 'broken' }));
    for (const watch of watches) expect(await readAll(watch)).toEqual(['ERROR 500']);
  });

  it('forgets its past', async () => {
    const source = new FakeListWatcher({ objects: [named('a'), named('b')] });
    const { continue: token } = await source.list({ limit: 1 });
    source.add(named('c'));
    source.expire();
    expect(await readAll(await source.watch({ resourceVersion: '1' }))).toEqual(['ERROR 410']);
    await expect(source.list({ continue: token })).rejects.toMatchObject(refusal(410, 'Expired'));
    await expect(source.list({ resourceVersion: '1', resourceVersionMatch: 'Exact' })).rejects.toMatchObject(
      refusal(410, 'Expired'),
    );
    const short = new FakeListWatcher({ history: 2 });
    for (const name of 'abc') short.add(named(name));
    expect(await readAll(await short.watch({ resourceVersion: '1' }))).toEqual(['ERROR 410']);
    expect(readNow(await short.watch({ resourceVersion: '2' }))).toEqual(['ADDED b@3', 'ADDED c@4']);
  });

  it('refuses a version that is yet to come', async () => {
    const source = new FakeListWatcher();
    const wrong = { status: { code: 504, details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } } };
    await expect(source.list({ resourceVersion: '2' })).rejects.toMatchObject(wrong);
    await expect(source.watch({ resourceVersion: '2' })).rejects.toMatchObject(wrong);
    await expect(source.watch({ resourceVersion: 'x' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('fails as often as it is told', async () => {
    const source = new FakeListWatcher();
    const error = FakeListWatcher.refusal(429, 'TooManyRequests', { retryAfterSeconds: 3 });
    source.failList(error, 2);
    source.failWatch(new Error('reset'));
    await expect(source.list()).rejects.toMatchObject({ status: { code: 429, details: { retryAfterSeconds: 3 } } });
    await expect(source.list()).rejects.toBe(error);
    expect((await source.list()).items).toEqual([]);
    await expect(source.watch()).rejects.toThrow('reset');
    source.failWatch(error, 5);
    source.failWatch();
    await (await source.watch()).return();
  });

  it('tells a watch that falls behind', async () => {
    const source = new FakeListWatcher({ capacity: 2 });
    const watch = await source.watch();
    for (const name of 'abc') source.add(named(name));
    expect(await readAll(watch)).toEqual(['ADDED a@2', 'ADDED b@3', 'ERROR 410']);
  });

  it('holds requests until they are released, or their signal aborts; no listener stays', async () => {
    const source = new FakeListWatcher();
    const release = source.hold();
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const [waits, ends] = [fate(source.list()), fate(source.watch({ signal: abort.signal }))];
    await turn();
    expect([waits.state, ends.state, listeners.count]).toEqual(['pending', 'pending', 1]);
    abort.abort('enough');
    await turn();
    expect([waits.state, ends.error, listeners.count]).toEqual(['pending', 'enough', 0]);
    release();
    await turn();
    expect(waits.state).toBe('resolved');
    expect((await source.list()).items).toEqual([]);
  });

  it.each<[string, () => unknown, string]>([
    [
      'an unknown option',
      async () => new FakeListWatcher({ capacitty: 1 } as never),
      'unknown option capacitty: did you mean capacity?',
    ],
    [
      'a version that is no number',
      async () => new FakeListWatcher({ firstVersion: 'one' }),
      'resourceVersion: expected a version of Kubernetes, a decimal number below 2^128, got "one"',
    ],
    [
      'a delay without a clock',
      async () => new FakeListWatcher().delay(5),
      'delay: expected a FakeListWatcher with a clock, got 5',
    ],
    [
      'no number of times',
      async () => new FakeListWatcher().failList(new Error(), -1),
      'times: expected a whole number >= 0, got -1',
    ],
  ])('refuses %s', async (_, call, message) => {
    await expect(call()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  });

  it('whoever resumes where a cut has left it gets what an uncut watch gets (S1), and what a list has (S2)', async () => {
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      gone: fc.boolean(),
      cutAfter: fc.integer({ min: 0, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const source = new FakeListWatcher({ objects: [named('a')] });
        const { items, resourceVersion } = await source.list();
        const uncut = await source.watch({ resourceVersion });
        const state = new Map(items.map((item) => [item.metadata?.name, item.metadata?.resourceVersion]));
        const seen: string[] = [];
        let last = resourceVersion;
        for (const { name, gone, cutAfter } of [...steps, { name: 'end', gone: false, cutAfter: 100 }]) {
          if (gone) source.delete(named(name));
          else source.add(named(name));
          source.cutAfter(cutAfter);
          const watch = await source.watch({ resourceVersion: last });
          for (let left = cutAfter; left > 0 && last !== source.resourceVersion; left--) {
            const { value } = await watch.next();
            if (!value || value.type === 'ERROR' || value.type === 'BOOKMARK') throw new Error(`not expected: ${shown(value)}`);
            const { name: of, resourceVersion: at } = value.object.metadata as { name: string; resourceVersion: string };
            seen.push(shown(value));
            if (value.type === 'DELETED') state.delete(of);
            else state.set(of, at);
            last = at;
          }
          if (cutAfter === 0) expect((await watch.next()).done).toBe(true);
          await watch.return();
        }
        expect(seen).toEqual(readNow(uncut));
        const list = (await source.list()).items.map(({ metadata }) => [metadata?.name, metadata?.resourceVersion]);
        expect([...state].sort()).toEqual(list.sort());
        await uncut.return();
        expect(source.openWatches).toBe(0);
      }),
      { numRuns: runs(500) },
    );
  });
});
