// Clients whose server is killed, terminated or restarted, and clients whose connections break before, between and after events.
// Servers are separate processes; the client is `connect`, with the host's own fetch and ws.
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { bundle } from '../../bench/bridge/jitter/bundle.mjs';
import { endAll, Peer } from '../../bench/bridge/jitter/peer.ts';
import type { Listen, Listening } from '../../bench/bridge/jitter/server.ts';
import type { ConnectOptions, StateDetail } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import type { HubStats } from '../../src/bridge/hub/hub.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';
import { isInitialEventsEnd } from '../../src/bridge/protocol.ts';
import type { Clock } from '../../src/watch/clock.ts';
import { systemClock } from '../../src/watch/clock.ts';
import { isErrorEvent } from '../../src/watch/event.ts';
import { until } from '../eventually.ts';
import { freePort } from '../peers/ports.ts';
import { raw } from './servers.ts';

const TRANSPORTS = ['websocket', 'sse', 'http'] as const;
/** Clients of each transport. */
const MANY = 24;
const ALL = MANY * TRANSPORTS.length;

let script = '';
let remove = (): void => {};
const watches: { stop(): void }[] = [];

beforeAll(async () => {
  const bundled = await bundle();
  script = join(bundled.outDir, 'server.js');
  remove = bundled.remove;
});

afterEach(() => {
  for (const watch of watches.splice(0)) watch.stop();
  endAll();
});

afterAll(() => remove());

/** Waits are as long as they are in life, and pass in no time: an SSE client is asked for two seconds between two connections. */
const hasty: Clock = {
  now: () => systemClock.now(),
  schedule: (delayMs, callback) => systemClock.schedule(delayMs / 50, callback),
};

async function serve(listen: Listen = {}): Promise<Listening & { peer: Peer }> {
  const peer = new Peer(script);
  return { peer, ...(await peer.ask<Listening>('listen', { port: await freePort(), ...listen })) };
}

const statsOf = (peer: Peer): Promise<HubStats> => peer.ask<HubStats>('stats');

type Heard = WireEvent<string, unknown>;

interface Reader {
  readonly transport: string;
  /** An event by its number, an ERROR by its code, a snapshot's object as it is, and `end` for the end of it. */
  readonly heard: unknown[];
  readonly versions: (string | undefined)[];
  readonly details: StateDetail[];
  readonly state: () => string;
  readonly stop: () => void;
}

function read(url: string, options: ConnectOptions<Heard> & { transport: (typeof TRANSPORTS)[number] }): Reader {
  const heard: unknown[] = [];
  const versions: (string | undefined)[] = [];
  const details: StateDetail[] = [];
  const watch = connect<Heard>(url, {
    WebSocket,
    clock: hasty,
    connectTimeoutMs: 1_000_000,
    idleTimeoutMs: 0,
    onStateChange: (_state, detail) => void details.push(detail),
    ...options,
  });
  watches.push(watch);
  const run = async (): Promise<void> => {
    for await (const event of watch) {
      heard.push(wordOf(event));
      versions.push((event as Heard).resourceVersion);
    }
  };
  void run();
  return { transport: options.transport, heard, versions, details, state: () => watch.state, stop: () => watch.stop() };
}

function wordOf(event: Heard): unknown {
  if (isErrorEvent(event)) return `ERROR ${event.object.code}`;
  if (isInitialEventsEnd(event)) return 'end';
  return (event.object as { n?: number }).n ?? event.object;
}

/** A few dozen clients on each transport, all of them connected. */
async function readers(url: string, options: ConnectOptions<Heard> = {}): Promise<Reader[]> {
  const all = TRANSPORTS.flatMap((transport) => Array.from({ length: MANY }, () => read(url, { ...options, transport })));
  await until(() => all.every(({ state }) => state() === 'open'));
  return all;
}

const upTo = (last: number, first: number = 1): number[] => Array.from({ length: last - first + 1 }, (_, i) => first + i);

/** Every client has heard this, and nothing else. */
async function expectHeard(all: readonly Reader[], expected: readonly unknown[]): Promise<void> {
  await until(() => all.every(({ heard }) => heard.length >= expected.length));
  for (const { transport, heard } of all) expect({ transport, heard }).toEqual({ transport, heard: expected });
}

