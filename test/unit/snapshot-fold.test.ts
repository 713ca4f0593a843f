// Where a snapshot and a `coalesce` watch meet: a client never keeps an object that is gone.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { HubOptions } from '../../src/bridge/hub/hub.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { runs } from '../runs.ts';
import { join, turn } from './fake-sink.ts';
import { hubOf } from './snapshot-source.ts';

type Named = { metadata: { name: string }; n: number };

/** A hub over some state, which a snapshot copies when `read` is called, and which it has sent when `finish` is called. */
function stateful(options: HubOptions = {}) {
  const state = new Map<string, Named>();
  let read = (): void => {};
  let finish = (): void => {};
  const reading = new Promise<void>((resolve) => {
    read = resolve;
  });
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  async function* snapshot(): AsyncGenerator<Named> {
    await reading;
    yield* [...state.values()];
    await finished;
  }
  const hub = hubOf(snapshot, { overflow: 'coalesce', ...options });
  let n = 0;
  const change = async (type: string, name: string): Promise<void> => {
    const object = { metadata: { name }, n: ++n };
    if (type === 'DELETED') state.delete(name);
    else state.set(name, object);
    await hub.publish({ type, object });
  };
  return { hub, state, change, read: () => read(), finish: () => finish() };
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 10; turns++) await turn();
}

/** The name of each event's object, or its type. */
const told = (events: readonly WireEvent[]): string[] =>
  events.map(({ type, object }) => `${type} ${(object as Partial<Named>).metadata?.name ?? ''}`.trim());

