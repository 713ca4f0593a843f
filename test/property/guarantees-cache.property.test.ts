// Informers of a server that fails in every scheduled way, with handlers of every kind: all named guarantees of caches hold. And
// caches that are broken on purpose, which the checkers must reject.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Informer, type KubernetesObject } from '../../src/cache/index.ts';
import { toStatus } from '../../src/index.ts';
import { CacheRecorder, checkCacheHistory, FakeClock, FakeListWatcher, type Violation } from '../../src/testing/index.ts';
import { runs } from '../runs.ts';
import { turn } from '../unit/support.ts';
import { BREAKS, type Flaw, ToyCache } from './cache-world.ts';

const RUNS = runs(300);

type Command =
  | { readonly do: 'add' | 'delete'; readonly name: string; readonly app: string }
  | { readonly do: 'bookmark' | 'cut' | 'expire' | 'halfOpen' | 'hold' | 'settle' | 'release' | 'handler' | 'watch' | 'remove' }
  | { readonly do: 'error' | 'failList' | 'failWatch'; readonly code: number }
  | { readonly do: 'shortWatch' | 'silentWatch' | 'truncateList' | 'cutAfter' | 'errorAfter'; readonly count: number }
  | { readonly do: 'bookmarkAtStart' | 'refuseInitial' | 'endBadly'; readonly on: boolean }
  | { readonly do: 'advance' | 'delay'; readonly ms: number };

const code = fc.constantFrom(404, 410, 429, 500, 503, 504);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('add' as const, 'add' as const, 'delete' as const),
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      app: fc.constantFrom('web', 'db'),
    }),
  },
  { weight: 6, arbitrary: fc.constant({ do: 'settle' as const }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('bookmark' as const, 'cut', 'expire', 'halfOpen', 'hold', 'release', 'handler', 'watch', 'remove'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('error' as const, 'failList', 'failWatch'), code }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('shortWatch' as const, 'silentWatch', 'truncateList', 'cutAfter', 'errorAfter'),
      count: fc.integer({ min: 0, max: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('bookmarkAtStart' as const, 'refuseInitial', 'endBadly'), on: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('advance' as const, 'delay'), ms: fc.constantFrom(0, 1, 900, 5_000, 70_000) }),
  },
);

/** As long ones as short ones: most of what goes wrong needs several faults. */
const script = fc.array(command, { maxLength: 40, size: 'max' });

/** The server, its faults, and what is recorded. */
class World {
  readonly clock: FakeClock = new FakeClock(1_000);
  readonly fake: FakeListWatcher;
  readonly recorder: CacheRecorder;
  #releases: (() => void)[] = [];

  constructor(firstVersion: string) {
    const objects: KubernetesObject[] = ['a', 'b'].map((name) => ({ metadata: { name, labels: { app: 'web' } } }));
    this.fake = new FakeListWatcher({ objects, history: 8, clock: this.clock, firstVersion });
    this.recorder = new CacheRecorder(this.fake);
  }

