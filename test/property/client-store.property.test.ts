// Collections and stores against a model that is obviously right. Subscribers come and go, objects change, the server restarts, and its
// snapshots arrive piece by piece, with changes behind them.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Collection, toCollection, toStore, type ViewOptions, type Watchable } from '../../src/bridge/client.ts';
import { Broadcaster } from '../../src/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { toExpired, type WatchEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { runs } from '../runs.ts';

interface Thing {
  readonly id: string;
  readonly size: number;
}

const END: WatchEvent = {
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: 'e.1', annotations: { 'k8s.io/initial-events-end': 'true' } } },
};
const LINGER_MS = 1_000;
/** A flush is due in less time than this. */
const FLUSH_MS = 16;

/** A server with a snapshot, and what whoever watches it must see. */
class World implements Watchable<WatchEvent> {
  readonly things: Map<string, Thing> = new Map();
  opened: number = 0;
  #stream: Broadcaster<WatchEvent> | undefined;
  /** What of the snapshot has not been sent, and what comes behind it. Undefined: it has been sent. */
  #rest: Thing[] | undefined;
  #behind: WatchEvent[] = [];
  /** What is to be seen until the snapshot has been sent. The first one is seen as it comes. */
  #kept: Map<string, Thing> = new Map();

  watch(options: { signal: AbortSignal }): Watch<WatchEvent> {
    this.opened++;
    this.#stream = new Broadcaster<WatchEvent>({ capacity: 1_000 });
    this.#kept = new Map();
    this.#begin();
    return this.#stream.watch(options);
  }

  get isWatched(): boolean {
    return this.#stream !== undefined && this.#stream.watchers > 0;
  }

  get expected(): ReadonlyMap<string, Thing> {
    return this.#rest ? this.#kept : this.things;
  }

  change(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Thing): void {
    if (type === 'DELETED') this.things.delete(object.id);
    else this.things.set(object.id, object);
    const event = { type, object, resourceVersion: `e.${Math.random()}` };
    if (this.#rest) this.#behind.push(event);
    else this.#send(event);
  }

  /** Sends some objects of the snapshot; the last of them with its end, and with what has happened meanwhile. */
  sendSome(count: number, isFirst: boolean): void {
    for (const object of this.#rest?.splice(0, count) ?? []) {
      if (isFirst) this.#kept.set(object.id, object);
      this.#send({ type: 'ADDED', object });
    }
    if (this.#rest?.length !== 0) return;
    this.#rest = undefined;
    this.#send(END);
    for (const event of this.#behind) this.#send(event);
  }

  /** Nobody hears of the things that are gone after it. */
  restart(lost: number): void {
    if (!this.isWatched) return;
    this.#kept = new Map(this.expected);
    for (const key of [...this.things.keys()].slice(0, lost)) this.things.delete(key);
    this.#send({ type: 'ERROR', object: toExpired('the server has restarted') });
    this.#begin();
  }

  #begin(): void {
    this.#rest = [...this.things.values()].map((thing) => ({ ...thing }));
    this.#behind = [];
  }

  #send(event: WatchEvent): void {
    void this.#stream?.tryPublish(event);
  }
}

const settle = async (): Promise<void> => {
  await new Promise((resolve) => setImmediate(resolve));
};

const VIEWS: readonly ViewOptions<Thing>[] = [
  {},
  { sort: (one, other) => one.size - other.size },
  { sort: (one, other) => other.size - one.size, selector: ({ size }) => size % 2 === 1, limit: 3 },
  { limit: 0 },
];

/** What a view shows, as its documentation says it. */
function viewed(things: ReadonlyMap<string, Thing>, { selector, sort, limit }: ViewOptions<Thing>): Thing[] {
  const chosen = [...things.values()].filter((thing) => selector?.(thing) ?? true);
  return chosen.sort((one, other) => sort?.(one, other) || (one.id < other.id ? -1 : 1)).slice(0, limit);
}

const IDS = ['a', 'b', 'c', 'd', 'e', 'f'];
const id = fc.constantFrom(...IDS);
const place = fc.nat({ max: 2 * VIEWS.length - 1 });
const STEP = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('put'), id, fc.nat({ max: 5 })) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('remove'), id, fc.constant(0)) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('enter'), fc.constant(''), place) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('leave'), fc.constant(''), place) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('send'), fc.constant(''), fc.integer({ min: 1, max: 4 })) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('restart'), fc.constant(''), fc.nat({ max: 2 })) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('pass'), fc.constant(''), fc.constantFrom(1, FLUSH_MS, 500, LINGER_MS)) },
);

/** All that one run needs. The second half of the places has a handle of its own, as another component has. */
class Run {
  readonly world: World = new World();
  readonly clock: FakeClock = new FakeClock();
  readonly views: readonly Collection<Thing>[];
  readonly leaves: (() => void)[][];
  readonly seen: Map<string, Thing> = new Map();
  hadRestart: boolean = false;

  constructor() {
    const handles = [0, 1].map(() => toCollection<Thing>(this.world as unknown as Watchable<never>, { clock: this.clock }));
    this.views = handles.flatMap((handle) => VIEWS.map((view) => handle.view(view)));
    this.leaves = this.views.map(() => []);
  }

  get isUsed(): boolean {
    return this.leaves.some(({ length }) => length > 0);
  }

