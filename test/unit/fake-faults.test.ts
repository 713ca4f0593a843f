import { describe, expect, it } from 'vitest';
import { isInitialEventsEnd, type KubernetesObject, listAll } from '../../src/cache/index.ts';
import { type ObjectEvent, toStatus, type Watch } from '../../src/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { fate, turn } from './support.ts';

const named = (name: string, app?: string): KubernetesObject => ({ metadata: { name, ...(app && { labels: { app } }) } });
const shown = (event: ObjectEvent<KubernetesObject> | undefined): string => {
  if (!event) return 'nothing';
  if (event.type === 'ERROR') return `ERROR ${event.object.code}`;
  const { name = '', labels, resourceVersion } = (event.object as KubernetesObject).metadata ?? {};
  const what = `${event.type} ${name}${labels?.app ? `(${labels.app})` : ''}@${resourceVersion}`;
  return isInitialEventsEnd(event) ? `${what} end` : what;
};
/** Reads what has come, and says whether that was the end. */
const readSome = async (watch: Watch<ObjectEvent<KubernetesObject>>): Promise<string[]> => {
  const seen: string[] = [];
  for (;;) {
    const next = fate(watch.next());
    for (let i = 0; i < 5 && next.state === 'pending'; i++) await turn();
    if (next.state === 'pending') return [...seen, '...'];
    const { done, value } = next.value as IteratorResult<ObjectEvent<KubernetesObject>, undefined>;
    if (done) return seen;
    seen.push(shown(value));
  }
};
const namesOf = ({ items }: { items: readonly KubernetesObject[] }): string => items.map(({ metadata }) => metadata?.name).join();

describe('the selectors of a FakeListWatcher', () => {
  it('select what is listed, page by page', async () => {
    const source = new FakeListWatcher({ objects: [named('c', 'web'), named('a', 'web'), named('b', 'db'), named('d', 'web')] });
    const page = await source.list({ labelSelector: 'app=web', limit: 2 });
    expect([namesOf(page), page.remainingItemCount]).toEqual(['a,c', 1]);
    expect(namesOf(await source.list({ labelSelector: 'app=web', limit: 2, continue: page.continue }))).toBe('d');
    expect(namesOf(await source.list({ fieldSelector: 'metadata.name=b' }))).toBe('b');
    expect(namesOf(await source.list({ fieldSelector: 'metadata.labels.app!=db,metadata.nothing=' }))).toBe('a,c,d');
  });

  it('make of what enters ADDED, and of what leaves DELETED with its last content and the version of the change', async () => {
    const source = new FakeListWatcher({ objects: [named('a', 'web'), named('b', 'db')] });
    for (const start of [{ sendInitialEvents: true }, { resourceVersion: '1' }, { resourceVersion: '' }]) {
      const { resourceVersion } = source;
      const watch = await source.watch({ ...start, ...(start.resourceVersion && { resourceVersion }), labelSelector: 'app=web' });
      source.modify(named('b', 'web'));
      source.modify(named('b', 'web'));
      source.modify(named('b', 'db'));
      source.modify(named('b', 'db'));
      source.add(named('c', 'db'));
      source.delete(named('c'));
      source.delete(named('a'));
      const seen = await readSome(watch);
      expect(seen.slice(-5).join()).toMatch(
        /ADDED b\(web\)@(\d+),MODIFIED b\(web\)@\d+,DELETED b\(web\)@\d+,DELETED a\(web\)@\d+,\.\.\.$/,
      );
      await watch.return();
      source.add(named('a', 'web'));
    }
  });

  it('also select from the past, where an object has changed since', async () => {
    const source = new FakeListWatcher({ objects: [named('a', 'web')] });
    source.modify(named('a', 'db'));
    source.modify(named('a', 'web'));
    const watch = await source.watch({ resourceVersion: '1', labelSelector: 'app=web' });
    expect(await readSome(watch)).toEqual(['DELETED a(web)@2', 'ADDED a(web)@3', '...']);
  });

  it('are refused if they are wrong', async () => {
    const bad = { code: 'REFUSED', status: { code: 400, reason: 'BadRequest' } };
    await expect(new FakeListWatcher().list({ labelSelector: 'a=b=c' })).rejects.toMatchObject(bad);
    await expect(new FakeListWatcher().watch({ fieldSelector: 'a' })).rejects.toMatchObject(bad);
  });
});