test('killed and restarted: each client gets one 410, and that is its end', async () => {
  const first = await serve();
  const all = await readers(first.url);
  await first.peer.ask('publish', { count: 5 });
  await expectHeard(all, upTo(5));
  expect(await first.peer.kill('SIGKILL')).toBe('SIGKILL');
  const second = await serve({ port: first.port });
  await until(() => all.every(({ state }) => state() === 'closed'));
  await second.peer.ask('publish', { count: 5 });
  await expectHeard(all, [...upTo(5), 'ERROR 410']);
  await until(async () => (await statsOf(second.peer)).clients.length === 0);
  expect((await statsOf(second.peer)).total).toMatchObject({ refusals: { expired: ALL }, resumes: 0 });
});

test('killed and restarted: clients with onExpired restart get one 410, and are live again', async () => {
  const first = await serve();
  const all = await readers(first.url, { onExpired: 'restart' });
  await first.peer.ask('publish', { count: 5 });
  await expectHeard(all, upTo(5));
  await first.peer.kill('SIGKILL');
  const second = await serve({ port: first.port, first: 101 });
  await expectHeard(all, [...upTo(5), 'ERROR 410']);
  await until(() => all.every(({ state }) => state() === 'open'));
  await second.peer.ask('publish', { count: 5 });
  await expectHeard(all, [...upTo(5), 'ERROR 410', ...upTo(105, 101)]);
  expect((await statsOf(second.peer)).total.refusals).toEqual({ expired: ALL });
});

test('killed and restarted: clients get one 410, a new snapshot, then later events', async () => {
  const first = await serve({ state: ['a', 'b'] });
  const all = await readers(first.url, { onExpired: 'restart' });
  const before = ['a', 'b', 'end', 1, 2];
  await expectHeard(all, before.slice(0, 3));
  await first.peer.ask('publish', { count: 2 });
  await expectHeard(all, before);
  await first.peer.kill('SIGKILL');
  const second = await serve({ port: first.port, first: 101, state: ['c'] });
  const fresh = [...before, 'ERROR 410', 'c', 'end'];
  await expectHeard(all, fresh);
  await second.peer.ask('publish', { count: 3 });
  await expectHeard(all, [...fresh, ...upTo(103, 101)]);
  expect((await statsOf(second.peer)).total.refusals).toEqual({ expired: ALL });
});

test('cut before the first event: nothing is lost', async () => {
  const { peer, url } = await serve();
  const all = await readers(url);
  await until(async () => (await statsOf(peer)).clients.length === ALL);
  await peer.ask('cut', { count: 3 });
  await until(() => all.every(({ state, heard }) => state() === 'closed' || heard.length === 3));
  await peer.ask('publish', { count: 2 });
  await expectHeard(all, upTo(5));
  expect((await statsOf(peer)).total).toMatchObject({ resumes: ALL, refused: 0 });
});

test('cut between a snapshot and the first event: the missed events follow, and no second snapshot', async () => {
  const { peer, url } = await serve({ state: ['a'] });
  const all = await readers(url);
  await expectHeard(all, ['a', 'end']);
  await peer.ask('cut', { count: 3 });
  await expectHeard(all, ['a', 'end', 1, 2, 3]);
  await peer.ask('publish', { count: 1 });
  await expectHeard(all, ['a', 'end', 1, 2, 3, 4]);
  expect((await statsOf(peer)).total).toMatchObject({ resumes: ALL, refused: 0 });
});

test.each([0, 2])('a dropped version can be resumed if nothing was missed; %i events are kept', async (replayItems) => {
  const { peer, url, version } = await serve({ replayItems });
  const all = await readers(url, { resourceVersion: version });
  await peer.ask('publish', { count: 5 });
  await expectHeard(all, upTo(5));
  await peer.ask('cut');
  await until(async () => (await statsOf(peer)).total.resumes === 2 * ALL);
  await peer.ask('publish', { count: 3 });
  await expectHeard(all, upTo(8));
  expect((await statsOf(peer)).total.refused).toBe(0);
});

