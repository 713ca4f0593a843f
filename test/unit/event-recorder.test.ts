// Events as a recorder writes them: counted, combined, limited, tried again, and never waited for.
import { describe, expect, test, vi } from 'vitest';
import type { CoreEvent } from '../../src/apiserver/index.ts';
import { EventRecorder } from '../../src/operator/index.ts';
import { countOf, eventRig, type Fate, refusal, turn, website } from './event-recorder-rig.ts';

const MINUTE_MS = 60_000;

const shown = (events: readonly CoreEvent[]): readonly string[] => events.map((event) => `${event.message} x${countOf(event)}`);

test('an event of events.k8s.io/v1, as the server shows it in either API', async () => {
  const { recorder, server } = eventRig();
  recorder.warning(website(), 'Unreachable', 'no answer', {
    action: 'Probing',
    related: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-0', namespace: 'default' } },
    annotations: { tries: '3' },
  });
  await recorder.flush();
  const [event] = (await server.resource('events.events.k8s.io/v1').list()).items;
  expect(event).toMatchObject({
    metadata: { namespace: 'default', name: expect.stringMatching(/^web\.[0-9a-f]{16}$/), annotations: { tries: '3' } },
    eventTime: '2026-01-02T03:04:05.000000Z',
    reportingController: 'example.com/websites',
    reportingInstance: 'one',
    action: 'Probing',
    reason: 'Unreachable',
    regarding: {
      ...{ kind: 'Website', namespace: 'default', name: 'web', uid: 'uid-web' },
      ...{ apiVersion: 'example.com/v1', resourceVersion: '7' },
    },
    related: { kind: 'Pod', namespace: 'default', name: 'web-0', apiVersion: 'v1' },
    note: 'no answer',
    type: 'Warning',
  });
  expect(event).not.toHaveProperty('series');
});

test('an event of v1', async () => {
  const { recorder, events } = eventRig({ api: 'v1' });
  recorder.normal(website(), 'Published', 'is up');
  await recorder.flush();
  expect(await events()).toMatchObject([
    {
      ...{ type: 'Normal', reason: 'Published', message: 'is up', count: 1 },
      ...{ firstTimestamp: '2026-01-02T03:04:05Z', lastTimestamp: '2026-01-02T03:04:05Z' },
      ...{ source: { component: 'example.com/websites' }, reportingComponent: 'example.com/websites' },
      involvedObject: { kind: 'Website', name: 'web' },
    },
  ]);
});

test('of an object in no namespace, the event is in default; a name that events may not have is replaced', async () => {
  const { recorder, events } = eventRig();
  recorder.normal({ apiVersion: 'v1', kind: 'Role', metadata: { name: 'system:node' } }, 'Seen', 'once');
  await recorder.flush();
  const [event] = await events();
  expect(event?.metadata?.namespace).toBe('default');
  expect(event?.metadata?.name).toMatch(/^[0-9a-f]{8}-/);
});

test('v1: each occurrence is told', async () => {
  const { recorder, events, sent, clock } = eventRig({ api: 'v1' });
  for (let at = 0; at < 3; at++) {
    recorder.normal(website(), 'Synced', 'again');
    await turn();
    clock.advance(1_000);
  }
  expect(sent.map(({ verb }) => verb)).toEqual(['create', 'patch', 'patch']);
  expect(await events()).toMatchObject([
    { count: 3, firstTimestamp: '2026-01-02T03:04:05Z', lastTimestamp: '2026-01-02T03:04:07Z' },
  ]);
});

test('events.k8s.io/v1: the second is told, then every half an hour, and what is left when it has ended', async () => {
  const { recorder, events, sent, clock } = eventRig();
  const emit = async (): Promise<void> => {
    recorder.normal(website(), 'Synced', 'again');
    await turn();
  };
  for (let at = 0; at < 4; at++) await emit();
  expect(sent.map(({ verb }) => verb)).toEqual(['create', 'patch']);
  expect(shown(await events())).toEqual(['again x2']);
  for (let at = 0; at < 7; at++) {
    await clock.advanceAsync(5 * MINUTE_MS);
    await emit();
  }
  expect(sent.length).toBe(3);
  expect(shown(await events())).toEqual(['again x9']);
  await clock.advanceAsync(12 * MINUTE_MS);
  expect(shown(await events())).toEqual(['again x11']);
  expect(recorder.stats).toMatchObject({ emitted: 11, written: 11, pending: 0 });
  expect(clock.pending).toBe(0); // nothing is remembered
  await emit();
  expect(shown(await events())).toEqual(['again x11', 'again x1']);
});

