// How a hub admits clients: where each one starts, the notices about it, and the reasons for refusals.
import { describe, expect, test } from 'vitest';
import { LEAVING } from '../../src/bridge/hub/admission/refusals.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { HubClient } from '../../src/bridge/hub/hub-core.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { HubNotice } from '../../src/bridge/hub/tally.ts';
import { startOf } from '../../src/bridge/transport/http-head.ts';
import { added, connect, FakeSink, turn } from './fake-sink.ts';

describe('where a client starts', () => {
  const snapshot = (): number[] => [];
  test.each<[string, Partial<HubClient>, { resourceVersion?: string }, string | undefined]>([
    ['SSE, now: the last version there is', { transport: 'sse' }, {}, 'e.5'],
    ['SSE, back with a version: that', { transport: 'sse' }, { resourceVersion: 'e.3' }, 'e.3'],
    ['SSE, back with the last one', { transport: 'sse' }, { resourceVersion: 'e.5' }, 'e.5'],
    ['HTTP: its events say it', { transport: 'http' }, { resourceVersion: 'e.3' }, undefined],
    ['WebSocket: the same', { transport: 'websocket' }, {}, undefined],
  ])('%s', (_what, client, asked, version) => {
    const hub = new Hub({ epoch: 'e', replayItems: 3 });
    for (let i = 1; i <= 5; i++) hub.tryPublish(added(i));
    expect(connect(hub, undefined, { ...client, start: coreOf(hub).start(asked) as Start }).session.version).toBe(version);
  });

  test('SSE, with replayed events: the version before them; with a snapshot: none', () => {
    const replaying = new Hub({ epoch: 'e', replay: 2 });
    for (let i = 1; i <= 5; i++) replaying.tryPublish(added(i));
    expect(connect(replaying, undefined, { transport: 'sse' }).session.version).toBe('e.3');
    expect(connect(new Hub({ snapshot }), undefined, { transport: 'sse' }).session.version).toBeUndefined();
  });

  test('SSE, with a version that is too old: none before the ERROR has said so', () => {
    const hub = new Hub({ epoch: 'e' });
    hub.tryPublish(added(1));
    const asked = { asked: { resourceVersion: 'x.1' }, address: '', identity: undefined, options: {} };
    const start = startOf(coreOf(hub), asked as never, true) as Start;
    const sink = connect(hub, undefined, { transport: 'sse', start });
    expect(sink.session.version).toBeUndefined();
    expect(sink.events).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
  });

  test('its lag is counted from there', () => {
    const hub = new Hub({ epoch: 'e' });
    for (let i = 1; i <= 5; i++) hub.tryPublish(added(i));
    class Full extends FakeSink {
      override opened(session: never): void {
        super.opened(session);
        expect(this.session?.stats()).toMatchObject({ queued: 3, lag: 3 });
      }
    }
    const sink = connect(hub, new Full(), { start: coreOf(hub).start({ resourceVersion: 'e.2' }) as Start });
    expect(sink.session.stats()).toMatchObject({ delivered: 3, queued: 0, lag: 0 });
  });

  test('notices of a new client and of a resumed one have their numbers', () => {
    const notices: HubNotice[] = [];
    const hub = new Hub({ epoch: 'e', onNotice: (notice) => notices.push(notice) });
    for (let i = 1; i <= 5; i++) hub.tryPublish(added(i));
    const start = coreOf(hub).start({ resourceVersion: 'e.2' }) as Start;
    const { session } = connect(hub, undefined, { start, address: 'here' });
    const client = { id: session.id, address: 'here', resumed: true };
    expect(notices).toMatchObject([
      { type: 'open', client },
      { type: 'resume', client, missed: 3 },
    ]);
  });
});

describe('a client that is refused', () => {
  const refusing = (): { hub: Hub; refusals: [string, string][] } => {
    const refusals: [string, string][] = [];
    const onNotice = (notice: HubNotice): void => {
      if (notice.type === 'refused') refusals.push([notice.reason, notice.address]);
    };
    return { hub: new Hub({ epoch: 'e', replayItems: 1, onNotice }), refusals };
  };

  test('for its request: the notice has the reason, and the address if it is known', () => {
    const { hub, refusals } = refusing();
    for (let i = 1; i <= 5; i++) hub.tryPublish(added(i));
    expect(coreOf(hub).start({ resourceVersion: 'e.2' }, { address: 'here' })).toMatchObject({ code: 410 });
    expect(coreOf(hub).start({ sendInitialEvents: true })).toMatchObject({ code: 400 });
    expect(refusals).toEqual([
      ['expired', 'here'],
      ['badRequest', ''],
    ]);
  });

  test('because the hub is shutting down: before it is admitted, and after', async () => {
    const { hub, refusals } = refusing();
    connect(hub, undefined, { options: { overflow: 'wait', capacity: 1 } }).stall();
    for (let i = 1; i <= 3; i++) hub.tryPublish(added(i));
    const over = hub.shutdown();
    expect(coreOf(hub).reserve('here')).toBe(LEAVING);
    expect(coreOf(hub).start({}, { address: 'there' })).toBe(LEAVING);
    expect(refusals).toEqual([
      ['ended', 'here'],
      ['ended', 'there'],
    ]);
    hub.disconnect(() => true);
    await over;
  });

  test('occupies a slot until it has gone, if there is one, regardless of its address', () => {
    const hub = new Hub({ maxClients: 2, maxClientsPerAddress: 1 });
    const reservations = [coreOf(hub).reserveForRefusal(), coreOf(hub).reserveForRefusal()];
    expect(reservations).not.toContain(undefined);
    expect(coreOf(hub).reserveForRefusal()).toBeUndefined();
    reservations[0]?.release();
    expect(coreOf(hub).reserveForRefusal()).toBeDefined();
  });

  test('a client that no longer waits for admission is not called back at a shutdown', async () => {
    const hub = new Hub();
    const told: string[] = [];
    coreOf(hub).lifetime.whenClosing(() => told.push('waits'));
    coreOf(hub).lifetime.whenClosing(() => told.push('left'))();
    await hub.shutdown();
    await turn();
    expect(told).toEqual(['waits']);
  });
});
