// The parts of an object's detail, on the page of `watchmux serve`, that need no browser.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FetchLike } from '../../src/bridge/client.ts';
import { changesOf } from '../../src/pages/serve/detail/changes.ts';
import { placeOf, withoutManagers, withVersion } from '../../src/pages/serve/detail/edit.ts';
import { toEvents } from '../../src/pages/serve/detail/events-view.ts';
import { type FollowPhase, ObjectFollower, type ObjectState } from '../../src/pages/serve/detail/follow.ts';
import { type HistoryEntry, ObjectHistory, toEntry, writtenAt } from '../../src/pages/serve/detail/history.ts';
import { toRefusal } from '../../src/pages/serve/detail/requests.ts';
import { objectIn, withObject } from '../../src/pages/serve/place.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { toStatus } from '../../src/watch/event.ts';

const object = (version: number, spec: unknown = version): Record<string, unknown> => ({
  ...{ apiVersion: 'v1', kind: 'Map' },
  metadata: { name: 'a', uid: 'u', resourceVersion: String(version) },
  spec,
});
const event = (type: string, version: number): string => `${JSON.stringify({ type, object: object(version) })}\n`;
const list = (version: number, ...items: object[]): string =>
  JSON.stringify({ metadata: { resourceVersion: String(version) }, items });

/** A server whose answers are given one by one. */
class Server {
  readonly asked: string[] = [];
  private waiting: ((response: Response) => void)[] = [];
  private body: ReadableStreamDefaultController<Uint8Array> | undefined = undefined;

  readonly fetch: FetchLike = (url, { signal }) =>
    new Promise((resolve, reject) => {
      this.asked.push(decodeURIComponent(url.pathname + url.search));
      this.waiting.push(resolve);
      signal.addEventListener('abort', () => reject(signal.reason));
    });

  async answer(text: string, status: number = 200): Promise<void> {
    await settle();
    this.waiting.shift()?.(new Response(text, { status, headers: { 'content-type': 'application/json' } }));
    await settle();
  }

  async open(...events: string[]): Promise<void> {
    await settle();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.body = controller;
      },
    });
    this.waiting.shift()?.(new Response(body, { headers: { 'content-type': 'application/json' } }));
    await this.send(...events);
  }

  async send(...events: string[]): Promise<void> {
    for (const each of events) this.body?.enqueue(new TextEncoder().encode(each));
    await settle();
  }

  async end(): Promise<void> {
    this.body?.close();
    await settle();
  }
}

/** Streams need several turns. */
async function settle(): Promise<void> {
  for (let at = 0; at < 10; at++) await new Promise((resolve) => setImmediate(resolve));
}

function follow() {
  const server = new Server();
  const clock = new FakeClock();
  const states: string[] = [];
  const phases: FollowPhase['is'][] = [];
  let denied = 0;
  const follower = new ObjectFollower({
    ...{ url: new URL('http://host/api/v1/namespaces/n/maps'), name: 'a,b', fetch: server.fetch, clock, random: () => 0 },
    type: { apiVersion: 'v1', kind: 'Map' },
    onState: ({ what, object: now }: ObjectState) => states.push(`${what} ${now === undefined ? '' : String(now.spec)}`),
    onPhase: ({ is }) => phases.push(is),
    onDenied: () => denied++,
  });
  follower.start();
  return { server, clock, states, phases, follower, denied: () => denied };
}

const WATCH = '/api/v1/namespaces/n/maps?fieldSelector=metadata.name=a\\,b&watch=true&allowWatchBookmarks=true&resourceVersion=';

