import * as fc from 'fast-check';
import { Subject, type Subscription } from 'rxjs';
import { expect, test } from 'vitest';
import { fromObservable, observe } from '../../src/adapters/rxjs.ts';
import { Broadcaster, type Overflow } from '../../src/broadcast/broadcaster.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { policiesWith } from '../policies.ts';
import { runs } from '../runs.ts';
import { macrotask } from '../unit/support.ts';

type Count = WatchEvent<string, number>;
const count = (object: number): Count => ({ type: 'count', object });

type Step = { do: 'publish' | 'turn' | 'shutdown' } | { do: 'subscribe'; until: number } | { do: 'unsubscribe'; which: number };

test('observe: each observer gets the events accepted from its subscription to its end, and no watcher is left', async () => {
  const steps = fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('publish' as const, 'turn' as const) }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('subscribe' as const), until: fc.integer({ min: 1, max: 12 }) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('unsubscribe' as const), which: fc.nat(5) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('shutdown' as const) }) },
    ),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(steps, async (list: Step[]) => {
      const source = new Broadcaster<Count>({ capacity: 1_000 });
      const observers: { from: number; to: number; heard: number[]; ends: number; left: boolean; subscription: Subscription }[] =
        [];
      let published = 0;
      let closed = false;
      for (const step of list) {
        if (step.do === 'publish' && !closed) {
          source.tryPublish(count(published++));
        } else if (step.do === 'turn') {
          await macrotask();
        } else if (step.do === 'shutdown') {
          closed = true;
          void source.shutdown();
        } else if (step.do === 'subscribe' && !closed) {
          const { until } = step;
          const heard: number[] = [];
          const observer = {
            from: published,
            to: published + until,
            heard,
            ends: 0,
            left: false,
            subscription: undefined as unknown as Subscription,
          };
          observer.subscription = observe(source).subscribe({
            next: (event) => {
              heard.push(event.object);
              if (heard.length === until) observer.subscription.unsubscribe();
            },
            complete: () => observer.ends++,
          });
          observers.push(observer);
        } else if (step.do === 'unsubscribe') {
          const observer = observers[step.which];
          if (observer === undefined || observer.subscription.closed) continue;
          observer.left = true;
          observer.subscription.unsubscribe();
          observer.to = Math.min(observer.to, observer.from + observer.heard.length);
        }
      }
      await source.shutdown();
      await macrotask();
      for (const { from, to, heard, ends, left } of observers) {
        const all = Array.from({ length: Math.max(0, Math.min(to, published) - from) }, (_, at) => from + at);
        expect(heard).toEqual(all);
        expect(ends).toBe(left || published >= to ? 0 : 1);
      }
      expect(source.watchers).toBe(0);
    }),
    { numRuns: runs(500) },
  );
});

/** A queue as anybody would write it: what is in it, what it lost, how it ends. */
class ArrayQueue {
  readonly events: number[] = [];
  lost = 0;
  over = false;
  end: 'done' | 'overloaded' | 'expired' | 'source' = 'done';
  readonly room: number;
  readonly overflow: Overflow;
  constructor(overflow: Overflow, capacity: number, incoming: number) {
    this.overflow = overflow;
    this.room = overflow === 'wait' ? capacity + incoming : capacity;
  }
  push(event: number): void {
    if (this.over) return;
    if (this.events.length < this.room) {
      this.events.push(event);
    } else if (this.overflow === 'wait') {
      this.close('overloaded');
    } else if (this.overflow === 'disconnect') {
      this.lost++;
      this.close('expired');
    } else {
      this.lost++;
      if (this.overflow === 'drop-oldest' && this.room > 0) this.events.push(event) && this.events.shift();
    }
  }
  close(end: 'done' | 'overloaded' | 'expired' | 'source'): void {
    if (this.over) return;
    this.over = true;
    this.end = end;
  }
}