test.each(['v1', 'events.k8s.io/v1'] as const)('%s: the tenth message of a kind is combined with those after it', async (api) => {
  const { recorder, events, clock } = eventRig({ api });
  for (let at = 1; at <= 12; at++) {
    recorder.warning(website(), 'Failed', `part ${at}`);
    await turn();
  }
  recorder.warning(website(), 'Failed', 'part 2');
  await recorder.flush();
  const last = api === 'v1' ? '(combined from similar events): part 12 x3' : '(combined from similar events): part 10 x3';
  expect(shown(await events())).toEqual(
    [...Array.from({ length: 9 }, (_, at) => `part ${at + 1} x${at === 1 ? 2 : 1}`), last].sort(
      (one, other) => one.localeCompare(other, 'en', { numeric: true }) * (one.startsWith('(') || other.startsWith('(') ? -1 : 1),
    ),
  );
  clock.advance(10 * MINUTE_MS + 1);
  recorder.warning(website(), 'Failed', 'part 13');
  await recorder.flush();
  expect(shown(await events())).toContain('part 13 x1');
});

test('an object has 25 events of a type at once, then one in five minutes; what it has goes on being counted', async () => {
  const { recorder, events, told, clock } = eventRig({ api: 'v1' });
  for (let at = 0; at < 30; at++) recorder.warning(website(), `Reason${at}`, 'no');
  recorder.normal(website(), 'Synced', 'of another type');
  recorder.warning(website('other'), 'Failed', 'about another object');
  await recorder.flush();
  expect((await events()).length).toBe(27);
  expect(recorder.stats).toMatchObject({ emitted: 32, written: 27, pending: 0, dropped: { limited: 5 } });
  expect(told).toEqual([
    {
      message:
        'more than 25 different events of type Warning about Website default/web: others are dropped, except one every 300000 ms',
      failure: { regarding: expect.objectContaining({ name: 'web' }), dropped: 1 },
    },
  ]);
  for (let at = 0; at < 3; at++) recorder.warning(website(), 'Reason0', 'no'); // held back
  await turn();
  expect(recorder.stats.pending).toBe(3);
  await clock.advanceAsync(6 * MINUTE_MS);
  expect(recorder.stats.pending).toBe(0);
  expect((await events()).find(({ reason }) => reason === 'Reason0')?.count).toBe(4);
  recorder.warning(website(), 'Reason29', 'no');
  recorder.warning(website(), 'Reason28', 'no');
  await recorder.flush();
  expect(recorder.stats.dropped.limited).toBe(6);
  expect(told.length).toBe(1);
});

test('emitting never waits: what does not fit into the queue is dropped, counted, and told once', async () => {
  const rig = eventRig({ maxQueuedEvents: 3, burst: 100 });
  const { recorder, told } = rig;
  let answer: () => void = () => {};
  const answered = new Promise<void>((resolve) => (answer = resolve));
  rig.fate = () => answered.then(() => 'ok' as const);
  for (let at = 0; at < 10; at++) recorder.normal(website(), `Reason${at}`, 'text');
  expect(recorder.stats).toMatchObject({ emitted: 10, pending: 3, dropped: { queue: 7 } });
  expect(told.map(({ message, failure }) => [message, failure.dropped])).toEqual([
    ['3 events are waiting to be written: more are dropped', 1],
  ]);
  answer();
  await recorder.flush();
  for (let at = 0; at < 10; at++) recorder.normal(website('b'), `Reason${at}`, 'text');
  await recorder.flush();
  expect((await rig.events()).length).toBe(6);
  expect(told.length).toBe(2); // it is over in between
});

test('a recorder remembers its latest series: what an older one holds back is written as it goes', async () => {
  const { recorder, events } = eventRig({ maxSeries: 2 });
  for (let at = 0; at < 5; at++) {
    recorder.normal(website('a'), 'Synced', 'again');
    await turn();
  }
  recorder.normal(website('b'), 'Synced', 'again');
  recorder.normal(website('c'), 'Synced', 'again');
  await turn();
  expect(shown(await events())).toEqual(['again x5', 'again x1', 'again x1']);
  expect(recorder.stats.pending).toBe(0);
});

