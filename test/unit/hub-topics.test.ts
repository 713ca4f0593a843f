// Rooms of a hub: clients limited to topics.
import { describe, expect, test } from 'vitest';
import { type ClientOptions, coreOf, Hub, type HubOptions } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { ParsedQuery } from '../../src/bridge/hub/query.ts';
import { isErrorEvent, isStatus, type WatchEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import { connect, FakeSink, turn, until } from './fake-sink.ts';

type Chat = WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED', { room: string; id: number; metadata: { name: string } }>;

const say = (room: string, id: number, type: Chat['type'] = 'ADDED'): Chat => ({
  type,
  object: { room, id, metadata: { name: `${room}${id % 3}` } },
});
const roomOf = ({ object }: WatchEvent): string => (object as Chat['object']).room;
const idsOf = (sink: FakeSink): (number | string)[] =>
  sink.events.map(({ type, object }) => (type === 'ADDED' || type === 'MODIFIED' ? (object as Chat['object']).id : type));

function newHub(options: HubOptions = {}): Hub {
  return new Hub({ epoch: 'e', topicsOf: roomOf, ...options });
}

/** A client that may see what `options` say, as a transport opens it. */
function enter(hub: Hub, options: ClientOptions, asked: ParsedQuery = {}): ReturnType<typeof connect> {
  const start = coreOf(hub).start(asked, { options });
  if (isStatus(start)) throw new Error(`refused: ${start.code}`);
  return connect(hub, new FakeSink(), { start: start as Start, asked, options });
}

describe('a client of topics', () => {
  test('gets the events of its topics, each once, and no others', async () => {
    const hub = newHub({ topicsOf: (event) => [roomOf(event), `${roomOf(event)}!`] });
    const clients = [['a'], ['b', 'a'], ['a', 'a!'], [], ['nobody']].map((topics) => enter(hub, { topics }));
    const all = enter(hub, {});
    for (const [id, room] of ['a', 'b', 'c', 'a'].entries()) hub.tryPublish(say(room, id));
    await turn();
    expect(clients.map(idsOf)).toEqual([[0, 3], [0, 1, 3], [0, 3], [], []]);
    expect(idsOf(all)).toEqual([0, 1, 2, 3]);
  });

  test('gets what passes its filter, too', async () => {
    const hub = newHub();
    const asked: number[] = [];
    const client = enter(hub, {
      topics: ['a'],
      filter(event) {
        asked.push((event.object as Chat['object']).id);
        return (event.object as Chat['object']).id % 2 === 0;
      },
    });
    for (const [id, room] of ['a', 'b', 'a', 'a', 'a'].entries()) hub.tryPublish(say(room, id));
    await turn();
    expect([idsOf(client), asked]).toEqual([
      [0, 2, 4],
      [0, 2, 3, 4],
    ]);
  });

  test('resumes with what it has missed of its topics', async () => {
    const hub = newHub();
    const first = enter(hub, { topics: ['a'] });
    for (const [id, room] of ['a', 'b'].entries()) hub.tryPublish(say(room, id));
    await turn();
    first.session.gone();
    for (const [id, room] of ['a', 'b', 'a'].entries()) hub.tryPublish(say(room, id + 2));
    const second = enter(hub, { topics: ['a'] }, { resourceVersion: first.versions.at(-1)! });
    await turn();
    hub.tryPublish(say('a', 5));
    await turn();
    expect([idsOf(second), second.versions]).toEqual([
      [2, 4, 5],
      ['e.3', 'e.5', 'e.6'],
    ]);
    expect(hub.stats().total.resumes).toBe(1);
  });

  test('is told 410 if events since its version are gone, whosever they were', () => {
    const hub = newHub({ replayItems: 2 });
    for (const [id, room] of ['a', 'b', 'b', 'b'].entries()) hub.tryPublish(say(room, id));
    const start = coreOf(hub).start({ resourceVersion: 'e.1' }, { options: { topics: ['a'] } });
    expect(start).toMatchObject({ code: 410 });
  });

  test('begins with those of the last events that are of its topics', async () => {
    const hub = newHub({ replay: 3 });
    for (const [id, room] of ['a', 'a', 'b', 'b', 'a'].entries()) hub.tryPublish(say(room, id));
    const client = enter(hub, { topics: ['a'] });
    hub.tryPublish(say('a', 5));
    await turn();
    expect(idsOf(client)).toEqual([4, 5]);
  });

  test('gets a snapshot of its topics, and what follows', async () => {
    const hub = newHub({ snapshot: () => ['a', 'b', 'a', 'c'].map((room, id) => say(room, id).object) });
    const clients = [enter(hub, { topics: ['a'] }), enter(hub, { topics: ['c', 'b'] }), enter(hub, {})];
    await until(() => clients.every((client) => client.events.at(-1)?.type === 'BOOKMARK'));
    hub.tryPublish(say('a', 4));
    hub.tryPublish(say('b', 5));
    await turn();
    expect(clients.map(idsOf)).toEqual([
      [0, 2, 'BOOKMARK', 4],
      [1, 3, 'BOOKMARK', 5],
      [0, 1, 2, 3, 'BOOKMARK', 4, 5],
    ]);
  });

  test('of a snapshot for which topicsOf throws is cut, alone', async () => {
    const hub = newHub({
      snapshot: () => [{ room: 'a' }],
      topicsOf() {
        throw new Error('topicsOf');
      },
    });
    const [some, all] = [enter(hub, { topics: ['a'] }), enter(hub, {})];
    await until(() => some.ended !== undefined || some.destroyed);
    await until(() => all.events.length === 2);
    expect([some.session.reason, all.ended, all.destroyed]).toEqual(['failed', undefined, false]);
  });

  test('shows its topics in the statistics, a client of all events none', () => {
    const hub = newHub();
    enter(hub, { topics: ['a', 'b'] });
    enter(hub, {});
    expect(hub.stats().clients.map((client) => client.topics)).toEqual([['a', 'b'], undefined]);
  });

  test('with coalesce gets the latest of each key, of its topics', async () => {
    const hub = newHub();
    const client = enter(hub, { topics: ['a'], overflow: 'coalesce', capacity: 10 });
    client.stall();
    hub.tryPublish(say('a', 0));
    await turn();
    for (let id = 1; id < 30; id++) hub.tryPublish(say(id % 2 ? 'b' : 'a', id, 'MODIFIED'));
    await turn();
    client.resume();
    await turn();
    expect(idsOf(client)).toEqual([0, 26, 28, 24]);
    expect(client.session.stats()).toMatchObject({ queued: 0, dropped: 11 });
  });

  test('that is too slow is cut, and neither its topic nor another suffers', async () => {
    const hub = newHub({ capacity: 4 });
    const [slow, same, other] = [['a'], ['a'], ['b']].map((topics) => enter(hub, { topics }));
    slow!.stall();
    for (let id = 0; id < 20; id++) {
      hub.tryPublish(say(id % 2 ? 'b' : 'a', id));
      await turn();
    }
    slow!.resume();
    await turn();
    expect(idsOf(slow!)).toEqual([0, 2, 4, 6, 8, 'ERROR']);
    expect([slow!.ended, idsOf(same!).length, idsOf(other!).length]).toEqual(['expired', 10, 10]);
  });
});

describe('a hub with topics', () => {
  test('asks topicsOf once per event, whatever the number of clients', async () => {
    let asked = 0;
    const hub = newHub({
      topicsOf(event) {
        asked++;
        return roomOf(event);
      },
    });
    for (let at = 0; at < 10; at++) enter(hub, { topics: ['a', `b${at}`] });
    for (let id = 0; id < 5; id++) await hub.publish(say('a', id));
    await turn();
    expect(asked).toBe(5);
  });

  test('refuses an event for which topicsOf throws; the next one gets its version', async () => {
    const hub = newHub({
      topicsOf(event) {
        if ((event.object as Chat['object']).id === 1) throw new Error('topicsOf');
        return roomOf(event);
      },
    });
    const client = enter(hub, { topics: ['a'] });
    hub.tryPublish(say('a', 0));
    expect(() => hub.tryPublish(say('a', 1))).toThrow('topicsOf');
    await expect(hub.publish(say('a', 1))).rejects.toThrow('topicsOf');
    hub.tryPublish(say('a', 2));
    await turn();
    expect([idsOf(client), client.versions]).toEqual([
      [0, 2],
      ['e.1', 'e.2'],
    ]);
  });

  test('tells the clients of every topic that the source has failed', async () => {
    const hub = newHub();
    const clients = [['a'], ['b', 'c'], [], undefined].map((topics) => enter(hub, { topics, filter: () => false }));
    async function* failing(): AsyncGenerator<WatchEvent> {
      yield say('a', 0);
      throw new Error('source');
    }
    await expect(hub.follow(fromAsyncIterable(failing()))).rejects.toThrow('source');
    expect(clients.map((client) => client.events.map(isErrorEvent))).toEqual([[true], [true], [true], [true]]);
  });

  test('delivers to every topic what was accepted before a shutdown, and ends', async () => {
    const hub = newHub();
    const clients = [['a'], ['b'], []].map((topics) => enter(hub, { topics }));
    hub.tryPublish(say('a', 0));
    hub.tryPublish(say('b', 1));
    await hub.shutdown();
    expect(clients.map(idsOf)).toEqual([[0], [1], []]);
    expect(clients.map(({ ended }) => ended)).toEqual(['complete', 'complete', 'complete']);
  });

  test('flushes a client that joins or leaves during a flush like any other', async () => {
    const hub = newHub();
    let late: FakeSink | undefined;
    class Opens extends FakeSink {
      override write(bytes: Uint8Array): boolean {
        late ??= enter(hub, { topics: ['a'] });
        second.session.gone();
        return super.write(bytes);
      }
    }
    connect(hub, new Opens(), { options: { topics: ['a'] } });
    const second = enter(hub, { topics: ['a'] });
    const third = enter(hub, { topics: ['a'] });
    hub.tryPublish(say('a', 0));
    await turn();
    hub.tryPublish(say('a', 1));
    await turn();
    expect([idsOf(second), idsOf(third), idsOf(late!)]).toEqual([[], [0, 1], [1]]);
  });

  test('loses nothing if a filter publishes while its own client is admitted', async () => {
    const hub = newHub({ replayItems: 1, replay: 1 });
    hub.tryPublish(say('a', 0));
    // Its own queue length makes the hub write at each publish, also from inside the filter.
    enter(hub, { topics: ['a'], capacity: 1 });
    await turn();
    let more = 3;
    const sink = new FakeSink();
    sink.stall();
    const options: ClientOptions = {
      topics: ['a'],
      filter() {
        if (more-- > 0) hub.tryPublish(say('a', 100 - more));
        return true;
      },
    };
    const client = connect(hub, sink, { start: coreOf(hub).start({}, { options }) as Start, options });
    for (let id = 1; id < 5; id++) {
      await hub.publish(say('a', id));
      await turn();
    }
    client.resume();
    await turn();
    expect([client.session.reason, client.session.error]).toEqual(['gone', undefined]);
    expect(idsOf(client)).toEqual([0, 98, 1, 2, 3, 4, 99, 100]);
  });
});