describe('a client that gets a snapshot, then folded events', () => {
  test('is told of the deletion of what only its snapshot has seen', async () => {
    const { hub, change, read, finish } = stateful();
    const sink = join(hub);
    await change('ADDED', 'a');
    read();
    await settle();
    await change('DELETED', 'a');
    await change('ADDED', 'b');
    finish();
    await settle();
    expect(told(sink.events)).toEqual(['ADDED a', 'BOOKMARK', 'DELETED a', 'ADDED b']);
    expect(sink.versions).toEqual([undefined, 'e.0', undefined, 'e.3']);
    expect(sink.session.stats()).toMatchObject({ delivered: 2, dropped: 1, queued: 0 });
    // Later snapshots and states may be ahead of the events too.
    sink.stall();
    for (const name of ['c', 'd']) await change('ADDED', name);
    await change('DELETED', 'd');
    sink.resume();
    await settle();
    expect(told(sink.events).slice(4)).toEqual(['ADDED c', 'DELETED d']);
    expect(sink.session.stats()).toMatchObject({ delivered: 4, dropped: 2, queued: 0 });
  });

  test('is told of it also if the change was published long after the snapshot had it', async () => {
    const { hub, state, change, read, finish } = stateful();
    const object = { metadata: { name: 'a' }, n: 0 };
    state.set('a', object);
    read();
    finish();
    const sink = join(hub);
    const cut = join(hub);
    await settle();
    cut.session.gone();
    const back = join(hub, { resourceVersion: 'e.0' });
    await settle();
    void hub.publish({ type: 'ADDED', object });
    await change('DELETED', 'a');
    await settle();
    expect(told(sink.events)).toEqual(['ADDED a', 'BOOKMARK', 'DELETED a']);
    expect(told(back.events)).toEqual(['DELETED a']);
  });

  test('is told of it also if a client with `wait` held the change back', async () => {
    const { hub, change, read, finish } = stateful();
    const slow = join(hub, { sendInitialEvents: false }, { options: { overflow: 'wait', capacity: 1 } });
    slow.stall();
    // The first of those that waited are sent at once. The two that fold come later.
    for (let i = 0; i < 6; i++) void hub.publish({ type: 'ADDED', object: i });
    void change('ADDED', 'a');
    read();
    finish();
    const sink = join(hub);
    await settle();
    void change('DELETED', 'a');
    slow.session.gone();
    await settle();
    expect(told(sink.events).filter((one) => one.endsWith('a'))).toEqual(['ADDED a', 'DELETED a']);
  });

  test('is told nothing of short lives if there are no snapshots', async () => {
    const hub = new Hub({ epoch: 'e', overflow: 'coalesce' });
    const sink = join(hub);
    for (const type of ['ADDED', 'DELETED']) void hub.publish({ type, object: { metadata: { name: 'a' } } });
    await hub.publish({ type: 'ADDED', object: { metadata: { name: 'b' } } });
    await settle();
    expect(told(sink.events)).toEqual(['ADDED b']);
  });

  test('has a version to resume after, also if the deletions are all that it is told', async () => {
    const { hub, change, read, finish } = stateful();
    const sink = join(hub);
    await change('ADDED', 'a');
    await change('ADDED', 'b');
    read();
    await settle();
    await change('DELETED', 'b');
    await change('DELETED', 'a');
    finish();
    await settle();
    expect(told(sink.events)).toEqual(['ADDED a', 'ADDED b', 'BOOKMARK', 'DELETED a', 'DELETED b']);
    expect(sink.versions).toEqual([undefined, undefined, 'e.0', undefined, 'e.4']);
    expect(sink.session.stats()).toMatchObject({ delivered: 2, dropped: 2, queued: 0, lag: 0 });
  });

  test('is told nothing of objects that its filter hides, and nothing is left of a client that leaves before', async () => {
    const { hub, change, read, finish } = stateful();
    const filter = ({ object }: WatchEvent): boolean => (object as Named).metadata.name !== 'secret';
    const sink = join(hub, {}, { options: { filter } });
    const gone = join(hub);
    await change('ADDED', 'secret');
    read();
    await settle();
    await change('DELETED', 'secret');
    gone.session.gone();
    finish();
    await settle();
    expect(told(sink.events)).toEqual(['BOOKMARK']);
    sink.session.gone();
    // biome-ignore lint/complexity/useLiteralKeys: the way to a private member
    expect(hub['core']['log'].broadcaster.watchers).toBe(1); // the flush signal
  });

  test('ends as failed if its filter throws meanwhile, and is cut if too many keys change', async () => {
    const boom = (): never => {
      throw new Error('boom');
    };
    const { hub, change, read, finish } = stateful({ capacity: 3 });
    const failing = join(hub, {}, { options: { filter: ({ type }) => type !== 'DELETED' || boom() } });
    const slow = join(hub);
    read();
    await settle();
    await change('ADDED', 'a');
    await change('DELETED', 'a');
    for (const name of ['b', 'c', 'd']) await change('ADDED', name);
    finish();
    await settle();
    expect(failing.ended).toBe('failed');
    expect(slow.ended).toBe('expired');
    expect(told(slow.events)).toEqual(['BOOKMARK', 'ERROR']);
    expect(slow.events.at(-1)).toMatchObject({ object: { code: 410, details: { missed: 5 } } });
  });

  test('is told the same if the hub shuts down meanwhile', async () => {
    const { hub, change, read, finish } = stateful();
    const sink = join(hub);
    for (const name of ['a', 'b']) await change('ADDED', name);
    read();
    await settle();
    await change('DELETED', 'a');
    const down = hub.shutdown();
    await settle();
    finish();
    await down;
    expect(told(sink.events)).toEqual(['ADDED a', 'ADDED b', 'BOOKMARK', 'DELETED a', 'ADDED b']);
    expect([sink.versions.at(-1), sink.ended]).toEqual(['e.3', 'complete']);
  });

  test('has the current state at the end, whatever changed before, during and after its snapshot', async () => {
    const names = fc.constantFrom('a', 'b', 'c');
    const phase = fc.array(names, { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(phase, phase, phase, phase, async (before, early, late, after) => {
        const { hub, state, change, read, finish } = stateful();
        const flip = async (toggles: readonly string[]): Promise<void> => {
          for (const name of toggles) await change(state.has(name) ? (name === 'c' ? 'MODIFIED' : 'DELETED') : 'ADDED', name);
        };
        await flip(before);
        const sink = join(hub);
        await flip(early);
        read();
        await settle();
        await flip(late);
        finish();
        await settle();
        await flip(after);
        await settle();
        const copy = new Map<string, number>();
        for (const { type, object } of sink.events) {
          const { metadata, n } = object as Named;
          if (type === 'DELETED') copy.delete(metadata.name);
          else if (type !== 'BOOKMARK') copy.set(metadata.name, n);
        }
        expect(copy).toEqual(new Map([...state].map(([name, { n }]) => [name, n])));
        const { delivered, dropped, queued } = sink.session.stats();
        expect(delivered + dropped + queued).toBe(early.length + late.length + after.length);
      }),
      { numRuns: runs(60) },
    );
  });
});