test('requests that are not answered are tried again, 12 times, with growing delays', async () => {
  const rig = eventRig();
  const { recorder, clock, sent, told } = rig;
  rig.fate = () => 'cut';
  recorder.normal(website(), 'Synced', 'text');
  const times: number[] = [];
  for (let at = 0; at < 20 && recorder.stats.pending > 0; at++) {
    await clock.advanceAsync(0);
    times.push(sent.length);
    await clock.advanceAsync(20_000);
  }
  expect(sent.length).toBe(12);
  expect(told.map(({ failure }) => failure.dropped)).toEqual([...Array(11).fill(0), 1]);
  expect(recorder.stats).toMatchObject({ written: 0, pending: 0, dropped: { unanswered: 1 } });
  rig.fate = () => 'ok';
  recorder.normal(website(), 'Synced', 'text');
  await recorder.flush();
  expect(shown(await rig.events())).toEqual(['text x1']);
});

test.each<Fate>(['cut', 503])(
  'after a failure (%s) it waits for a second at least, whatever the jitter, and for twenty at most',
  async (fate) => {
    for (const [random, at] of [
      [0, [0, 1, 3, 7, 15, 25, 35]],
      [0.9999, [0, 2, 6, 14, 30]],
    ] as const) {
      const rig = eventRig({ random: () => random });
      const { recorder, clock, sent } = rig;
      rig.fate = () => fate;
      recorder.normal(website(), 'Synced', 'text');
      const times: number[] = [];
      for (let second = 0; second <= 40; second++) {
        await clock.advanceAsync(0);
        while (times.length < sent.length) times.push(second);
        await clock.advanceAsync(1_000);
      }
      expect(times).toEqual(at);
    }
  },
);

test('a server that asks for patience gets it', async () => {
  const rig = eventRig();
  rig.fate = () =>
    Promise.reject(Object.assign(refusal(429), { status: { ...refusal(429).status, details: { retryAfterSeconds: 60 } } }));
  rig.recorder.normal(website(), 'Synced', 'text');
  await rig.clock.advanceAsync(59_000);
  expect(rig.sent.length).toBe(1);
  rig.fate = () => 'ok';
  await rig.clock.advanceAsync(3_000);
  expect(rig.sent.length).toBe(2);
});

