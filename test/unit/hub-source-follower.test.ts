// How a hub follows its stream: what it says about that, when it tries again, and which versions it knows by itself.
import { getEventListeners } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { coreOf } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import { toPosition, toSourceVersion } from '../../src/bridge/hub/source/source.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';
import { CountingSource, endWorlds, publish, reset, versionAt, type World, world, worldOf } from './source-world.ts';
import { fate } from './support.ts';

afterEach(endWorlds);

const stats = ({ hub }: World): unknown => hub.stats().source;
/** Long enough for anything that does not wait for the clock. */
const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await turn();
};

describe('what a hub says about its stream', () => {
  test('is how far it has come, and why it does not get on', async () => {
    const source = new CountingSource();
    source.stop();
    const all = worldOf(source);
    expect(all.hub.version).toBe('none~0.0');
    await settle();
    const error = new Error('the source cannot be reached');
    const counts = { resets: 0, skipped: 0 };
    expect(stats(all)).toStrictEqual({ phase: 'waiting', ...counts, error });
    source.start();
    all.clock.advance(25);
    await settle();
    expect(stats(all)).toStrictEqual({ phase: 'following', ...counts });
    source.stop();
    await settle();
    expect(stats(all)).toStrictEqual({ phase: 'reconnecting', ...counts, error: new Error('cut') });
    await all.hub.shutdown();
    expect(stats(all)).toMatchObject({ phase: 'stopped' });
  });

  test('has lost nothing while it knew nothing: a source that cannot say yet where it is, is asked again', async () => {
    const source = new CountingSource();
    const follow = source.follow.bind(source);
    let asked = 0;
    source.follow = async (...args) => (++asked < 3 ? undefined : follow(...args));
    const all = worldOf(source);
    for (let attempt = 0; attempt < 3; attempt++) {
      await settle();
      all.clock.advance(2_000);
    }
    await settle();
    expect(asked).toBe(3);
    expect(stats(all)).toMatchObject({ phase: 'following', resets: 0 });
  });

  test('waits until it has come to what was the end when it began', async () => {
    const source = new CountingSource();
    for (let i = 1; i <= 3; i++) source.append(JSON.stringify(added(i)));
    source.hold();
    const all = worldOf(source);
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'waiting' });
    source.release();
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'following' });
    expect(await coreOf(all.hub).ready(AbortSignal.abort())).toBe(false);
  });

  test('does not wait for ever for an end that was removed: after 5 s without anything it asks where that is', async () => {
    const source = new CountingSource();
    for (let i = 1; i <= 3; i++) source.append(JSON.stringify(added(i)));
    source.hold();
    const all = worldOf(source);
    await settle();
    source.remove(3);
    source.release();
    await settle();
    all.clock.advance(4_999);
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'waiting' });
    all.clock.advance(1);
    await settle();
    all.clock.advance(50);
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'following', resets: 0 });
    expect(all.clock.pending).toBe(0);
  });

  test('lets a slow source take its time: it asks again less and less often', async () => {
    const source = new CountingSource();
    source.append(JSON.stringify(added(1)));
    source.hold();
    const all = worldOf(source);
    await settle();
    const asked: number[] = [];
    const follow = source.follow.bind(source);
    source.follow = (...args) => {
      asked.push(all.clock.now());
      return follow(...args);
    };
    const beganMs = all.clock.now();
    for (let second = 0; second < 200; second++) {
      all.clock.advance(1_000);
      await settle();
    }
    const pauses = asked.map((at, index) => Math.floor((at - (asked[index - 1] ?? beganMs)) / 5_000) * 5_000);
    expect(pauses.slice(0, 5)).toEqual([5_000, 10_000, 20_000, 40_000, 80_000]);
    source.release();
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'following' });
  });

  test('counts what is no event, and goes on behind it', async () => {
    const all = await world(2);
    all.source.append('junk');
    all.source.append('[]');
    await settle();
    expect(all.hub.version).toBe(versionAt(all, 4));
    await publish(all, 3, 3);
    expect(all.hub.stats()).toMatchObject({ accepted: 3, version: versionAt(all, 5), source: { skipped: 2 } });
    expect(stats(all)).not.toHaveProperty('error');
  });
});