describe('one object, followed', () => {
  test('is every state that the server tells; a broken watch goes on where it was', async () => {
    const { server, clock, states, phases, follower } = follow();
    await server.answer(list(5, object(3)));
    expect(server.asked).toEqual(['/api/v1/namespaces/n/maps?fieldSelector=metadata.name=a\\,b', `${WATCH}5`]);
    await server.open(event('MODIFIED', 6), event('MODIFIED', 7), event('BOOKMARK', 9));
    expect(states).toEqual(['read 3', 'changed 6', 'changed 7']);
    expect(phases).toEqual(['connecting', 'live']);
    await server.end();
    clock.advance(500);
    await settle();
    expect(server.asked.at(-1)).toBe(`${WATCH}9`);
    await server.open(event('DELETED', 10), event('ADDED', 11));
    expect(states.slice(3)).toEqual(['deleted 10', 'created 11']);
    follower.stop();
    await settle();
    expect([clock.pending, phases.at(-1)]).toEqual([0, 'live']);
  });

  test('what the server no longer has is a gap; the same version is none', async () => {
    const expired = JSON.stringify(toStatus({ code: 410, reason: 'Expired', message: 'too old' }));
    for (const [now, expected] of [
      [list(20, object(12)), ['gap 12']],
      [list(20, object(3)), []],
      [list(20), ['deleted 3']],
    ] as const) {
      const { server, clock, states, follower } = follow();
      await server.answer(list(5, object(3)));
      await server.open(`{"type":"ERROR","object":${expired}}\n`);
      // At once: the server does answer.
      clock.advance(0);
      await server.answer(now);
      expect(states.slice(1)).toEqual(expected);
      expect(server.asked.at(-1)).toBe(`${WATCH}20`);
      follower.stop();
    }
  });

  test('waits longer after each failure, and ends if the server wants another token', async () => {
    const { server, clock, phases, follower, denied } = follow();
    for (const delayMs of [500, 1_000, 2_000]) {
      await server.answer('', 503);
      expect([phases.at(-1), clock.nextMs]).toEqual(['waiting', clock.now() + delayMs]);
      clock.advance(delayMs);
      await settle();
    }
    await server.answer('{}', 401);
    expect([denied(), clock.pending, server.asked.length]).toEqual([1, 0, 4]);
    follower.start();
    await settle();
    expect(server.asked).toHaveLength(5);
    follower.stop();
  });

  test('its past is read from the oldest version on, until the one that is known', async () => {
    const { server, follower } = follow();
    const older = follower.older({ since: '2', until: '5' }, new AbortController().signal);
    await settle();
    await server.answer(list(9, object(9)));
    await server.answer(list(2, object(1)));
    expect(server.asked[1]).toContain('resourceVersion=2&resourceVersionMatch=Exact');
    const at = server.asked.findIndex((url) => url.includes('timeoutSeconds'));
    // The watch of the present is first in line.
    if (at === 3) await server.answer('', 503);
    await server.open(event('MODIFIED', 3), event('MODIFIED', 5), event('MODIFIED', 6));
    expect((await older).map(({ what, version, changes }) => [what, version, changes.map(({ path }) => path).join()])).toEqual([
      ['read', '1', ''],
      ['changed', '3', 'spec'],
      ['changed', '5', 'spec'],
    ]);
    follower.stop();
  });
});

describe('a history', () => {
  const entry = (version: number, bytes: number = 0): HistoryEntry => ({
    ...{ what: 'changed', at: undefined, version: String(version), more: 0 },
    changes: bytes === 0 ? [] : [{ path: 'x'.repeat(bytes), before: undefined, after: undefined }],
  });

  test('is bounded in entries and bytes, and keeps the newest, wherever entries come from', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(400)), { maxLength: 30 }), (steps) => {
        const history = new ObjectHistory({ maxItems: 5, maxBytes: 2_000 });
        let [newest, oldest] = [0, 0];
        for (const [isOlder, bytes] of steps) {
          if (isOlder) history.addOlder([entry(--oldest, bytes)]);
          else history.add(entry(++newest, bytes));
          const versions = history.entries.map(({ version }) => Number(version));
          expect(versions).toEqual([...versions].sort((one, other) => other - one));
          expect(versions.length).toBeLessThanOrEqual(5);
          const chars = history.entries.reduce((sum, { changes }) => sum + 64 + (changes[0]?.path.length ?? 0), 0);
          if (versions.length > 1) expect(2 * chars).toBeLessThanOrEqual(2_000);
          if (newest > 0) expect(versions[0]).toBe(newest);
        }
      }),
    );
  });

  test('how the first state came to be takes the place of that it was read', () => {
    const history = new ObjectHistory();
    history.add({ ...entry(3), what: 'read' });
    history.add(entry(4));
    history.addOlder([{ ...entry(1), what: 'created' }, entry(3)]);
    expect(history.entries.map(({ what, version }) => `${what} ${version}`)).toEqual(['changed 4', 'changed 3', 'created 1']);
  });

  test('an entry has what changed, cut; and when, if the object says so', () => {
    const before = {
      metadata: { resourceVersion: '1', generation: 1 },
      spec: { list: [{ name: 'a', v: 1 }, { name: 'b' }], text: 'x' },
    };
    const after = {
      metadata: { resourceVersion: '2', generation: 2 },
      spec: { list: [{ name: 'b' }, { name: 'a', v: 2 }], text: 'y'.repeat(9_999) },
    };
    const { changes, version, more } = toEntry({ what: 'changed', at: undefined, before, after });
    expect([version, more]).toEqual(['2', 0]);
    expect(changes.map(({ path, before: old, after: now }) => [path, old?.length, now?.length])).toEqual([
      ['spec.list[name=a].v', 1, 1],
      ['spec.list', 33, 33],
      ['spec.text', 3, 501],
    ]);
    const metadata = {
      creationTimestamp: '2026-01-01T00:00:00Z',
      managedFields: [{ time: '2026-01-03T00:00:00Z' }, { time: 1 }, null],
    };
    expect(writtenAt('changed', { metadata })?.toISOString()).toBe('2026-01-03T00:00:00.000Z');
    expect(writtenAt('created', { metadata })?.toISOString()).toBe('2026-01-01T00:00:00.000Z');
    expect(writtenAt('changed', { metadata: 1 })).toBeUndefined();
  });

  test('deep, long and hostile values are compared without harm', () => {
    const deep = (depth: number, end: unknown): unknown =>
      JSON.parse(`${'['.repeat(depth)}${JSON.stringify(end)}${']'.repeat(depth)}`);
    expect(changesOf(deep(100_000, 1), deep(100_000, 2)).list).toHaveLength(1);
    const { list: some, more } = changesOf(
      Array.from({ length: 5_000 }, (_, at) => at),
      [],
      10,
    );
    expect([some.length, more]).toEqual([10, 4_990]);
    const proto = JSON.parse('{"__proto__":{"a":1},"constructor":1}') as object;
    expect(changesOf(proto, JSON.parse('{"__proto__":{"a":2},"constructor":1}')).list.map(({ path }) => path)).toEqual([
      '__proto__.a',
    ]);
    expect(({} as { a?: unknown }).a).toBeUndefined();
  });
});