describe('a namespace of which the server answers 500', () => {
  const failing = async (options: object = {}) => {
    const rig = eventRig(options);
    await rig.server.resource('namespaces/v1').create({ metadata: { name: 'bad' } });
    rig.fate = ({ namespace }) => (namespace === 'bad' ? 500 : 'ok');
    const emit = (namespace: string, many: number, from = 0): void => {
      for (let at = 0; at < many; at++) rig.recorder.normal(website(`${namespace}${from + at}`, namespace), 'Synced', 'text');
    };
    const arrived = async (): Promise<number> =>
      (await rig.events()).filter(({ metadata }) => metadata?.namespace === 'default').length;
    return { ...rig, rig, emit, arrived };
  };

  test('holds up no other', async () => {
    const { rig, emit, arrived, clock, sent, recorder } = await failing();
    emit('bad', 20);
    emit('default', 3);
    await clock.advanceAsync(0);
    expect(await arrived()).toBe(3);
    emit('default', 1, 3);
    await clock.advanceAsync(0);
    expect(await arrived()).toBe(4);
    expect(sent.filter(({ namespace }) => namespace === 'bad')).toHaveLength(1);
    await clock.advanceAsync(15_000);
    rig.fate = () => 'ok';
    await clock.advanceAsync(20_000);
    expect(recorder.stats).toMatchObject({ written: 24, pending: 0 });
    expect(clock.pending).toBe(1); // the upkeep
  });

  test('holds up the others for one request, however slowly it fails', async () => {
    const { rig, emit, arrived, clock, sent } = await failing();
    rig.fate = async ({ namespace }): Promise<Fate> => {
      if (namespace !== 'bad') return 'ok';
      await new Promise<void>((resolve) => void clock.schedule(10_000, resolve));
      return 500;
    };
    emit('bad', 5);
    emit('default', 1);
    await clock.advanceAsync(9_999);
    expect(await arrived()).toBe(0);
    await clock.advanceAsync(1);
    expect(await arrived()).toBe(1);
    for (let at = 1; at < 10; at++) {
      emit('default', 1, at);
      await clock.advanceAsync(3_000);
      expect(await arrived()).toBe(at + 1);
    }
    expect(sent.filter(({ namespace }) => namespace === 'bad').length).toBeGreaterThan(2);
  });

  test('leaves nothing behind when it is over while others are written', async () => {
    const { rig, emit, arrived, clock, recorder } = await failing();
    emit('bad', 1);
    await clock.advanceAsync(0);
    rig.fate = async ({ namespace }): Promise<Fate> => {
      if (namespace !== 'bad') await new Promise<void>((resolve) => void clock.schedule(20_000, resolve));
      return 'ok';
    };
    emit('default', 1);
    emit('bad', 1, 1);
    await clock.advanceAsync(60_000);
    expect(await arrived()).toBe(1);
    expect(recorder.stats).toMatchObject({ written: 3, pending: 0 });
  });

  test('is given up after 12 failures in a row, with all that waits for it', async () => {
    const { emit, clock, sent, told, recorder, rig } = await failing();
    emit('bad', 20);
    await clock.advanceAsync(200_000);
    expect(sent).toHaveLength(12);
    expect(recorder.stats).toMatchObject({ pending: 0, dropped: { unanswered: 20 } });
    expect(told.map(({ failure }) => failure.dropped)).toEqual([...Array(11).fill(0), 20]);
    rig.fate = () => 'ok';
    emit('bad', 1);
    await recorder.flush();
    expect(recorder.stats).toMatchObject({ written: 1, pending: 0 });
  });

  test('takes at most half of the queue', async () => {
    const { emit, arrived, clock, told, recorder } = await failing({ maxQueuedEvents: 10 });
    emit('bad', 10);
    await clock.advanceAsync(0);
    emit('default', 5);
    emit('bad', 5, 10);
    await clock.advanceAsync(0);
    expect(await arrived()).toBe(5);
    expect(recorder.stats).toMatchObject({ written: 5, pending: 5, dropped: { queue: 10 } });
    expect(told.filter(({ message }) => message.includes('5 events are waiting'))).toHaveLength(1);
    const ended = recorder.shutdown({ timeoutMs: 100 });
    await clock.advanceAsync(100);
    await ended;
    expect(recorder.stats).toMatchObject({ pending: 0, dropped: { closed: 5 } });
    expect(clock.pending).toBe(0);
  });
});

test('what happens again while it is tried again is written after that, and awaited', async () => {
  const rig = eventRig({ api: 'v1' });
  const { recorder, clock } = rig;
  const answers: ((fate: Fate) => void)[] = [];
  rig.fate = () => new Promise((resolve) => void answers.push(resolve));
  const emit = (): void => recorder.normal(website('a'), 'Synced', 'text');
  emit();
  await turn();
  answers.shift()?.(500);
  await clock.advanceAsync(5_000);
  expect(rig.sent).toHaveLength(2);
  emit();
  let isOver = false;
  const flushed = recorder.flush().then(() => {
    isOver = true;
  });
  answers.shift()?.('ok');
  await turn();
  expect([isOver, recorder.stats]).toMatchObject([false, { written: 1, pending: 1 }]);
  answers.shift()?.('ok');
  await flushed;
  expect(shown(await rig.events())).toEqual(['text x2']);
});

test.each(['flush', 'shutdown'] as const)('an event that is on its way is not written twice by %s', async (end) => {
  for (const api of ['v1', 'events.k8s.io/v1'] as const) {
    const rig = eventRig({ api });
    const answers: ((fate: Fate) => void)[] = [];
    rig.fate = () => new Promise((resolve) => void answers.push(resolve));
    rig.recorder.normal(website('a'), 'Synced', 'text');
    await turn();
    const ended = rig.recorder[end]();
    await turn();
    for (const answer of answers.splice(0)) answer('ok');
    rig.fate = () => 'ok';
    await ended;
    expect(rig.sent.map(({ verb }) => verb)).toEqual(['create']);
    expect([rig.told, rig.recorder.stats]).toMatchObject([[], { emitted: 1, written: 1, pending: 0 }]);
  }
});

