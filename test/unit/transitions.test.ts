import { describe, expect, test } from 'vitest';
import { filterTransitions } from '../../src/broadcast/filter.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { type ObjectEvent, toStatus, type WatchEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import type { Watch } from '../../src/watch/watch.ts';

interface Pod {
  readonly metadata: { readonly name?: string; readonly namespace?: string; readonly resourceVersion?: string };
  readonly on: boolean;
}
type Change = ObjectEvent<Pod> & { readonly previous?: Pod };

const pod = (name: string, on: boolean, resourceVersion: string, namespace = 'ns'): Pod => ({
  metadata: { namespace, name, resourceVersion },
  on,
});
const change = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Pod, previous?: Pod): Change =>
  previous === undefined ? { type, object } : { type, object, previous };
const isOn = (object: Pod): boolean => object.on;

function watchOf<E>(events: readonly E[]): Watch<E> {
  return fromAsyncIterable(
    (async function* () {
      yield* events;
    })(),
  );
}

async function all<E>(watch: Watch<E>): Promise<E[]> {
  const events: E[] = [];
  for await (const event of watch) events.push(event);
  return events;
}

const on = (rv: string): Pod => pod('a', true, rv);
const off = (rv: string): Pod => pod('a', false, rv);

describe('filterTransitions with previousOf', () => {
  const judge = (event: Change): Promise<Change[]> =>
    all(filterTransitions(watchOf([event]), isOn, { previousOf: (from) => from.previous }));

  test.each([
    ['created, matching', change('ADDED', on('2')), [change('ADDED', on('2'))]],
    ['created, not matching', change('ADDED', off('2')), []],
    ['enters', change('MODIFIED', on('2'), off('1')), [change('ADDED', on('2'))]],
    ['stays in', change('MODIFIED', on('2'), on('1')), [change('MODIFIED', on('2'), on('1'))]],
    ['leaves: last matching content, version of the change', change('MODIFIED', off('2'), on('1')), [change('DELETED', on('2'))]],
    ['stays out', change('MODIFIED', off('2'), off('1')), []],
    ['deleted while in', change('DELETED', off('2'), on('1')), [change('DELETED', on('2'))]],
    ['deleted while out', change('DELETED', on('2'), off('1')), []],
    ['deleted, previous unknown, was in', change('DELETED', on('2')), [change('DELETED', on('2'))]],
    ['deleted, previous unknown, was out', change('DELETED', off('2')), []],
    ['modified, previous unknown, matching', change('MODIFIED', on('2')), [change('ADDED', on('2'))]],
    ['modified, previous unknown, not matching', change('MODIFIED', off('2')), []],
    ['added over one that is in', change('ADDED', on('2'), on('1')), [change('MODIFIED', on('2'))]],
    ['added over one that is in, ceasing to match', change('ADDED', off('2'), on('1')), [change('DELETED', on('2'))]],
  ] as const)('%s', async (_name, event, expected) => {
    expect(await judge(event)).toEqual(expected);
  });

  test('stores nothing between events', async () => {
    const events = [change('ADDED', on('1')), change('ADDED', on('2')), change('DELETED', off('3'), off('2'))];
    const options = { previousOf: (event: Change) => event.previous };
    expect(await all(filterTransitions(watchOf(events), isOn, options))).toEqual(events.slice(0, 2));
  });

  test('calls no keyOf', async () => {
    const nameless: Change = { type: 'ADDED', object: { metadata: {}, on: true } };
    expect(await judge(nameless)).toEqual([nameless]);
  });

  test('an unchanged event is passed on as it is; a retyped one has only type and object', async () => {
    const stays = change('MODIFIED', on('2'), on('1'));
    expect((await judge(stays))[0]).toBe(stays);
    const enters = change('MODIFIED', on('2'), off('1'));
    const [entered] = await judge(enters);
    expect(Object.keys(entered as Change)).toEqual(['type', 'object']);
    expect(entered?.object).toBe(enters.object);
  });

  test('never changes an object: the last content is copied to get the new version', async () => {
    const previous = Object.freeze({ ...on('1'), metadata: Object.freeze(on('1').metadata) });
    const [gone] = await judge(change('MODIFIED', off('2'), previous));
    expect(gone?.object).not.toBe(previous);
    expect(previous.metadata.resourceVersion).toBe('1');
    expect(gone).toEqual(change('DELETED', on('2')));
    const [same] = await judge(change('DELETED', on('1'), previous));
    expect(same?.object).toBe(previous);
  });

  test.each([
    ['no version to give', { metadata: { resourceVersion: '1' }, on: true }, { on: false }],
    ['no metadata in the change', { metadata: { resourceVersion: '1' }, on: true }, { metadata: null, on: false }],
    ['no metadata to put it in', { on: true }, { metadata: { resourceVersion: '2' }, on: false }],
    ['null metadata to put it in', { metadata: null, on: true }, { metadata: { resourceVersion: '2' }, on: false }],
  ])('without %s the last content is delivered as it is', async (_name, previous, object) => {
    type Loose = { on: boolean; metadata?: { resourceVersion: string } | null };
    const event: WatchEvent<'MODIFIED', Loose> = { type: 'MODIFIED', object };
    const [gone] = await all(
      filterTransitions<WatchEvent<string, Loose>>(watchOf([event]), (it) => it.on, { previousOf: () => previous }),
    );
    expect(gone?.type).toBe('DELETED');
    expect(gone?.object).toBe(previous);
  });

  test('objects may be primitive values', async () => {
    const events: WatchEvent<string, string | null>[] = [
      { type: 'MODIFIED', object: 'no' },
      { type: 'MODIFIED', object: null },
    ];
    const options = { previousOf: () => 'yes' };
    expect(await all(filterTransitions(watchOf(events), (it) => it === 'yes', options))).toEqual([
      { type: 'DELETED', object: 'yes' },
      { type: 'DELETED', object: 'yes' },
    ]);
  });
});