  take(name: string, key: string, number: number): void {
    const { world, clock } = this;
    const before = world.things.get(key);
    if (name === 'put') world.change(before ? 'MODIFIED' : 'ADDED', { id: key, size: number });
    else if (name === 'remove' && before) world.change('DELETED', before);
    else if (name === 'enter') {
      if (!world.isWatched) this.hadRestart = false;
      this.leaves[number]?.push((this.views[number] as Collection<Thing>).subscribe(() => {}));
    } else if (name === 'leave') this.leaves[number]?.pop()?.();
    else if (name === 'send') world.sendSome(number, !this.hadRestart);
    else if (name === 'restart') {
      this.hadRestart ||= world.isWatched;
      world.restart(number);
    } else if (name === 'pass') clock.advance(number);
    for (const gone of this.seen.keys()) if (!world.things.has(gone)) this.seen.delete(gone);
  }

  /** What is shown is of one moment, whatever has arrived since: all of one snapshot, and that of a view that is new. */
  checkMoment(): void {
    const { items, get, ready } = (this.views[0] as Collection<Thing>).getSnapshot();
    const fresh = toCollection<Thing>(this.world as unknown as Watchable<never>, { clock: this.clock }).getSnapshot();
    expect({ got: IDS.map(get), items: fresh.items, ready: fresh.ready }).toEqual({
      got: IDS.map((key) => items.find((item) => item.id === key)),
      ...{ items, ready },
    });
  }

  check(): void {
    const { expected } = this.world;
    const shown = this.views.map(({ getSnapshot }) => getSnapshot());
    const due = this.views.map((_, at) => VIEWS[at % VIEWS.length] as ViewOptions<Thing>);
    expect(shown.map(({ items, total }) => [items, total])).toEqual(
      due.map((options) => [viewed(expected, options), viewed(expected, { selector: options.selector }).length]),
    );
    const faults = shown.flatMap(({ items, get }) => items.filter((item) => get(item.id)?.size !== item.size));
    const others = this.views.filter(({ getSnapshot }, at) => getSnapshot() !== shown[at]);
    // An object that is what it was is the same object, unless it was gone meanwhile.
    const { items = [] } = shown[0] ?? {};
    const copies = items.filter((item) => this.seen.get(item.id)?.size === item.size && this.seen.get(item.id) !== item);
    expect({ faults, others, copies }).toEqual({ faults: [], others: [], copies: [] });
    this.seen.clear();
    for (const item of items) if (this.world.things.has(item.id)) this.seen.set(item.id, item);
  }
}

test('a collection shows what is there, a restart is never seen half, and nothing is left behind', async () => {
  await fc.assert(
    // More may come before the next look.
    fc.asyncProperty(fc.array(fc.tuple(STEP, fc.boolean()), { maxLength: 40, size: 'max' }), async (steps) => {
      const run = new Run();
      for (const [[name, key, number], isLooked] of steps) {
        const { opened } = run.world;
        const wasWatched = run.world.isWatched;
        run.take(name, key, number);
        await settle();
        run.checkMoment();
        if (isLooked) run.clock.advance(FLUSH_MS);
        else run.seen.clear(); // it may have been shown otherwise meanwhile
        // There is one watch, and none is opened without need.
        if (run.world.opened > opened) expect([name, wasWatched]).toEqual(['enter', false]);
        if (run.isUsed) {
          expect(run.world.isWatched).toBe(true);
          if (isLooked) run.check();
        } else if (name === 'pass' && number === LINGER_MS) expect(run.world.isWatched).toBe(false);
        if (!run.world.isWatched) run.seen.clear();
      }
      for (const leave of run.leaves.flat()) leave();
      run.clock.advance(LINGER_MS);
      await settle();
      expect(run.world.isWatched).toBe(false);
      expect(run.clock.pending).toBe(0);
    }),
    { numRuns: runs(300) },
  );
});

test('a store is the fold of all events of the current life', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 40, size: 'max' }), async (steps) => {
      const world = new World();
      const clock = new FakeClock();
      const reduce = (state: string, { type, object }: WatchEvent): string => {
        const { id: key, size } = object as Thing;
        const others = state.split(' ').filter((each) => each && !each.startsWith(key));
        return (type === 'DELETED' ? others : [...others, `${key}${size}`]).sort().join(' ');
      };
      const store = toStore<WatchEvent, string>(world, { initial: '', reduce, clock });
      const leave = store.subscribe(() => {});
      let hadRestart = false;
      for (const [name, key, number] of steps) {
        const before = world.things.get(key);
        if (name === 'put') world.change(before ? 'MODIFIED' : 'ADDED', { id: key, size: number });
        else if (name === 'remove' && before) world.change('DELETED', before);
        else if (name === 'send') world.sendSome(number, !hadRestart);
        else if (name === 'restart') {
          world.restart(number);
          hadRestart = true;
        }
        await settle();
        clock.advance(FLUSH_MS);
        const expected = Array.from(world.expected.values(), ({ id: each, size }) => `${each}${size}`).sort();
        expect(store.getSnapshot().state).toBe(expected.join(' '));
      }
      leave();
      clock.advance(LINGER_MS);
      expect(clock.pending).toBe(0);
    }),
    { numRuns: runs(150) },
  );
});
