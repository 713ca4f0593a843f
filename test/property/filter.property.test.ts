import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { filter, Recorder } from '../../src/broadcast/filter.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { runs } from '../runs.ts';
import { macrotask } from '../unit/support.ts';

/**
 * The model: what a filter passes on is the array of its source, mapped, without the undefined ones; reads take from its front
 * in the order in which they were called.
 */

type Count = WatchEvent<'count', number>;
type Command = 'publish' | 'next' | 'tryNext' | 'batch' | 'turn';

const commands = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constant<Command>('publish') },
    { weight: 5, arbitrary: fc.constantFrom<Command>('next', 'tryNext', 'batch', 'turn') },
  ),
  { maxLength: 40 },
);
/** What fn makes of event n: the n-th answer, and undefined is left out. */
const answers = fc.array(fc.option(fc.nat(9), { nil: undefined }), { minLength: 40, maxLength: 40 });

interface Run {
  readonly watch: Watch<number>;
  readonly source: Broadcaster<Count>;
  /** Runs one command; what it read arrives in `read`, in the order of the calls. */
  readonly perform: (command: Command) => Promise<void> | undefined;
  readonly read: () => Promise<number[]>;
}

function start(fn: (event: Count) => number | undefined): Run {
  const source = new Broadcaster<Count>({ overflow: 'drop-newest', capacity: 1_000 });
  const watch = filter(source.watch(), fn);
  const batches = watch.batches();
  const reads: Promise<readonly number[]>[] = [];
  let published = 0;
  const perform = (command: Command): Promise<void> | undefined => {
    if (command === 'publish') {
      source.tryPublish({ type: 'count', object: published++ });
    } else if (command === 'next') {
      reads.push(watch.next().then(({ done, value }) => (done === true ? [] : [value])));
    } else if (command === 'batch') {
      reads.push(batches.next().then(({ done, value }) => (done === true ? [] : value)));
    } else if (command === 'tryNext') {
      const event = watch.tryNext();
      if (event !== undefined) reads.push(Promise.resolve([event]));
    } else {
      return macrotask();
    }
    return undefined;
  };
  return { watch, source, perform, read: async () => (await Promise.all(reads)).flat() };
}

async function rest(watch: Watch<number>): Promise<number[]> {
  const events: number[] = [];
  for await (const event of watch) events.push(event);
  return events;
}

test('any mix of reads returns the source, mapped and filtered, in order, with fn called once per event', async () => {
  await fc.assert(
    fc.asyncProperty(commands, answers, fc.boolean(), async (list, answer, stops) => {
      const judged: number[] = [];
      const { watch, source, perform, read } = start((event) => {
        judged.push(event.object);
        return answer[event.object];
      });
      for (const command of list) await perform(command);
      if (stops) watch.stop();
      else await source.shutdown();
      const got = [...(await read()), ...(await rest(watch))];
      const published = list.filter((command) => command === 'publish').length;
      expect(got).toEqual(answer.slice(0, published).filter((kept) => kept !== undefined));
      expect(judged).toEqual(Array.from({ length: published }, (_, at) => at));
      expect([watch.queued, watch.dropped, watch.stopped]).toEqual([0, 0, true]);
    }),
    { numRuns: runs(500) },
  );
});

test('a throwing fn: all earlier events, the error once, the end, upstream returned', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(10), fc.nat(10), answers, fc.boolean(), async (before, after, answer, inBatches) => {
      const { watch, source } = start((event) => {
        if (event.object === before) throw new Error('fn');
        return answer[event.object];
      });
      for (let object = 0; object <= before + after; object++) source.tryPublish({ type: 'count', object });
      const got: number[] = [];
      const failures: unknown[] = [];
      const batches = watch.batches();
      for (let over = false; !over; ) {
        try {
          const { done, value } = await (inBatches ? batches.next() : watch.next());
          if (done === true) over = true;
          else got.push(...[value].flat());
        } catch (error) {
          failures.push((error as Error).message);
        }
      }
      expect(got).toEqual(answer.slice(0, before).filter((kept) => kept !== undefined));
      expect(failures).toEqual(['fn']);
      expect(source.watchers).toBe(0);
    }),
    { numRuns: runs(300) },
  );
});

test('fn may read the watch it filters, in any way: every event passes once, in order, and everything ends', async () => {
  await fc.assert(
    fc.asyncProperty(
      commands,
      answers,
      fc.array(fc.constantFrom<Command>('next', 'tryNext', 'batch'), { maxLength: 10 }),
      async (list, answer, inner) => {
        const inside = [...inner];
        const passed: number[] = [];
        const run: Run = start((event) => {
          const command = inside.pop();
          if (command !== undefined) void run.perform(command);
          const kept = answer[event.object];
          if (kept !== undefined) passed.push(kept);
          return kept;
        });
        for (const command of list) await run.perform(command);
        await run.source.shutdown();
        const last = await rest(run.watch);
        const got = [...(await run.read()), ...last];
        const published = list.filter((command) => command === 'publish').length;
        expect(passed).toEqual(answer.slice(0, published).filter((kept) => kept !== undefined));
        expect([...got].sort()).toEqual([...passed].sort());
      },
    ),
    { numRuns: runs(500) },
  );
});

test('a Recorder has what was read, and passes it on', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(20), fc.nat(20), async (published, reads) => {
      const source = new Broadcaster<Count>({ overflow: 'drop-newest' });
      const recorder = new Recorder(source.watch());
      for (let object = 0; object < published; object++) source.tryPublish({ type: 'count', object });
      const read: (Count | undefined)[] = [];
      for (let at = 0; at < reads; at++) read.push(recorder.tryNext());
      expect(recorder.events()).toEqual(read.slice(0, published));
    }),
  );
});