test('fromObservable: holds, loses, fails and ends like a plain queue, and unsubscribes', async () => {
  const commands = fc.array(
    fc.oneof({ weight: 5, arbitrary: fc.constant('emit' as const) }, { weight: 3, arbitrary: fc.constant('read' as const) }),
    { maxLength: 40 },
  );
  const overflows = fc.constantFrom(...policiesWith({ folds: false }));
  const ends = fc.constantFrom('complete' as const, 'error' as const, 'stop' as const);
  await fc.assert(
    fc.asyncProperty(commands, overflows, fc.nat(3), fc.nat(3), ends, async (list, overflow, capacity, incoming, end) => {
      const subject = new Subject<Count>();
      const watch = fromObservable(subject, { overflow, capacity, incoming });
      const model = new ArrayQueue(overflow, capacity, incoming);
      let emitted = 0;
      const read: (number | undefined)[] = [];
      const modelRead: (number | undefined)[] = [];
      for (const command of list) {
        if (command === 'emit') {
          model.push(emitted);
          subject.next(count(emitted++));
        } else if (model.events.length > 0 || !model.over) {
          modelRead.push(model.events.shift());
          read.push(watch.tryNext()?.object as number | undefined);
        }
      }
      if (model.end === 'done') expect([watch.queued, watch.dropped]).toEqual([model.events.length, model.lost]);
      expect(read).toEqual(modelRead);
      expect(subject.observed).toBe(!model.over);
      if (end === 'stop') watch.stop();
      else subject[end](new Error('source'));
      if (!model.over && end === 'error') model.close('source');
      expect(subject.observed).toBe(false);
      const rest: Count[] = [];
      const failure = await (async () => {
        for await (const batch of watch.batches()) rest.push(...(batch as Count[]));
      })().then(
        () => undefined,
        (error: unknown) => error,
      );
      if (model.end === 'expired') expect(rest.pop()?.type).toBe('ERROR');
      expect(rest.map((event) => event.object)).toEqual(model.events);
      if (model.end === 'overloaded') expect(isWatchError(failure, 'OVERLOADED')).toBe(true);
      else if (model.end === 'source') expect(failure).toMatchObject({ message: 'source' });
      else expect(failure).toBeUndefined();
      if (overflow !== 'wait') expect(watch.dropped).toBe(model.lost);
    }),
    { numRuns: runs(1_000) },
  );
});

type Look = 'emit' | 'next' | 'batch' | 'poll' | 'counts' | 'turn';

test('fromObservable: reads get what a watcher of a broadcaster gives them, however many are pending', async () => {
  const looks = fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constant<Look>('emit') },
      { weight: 6, arbitrary: fc.constantFrom<Look>('next', 'batch', 'poll', 'counts', 'turn') },
    ),
    { maxLength: 30 },
  );
  const overflows = fc.constantFrom(...OVERFLOWS);
  const ends = fc.constantFrom('complete' as const, 'stop' as const, 'return' as const);
  await fc.assert(
    fc.asyncProperty(looks, overflows, fc.nat(3), ends, async (list, overflow, capacity, end) => {
      const keyOf = (event: Count): string => String(event.object % 3);
      const subject = new Subject<Count>();
      const source = new Broadcaster<Count>({ overflow, capacity: overflow === 'wait' ? capacity + 100 : capacity, keyOf });
      const watches = [fromObservable(subject, { overflow, capacity, incoming: 100, keyOf }), source.watch()] as const;
      const seen: [unknown[], unknown[]] = [[], []];
      let emitted = 0;
      for (const look of [...list, 'turn', end, 'turn', 'next', 'batch', 'next', 'turn'] as const) {
        if (look === 'turn') await macrotask();
        else if (look === 'emit') {
          const event: Count = { type: 'MODIFIED', object: emitted++ };
          subject.next(event);
          if (!watches[1].stopped) source.tryPublish(event); // one that is cut has unsubscribed
        } else if (look === 'complete') {
          subject.complete();
          void source.shutdown();
        } else {
          for (const [at, watch] of watches.entries()) {
            const note = (what: unknown): unknown => seen[at as 0 | 1].push([look, what]);
            if (look === 'next') void watch.next().then(note);
            else if (look === 'batch') void watch.batches().next().then(note);
            else if (look === 'poll') note(watch.tryNext());
            else if (look === 'counts') note([watch.queued, watch.dropped, watch.stopped]);
            else void watch[look]();
          }
        }
      }
      expect(seen[0]).toEqual(seen[1]);
      expect(watches[0].dropped).toBe(watches[1].dropped);
      expect(subject.observed).toBe(false);
    }),
    { numRuns: runs(1_000) },
  );
});
