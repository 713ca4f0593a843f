// The parts of a cacher, each by itself: how long versions are waited for, what the window keeps, what the state is.
import { describe, expect, test } from 'vitest';
import { keyOf } from '../../src/cache/index.ts';
import { compareVersions } from '../../src/cache/versions.ts';
import { type CacherOptions, collectionOf, toSettings } from '../../src/storage/cacher/engine.ts';
import { Freshness } from '../../src/storage/cacher/freshness.ts';
import { ChangeLog, LogEntry, type LogLimits, StateEntry, type Step } from '../../src/storage/collection/change-log.ts';
import type { Collection } from '../../src/storage/collection/collection.ts';
import type { SortedMap } from '../../src/storage/collection/sorted-map.ts';
import { FieldReader, Selection } from '../../src/storage/collection/view.ts';
import type { CollectionWatch } from '../../src/storage/collection/watch.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { type ChangeType, toStatus } from '../../src/watch/event.ts';
import { type Pod, pod } from './faulty-storage.ts';
import { fate, turn } from './support.ts';

/** Few objects are read at once, without a promise. */
const selected = (core: Collection<Pod>, selection: Selection<Pod>): readonly Pod[] => core.select(selection) as readonly Pod[];
const snapshotAt = (core: Collection<Pod>, version: string): SortedMap<StateEntry<Pod>> | undefined =>
  core.snapshotAt(version) as SortedMap<StateEntry<Pod>> | undefined;

class Rig {
  readonly clock: FakeClock = new FakeClock();
  version: string = '5';
  asked: number = 0;
  fails: (() => Promise<void>) | undefined = undefined;
  /** How often the storage was asked for its version, and what it answers. */
  versionAsked: number = 0;
  current: () => Promise<string> = async () => '9';
  readonly freshness: Freshness;

  constructor(hasGiven?: (version: string) => Promise<boolean>) {
    this.freshness = new Freshness({
      clock: this.clock,
      compareVersions,
      freshnessTimeoutMs: 3_000,
      progressMs: 100,
      version: () => this.version,
      requestProgress: () => {
        this.asked++;
        return this.fails?.() ?? Promise.resolve();
      },
      currentVersion: () => {
        this.versionAsked++;
        return this.current();
      },
      hasGiven,
    });
  }

  moveTo(version: string): void {
    this.version = version;
    this.freshness.moved();
  }
}