test.each(['fail', 'restart'] as const)('an unknown epoch is reported once: %s', async (onExpired) => {
  const { peer, url } = await serve();
  await peer.ask('publish', { count: 5 });
  const all = TRANSPORTS.flatMap((transport) =>
    Array.from({ length: MANY }, () => read(url, { transport, onExpired, resourceVersion: 'unknown.3' })),
  );
  await expectHeard(all, ['ERROR 410']);
  const end = onExpired === 'fail' ? 'closed' : 'open';
  await until(() => all.every(({ state }) => state() === end));
  await peer.ask('publish', { count: 2 });
  await expectHeard(all, onExpired === 'fail' ? ['ERROR 410'] : ['ERROR 410', 6, 7]);
  expect((await statsOf(peer)).total.refusals).toEqual({ expired: ALL });
});

test('from replay to live events under load: from any version, every event once and in order', async () => {
  const { peer, url, version } = await serve({ replayItems: 1_000_000 });
  const epoch = version.slice(0, version.lastIndexOf('.'));
  await peer.ask('publish', { count: 500 });
  await peer.ask('pour', { most: 10_000 });
  const all: { from: number; reader: Reader }[] = [];
  // All ages: the first event, the last one, those between; and each finds events being published while it comes.
  for (let wave = 0; wave < MANY; wave++) {
    const head = Number((await peer.ask<string>('version')).split('.').at(-1));
    TRANSPORTS.forEach((transport, at) => {
      const from = Math.floor((head * ((wave * TRANSPORTS.length + at) % 7)) / 6);
      all.push({ from, reader: read(url, { transport, resourceVersion: `${epoch}.${from}` }) });
    });
    if (wave % 4 === 3) await until(() => all.every(({ reader }) => reader.heard.length > 0));
  }
  const last = Number((await peer.ask<string>('stop')).split('.').at(-1));
  expect(last).toBeGreaterThan(500);
  await until(() => all.every(({ reader }) => reader.heard.at(-1) === last || reader.state() === 'closed'));
  for (const { from, reader } of all) {
    expect({ from, heard: reader.heard }).toEqual({ from, heard: upTo(last, from + 1) });
    expect(reader.versions.at(-1)).toBe(`${epoch}.${last}`);
  }
});

test('SIGTERM: clients get their queues, are told when to reconnect, and the process exits by itself', async () => {
  const { peer, url, port, version } = await serve({ retryAfterMs: 8_000, spread: 0.5 });
  const all = await readers(url, { resourceVersion: version, onExpired: 'restart' });
  await peer.ask('publish', { count: 40 });
  expect(await peer.kill('SIGTERM')).toBe(0);
  await expectHeard(all, upTo(40));
  await until(() => all.every(({ details }) => details.some(({ delayMs }) => delayMs !== undefined)));
  for (const { transport, details } of all) {
    const { delayMs = 0, error } = details.find((detail) => detail.delayMs !== undefined) as StateDetail;
    expect({ transport, error }).toEqual({ transport, error: undefined });
    // Each client waits a little on top of it, as after any loss.
    expect({ transport, asked: delayMs >= 4_000 && delayMs < 4_500 }).toEqual({ transport, asked: true });
  }
  const second = await serve({ port, first: 101 });
  await until(() => all.every(({ heard, state }) => heard.includes('ERROR 410') && state() === 'open'));
  await second.peer.ask('publish', { count: 1 });
  await expectHeard(all, [...upTo(40), 'ERROR 410', 101]);
});

test('SIGTERM: a client that reads nothing delays nothing past the deadline', async () => {
  const { peer, port } = await serve({ drainMs: 200 });
  const { socket, heard } = await raw(port);
  socket.write('GET /watch HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await until(() => heard().includes('200 OK'));
  socket.pause();
  for (let i = 0; i < 20; i++) await peer.ask('publish', { count: 1, bytes: 1_000_000 });
  expect((await statsOf(peer)).clients[0]?.bufferedBytes).toBeGreaterThan(0);
  expect(await peer.kill('SIGTERM')).toBe(0);
});