describe('a hub follows again', () => {
  test('at once after the stream was replaced', async () => {
    const all = await world(1);
    all.source.recreate();
    await settle();
    all.clock.advance(25);
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'waiting', resets: 1 });
    all.clock.advance(0);
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'following' });
  });

  test('after a pause when the connection was lost, however it has got on before', async () => {
    const all = await world(3);
    const sink = connect(all.hub);
    all.source.hold();
    for (let i = 4; i <= 6; i++) all.source.append(JSON.stringify(added(i)));
    all.source.remove(5);
    all.source.release();
    await settle();
    // It begins again behind the gap.
    expect(stats(all)).toMatchObject({ phase: 'following', resets: 1 });
    expect([sink.ended, all.hub.version]).toEqual(['expired', versionAt(all, 6)]);
    all.source.cut();
    await settle();
    all.clock.advance(24);
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'reconnecting' });
    all.clock.advance(1);
    await settle();
    expect(stats(all)).toMatchObject({ phase: 'following' });
  });

  test('not after its end, whatever the stream answers then', async () => {
    let answer: () => void = () => {};
    class Slow extends CountingSource {
      override async follow(...asked: Parameters<CountingSource['follow']>): ReturnType<CountingSource['follow']> {
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
        return super.follow(...asked);
      }
    }
    const all = worldOf(new Slow());
    const { version } = all.hub;
    await all.hub.shutdown();
    answer();
    await settle();
    expect(all.hub.version).toBe(version);
    expect(all.clock.pending).toBe(0);
  });
});

describe('a hub that has not noticed that its stream was replaced', () => {
  /** Its readers are not cut. */
  class Quiet extends CountingSource {
    override cut(): void {}
  }

  test('looks again when a client comes from the new one, at once if it is just pausing', async () => {
    for (const isPausing of [false, true]) {
      const source = new Quiet();
      const all = worldOf(source);
      await all.hub.ready();
      await publish(all, 1, 2);
      const sink = connect(all.hub);
      source.recreate();
      for (let i = 3; i <= 5; i++) source.append(JSON.stringify(added(i)));
      if (isPausing) CountingSource.prototype.cut.call(source);
      await settle();
      const asked = { resourceVersion: versionAt(all, 1) };
      const located = fate(coreOf(all.hub).locate(asked, new AbortController().signal));
      await settle();
      if (!isPausing) all.clock.advance(25);
      await settle();
      expect(stats(all)).toMatchObject({ phase: 'waiting', resets: 1 });
      all.clock.advance(0);
      await settle();
      expect([located.state, sink.ended]).toEqual(['resolved', 'expired']);
      expect((coreOf(all.hub).start(asked) as Start).missed.map(({ object }) => object)).toEqual([4, 5]);
    }
  });

  test('looks once for all clients that come while it looks', async () => {
    const answers: (() => void)[] = [];
    class Slow extends Quiet {
      isSlow = false;

      override async follow(...asked: Parameters<CountingSource['follow']>): ReturnType<CountingSource['follow']> {
        if (this.isSlow) await new Promise<void>((resolve) => answers.push(resolve));
        return super.follow(...asked);
      }
    }
    const source = new Slow();
    const all = worldOf(source);
    await all.hub.ready();
    await publish(all, 1, 2);
    source.recreate();
    for (let i = 3; i <= 5; i++) source.append(JSON.stringify(added(i)));
    source.isSlow = true;
    const asked = { resourceVersion: versionAt(all, 1) };
    const come = async (): Promise<void> => {
      void coreOf(all.hub).locate(asked, new AbortController().signal);
      await settle();
    };
    await come();
    all.clock.advance(25);
    await settle();
    await come();
    await come();
    expect(answers).toHaveLength(1);
    answers[0]?.();
    await settle();
    expect(stats(all)).toMatchObject({ resets: 1 });
  });

  test('does not believe an answer to a question from before a client came', async () => {
    const answers: (() => void)[] = [];
    class Late extends Quiet {
      override async follow(...asked: Parameters<CountingSource['follow']>): ReturnType<CountingSource['follow']> {
        const answer = await super.follow(...asked);
        await new Promise<void>((resolve) => answers.push(resolve));
        return answer;
      }
    }
    const source = new Late();
    const all = worldOf(source);
    await settle();
    answers.shift()?.();
    await publish(all, 1, 2);
    CountingSource.prototype.cut.call(source);
    await settle();
    all.clock.advance(25);
    await settle();
    expect(answers).toHaveLength(1);
    source.recreate();
    for (let i = 3; i <= 4; i++) source.append(JSON.stringify(added(i)));
    void coreOf(all.hub).locate({ resourceVersion: versionAt(all, 1) }, new AbortController().signal);
    await settle();
    answers.shift()?.();
    await settle();
    all.clock.advance(100);
    await settle();
    answers.shift()?.();
    await settle();
    expect(stats(all)).toMatchObject({ resets: 1 });
  });

  test('tells nobody as long as it has come nowhere itself', async () => {
    let times = 0;
    class Changing extends CountingSource {
      override follow(...asked: Parameters<CountingSource['follow']>): ReturnType<CountingSource['follow']> {
        return ++times === 1 ? Promise.resolve(undefined) : super.follow(...asked);
      }
    }
    const all = worldOf(new Changing());
    for (let i = 1; i <= 3; i++) all.source.append(JSON.stringify(added(i)));
    const next = all.hub.watch({ after: versionAt(all, 2) }).next();
    await settle();
    all.clock.advance(0);
    expect((await next).value).toMatchObject({ object: 3 });
  });
});