describe('waiting for a version', () => {
  test('does not wait for one that has come, and asks nothing', async () => {
    const rig = new Rig();
    await rig.freshness.wait('4');
    await rig.freshness.wait('5');
    expect([rig.freshness.has('5'), rig.freshness.has('6'), rig.asked, rig.clock.pending]).toEqual([true, false, 0, 0]);
  });

  test('asks for progress at once, and again as long as anybody waits, but no more often', async () => {
    const rig = new Rig();
    const [six, seven] = [fate(rig.freshness.wait('6')), fate(rig.freshness.wait('7'))];
    expect([rig.asked, rig.freshness.waiting]).toEqual([1, 2]);
    rig.clock.advance(99);
    expect(rig.asked).toBe(1);
    rig.clock.advance(1);
    expect(rig.asked).toBe(2);
    rig.moveTo('6');
    await turn();
    expect([six.state, seven.state, rig.freshness.waiting]).toEqual(['resolved', 'pending', 1]);
    rig.clock.advance(100);
    expect(rig.asked).toBe(3);
    rig.moveTo('9');
    await turn();
    expect([seven.state, rig.freshness.waiting, rig.clock.pending]).toEqual(['resolved', 0, 0]);
    rig.clock.advance(1_000);
    expect(rig.asked).toBe(3);
    const ten = rig.freshness.wait('10');
    expect(rig.asked).toBe(4);
    rig.moveTo('10');
    await ten;
    expect(rig.clock.pending).toBe(0);
  });

  test('ends with 504 after its time, which names both versions, as they are then', async () => {
    const rig = new Rig();
    const late = fate(rig.freshness.wait('9'));
    rig.clock.advance(1_000);
    const other = fate(rig.freshness.wait('8'));
    rig.moveTo('7');
    rig.clock.advance(2_000);
    await turn();
    expect([late.state, other.state]).toEqual(['rejected', 'pending']);
    expect(late.error).toMatchObject({
      code: 'REFUSED',
      status: { code: 504, message: 'Too large resource version: 9, current: 7' },
    });
    rig.clock.advance(1_000);
    await turn();
    expect([other.state, rig.freshness.waiting, rig.clock.pending]).toEqual(['rejected', 0, 0]);
  });

  test('that a client has: 410 if the storage is not there, and only a question from after it came counts', async () => {
    const rig = new Rig();
    const answers: ((version: string) => void)[] = [];
    rig.current = () => new Promise((resolve) => answers.push(resolve));
    const first = fate(rig.freshness.reach('10'));
    const [second, third] = [fate(rig.freshness.reach('10')), fate(rig.freshness.reach('12'))];
    await turn();
    expect([rig.versionAsked, rig.freshness.waiting]).toEqual([1, 3]);
    answers[0]?.('9'); // asked before the second and the third came: 10 may have been given in the meantime
    await turn();
    expect([first.state, second.state, third.state, rig.versionAsked]).toEqual(['rejected', 'pending', 'pending', 2]);
    expect(first.error).toMatchObject({
      status: { code: 410, message: expect.stringContaining('10 was not issued by this storage (current: 9)') },
    });
    answers[1]?.('11');
    await turn();
    expect([second.state, third.state, rig.versionAsked]).toEqual(['pending', 'rejected', 2]);
    rig.moveTo('11');
    await turn();
    expect([second.state, rig.freshness.waiting, rig.clock.pending]).toEqual(['resolved', 0, 0]);
    await rig.freshness.reach('11');
    expect(rig.versionAsked).toBe(2);
  });

  test('that a client has: 504 after its time if the storage does not say where it is, and it is asked again for others', async () => {
    const rig = new Rig();
    rig.current = () => Promise.reject(new Error('away'));
    const waits = [fate(rig.freshness.reach('10')), fate(rig.freshness.reach('11'))];
    await turn();
    expect(waits.map(({ state }) => state)).toEqual(['pending', 'pending']);
    rig.clock.advance(3_000);
    await turn();
    expect(waits.map(({ error }) => (error as { status: { code: number } }).status.code)).toEqual([504, 504]);
    rig.current = async () => '10';
    await expect(rig.freshness.reach('11')).rejects.toMatchObject({ status: { code: 410 } });
    expect(rig.clock.pending).toBe(0);
  });

  test('that a client has: 410 if the storage knows that it has not given it, also if the cache is beyond it', async () => {
    const rig = new Rig(async (version) => version !== '3');
    await expect(rig.freshness.reach('3')).rejects.toMatchObject({ status: { code: 410 } });
    await rig.freshness.reach('4');
    expect([rig.versionAsked, rig.asked]).toEqual([0, 0]);
  });

  test('ends with the signal, before and while it waits, and with the close', async () => {
    const rig = new Rig();
    const abort = new AbortController();
    const waits = [fate(rig.freshness.wait('9', abort.signal)), fate(rig.freshness.wait('9'))];
    abort.abort(new Error('enough'));
    rig.freshness.close();
    await turn();
    expect(waits.map(({ error }) => error)).toEqual([new Error('enough'), expect.objectContaining({ code: 'CLOSED' })]);
    expect(String(waits[1]?.error)).toContain('the cacher is closed');
    await expect(rig.freshness.wait('1', abort.signal)).rejects.toThrow('enough');
    await expect(rig.freshness.wait('1')).rejects.toMatchObject({ code: 'CLOSED' });
    expect([rig.freshness.waiting, rig.clock.pending, rig.asked]).toEqual([0, 0, 1]);
  });

  test('goes on if the storage cannot be asked, however it says so', async () => {
    const rig = new Rig();
    rig.fails = () => Promise.reject(new Error('later'));
    const waits = fate(rig.freshness.wait('6'));
    rig.fails = () => {
      throw new Error('now');
    };
    rig.clock.advance(100);
    await turn();
    expect([waits.state, rig.asked]).toEqual(['pending', 2]);
    rig.moveTo('6');
    await turn();
    expect(waits.state).toBe('resolved');
  });
});

const limits: LogLimits = { maxItems: 1_000, maxBytes: 1_000_000, maxAgeMs: 1_000, minItems: 100 };

function historyOf(given: Partial<LogLimits>): {
  history: ChangeLog<Pod>;
  add: (version: number, bytes?: number, atMs?: number) => void;
} {
  const history = new ChangeLog<Pod>({ ...limits, ...given }, compareVersions);
  const add = (version: number, bytes: number = 1, atMs: number = 0): void => {
    const object: Pod = { metadata: { resourceVersion: `${version}` } };
    const after = new StateEntry('x/a', object, history.end);
    history.append(new LogEntry<Pod>({ object, before: undefined, after, atMs, bytes }));
  };
  return { history, add };
}

