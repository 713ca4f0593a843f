import { afterEach, describe, expect, test, vi } from 'vitest';
import { Cursor } from '../../src/broadcast/cursor.ts';
import type { Gated } from '../../src/broadcast/gate.ts';
import { Mux } from '../../src/broadcast/mux.ts';
import { POLICIES } from '../../src/broadcast/policies.ts';
import { TopicViews } from '../../src/broadcast/topics.ts';
import type { ViewMember } from '../../src/broadcast/view.ts';
import { soon } from '../../src/watch/turn.ts';
import { event, events, fate, gated, type TestEvent, turn } from './support.ts';

vi.mock('../../src/watch/turn.ts', { spy: true });

function make(incoming = 2): Mux<TestEvent> {
  const mux = new Mux<TestEvent>({ capacity: 4, incoming, keyOf: (of) => of.object.metadata.name });
  mux.log.stand(0);
  return mux;
}

/** A watcher that does nothing but be told. */
class Fake implements ViewMember {
  isWaiting = false;
  inSet: object | undefined;
  before: ViewMember | undefined;
  after: ViewMember | undefined;
  holdsPublisher = false;
  woken = 0;
  at = 0;
  onWake: () => void = () => {};

  wake(): void {
    this.woken++;
    this.onWake();
  }
  bound(): number {
    return this.at;
  }
  stop(): void {}
}

/** Adds a watcher that may hold the publisher back. */
function hold(mux: Mux<TestEvent>, watcher: Gated): void {
  mux.all.joined(true);
  mux.all.gated.add(watcher);
}

/** A gate that ends the mux by force when it is asked, once it is open. */
function gateThatForces(mux: Mux<TestEvent>): () => void {
  let room = 0;
  hold(
    mux,
    gated(() => {
      if (room > 0) {
        mux.closing = true;
        mux.force();
      }
      return room;
    }),
  );
  return () => {
    room = 100;
  };
}