describe('a text that is edited', () => {
  test('leaves out who has written what, and can be for another version', () => {
    const edited = { metadata: { name: 'a', managedFields: [], resourceVersion: '1' } };
    expect(withoutManagers(edited)).toEqual({ metadata: { name: 'a', resourceVersion: '1' } });
    const to = { from: '12', to: '13' };
    expect(withVersion('  resourceVersion: "12"\nx: 12', to)).toBe('  resourceVersion: "13"\nx: 12');
    expect(withVersion('  resourceVersion: 12\n', to)).toBe('  resourceVersion: "13"\n');
    expect(withVersion('{"resourceVersion": "12"}', to)).toBe('{"resourceVersion": "13"}');
    expect(withVersion('resourceVersion: "11"', to)).toBeUndefined();
  });

  test('has the fields that the server names', () => {
    const text = 'metadata:\n  name: a\nspec:\n  name: b\n  containers:\n  - name: c\n    image: x\n';
    expect(text.slice(placeOf(text, 'spec.containers[0].image'))).toBe('image: x\n');
    expect(text.slice(placeOf(text, 'spec.name')).startsWith('name: b')).toBe(true);
    expect(text.slice(placeOf(text, 'spec.missing')).startsWith('spec:')).toBe(true);
    expect(placeOf('{"spec": {"a": 1}}', 'spec.a')).toBe(10);
    expect(placeOf(text, '')).toBe(0);
  });

  test('is refused with what the server says', () => {
    const details = { causes: [{ field: 'spec.a', message: 'Required value', reason: 'x' }, { message: 1 }, null] };
    const status = { ...toStatus({ code: 422, reason: 'Invalid', message: 'no' }), details } as unknown as ReturnType<
      typeof toStatus
    >;
    expect(toRefusal(new WatchError('REFUSED', '422 Invalid: no', { status }))).toEqual({
      ...{ code: 422, message: 'no', causes: [{ field: 'spec.a', message: 'Required value' }] },
    });
    expect(toRefusal(new TypeError('Failed to fetch'))).toEqual({ code: 0, message: 'no answer: Failed to fetch', causes: [] });
  });
});

test('events are read in both APIs, newest first, whatever else is in the list', () => {
  const core = {
    lastTimestamp: '2026-01-01T00:00:01Z',
    type: 'Normal',
    reason: 'R',
    message: 'm',
    count: 2,
    source: { component: 'c' },
  };
  const own = {
    series: { count: 7, lastObservedTime: '2026-01-01T00:00:09.000000Z' },
    type: 'Warning',
    reason: 'S',
    note: 'n',
    reportingController: 'd',
  };
  const { items, remaining } = toEvents(JSON.stringify({ items: [null, core, 1, own, {}], metadata: { remainingItemCount: 3 } }));
  expect(remaining).toBe(3);
  expect(items.map(({ type, reason, message, from, count }) => [type, reason, message, from, count].join())).toEqual([
    'Warning,S,n,d,7',
    'Normal,R,m,c,2',
    ',,,,1',
  ]);
  expect(toEvents('null').items).toEqual([]);
});

test('a link names an object, of a kind that there is', () => {
  const kind = { group: 'example.com', version: 'v1', namespaced: true };
  const orders = { ...kind, id: 'orders.example.com/v1', name: 'orders.example.com', plural: 'orders', kind: 'Order' };
  const zones = {
    ...kind,
    id: 'zones.example.com/v1',
    name: 'zones.example.com',
    plural: 'zones',
    kind: 'Zone',
    namespaced: false,
  };
  for (const ref of [
    { resource: orders, namespace: 'shop', name: 'a b&c' },
    { resource: zones, namespace: undefined, name: 'x/y' },
  ]) {
    const url = withObject('http://host/?sort=name#kind', ref);
    expect(objectIn(url, [orders, zones])).toEqual(ref);
    expect(objectIn(url, [])).toBeUndefined();
    expect(withObject(url, undefined)).toBe('http://host/?sort=name#kind');
  }
  for (const wrong of ['orders.example.com/v1', 'orders.example.com/v1 /tea', 'zones.example.com/v1 shop/tea', '', ' /x']) {
    expect(objectIn(`http://host/?object=${encodeURIComponent(wrong)}`, [orders, zones])).toBeUndefined();
  }
});