describe('the window', () => {
  test('keeps as many changes as it may, and just as many bytes', () => {
    const { history, add } = historyOf({ maxItems: 3, maxBytes: 10 });
    for (const version of [1, 2, 3]) add(version, 2);
    history.trim(0);
    expect([history.start, history.end, history.length, history.bytes, history.base]).toEqual([0, 3, 3, 6, '0']);
    add(4, 2);
    history.trim(0);
    expect([history.start, history.length, history.bytes, history.base]).toEqual([1, 3, 6, '1']);
    add(5, 6);
    history.trim(0);
    expect([history.length, history.bytes, history.base]).toEqual([3, 10, '2']);
    add(6, 7);
    history.trim(0);
    expect([history.length, history.bytes, history.base]).toEqual([1, 7, '5']);
    add(7, 11);
    history.trim(0);
    expect([history.length, history.bytes, history.base, history.start]).toEqual([0, 0, '7', history.end]);
  });

  test('keeps the last hundred, however old they are, and others as long as it may', () => {
    const { history, add } = historyOf({ maxAgeMs: 1_000 });
    for (let version = 1; version <= 103; version++) add(version, 1, version === 1 ? 0 : 5);
    history.trim(1_000);
    expect(history.length).toBe(103);
    history.trim(1_001);
    expect([history.length, history.base]).toEqual([102, '1']);
    history.trim(1_005);
    expect(history.length).toBe(102);
    history.trim(1_006);
    expect([history.length, history.base]).toEqual([100, '3']);
  });

  test('finds the first change after a version, if all since then are kept', () => {
    const { history, add } = historyOf({ maxItems: 3 });
    for (const version of [2, 4, 4, 6, 8]) add(version);
    history.trim(0);
    expect(history.base).toBe('4');
    expect(['3', '4', '5', '6', '7', '8', '99'].map((version) => history.after(version))).toEqual([undefined, 3, 3, 4, 4, 5, 5]);
    history.clear('7');
    expect([history.length, history.bytes, history.base, history.after('6'), history.after('7')]).toEqual([
      0,
      0,
      '7',
      undefined,
      5,
    ]);
  });
});

