// A cacher against a model that is a list of revisions: for every selection, scope and beginning a watch is a filter of the list,
// and a list is its fold, whatever the storage, the readers and the window do. What a watch has brought is compared with the beginning of
// that filter also if it ended by 410, a relist or its time, so S3 (versions rise), S4 (nothing is missing before the last that came) and
// S5 (ADDED where there is nothing, else MODIFIED or DELETED) hold beside S1, S2, S6 and S7.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isWatchError } from '../../src/watch/errors.ts';
import { runs } from '../runs.ts';
import { type Pod, settle } from '../unit/faulty-storage.ts';
import { command, past, World } from './cacher-world.ts';

const RUNS = runs(300);

const options = fc.record({
  windowItems: fc.constantFrom(1, 3, 6, 1_000),
  windowBytes: fc.constantFrom(undefined, undefined, 1_000, 10_000),
  windowMs: fc.constantFrom(1_000, 75_000),
  pastRevisions: fc.constantFrom(0, 3, 10, 1_000),
  random: fc.double({ min: 0, max: 0.999, noNaN: true }).map((value) => () => value),
});

describe('a cacher is a filter of the log', { timeout: 30_000 + RUNS * 100 }, () => {
  test('P6 to P9, S1 to S7: every watch and list, for every selection, scope and beginning', async () => {
    const property = fc.asyncProperty(
      options,
      fc.array(past, { maxLength: 15 }),
      fc.array(command, { minLength: 5, maxLength: 80, size: 'max' }),
      fc.boolean(),
      async (given, before, steps, isBacked) => {
        const world = await World.after(before, given, isBacked);
        for (const step of steps) {
          await world.take(step);
          const { window } = world.cacher.stats;
          expect(window.items).toBeLessThanOrEqual(given.windowItems);
          expect(window.bytes).toBeLessThanOrEqual(given.windowBytes ?? Number.POSITIVE_INFINITY);
        }
        await world.mend();
        for (const reader of world.readers) if (!reader.over) reader.readNow('all');
        await settle();
        for (const reader of world.readers) reader.check(true);
        await world.cacher.close();
        await Promise.all(world.following);
        expect(world.cacher.stats).toMatchObject({ phase: 'stopped', waiting: 0, views: 0 });
        await settle();
        expect(world.clock.pending).toBe(0);
        expect(world.pods.storage.faults.cuts.size).toBe(0);
        expect(world.pods.memory.stats.watches).toBe(0);
      },
    );
    await fc.assert(property, { numRuns: RUNS });
  });

  test('S14: closed at any moment, whatever is asked of it then: every call settles, and nothing is left', async () => {
    const property = fc.asyncProperty(
      options,
      fc.array(past, { maxLength: 6 }),
      fc.array(command, { maxLength: 20 }),
      fc.record({ isBacked: fc.boolean(), turns: fc.nat(60), ahead: fc.nat(2), scope: fc.constantFrom('', 'x/') }),
      async (given, before, steps, { isBacked, turns, ahead, scope }) => {
        const world = await World.after(before, given, isBacked);
        for (const step of steps) await world.take(step);
        const { cacher, clock, pods } = world;
        const part = scope ? cacher.scope<Pod>(scope) : cacher;
        const own = part.served?.({ maxWatches: 1 }) ?? part;
        const resourceVersion = `${Number(await pods.memory.currentVersion()) + ahead}`;
        const calls: Promise<unknown>[] = [
          ...[{}, { resourceVersion }, { resourceVersion, limit: 1 }, { limit: 2 }].map((each) => part.list(each)),
          ...[{ sendInitialEvents: true }, { resourceVersion }, {}].map(async (each) => {
            const watch = await own.watch({ allowWatchBookmarks: true, ...each });
            while (!(await watch.next()).done);
          }),
          ...[undefined, '0', resourceVersion].map((version) => part.get('a', { resourceVersion: version })),
          ...[cacher.ready(), part.requestProgress(), part.currentVersion(), part.update('x/a', (now) => now, {})],
        ];
        const settled = calls.map((call) =>
          call.then(
            () => 'done',
            (error: unknown) => (isWatchError(error, 'REFUSED') || isWatchError(error, 'CLOSED') ? 'refused' : error),
          ),
        );
        await settle(turns);
        await world.within(cacher.close());
        for (const outcome of settled) expect(['done', 'refused']).toContain(await world.within(outcome));
        await world.within(Promise.all(world.following));
        await own.close();
        expect(cacher.stats).toMatchObject({ phase: 'stopped', waiting: 0, views: 0 });
        pods.storage.release(); // its generators are deaf while they are held
        await settle();
        expect([clock.pending, pods.storage.faults.cuts.size, pods.memory.stats.watches]).toEqual([0, 0, 0]);
        await expect(part.list()).rejects.toMatchObject({ code: 'CLOSED' });
      },
    );
    await fc.assert(property, { numRuns: RUNS });
  });
});