test('an answer that is lost makes no second event, and no wrong count', async () => {
  const rig = eventRig({ api: 'v1' });
  const { recorder, clock } = rig;
  rig.fate = () => 'lost';
  recorder.normal(website(), 'Synced', 'text');
  await turn();
  recorder.normal(website(), 'Synced', 'text');
  await clock.advanceAsync(0);
  rig.fate = () => 'ok';
  await clock.advanceAsync(20_000);
  expect(shown(await rig.events())).toEqual(['text x2']);
  expect(recorder.stats).toMatchObject({ written: 2, pending: 0 });
});

test('what was counted while an answer was missing is told although the event is there already', async () => {
  const rig = eventRig({ api: 'v1', burst: 1 });
  const { recorder, clock } = rig;
  rig.fate = () => 'lost';
  recorder.normal(website(), 'Synced', 'text');
  await turn();
  rig.fate = () => 'ok';
  recorder.normal(website(), 'Synced', 'text'); // held back: its object has had its share
  await clock.advanceAsync(20_000);
  expect(rig.sent.map(({ verb }) => verb)).toEqual(['create', 'create', 'patch']);
  expect(shown(await rig.events())).toEqual(['text x2']);
});

test.each([
  { made: 'lost' as const, written: 1, events: ['text x1'] },
  { made: 'cut' as const, written: 0, events: [] },
])('a refusal after a request without an answer ($made): what the server has is written, and nothing else', async (row) => {
  const rig = eventRig();
  const { recorder, clock } = rig;
  rig.fate = () => row.made;
  recorder.normal(website(), 'Synced', 'text');
  await turn();
  rig.fate = ({ verb }) => (verb === 'create' ? 403 : 'ok');
  await clock.advanceAsync(20_000);
  expect(shown(await rig.events())).toEqual(row.events);
  expect(recorder.stats).toMatchObject({ written: row.written, pending: 0, dropped: { refused: 1 - row.written } });
});

test.each([
  { allows: ['patch'], stats: { written: 1, dropped: { refused: 0, unanswered: 0 } } },
  { allows: ['get'], stats: { written: 1, dropped: { refused: 0, unanswered: 0 } } },
  { allows: [], stats: { written: 0, dropped: { refused: 0, unanswered: 1 } } },
])('a server that refuses by now to say what it has ($allows is allowed) may have it', async ({ allows, stats }) => {
  const rig = eventRig();
  const { recorder, clock, told } = rig;
  rig.fate = () => 'lost';
  recorder.normal(website(), 'Synced', 'text');
  await turn();
  rig.fate = ({ verb }) => ((allows as readonly string[]).includes(verb) ? 'ok' : 403);
  await clock.advanceAsync(20_000);
  expect(shown(await rig.events())).toEqual(['text x1']);
  expect(recorder.stats).toMatchObject({ pending: 0, ...stats });
  expect(told.map(({ message, failure }) => [message, failure.dropped])).toEqual([
    ['the answer was lost', 0],
    ['refused with 403', 1 - stats.written],
  ]);
});

test('an event that has expired is created again, with all that was counted', async () => {
  const { recorder, server, events } = eventRig({ api: 'v1' });
  recorder.normal(website(), 'Synced', 'text');
  await recorder.flush();
  await server.resource('events/v1').in('default').deleteCollection();
  recorder.normal(website(), 'Synced', 'text');
  await recorder.flush();
  expect(shown(await events())).toEqual(['text x2']);
});

test('a refusal is final: told if somebody could do something about it, quiet if the namespace is gone or going', async () => {
  const rig = eventRig();
  const { recorder, server, sent, told } = rig;
  rig.fate = () => 403;
  recorder.normal(website(), 'Synced', 'text');
  await recorder.flush();
  expect([sent.length, told.map(({ message }) => message)]).toEqual([1, ['refused with 403']]);
  rig.fate = () => 'ok';
  recorder.normal(website('web', 'nowhere'), 'Synced', 'text');
  await recorder.flush();
  const namespaces = server.resource('namespaces/v1');
  await namespaces.create({ metadata: { name: 'old', finalizers: ['example.com/hold'] } });
  await namespaces.delete('old');
  recorder.normal(website('web', 'old'), 'Synced', 'text');
  await recorder.flush();
  expect(told.length).toBe(1);
  expect(recorder.stats).toMatchObject({ emitted: 3, written: 0, pending: 0, dropped: { refused: 3 } });
});