describe('the state', () => {
  const FIELDS = { node: ({ spec }: Pod): string | undefined => spec?.node };
  const object = (name: string, version: number, spec: { node?: string } = {}): Pod => ({
    ...pod(`x/${name}`, spec),
    metadata: { name, namespace: 'x', resourceVersion: `${version}` },
  });
  const step = (type: ChangeType, changed: Pod): Step<Pod> => {
    return { key: keyOf(changed), object: changed, isDeletion: type === 'DELETED' };
  };
  const entries = (objects: readonly Pod[]): { key: string; object: Pod }[] => {
    return objects.map((each) => ({ key: keyOf(each), object: each }));
  };
  const rigOf = (options: CacherOptions<Pod> = {}): { core: Collection<Pod>; all: Selection<Pod>; clock: FakeClock } => {
    const clock = new FakeClock();
    const core = collectionOf(toSettings<Pod>({ clock, fields: FIELDS, ...options }));
    core.part(''); // what a cacher asks for
    const reader = new FieldReader<Pod>(FIELDS, { prefix: '', onError: () => {} });
    return { core, all: new Selection<Pod>(reader, { prefix: '' }), clock };
  };
  const status = toStatus({ code: 410, reason: 'Expired', message: 'lost' });
  const named = (objects: readonly Pod[]): string => objects.map(({ metadata }) => metadata?.name).join(' ');

  test('follows changes, and refuses one that is older than it, without any effect', () => {
    const { core, all } = rigOf();
    core.replace(entries([object('b', 2)]), '5', status);
    core.apply(step('ADDED', object('a', 6)));
    expect([core.version, core.size, named(selected(core, all)), core.log.length]).toEqual(['6', 2, 'a b', 1]);
    expect(() => core.apply(step('ADDED', object('c', 5)))).toThrow(
      expect.objectContaining({ code: 'INVALID_FRAME', message: 'the storage sent a change of version 5 after 6' }),
    );
    expect([core.version, core.size, core.get('x/c')]).toEqual(['6', 2, undefined]);
    core.apply(step('DELETED', object('b', 7)));
    expect([core.version, core.size, named(selected(core, all))]).toEqual(['7', 1, 'a']);
  });

  test('takes several changes of one version, until that was said to be complete', () => {
    const { core } = rigOf();
    core.replace(entries([]), '5', status);
    expect(() => core.apply(step('ADDED', object('a', 5)))).toThrow('after 5');
    core.apply(step('ADDED', object('a', 6)));
    core.apply(step('ADDED', object('b', 6)));
    core.moveTo('6');
    expect(() => core.apply(step('ADDED', object('c', 6)))).toThrow('after 6');
    core.apply(step('ADDED', object('c', 7)));
    core.moveTo('6');
    expect(core.version).toBe('7');
    core.apply(step('ADDED', object('d', 7)));
    core.moveTo('9');
    expect([core.version, core.size]).toEqual(['9', 4]);
  });

  test('a deletion of what is not there moves the version, and is no change', () => {
    const { core } = rigOf();
    core.replace(entries([]), '5', status);
    core.apply(step('DELETED', object('a', 6)));
    expect([core.version, core.size, core.log.length]).toEqual(['6', 0, 0]);
  });

  test('its BOOKMARK, and the list of all, are the same until something happens', () => {
    const { core, all } = rigOf();
    core.replace(entries([object('a', 2)]), '5', status);
    const [bookmark, objects] = [core.progress, selected(core, all)];
    expect(bookmark).toEqual({ place: 0, event: { type: 'BOOKMARK', object: { metadata: { resourceVersion: '5' } } } });
    expect([core.progress === bookmark, selected(core, all) === objects]).toEqual([true, true]);
    core.moveTo('6');
    expect([core.progress.event.object.metadata.resourceVersion, selected(core, all) === objects]).toEqual(['6', true]);
    core.apply(step('MODIFIED', object('a', 7)));
    expect(selected(core, all)).not.toBe(objects);
    const changed = selected(core, all);
    core.replace(entries([]), '8', status);
    expect([selected(core, all), selected(core, all) === changed]).toEqual([[], false]);
  });

  test('is known at every version that the window reaches, also of an object that came and went', () => {
    const { core } = rigOf();
    const at = (version: string): string | undefined => {
      const snapshot = snapshotAt(core, version);
      return (
        snapshot && Array.from(snapshot.values(), (entry) => `${entry.key}@${entry.object.metadata?.resourceVersion}`).join(' ')
      );
    };
    core.replace(entries([object('a', 2), object('b', 3)]), '5', status);
    core.apply(step('MODIFIED', object('a', 6)));
    core.apply(step('ADDED', object('c', 7)));
    core.apply(step('DELETED', object('c', 8)));
    core.apply(step('DELETED', object('b', 9)));
    expect(['4', '5', '6', '7', '8', '9', '10'].map(at)).toEqual([
      undefined,
      'x/a@2 x/b@3',
      'x/a@6 x/b@3',
      'x/a@6 x/b@3 x/c@7',
      'x/a@6 x/b@3',
      'x/a@6',
      undefined,
    ]);
    core.moveTo('10');
    expect([at('10'), at('9'), at('6')]).toEqual(['x/a@6', 'x/a@6', 'x/a@6 x/b@3']);
    core.compact();
    expect([at('9'), at('10'), core.log.base]).toEqual([undefined, 'x/a@6', '10']);
  });

  test('at one version is made once for all pages of a list, and an older one is made of it', () => {
    const { core } = rigOf({ windowItems: 3 });
    const names = (version: string): string =>
      Array.from(snapshotAt(core, version)?.values() ?? [], ({ object: { metadata } }) => metadata?.resourceVersion).join(' ');
    core.replace(entries([object('a', 2)]), '5', status);
    for (const version of [6, 7, 8]) core.apply(step('MODIFIED', object('a', version)));
    const page = snapshotAt(core, '7');
    expect(snapshotAt(core, '7')).toBe(page);
    core.apply(step('DELETED', object('a', 9)));
    expect([snapshotAt(core, '7') === page, names('7'), names('6'), names('7'), names('8')]).toEqual([true, '7', '6', '7', '8']);
    const last = snapshotAt(core, '8');
    core.apply(step('ADDED', object('b', 10)));
    expect([snapshotAt(core, '6'), snapshotAt(core, '8') === last]).toEqual([undefined, true]);
    core.replace(entries([object('c', 11)]), '11', status);
    core.apply(step('ADDED', object('d', 12)));
    expect([snapshotAt(core, '8'), names('11'), names('12')]).toEqual([undefined, '11', '11 12']);
    core.compact();
    expect([snapshotAt(core, '11'), names('12')]).toEqual([undefined, '11 12']);
  });

  test('views of watches that do not read forget what the window has forgotten', () => {
    const { core, all } = rigOf({ windowItems: 10 });
    core.replace(entries([]), '1', status);
    const host = {
      compareVersions,
      get start() {
        return core.log.start;
      },
      get place() {
        return core.place;
      },
      get progress() {
        return core.progress;
      },
      left: (watch: CollectionWatch<Pod>) => core.left(watch.view),
      fellBehind: () => {},
      due: () => {},
    };
    const join = (after?: string): CollectionWatch<Pod> =>
      core.join(all, { initial: false, mark: false, after }, host) as CollectionWatch<Pod>;
    const [watch, other] = [join(), join()];
    expect([watch.view === other.view, core.views]).toEqual([true, 1]);
    for (let n = 2; n < 1_000; n++) core.apply(step(n === 2 ? 'ADDED' : 'MODIFIED', object('a', n)));
    expect(core.log.length).toBe(10);
    expect(watch.view.lostBefore).toBeGreaterThan(700);
    expect(watch.view.head - watch.view.positionOf(watch.view.lostBefore)).toBeLessThan(300);
    expect(watch.tryNext()).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    expect(core.views).toBe(1);
    void other.return();
    expect(core.views).toBe(0);
    const now = join();
    const before = join('995');
    expect([before.view === now.view, core.views, before.queued, now.queued]).toEqual([true, 1, 4, 0]);
    expect(core.join(all, { initial: false, mark: false, after: '900' }, host)).toBeUndefined();
    core.apply(step('MODIFIED', object('a', 1_000)));
    expect([before.queued, now.queued]).toEqual([5, 1]);
  });

  test('before there is one has version 0 in its window', () => {
    const { core } = rigOf();
    core.compact();
    expect([core.log.base, core.version, core.place]).toEqual(['0', '', 0]);
  });

  test('the window counts what a change keeps alive: its object, and the one before it unless another change does', () => {
    const { core } = rigOf();
    const [first, second] = [object('a', 2), object('a', 6, { node: 'n' })];
    const sizeOf = (one: Pod): number => 3 * JSON.stringify(one).length;
    core.replace(entries([first]), '5', status);
    core.apply(step('MODIFIED', second));
    expect(core.log.bytes).toBe(sizeOf(first) + sizeOf(second));
    const third = object('a', 7);
    core.apply(step('MODIFIED', third));
    expect(core.log.bytes).toBe(sizeOf(first) + sizeOf(second) + sizeOf(third));
  });

  test('an object that cannot be read changes nothing', () => {
    const { core } = rigOf();
    const bad = Object.defineProperty(object('bad', 6), 'spec', {
      enumerable: true,
      get: () => {
        throw new Error('no spec');
      },
    });
    core.replace(entries([object('a', 2)]), '5', status);
    expect(() => core.apply(step('ADDED', bad))).toThrow('no spec');
    expect([core.version, core.size, core.log.length]).toEqual(['5', 1, 0]);
    const failing = (function* (): Generator<{ key: string; object: Pod }> {
      yield* entries([object('b', 7)]);
      throw new Error('no more');
    })();
    expect(() => core.replace(failing, '9', status)).toThrow('no more');
    expect([core.version, core.get('x/a') !== undefined, core.get('x/b')]).toEqual(['5', true, undefined]);
  });

  test('selects by a field through its index, and counts by prefix', () => {
    const { core } = rigOf();
    const reader = new FieldReader<Pod>(FIELDS, { prefix: '', onError: () => {} });
    const onNode = new Selection<Pod>(reader, { prefix: 'x/', fieldSelector: 'node=n1' });
    core.replace(
      entries([object('a', 2, { node: 'n1' }), object('b', 3, { node: 'n2' }), object('c', 4, { node: 'n1' })]),
      '5',
      status,
    );
    expect(named(selected(core, onNode))).toBe('a c');
    core.apply(step('MODIFIED', object('b', 6, { node: 'n1' })));
    core.apply(step('MODIFIED', object('a', 7, { node: 'n2' })));
    core.apply(step('DELETED', object('c', 8, { node: 'n1' })));
    expect(named(selected(core, onNode))).toBe('b');
    core.replace(entries([object('z', 9, { node: 'n1' })]), '9', status);
    expect(named(selected(core, onNode))).toBe('z');
    const found = core.candidates(onNode);
    expect([found.count('x/', 'x/'), found.count('x/', 'x/zz'), found.count('y/', 'y/')]).toEqual([1, 0, 0]);
    expect(Array.from(found.values('x/', 'x/zz'))).toEqual([]);
  });
});