const waiting = (mux: Mux<TestEvent>): unknown[] => {
  const { row, count } = mux.all.readers as unknown as { row: unknown[]; count: number };
  return row.slice(0, count);
};

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the waiting readers', () => {
  test('contains a watcher once, however often it is added', () => {
    const mux = make();
    const fake = new Fake();
    mux.all.readers.add(fake);
    mux.all.readers.add(fake);
    expect(fake.isWaiting).toBe(true);
    expect(waiting(mux)).toEqual([fake]);
  });

  test('the first event of a burst schedules one microtask, which serves all watchers', async () => {
    const mux = make();
    const fakes = Array.from({ length: 5 }, () => new Fake());
    for (const fake of fakes) mux.all.readers.add(fake);
    const scheduled = vi.mocked(soon).mockClear();
    for (const one of events(0, 10)) mux.accept(one);
    expect(scheduled).toHaveBeenCalledTimes(1);
    expect(fakes.map(({ woken }) => woken)).toEqual([0, 0, 0, 0, 0]);
    await turn();
    expect(fakes.map(({ woken, isWaiting }) => [woken, isWaiting])).toEqual(new Array(5).fill([1, false]));
    expect(waiting(mux)).toEqual([]);
    mux.all.readers.add(fakes[0]!);
    mux.accept(event(10));
    expect(scheduled).toHaveBeenCalledTimes(2);
    await turn();
    expect(fakes[0]!.woken).toBe(2);
  });

  test('publishing schedules nothing while nobody waits', () => {
    const mux = make();
    const scheduled = vi.mocked(soon).mockClear();
    for (const one of events(0, 100)) mux.accept(one);
    expect(scheduled).not.toHaveBeenCalled();
  });

  test('the watchers of topics schedule one microtask when all of them wait, if there is anything to forget', async () => {
    const mux = new Mux<TestEvent>({ capacity: 4, incoming: 2, keyOf: String, topics: new TopicViews() });
    const view = mux.viewOf(['a']);
    const fakes = [new Fake(), new Fake()] as const;
    for (const _ of fakes) view.joined(false);
    view.log.stand(0);
    mux.accept(event(0), { topics: 'a', bytes: 0 });
    view.log.move(0, 1);
    const scheduled = vi.mocked(soon).mockClear();
    view.readers.add(fakes[0]);
    view.waits();
    expect(scheduled).not.toHaveBeenCalled();
    view.readers.add(fakes[1]);
    for (let i = 0; i < 3; i++) view.waits();
    expect(scheduled).toHaveBeenCalledOnce();
    expect(view.log.isEmpty).toBe(false);
    await turn();
    expect(view.log.isEmpty).toBe(true);
    view.waits();
    expect(scheduled).toHaveBeenCalledOnce();
  });

  test('wake serves a watcher in this turn, without an event', async () => {
    const mux = make();
    const fake = new Fake();
    mux.all.readers.wake(fake);
    mux.all.readers.wake(fake);
    expect(fake.woken).toBe(0);
    await turn();
    expect(fake.woken).toBe(1);
  });

  test('removes watchers that have left once they are the majority, and not before', async () => {
    const mux = make();
    const fakes = Array.from({ length: 100 }, () => new Fake());
    for (const fake of fakes) {
      fake.onWake = () => mux.all.readers.add(fake);
      mux.all.readers.add(fake);
    }
    const leave = async (from: number, to: number): Promise<void> => {
      for (const fake of fakes.slice(from, to)) {
        fake.onWake = () => {};
        mux.all.left(fake);
      }
      await turn();
    };
    await leave(0, 49);
    expect(waiting(mux)).toHaveLength(100);
    await leave(49, 50);
    expect(waiting(mux)).toEqual(fakes.slice(50));
    expect(fakes.map(({ isWaiting }) => isWaiting)).toEqual([...new Array(50).fill(false), ...new Array(50).fill(true)]);
    // A short list is swept at the end of every turn.
    await leave(50, 51);
    expect(waiting(mux)).toEqual(fakes.slice(51));
  });

  test('watchers that leave without waiting are not counted', () => {
    const mux = make();
    const stays = Array.from({ length: 10 }, () => new Fake());
    for (const fake of stays) mux.all.readers.add(fake);
    for (let i = 0; i < 100; i++) mux.all.left(new Fake());
    expect(waiting(mux)).toHaveLength(10);
  });

  test('being served resets the count', async () => {
    const mux = make();
    const wait = (count: number): Fake[] =>
      Array.from({ length: count }, () => {
        const fake = new Fake();
        mux.all.readers.add(fake);
        return fake;
      });
    for (const fake of wait(80).slice(0, 39)) mux.all.left(fake);
    mux.accept(event(0));
    await turn();
    for (const fake of wait(80).slice(0, 39)) mux.all.left(fake);
    expect(waiting(mux)).toHaveLength(80);
  });

  test('a watcher that leaves a short row has it served at the end of the turn; a long row is unaffected', () => {
    for (const [length, times] of [
      [64, 1],
      [65, 0],
    ]) {
      const mux = make();
      const fakes = Array.from({ length: length! }, () => new Fake());
      for (const fake of fakes) mux.all.readers.add(fake);
      const scheduled = vi.mocked(soon).mockClear();
      mux.all.left(fakes[0]!);
      expect(scheduled).toHaveBeenCalledTimes(times!);
    }
  });

  test('two rows take turns, and one that has grown far too long is discarded', () => {
    const { readers } = make().all;
    const row = (): unknown[] => (readers as unknown as { row: unknown[] }).row;
    const serve = (count: number): unknown[] => {
      const served = row();
      for (let i = 0; i < count; i++) readers.add(new Fake());
      readers.serve();
      return served;
    };
    const [first, second] = [serve(69), serve(68)];
    expect(first).toHaveLength(69);
    expect(second).toHaveLength(68);
    expect(row()).toBe(first);
    serve(1); // 69 places for one
    expect(row()).toBe(second);
    serve(1); // 68: that will do
    expect(row()).toEqual([]);
    expect(row()).not.toBe(first);
    serve(68);
    expect(row()).toBe(second);
  });

  test('a watcher that parks while others are served waits for the next event', async () => {
    const mux = make();
    const [a, late] = [new Fake(), new Fake()];
    a.onWake = () => mux.all.readers.add(late);
    mux.all.readers.add(a);
    mux.accept(event(0));
    await turn();
    expect([a.woken, late.woken]).toEqual([1, 0]);
    mux.accept(event(1));
    await turn();
    expect([a.woken, late.woken]).toEqual([1, 1]);
  });

  test('while watchers are served, published events wait at the gate until all had their turn', async () => {
    const mux = make(5);
    const full = new Fake();
    full.at = 1;
    hold(mux, full);
    const [a, b] = [new Fake(), new Fake()];
    const heads: number[] = [];
    a.onWake = () => {
      full.at = 10;
      mux.pump();
      heads.push(mux.log.head);
    };
    b.onWake = () => heads.push(mux.log.head);
    mux.all.readers.add(a);
    mux.all.readers.add(b);
    for (const one of events(0, 3)) mux.accept(one);
    expect(mux.log.head).toBe(1);
    await turn();
    expect(heads).toEqual([1, 1]);
    expect(mux.log.head).toBe(3);
  });

  test('watchers that have left with a pending read are not retained', async () => {
    const mux = new Mux<TestEvent>({ capacity: 1, incoming: 0, keyOf: String });
    const waiting = (): unknown[] => {
      const { row, count } = mux.all.readers as unknown as { row: unknown[]; count: number };
      return row.slice(0, count);
    };
    const options = { capacity: 1, policy: POLICIES['drop-newest'], filter: undefined, onGap: undefined } as const;
    const cursors = Array.from({ length: 4 }, () => new Cursor<TestEvent>(mux.all, options));
    for (const cursor of cursors) {
      cursor.join([], { place: 0 });
      void cursor.next();
    }
    expect(waiting()).toHaveLength(4);
    void cursors[0]?.return();
    cursors[1]?.stop();
    await turn();
    expect(waiting()).toEqual(cursors.slice(2));
  });
});