test('at the end everything is written, also the counts that were held back; what comes later is dropped', async () => {
  const { recorder, events, clock } = eventRig();
  for (let at = 0; at < 5; at++) {
    recorder.normal(website(), 'Synced', 'again');
    await turn();
  }
  const ended = recorder.shutdown();
  recorder.normal(website(), 'Synced', 'late');
  await ended;
  expect(shown(await events())).toEqual(['again x5']);
  expect(recorder.stats).toMatchObject({ emitted: 6, written: 5, pending: 0, dropped: { closed: 1 } });
  expect(clock.pending).toBe(0);
});

test('the end has a deadline, after which nothing pends', async () => {
  const rig = eventRig();
  const { recorder, told, clock } = rig;
  rig.fate = () => new Promise(() => {});
  for (const name of ['a', 'b', 'c']) recorder.normal(website(name), 'Synced', 'text');
  const ended = recorder.shutdown({ timeoutMs: 100 });
  await clock.advanceAsync(100);
  await ended;
  expect(told).toEqual([{ message: 'gave up writing 3 events after 100 ms', failure: { regarding: undefined, dropped: 3 } }]);
  expect(recorder.stats).toMatchObject({ pending: 0, dropped: { closed: 3 } });
  expect(clock.pending).toBe(0);
});

test('a message is as long as servers take it, and cut between characters', async () => {
  const { recorder, events } = eventRig();
  recorder.normal(website(), 'Short', 'é'.repeat(512));
  recorder.normal(website(), 'Long', `${'é'.repeat(510)}x${'😀'.repeat(300)}`);
  await recorder.flush();
  const messages = new Map((await events()).map(({ reason, message }) => [reason, message]));
  expect(messages.get('Short')).toBe('é'.repeat(512));
  expect(messages.get('Long')).toBe(`${'é'.repeat(510)}x…`);
});

test('what cannot be an event is refused at once', () => {
  const { recorder, server } = eventRig();
  const code = expect.objectContaining({ code: 'INVALID_ARGUMENT' });
  const { metadata } = website();
  expect(() => recorder.normal({ metadata }, 'Synced', 'text')).toThrow(
    'object.kind: expected a text: an event names the apiVersion, the kind and the name of its object, got undefined',
  );
  expect(() => recorder.normal({ kind: 'Website', metadata }, 'Synced', 'text')).toThrow(/^object\.apiVersion/);
  expect(() => recorder.normal({ ...website(), metadata: {} }, 'Synced', 'text')).toThrow(/^object\.metadata\.name/);
  expect(() => recorder.normal(website(), '', 'text')).toThrow('reason: expected a text of 1 to 128 bytes, got ""');
  expect(() => recorder.event(website(), { type: 'Error' as never, reason: 'A', message: '' })).toThrow(/Normal, Warning/);
  expect(() => recorder.normal(website(), 'A', 'b', { annotations: { a: 'x'.repeat(4_096) } })).toThrow(code);
  expect(recorder.stats.emitted).toBe(0);
  const options = { cluster: server, name: 'websites' };
  expect(() => new EventRecorder({ ...options, name: 'web sites' })).toThrow(/^name/);
  expect(() => new EventRecorder({ ...options, api: 'v2' as never })).toThrow(/one of events.k8s.io\/v1, v1/);
  expect(() => new EventRecorder({ ...options, burst: 0 })).toThrow(/^burst/);
});

test('a server without events says so, once', async () => {
  const told: string[] = [];
  const { server } = eventRig();
  const resource = (): never => server.resource('nothing/v1') as never;
  const recorder = new EventRecorder({
    cluster: { resource },
    name: 'a',
    onError: (error) => void told.push((error as Error).message),
  });
  recorder.normal(website(), 'Synced', 'text');
  await recorder.flush();
  expect(told).toEqual([expect.stringMatching(/^resource: expected one of those that are served/)]);
  expect(recorder.stats.dropped.refused).toBe(1);
});

test.each([
  () => {
    throw new Error('mine');
  },
  () => Promise.reject(new Error('mine')),
])('what onError throws, or rejects with, is printed', async (onError) => {
  const print = vi.spyOn(console, 'error').mockImplementation(() => {});
  const recorder = new EventRecorder({ cluster: { resource: () => eventRig().server.resource('no/v1') }, name: 'a', onError });
  recorder.normal(website(), 'Synced', 'text');
  await recorder.flush();
  await turn();
  expect(print.mock.calls.flat()).toEqual([expect.stringContaining('mine')]);
  print.mockRestore();
});
