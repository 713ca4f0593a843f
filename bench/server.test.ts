// The servers of the workload `server` answer alike, and its load detects wrong answers.
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { bytesAlone, ours, PODS_PATH, plainServer, type Running, THINGS_PATH } from './server/contenders.ts';
import { checkPods, Lists } from './server/lists.ts';
import { faultOf, HALF, podOf, THINGS, thingOf } from './server/objects.ts';
import { checkEvents, numbersOf, Watchers } from './server/watchers.ts';
import { Writers } from './server/writers.ts';

const SIZE = { thingBytes: 1_000, pods: 30 };
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function listening(running: Running): Promise<number> {
  servers.push(running.server);
  await new Promise<void>((resolve) => void running.server.listen(0, '127.0.0.1', resolve));
  return (running.server.address() as AddressInfo).port;
}

const SERVERS = [
  ['bytes alone', bytesAlone],
  ['JSON.stringify', () => plainServer(SIZE)],
  ['watchmux', () => ours(SIZE)],
] as const;

/** Counts what a server has written to the connections that it has by now. */
function counted({ server }: Running): () => Promise<number> {
  const sockets = new Set<{ readonly bytesWritten: number; readonly on: unknown }>();
  server.on('connection', (socket) => sockets.add(socket));
  return async () => {
    await setTimeout(100);
    return [...sockets].reduce((bytes, socket) => bytes + socket.bytesWritten, 0);
  };
}

test.each(SERVERS)('%s: watchers are told of every change once', async (_, start) => {
  const running = await start();
  const written = counted(running);
  const port = await listening(running);
  const watchers = new Watchers();
  const path = `${THINGS_PATH}?watch=true&resourceVersion=${await running.version()}`;
  await watchers.join(port, [{ path, watchers: 3 }]);
  const before = await written();
  await running.change([THINGS, THINGS + 1, THINGS + 2].map((number) => thingOf(number, 1_000)));
  await running.change([thingOf(THINGS + 3, 1_000)]);
  const bytes = (await written()) - before;
  const changes = { from: THINGS, step: 1, inOrder: true, thingBytes: 1_000, bytes };
  await watchers.expect({ ...changes, count: 4 });
  await expect(watchers.expect({ ...changes, count: 1, bytes: 0 })).rejects.toThrow('0 events instead of 1');
  watchers.leave();
});

test('watchmux: watchers with selectors are told of what is theirs', async () => {
  const running = await ours(SIZE);
  const written = counted(running);
  const port = await listening(running);
  const watchers = new Watchers();
  const version = await running.version();
  const path = (selector: string): string => `${THINGS_PATH}?watch=true&${selector}&resourceVersion=${version}`;
  await running.idle?.(10, true);
  await watchers.join(port, [
    { path: path('labelSelector=app%3Dweb'), watchers: 2 },
    { path: path('fieldSelector=spec.node%3Dnode-7'), watchers: 1, thing: 7 },
  ]);
  const before = await written();
  for (let number = THINGS; number < THINGS + 10; number++) await running.change([thingOf(number, 1_000)]);
  const bytes = (await written()) - before;
  await watchers.expect({ from: THINGS, step: 1, count: 10, inOrder: true, thingBytes: 1_000, bytes });
  watchers.leave();
});

test.each(SERVERS.slice(1))('%s: lists have every Pod, in pages and by a selector, too', async (_, start) => {
  const port = await listening(await start());
  const lists = new Lists();
  const order = { path: PODS_PATH, limit: 0, labelSelector: '', pods: 30, step: 1 };
  for (let i = 0; i < 2; i++) {
    expect(await lists.list(port, order)).toMatchObject({ objects: 30 });
    expect(await lists.list(port, { ...order, limit: 7 })).toMatchObject({ objects: 30 });
    expect(await lists.list(port, { ...order, labelSelector: HALF, step: 2 })).toMatchObject({ objects: 15 });
  }
  await expect(lists.list(port, { ...order, pods: 31 })).rejects.toThrow('there are 31');
  lists.end();
});

test.each(SERVERS.slice(1))('%s: what is written is answered, and watchers are told', async (_, start) => {
  const running = await start();
  const written = counted(running);
  const port = await listening(running);
  const watchers = new Watchers();
  const path = `${THINGS_PATH}?watch=true&resourceVersion=${await running.version()}`;
  await watchers.join(port, [{ path, watchers: 2 }]);
  const writers = new Writers();
  await writers.write(port, { path: THINGS_PATH, connections: 4, from: THINGS, count: 50, thingBytes: 1_000 });
  await written();
  writers.end();
  // Nothing is known of the number of bytes here, as connections of writers have some of them.
  await expect(
    watchers.expect({ from: THINGS, step: 1, count: 51, inOrder: false, thingBytes: 1_000, bytes: 1 }),
  ).rejects.toThrow(/were sent/);
  watchers.leave();
});

describe('the load detects', () => {
  const event = (number: number): object => ({ type: 'MODIFIED', object: thingOf(number, 1_000) });

  test('an event that is lost, comes twice, is another or has another type', () => {
    checkEvents([event(1), event(2)], [1, 2], 1_000);
    expect(() => checkEvents([event(1)], [1, 2], 1_000)).toThrow('1 events instead of 2');
    expect(() => checkEvents([event(1), event(1)], [1, 2], 1_000)).toThrow('event 2 is wrong');
    expect(() => checkEvents([event(2), event(1)], [1, 2], 1_000)).toThrow('event 1 is wrong');
    expect(faultOf({ ...event(1), type: 'ADDED' }, 1, 1_000)).toContain('event 1 is wrong');
    expect(faultOf(event(1), 1, 2_000)).toContain('event 1 is wrong');
  });

  test('a Pod that is missing, or another one', () => {
    const page = (numbers: readonly number[]): Buffer => {
      const items = numbers.map(podOf).map((pod) => ({ ...pod, metadata: { ...pod.metadata, resourceVersion: '7' } }));
      return Buffer.from(JSON.stringify({ kind: 'PodList', items }));
    };
    checkPods([page([0, 1]), page([2])], { pods: 3, step: 1 });
    checkPods([page([0, 2])], { pods: 4, step: 2 });
    expect(() => checkPods([page([0, 1])], { pods: 3, step: 1 })).toThrow('there are 3');
    expect(() => checkPods([page([0, 1, 2])], { pods: 2, step: 1 })).toThrow('there are 2');
    expect(() => checkPods([page([1, 0])], { pods: 2, step: 1 })).toThrow('Pod 0 is wrong');
  });
});

test('objects have the size that is asked for, and a selector selects one', () => {
  for (const bytes of [1_000, 10_000]) {
    const length = JSON.stringify(thingOf(12_345, bytes)).length;
    expect(length).toBeGreaterThan(bytes * 0.75);
    expect(length).toBeLessThan(bytes);
  }
  expect(Math.round(JSON.stringify(podOf(1)).length / 1_000)).toBe(14);
  expect(numbersOf({ from: 3, count: 3, step: 2 }, undefined)).toEqual([3, 5, 7]);
  expect(numbersOf({ from: THINGS, count: 2 * THINGS, step: 1 }, 4)).toEqual([THINGS + 4, 2 * THINGS + 4]);
});