describe('accepting', () => {
  function full(mux: Mux<TestEvent>, at: number): Fake {
    const fake = new Fake();
    fake.holdsPublisher = true;
    fake.at = at;
    hold(mux, fake);
    return fake;
  }

  test('moves head while the gate is open, then fills the incoming queue, then stops', () => {
    const mux = make(2);
    full(mux, 1);
    expect(events(0, 5).map((one) => mux.accept(one))).toEqual([true, true, true, false, false]);
    expect(mux.log).toMatchObject({ head: 1, end: 3 });
  });

  test('waiting publishes are accepted in order as room appears, and nothing overtakes them', async () => {
    const mux = make(1);
    const fake = full(mux, 0);
    mux.accept(event(0));
    const fates = events(1, 4).map((one) => fate(mux.acceptLater(one)));
    expect(mux.pending).toBe(3);
    expect(mux.accept(event(9))).toBe(false);
    fake.at = 1;
    mux.pump();
    await turn();
    expect(fates.map(({ state }) => state)).toEqual(['resolved', 'pending', 'pending']);
    expect(mux.pending).toBe(2);
    fates.push(fate(mux.acceptLater(event(4))));
    fake.at = 100;
    mux.pump();
    await turn();
    expect(fates.map(({ state }) => state)).toEqual(new Array(4).fill('resolved'));
    expect([0, 1, 2, 3, 4].map((position) => mux.log.at(position).object.id)).toEqual([0, 1, 2, 3, 4]);
    expect(mux.accept(event(9))).toBe(true);
    const later = fate(mux.acceptLater(event(10)));
    mux.pump();
    await turn();
    expect(later.state).toBe('resolved');
  });

  test('a publish from inside the gate does not overtake waiting ones, even if there is room by now', () => {
    const mux = make(2);
    const fake = full(mux, 0);
    for (const one of events(0, 2)) mux.accept(one);
    void mux.acceptLater(event(2));
    const said: boolean[] = [];
    const nosy = gated(() => {
      if (mux.log.head === 0) return 1;
      // One is in the incoming queue now, which has room for another.
      if (said.length === 0) said.push(mux.accept(event(99)));
      return 100;
    });
    hold(mux, nosy);
    fake.at = 100;
    mux.pump();
    expect(said).toEqual([false]);
    expect([0, 1, 2].map((position) => mux.log.at(position).object.id)).toEqual([0, 1, 2]);
  });

  test('events published from inside the gate become visible after the gate has answered', () => {
    const mux = make(5);
    const heads: number[] = [];
    let room = 0;
    const nosy = gated(() => {
      if (room > 0 && heads.length === 0) {
        mux.accept(event(99));
        heads.push(mux.log.head);
      }
      return room;
    });
    hold(mux, nosy);
    for (const one of events(0, 2)) mux.accept(one);
    room = 100;
    mux.pump();
    expect(heads).toEqual([0]);
    expect(mux.log).toMatchObject({ head: 3, end: 3 });
  });

  test('an event published from inside the gate comes first', () => {
    const mux = make(3);
    let left = 1;
    const nosy = {
      ...gated(() => 0),
      at: 0,
      bound() {
        const { at } = this;
        if (mux.log.end === 1 && left-- > 0) mux.accept(event(99));
        return at;
      },
    };
    nosy.at = 1;
    hold(mux, nosy);
    mux.accept(event(0));
    nosy.at = 50;
    mux.accept(event(1));
    expect(mux.log).toMatchObject({ head: 3, end: 3 });
    expect([0, 1, 2].map((position) => mux.log.at(position).object.id)).toEqual([0, 99, 1]);
  });

  test('a publish from inside the gate that must wait does not take the room of the publish that asked', async () => {
    const mux = make(0);
    let [at, later] = [1, fate(Promise.resolve())];
    let asked = 0;
    const nosy = gated(() => {
      if (mux.log.head === 0 || asked++ > 0) return at;
      later = fate(mux.acceptLater(event(99)));
      at = 50;
      return at;
    });
    hold(mux, nosy);
    expect([mux.accept(event(0)), mux.accept(event(1))]).toEqual([true, true]);
    await turn();
    expect(later.state).toBe('resolved');
    expect([0, 1, 2].map((position) => mux.log.at(position).object.id)).toEqual([0, 1, 99]);
  });

  test('a waiting watcher that leaves lets the others proceed', () => {
    const mux = make(2);
    const fake = full(mux, 0);
    for (const one of events(0, 2)) mux.accept(one);
    expect(mux.log.head).toBe(0);
    mux.all.gate.remove(fake);
    mux.all.left(fake);
    expect(mux.log.head).toBe(2);
  });
});