test('a version is a position only with all its parts, and a sequence that can be counted', () => {
  const position = { epoch: 'fake-1', mark: '0z', sequence: 5 };
  expect(toPosition(toSourceVersion(position))).toEqual(position);
  for (const version of ['fake.5', '~0.5', 'fake~.5', 'fake~0', 'fake~0.', `fake~0.${'9'.repeat(16)}`, 'fake~Z.5', '', 'a~b~c.5'])
    expect(toPosition(version)).toBeUndefined();
});

test('whoever has waited for a hub leaves no listener behind', async () => {
  const all = await world();
  const { signal } = new AbortController();
  expect(await all.hub.ready({ signal })).toBeUndefined();
  expect(await coreOf(all.hub).ready(signal)).toBe(true);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

describe('a hub knows by itself', () => {
  test('each version that it keeps, and where it stands, without a read', async () => {
    const all = await world(9, { replayItems: 4 });
    const { hub, source } = all;
    for (let sequence = 6; sequence <= 9; sequence++) {
      const asked = { resourceVersion: versionAt(all, sequence) };
      expect(coreOf(hub).mustLocate(asked)).toBe(false);
      expect((coreOf(hub).start(asked) as Start).missed.map(({ object }) => object)).toEqual([7, 8, 9].slice(sequence - 6));
    }
    for (const sequence of [4, 5]) expect(coreOf(hub).mustLocate({ resourceVersion: versionAt(all, sequence) })).toBe(true);
    source.append('junk');
    await settle();
    expect(coreOf(hub).mustLocate({ resourceVersion: versionAt(all, 10) })).toBe(false);
    expect(connect(hub, new FakeSink(), { transport: 'sse' }).session.version).toBe(versionAt(all, 10));
    // It continues where it was, and keeps what it had.
    source.cut();
    await settle();
    all.clock.advance(25);
    await publish(all, 11, 11);
    expect(coreOf(hub).mustLocate({ resourceVersion: versionAt(all, 8) })).toBe(false);
    expect(source.reads).toBe(0);
  });

  test('the version before what a client begins with, unless that is all it keeps', async () => {
    const version = (all: World, replay: number): string | undefined => {
      const start = coreOf(all.hub).start({}) as Start;
      expect(start.missed).toHaveLength(replay);
      return connect(all.hub, new FakeSink(), { transport: 'sse', start }).session.version;
    };
    const some = await world(9, { replayItems: 4, replay: 3 });
    expect(version(some, 3)).toBe(versionAt(some, 6));
    expect(version(await world(9, { replayItems: 4, replay: 4 }), 4)).toBeUndefined();
  });

  test('nothing of a stream that was replaced', async () => {
    const all = await world(9, { replayItems: 4 });
    const versions = [6, 9].map((sequence) => versionAt(all, sequence));
    all.source.recreate();
    await reset(all);
    await until(() => {
      all.clock.advance(2_000);
      return all.hub.stats().source?.phase === 'following';
    });
    await publish(all, 10, 12);
    for (const resourceVersion of versions) expect(coreOf(all.hub).mustLocate({ resourceVersion })).toBe(true);
  });
});