describe('filterTransitions without previous objects', () => {
  const follow = (...events: Change[]): Promise<Change[]> => all(filterTransitions(watchOf(events), isOn));

  test.each([
    [
      'enters, stays, leaves',
      ['ADDED off', 'MODIFIED on', 'MODIFIED on', 'MODIFIED off'],
      ['ADDED on 2', 'MODIFIED on 3', 'DELETED on 4'],
    ],
    ['comes back', ['ADDED on', 'MODIFIED off', 'MODIFIED on'], ['ADDED on 1', 'DELETED on 2', 'ADDED on 3']],
    ['deleted while in', ['ADDED on', 'DELETED off'], ['ADDED on 1', 'DELETED on 2']],
    ['deleted while out', ['ADDED off', 'DELETED off'], []],
    ['deleted and never seen', ['DELETED on'], []],
    ['deleted twice', ['ADDED on', 'DELETED on', 'DELETED on'], ['ADDED on 1', 'DELETED on 2']],
    ['left, then deleted', ['ADDED on', 'MODIFIED off', 'DELETED on'], ['ADDED on 1', 'DELETED on 2']],
    ['modified and never seen', ['MODIFIED on'], ['ADDED on 1']],
    ['added twice', ['ADDED on', 'ADDED on'], ['ADDED on 1', 'MODIFIED on 2']],
    ['added again, ceasing to match', ['ADDED on', 'ADDED off'], ['ADDED on 1', 'DELETED on 2']],
    ['made anew', ['ADDED on', 'DELETED on', 'ADDED on'], ['ADDED on 1', 'DELETED on 2', 'ADDED on 3']],
  ])('%s', async (_name, events, expected) => {
    const read = (line: string, rv: number): Change => {
      const [type, state] = line.split(' ') as ['ADDED', string];
      return change(type, pod('a', state === 'on', String(rv)));
    };
    const got = await follow(...events.map((line, at) => read(line, at + 1)));
    expect(got).toEqual(expected.map((line) => read(line, Number(line.split(' ')[2]))));
  });

  test('delivers the last content that matched, of several', async () => {
    const events = [on('1'), { ...on('2'), note: 'last' }, { ...off('3'), note: 'out' }].map((object) =>
      change('MODIFIED', object),
    );
    expect((await follow(...events)).at(-1)).toEqual(change('DELETED', { ...on('3'), note: 'last' } as Pod));
  });

  test('keys are namespace and name; a missing namespace equals the empty one', async () => {
    const events = [
      change('ADDED', pod('a', true, '1', 'x')),
      change('ADDED', pod('a', true, '2', 'y')),
      change('ADDED', pod('b', true, '3', 'x')),
      change('ADDED', { metadata: { name: 'a', resourceVersion: '4' }, on: true }),
      change('MODIFIED', pod('a', true, '5', '')),
    ];
    expect((await follow(...events)).map((event) => event.type)).toEqual(['ADDED', 'ADDED', 'ADDED', 'ADDED', 'MODIFIED']);
  });

  test('keyOf may return keys of any type', async () => {
    type Order = WatchEvent<'ADDED' | 'MODIFIED', { id: number; open: boolean }>;
    const events: Order[] = [
      { type: 'MODIFIED', object: { id: 1, open: true } },
      { type: 'MODIFIED', object: { id: 1, open: false } },
    ];
    const orders: Watch<WatchEvent<string, Order['object']>> = watchOf(events);
    const open = filterTransitions(orders, (order) => order.open, { keyOf: (event) => event.object.id });
    expect(await all(open)).toEqual([
      { type: 'ADDED', object: { id: 1, open: true } },
      { type: 'DELETED', object: { id: 1, open: true } },
    ]);
  });

  test.each([
    ['no metadata', { on: true }],
    ['no name', { metadata: { namespace: 'ns' }, on: true }],
    ['null', null],
  ])('an object with %s is refused, naming keyOf', async (_name, object) => {
    const watch = filterTransitions(watchOf<WatchEvent>([{ type: 'ADDED', object }]), () => true);
    const failure = await watch.next().catch((error: unknown) => error);
    expect(isWatchError(failure, 'INVALID_ARGUMENT')).toBe(true);
    expect((failure as Error).message).toContain('object.metadata.name');
    expect((failure as Error).message).toContain('keyOf');
    expect((await watch.next()).done).toBe(true);
  });

  test('an object may be undefined, with its own key', async () => {
    const events: WatchEvent[] = [
      { type: 'ADDED', object: undefined },
      { type: 'DELETED', object: undefined },
    ];
    expect(await all(filterTransitions(watchOf(events), () => true, { keyOf: () => 'k' }))).toEqual(events);
  });

  test('BOOKMARK, ERROR and custom types pass through, unfiltered and unchanged', async () => {
    const events: WatchEvent[] = [
      { type: 'BOOKMARK', object: off('1') },
      { type: 'ERROR', object: toStatus({ code: 410, reason: 'Expired', message: 'gone' }) },
      { type: 'placed', object: {} },
    ];
    const never = (): boolean => {
      throw new Error('not to be judged');
    };
    const got = await all(filterTransitions(watchOf(events), never));
    expect(got).toHaveLength(3);
    for (const [at, event] of got.entries()) expect(event).toBe(events[at]);
  });

  test('a predicate that throws ends this watch with its error', async () => {
    const watch = filterTransitions(watchOf([change('ADDED', on('1')), change('ADDED', off('2'))]), (object) => {
      if (!object.on) throw new Error('cannot say');
      return true;
    });
    expect((await watch.next()).value?.type).toBe('ADDED');
    await expect(watch.next()).rejects.toThrow('cannot say');
    expect((await watch.next()).done).toBe(true);
  });

  test('a known object is judged once per event', async () => {
    const judged: string[] = [];
    const events = [change('ADDED', on('1')), change('MODIFIED', on('2')), change('DELETED', on('3'))];
    await all(
      filterTransitions(watchOf(events), (object) => {
        judged.push(object.metadata.resourceVersion as string);
        return object.on;
      }),
    );
    expect(judged).toEqual(['1', '2']);
  });
});