describe('closing', () => {
  test('once everything is distributed, all waiting watchers are served at once', () => {
    const mux = make();
    const fake = new Fake();
    mux.all.readers.add(fake);
    let told = 0;
    mux.onClosed = () => told++;
    mux.pump();
    expect(mux.closed).toBe(false);
    mux.closing = true;
    mux.pump();
    expect(mux.closed).toBe(true);
    expect([fake.woken, told]).toEqual([1, 1]);
    mux.pump();
    expect(told).toBe(1);
  });

  test('works without waiting watchers', () => {
    const mux = make();
    mux.closing = true;
    expect(() => mux.pump()).not.toThrow();
    expect(mux.closed).toBe(true);
  });

  test('waits for accepted and for waiting events, also without an incoming queue', async () => {
    for (const incoming of [0, 1]) {
      const mux = make(incoming);
      const fake = new Fake();
      hold(mux, fake);
      expect(mux.accept(event(0))).toBe(incoming > 0);
      const later = fate(mux.acceptLater(event(1)));
      mux.closing = true;
      mux.pump();
      expect(mux.closed).toBe(false);
      fake.at = 100;
      mux.pump();
      expect(mux).toMatchObject({ closed: true, pending: 0 });
      await turn();
      expect(later.state).toBe('resolved');
    }
  });

  test('by force, from inside the gate: head is at the end of the accepted events', () => {
    const mux = make(5);
    const open = gateThatForces(mux);
    for (const one of events(0, 3)) mux.accept(one);
    open();
    mux.pump();
    expect(mux.closed).toBe(true);
    expect(mux.log).toMatchObject({ head: 3, end: 3 });
  });

  test('by force, from inside the gate that a publish waits for: that publish is rejected', async () => {
    const mux = make(0);
    const open = gateThatForces(mux);
    const later = fate(mux.acceptLater(event(0)));
    open();
    mux.pump();
    await turn();
    expect(later.error).toMatchObject({ code: 'CLOSED' });
    expect(mux).toMatchObject({ closed: true, pending: 0 });
    expect(mux.log).toMatchObject({ head: 0, end: 0 });
  });

  test('by force: waiting publishes are rejected, and accepted events are distributed past full watchers', async () => {
    const mux = make(2);
    const fake = new Fake();
    hold(mux, fake);
    for (const one of events(0, 2)) mux.accept(one);
    const later = [fate(mux.acceptLater(event(2))), fate(mux.acceptLater(event(3)))];
    mux.closing = true;
    mux.force();
    expect(mux).toMatchObject({ closed: true, pending: 0 });
    expect(mux.log).toMatchObject({ head: 2, end: 2 });
    await turn();
    for (const each of later) expect(each.error).toMatchObject({ code: 'CLOSED' });
  });
});