  perform(each: Command): void {
    const { fake, recorder } = this;
    const status = (of: number): ReturnType<typeof toStatus> => toStatus({ code: of, reason: 'Fault', message: 'a fault' });
    if (each.do === 'add') recorder.add({ metadata: { name: each.name, labels: { app: each.app } } });
    else if (each.do === 'delete') recorder.delete({ metadata: { name: each.name } });
    else if (each.do === 'hold') this.#releases.push(fake.hold());
    else if (each.do === 'release') for (const release of this.#releases.splice(0)) release();
    else if (each.do === 'error') fake.sendError(status(each.code));
    else if (each.do === 'failList') fake.failList(FakeListWatcher.refusal(each.code, 'Fault'));
    else if (each.do === 'failWatch') fake.failWatch(FakeListWatcher.refusal(each.code, 'Fault'), 2);
    else if (each.do === 'cutAfter') fake.cutAfter(each.count);
    else if (each.do === 'errorAfter') fake.errorAfter(each.count, status(each.count === 0 ? 410 : 500));
    else if (each.do === 'refuseInitial') fake.refuseInitialEvents(each.on);
    else if (each.do === 'endBadly') fake.endInitialEventsWith(each.on ? 'false' : 'true');
    else if (each.do === 'bookmarkAtStart') fake.bookmarkAtStart(each.on);
    else if (each.do === 'advance') this.clock.advance(each.ms);
    else if (each.do === 'delay') fake.delay(each.ms);
    else if (each.do === 'shortWatch' || each.do === 'silentWatch' || each.do === 'truncateList') fake[each.do](each.count);
    else if (each.do === 'bookmark' || each.do === 'cut' || each.do === 'expire' || each.do === 'halfOpen') fake[each.do]();
    recorder.look();
  }

  /** Stops all faults. What is half-open stays so: whoever is connected there must notice. */
  heal(): void {
    for (const release of this.#releases.splice(0)) release();
    const { fake } = this;
    fake.failList();
    fake.failWatch();
    fake.shortWatch(0);
    fake.silentWatch(0);
    fake.cutAfter(Number.POSITIVE_INFINITY);
    fake.errorAfter(Number.POSITIVE_INFINITY);
    fake.refuseInitialEvents(false);
    fake.endInitialEventsWith('true');
    fake.delay(0);
  }

  check(): Violation[] {
    return checkCacheHistory(this.recorder.history());
  }
}

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await turn();
};
const web = ({ metadata }: KubernetesObject): boolean => metadata?.labels?.app === 'web';

describe('an informer of a server that fails', () => {
  const firstVersion = fc.constantFrom('1', '9007199254740990', '9999999999999999998');
  it('keeps all guarantees of caches, and leaves nothing behind', { timeout: 60_000 + 100 * RUNS }, async () => {
    await fc.assert(
      fc.asyncProperty(script, firstVersion, fc.boolean(), async (commands, version, streams) => {
        const world = new World(version);
        const { recorder, clock, fake } = world;
        const informer = new Informer<KubernetesObject>(recorder.source('mine'), {
          clock,
          random: () => 0.5,
          streamingList: streams,
          idleTimeoutMs: 60_000,
          pageSize: 2,
          onError: () => {},
        });
        recorder.cache('mine', informer);
        const slow: (() => void)[] = [];
        const open: string[] = [];
        const copies: Promise<void>[] = [];
        let names = 0;
        const handle = (): void => {
          const name = `handler ${++names}`;
          const kind = names % 4;
          const runs = (): unknown => {
            if (kind === 1) return new Promise<void>((resolve) => slow.push(resolve));
            if (kind === 2) throw new Error('a handler that fails');
            return undefined;
          };
          const filter = kind === 3 ? web : undefined;
          recorder.addHandler('mine', name, { onAdd: runs, onUpdate: runs, onDelete: runs }, { ...(filter && { filter }) });
          open.push(name);
        };
        const copy = async (): Promise<void> => {
          for await (const _ of recorder.watch('mine', informer.watch()));
        };
        handle();
        handle();
        copies.push(copy());
        const running = informer.run();
        for (const each of commands) {
          world.perform(each);
          if (each.do === 'settle') await turns(3);
          else if (each.do === 'handler' && names < 8) handle();
          else if (each.do === 'watch' && copies.length < 4) copies.push(copy());
          else if (each.do === 'release') for (const resolve of slow.splice(0)) resolve();
          else if (each.do === 'remove' && open.length > 1) recorder.removeHandler('mine', open.shift() as string);
        }
        world.heal();
        for (let i = 0; i < 12; i++) {
          await turns(4);
          clock.advance(20_000);
          for (let more = 0; more < 20 && slow.length > 0; more++) {
            for (const resolve of slow.splice(0)) resolve();
            await turns(1);
          }
          recorder.look();
        }
        await turns(10);
        recorder.settled();
        await informer.atLeast(informer.resourceVersion);
        recorder.reached('mine', informer.resourceVersion);
        expect(world.check()).toEqual([]);
        expect(informer.hasSynced).toBe(true);
        recorder.stopped('mine');
        const stopped = informer.stop();
        for (let i = 0; i < 5; i++) {
          for (const resolve of slow.splice(0)) resolve();
          await turns(1);
        }
        await stopped;
        await running;
        await Promise.all(copies);
        fake.cut();
        expect([world.check(), clock.pending, fake.openWatches]).toEqual([[], 0, 0]);
      }),
      { numRuns: RUNS },
    );
  });
});

/** A deletion that only a list can tell, and a list that fails. */
const RELIST: readonly Command[] = [
  { do: 'add', name: 'a', app: 'web' },
  { do: 'cut' },
  { do: 'settle' },
  { do: 'hold' },
  { do: 'cut' },
  { do: 'delete', name: 'a', app: 'web' },
  { do: 'expire' },
  { do: 'failList', code: 500 },
  { do: 'release' },
  { do: 'settle' },
];

describe('a toy cache', () => {
  const history = async (commands: readonly Command[], flaw: Flaw): Promise<string[]> => {
    const world = new World('1');
    const cache = new ToyCache(world.recorder.source('toy'), flaw);
    world.recorder.cache('toy', cache);
    world.recorder.addHandler('toy', 'early');
    const running = cache.run();
    for (const each of [...commands, ...RELIST]) {
      if (each === RELIST[0]) world.heal();
      world.perform(each);
      if (each.do === 'settle') await turns(3);
    }
    world.heal();
    world.fake.cut(); // it does not notice what is half-open
    for (let i = 0; i < 5; i++) {
      world.clock.advance(70_000);
      await turns(5);
      world.recorder.look();
    }
    world.recorder.settled();
    cache.stop();
    await running;
    return world.check().map(({ message }) => message);
  };

  it('that is right is accepted', { timeout: 60_000 + 100 * RUNS }, async () => {
    await fc.assert(
      fc.asyncProperty(script, async (commands) => {
        expect(await history(commands, 'none')).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it.each(Object.entries(BREAKS) as [Exclude<Flaw, 'none'>, string][])('that %s is rejected: %s', async (flaw, guarantee) => {
    const wrong = new Set<string>();
    await fc.assert(
      fc.asyncProperty(script, async (commands) => {
        for (const message of await history(commands, flaw)) wrong.add(message.split(' ')[0] as string);
      }),
      { numRuns: runs(100) },
    );
    expect(wrong).toContain(guarantee);
  });
});