describe('the versions of a FakeListWatcher', () => {
  it('are kept as far back as its history', async () => {
    const source = new FakeListWatcher({ objects: [named('a')], history: 3 });
    source.add(named('b'));
    source.delete(named('a'));
    const at = (resourceVersion: string, resourceVersionMatch?: 'Exact' | 'NotOlderThan', limit?: number): Promise<string> =>
      source.list({ resourceVersion, resourceVersionMatch, limit }).then(namesOf, (error) => `${error.status?.code}`);
    expect([await at('1', 'Exact'), await at('2', 'Exact'), await at('3', 'Exact')]).toEqual(['a', 'a,b', 'b']);
    expect([await at('1', 'NotOlderThan'), await at('1'), await at('1', undefined, 5), await at('0', undefined, 5)]).toEqual([
      'b',
      'b',
      'a',
      'b',
    ]);
    source.add(named('c'));
    source.add(named('d'));
    expect([await at('1', 'Exact'), await at('2', 'Exact'), source.oldestVersion]).toEqual(['410', 'a,b', '2']);
    expect([await at('0', 'Exact'), await at('', 'Exact'), await at('1', 'Other' as never)]).toEqual(['422', '422', '422']);
    expect(await source.list({ continue: 'x', resourceVersionMatch: 'Exact' }).catch((error) => error.status.code)).toBe(422);
  });

  it('may be larger than 2^53', async () => {
    const source = new FakeListWatcher({ firstVersion: '9007199254740993' });
    source.add(named('a'));
    source.add(named('b'));
    expect(source.resourceVersion).toBe('9007199254740995');
    const watch = await source.watch({ resourceVersion: '9007199254740994' });
    expect(await readSome(watch)).toEqual(['ADDED b@9007199254740995', '...']);
    const carried = new FakeListWatcher({ firstVersion: '9999999999999999999' });
    carried.add(named('a'));
    expect(await readSome(await carried.watch({ resourceVersion: '9999999999999999999' }))).toEqual([
      'ADDED a@10000000000000000000',
      '...',
    ]);
  });

  it('go on at the newest, with the token that comes with 410, when those of a list are forgotten', async () => {
    const source = new FakeListWatcher({ objects: ['a', 'b', 'c', 'd'].map((name) => named(name)) });
    const { continue: token } = await source.list({ limit: 2 });
    source.expire();
    source.delete(named('c'));
    source.add(named('e'));
    const error = await source.list({ limit: 2, continue: token }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'REFUSED', status: { code: 410, metadata: { continue: expect.any(String) } } });
    const rest = await source.list({ limit: 2, continue: error.status.metadata.continue });
    expect([namesOf(rest), rest.resourceVersion]).toEqual(['d,e', '3']);
    await expect(source.list({ continue: 'no such' })).rejects.toMatchObject({ status: { code: 410, metadata: {} } });
    expect(namesOf(await listAll(source, { pageSize: 1 }))).toBe('a,b,d,e');
  });

  it('are listed whole if it ignores limits', async () => {
    const source = new FakeListWatcher({ objects: ['a', 'b'].map((name) => named(name)), ignoreLimit: true });
    expect(await source.list({ limit: 1 })).toMatchObject({ items: [{}, {}] });
    expect((await source.list({ limit: 1 })).continue).toBeUndefined();
  });
});

describe('the faults of a FakeListWatcher', () => {
  it('end a watch at an event, with 410 or another ERROR', async () => {
    const source = new FakeListWatcher();
    for (const name of 'abc') source.add(named(name));
    const from = async (): Promise<string[]> => readSome(await source.watch({ resourceVersion: '1' }));
    source.errorAfter(1);
    expect(await from()).toEqual(['ADDED a@2', 'ERROR 410']);
    source.errorAfter(0, toStatus({ code: 500, reason: 'InternalError', message: 'broken' }));
    expect(await from()).toEqual(['ERROR 500']);
    source.cutAfter(2);
    source.errorAfter(3);
    expect(await from()).toEqual(['ADDED a@2', 'ADDED b@3']);
    source.cutAfter(Number.POSITIVE_INFINITY);
    source.errorAfter(Number.POSITIVE_INFINITY);
    expect(await from()).toEqual(['ADDED a@2', 'ADDED b@3', 'ADDED c@4', '...']);
  });

  it('make connections silent, until they are cut', async () => {
    const source = new FakeListWatcher();
    const before = await source.watch({ resourceVersion: '1' });
    source.halfOpen();
    source.silentWatch();
    const silent = await source.watch({ resourceVersion: '1' });
    const after = await source.watch({ resourceVersion: '1' });
    source.add(named('a'));
    expect([await readSome(before), await readSome(silent), await readSome(after)]).toEqual([
      ['...'],
      ['...'],
      ['ADDED a@2', '...'],
    ]);
    expect(source.openWatches).toBe(3);
    source.cut();
    expect(source.openWatches).toBe(0);
    expect(await readSome(before)).toEqual([]);
  });

  it('serve short watches, and every event twice', async () => {
    const source = new FakeListWatcher({ objects: [named('a')] });
    source.shortWatch(2);
    source.repeatEvents();
    const served: string[][] = [];
    for (let i = 0; i < 4; i++) served.push(await readSome(await source.watch()));
    expect(served).toEqual([[], [], ['ADDED a@1', 'ADDED a@1', '...'], ['ADDED a@1', '...']]);
    source.shortWatch(2);
    source.silentWatch();
    source.shortWatch(0);
    expect(await readSome(await source.watch())).toEqual(['...']);
    expect(await readSome(await source.watch())).toEqual(['ADDED a@1', '...']);
  });

  it('break lists off', async () => {
    const source = new FakeListWatcher();
    source.truncateList();
    await expect(source.list()).rejects.toMatchObject({ code: 'INVALID_FRAME' });
    expect((await source.list()).items).toEqual([]);
  });

  it('refuse initial events, and end them with another BOOKMARK', async () => {
    const source = new FakeListWatcher();
    source.refuseInitialEvents();
    await expect(source.watch({ sendInitialEvents: true })).rejects.toMatchObject({ status: { code: 422, reason: 'Invalid' } });
    await (await source.watch()).return();
    source.refuseInitialEvents(false);
    for (const [annotation, ends] of [
      ['false', ''],
      [undefined, ''],
      ['true', ' end'],
    ] as const) {
      source.endInitialEventsWith(annotation);
      expect(await readSome(await source.watch({ sendInitialEvents: true }))).toEqual([`BOOKMARK @1${ends}`, '...']);
    }
  });

  it('begin with a BOOKMARK of the version at which a watch starts', async () => {
    const source = new FakeListWatcher();
    source.add(named('a'));
    source.bookmarkAtStart();
    const start = { resourceVersion: '1', allowWatchBookmarks: true };
    expect(await readSome(await source.watch(start))).toEqual(['BOOKMARK @1', 'ADDED a@2', '...']);
    expect(await readSome(await source.watch({ resourceVersion: '1' }))).toEqual(['ADDED a@2', '...']);
    source.bookmarkAtStart(false);
    expect(await readSome(await source.watch(start))).toEqual(['ADDED a@2', '...']);
  });

  it('delay requests, which leave nothing behind', async () => {
    const clock = new FakeClock();
    const source = new FakeListWatcher({ clock });
    source.delay(1_000);
    const abort = new AbortController();
    const [list, watch] = [fate(source.list()), fate(source.watch({ signal: abort.signal }))];
    clock.advance(999);
    await turn();
    expect([list.state, watch.state, clock.pending]).toEqual(['pending', 'pending', 2]);
    abort.abort('enough');
    clock.advance(1);
    await turn();
    expect([list.state, watch.error, clock.pending]).toEqual(['resolved', 'enough', 0]);
    source.delay(0);
    await source.list();
  });

  it('record what was asked, and not who did', async () => {
    const source = new FakeListWatcher({ objects: [named('a')] });
    const { signal } = new AbortController();
    await source.list({ labelSelector: 'a', signal });
    const watch = await source.watch({ resourceVersion: '1', onSkip: () => {}, signal } as never);
    expect(source.requests.map(({ options }) => Object.entries(options))).toEqual([
      [['labelSelector', 'a']],
      [['resourceVersion', '1']],
    ]);
    watch.stop();
  });

  it('are refused if they have no number', () => {
    const source = new FakeListWatcher();
    for (const events of [-1, 0.5, Number.NaN, '1' as never]) {
      expect(() => source.cutAfter(events)).toThrow(/^events: expected a whole number >= 0, got /);
      expect(() => source.errorAfter(events)).toThrow(/^events: expected a whole number >= 0, got /);
    }
    for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, '1' as never])
      expect(() => new FakeClock(ms)).toThrow(/^startMs: expected a finite number of milliseconds, got /);
  });

  it.each<[string, (watch: Watch<unknown>, abort: AbortController, source: FakeListWatcher) => unknown]>([
    ['time', () => {}],
    ['stop', (watch) => watch.stop()],
    ['return', (watch) => watch.return()],
    ['its signal', (_, abort) => abort.abort()],
    ['a cut', (_, _abort, source) => source.cut()],
  ])('end a watch in time; after the end by %s no timer and no listener stays', async (by, end) => {
    const clock = new FakeClock();
    const source = new FakeListWatcher({ objects: [named('a')], clock });
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const watch = await source.watch({ timeoutSeconds: 5, signal: abort.signal, labelSelector: '!x' });
    clock.advance(4_999);
    expect([source.openWatches, clock.pending]).toEqual([1, 1]);
    if (by === 'time') clock.advance(1);
    else await end(watch, abort, source);
    expect([source.openWatches, clock.pending, listeners.count]).toEqual([0, 0, 0]);
    expect(await readSome(watch)).toEqual(by === 'return' ? [] : ['ADDED a@1']);
  });
});
