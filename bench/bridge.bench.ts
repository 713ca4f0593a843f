import { setTimeout } from 'node:timers/promises';
import { type BridgeContender, CONTENDERS, type Transport } from './bridge/contenders.ts';
import { IN_ROOMS } from './bridge/rooms.ts';
import { Stage, type Took } from './bridge/stage.ts';
import { heapBytes } from './heap.ts';
import { numberOf, type Prepared, type Settings, type Shape, type Wanted, type Workload } from './workload.ts';

const PLAIN = 'ws.send loop';
/** Sockets and two processes are noisier than calls, so a turn takes this many times as long as elsewhere. */
const LONGER = 2;
/** Most of the time is spent in the kernel, so code is called less often, and warming up takes longer. */
const WARM_LONGER = 4;

function contendersOf({ transport, rooms }: Shape): readonly BridgeContender[] {
  return rooms === undefined ? CONTENDERS[transport as Transport] : IN_ROOMS;
}

function contenderOf(name: string, shape: Shape): BridgeContender {
  const found = contendersOf(shape).find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no contender "${name}" over ${shape.transport}`);
  return found;
}

function shapesOf({ watchers, burst, quick }: Wanted): Shape[] {
  const traffic = (['websocket', 'sse', 'http'] as const).flatMap((transport) =>
    (watchers ?? [quick ? 200 : 500]).flatMap((clients) =>
      (burst ?? [16, 1]).flatMap((each) => [270, 10_000].map((eventBytes) => ({ transport, clients, burst: each, eventBytes }))),
    ),
  );
  // ws compresses for each client, so that a burst to 500 of them takes it seconds.
  const compressed = { transport: 'permessage-deflate', clients: quick ? 20 : 100, burst: 16, eventBytes: 10_000 };
  const inRooms = (burst ?? [16, 1]).map((each) => ({
    transport: 'websocket',
    clients: 1_000,
    rooms: 100,
    burst: each,
    eventBytes: 270,
  }));
  return [...traffic, compressed, ...inRooms, { transport: 'websocket', clients: 500, are: 'idle' }];
}

async function prepareTraffic(contender: BridgeContender, shape: Shape, { warmMs, roundMs }: Settings): Promise<Prepared> {
  const [clients, burst, eventBytes] = [numberOf(shape, 'clients'), numberOf(shape, 'burst'), numberOf(shape, 'eventBytes')];
  const rooms = shape.rooms === undefined ? undefined : numberOf(shape, 'rooms');
  const stage = await Stage.open(contender);
  await stage.join(clients, rooms);
  const run = (bursts: number): Promise<Took> => stage.run({ bursts, burst, eventBytes, rooms });
  let took: Took = await run(1);
  let bursts = 1;
  for (let spent = took.cpuMs; spent < warmMs * WARM_LONGER; spent += took.cpuMs) {
    // At most twice as long as the last one, and no longer than a round.
    bursts = Math.max(1, Math.min(bursts * 2, Math.round((bursts * roundMs * LONGER) / took.cpuMs)));
    took = await run(bursts);
  }
  return {
    async round() {
      const { wallMs, cpuMs } = await run(bursts);
      const thousands = (clients * bursts * burst) / 1_000;
      return [(thousands * 1_000) / cpuMs, (thousands * 1_000) / wallMs];
    },
    end: () => stage.end(),
  };
}

/** Returns the server memory per idle client. */
async function idleBytes(contender: BridgeContender, clients: number): Promise<number> {
  const stage = await Stage.open(contender);
  const read = async (): Promise<number> => {
    await setTimeout(50);
    return heapBytes();
  };
  const before = await read();
  await stage.join(clients);
  const bytes = (await read()) - before;
  await stage.leave();
  stage.end();
  return bytes / clients;
}

async function prepareMemory(contender: BridgeContender, shape: Shape): Promise<Prepared> {
  const clients = numberOf(shape, 'clients');
  const plain = contenderOf(PLAIN, shape);
  // The first clients load code and create object shapes, which stay.
  await idleBytes(contender, clients);
  await idleBytes(plain, clients);
  return {
    async round() {
      const each = await idleBytes(contender, clients);
      return [each, each - (await idleBytes(plain, clients))];
    },
  };
}

/** Bytes and sockets: events to many clients, from one process to another, and the cost of an idle client. */
export const bridge: Workload = {
  name: 'bridge',
  about: 'events to 500 clients over WebSocket, SSE and an HTTP stream; memory of idle ones',
  reference: 'socket.write',
  shapes: shapesOf,
  figures: ({ are }) =>
    are === 'idle'
      ? [
          { shape: { of: 'each' }, unit: 'bytes', better: 'lower' },
          { shape: { of: 'beyond ws' }, unit: 'bytes', better: 'lower' },
        ]
      : [
          { shape: { of: 'processor time' }, unit: 'thousand events/s of the server', better: 'higher' },
          { shape: { of: 'clock' }, unit: 'thousand events/s', better: 'higher' },
        ],
  entries: (shape) => contendersOf(shape).filter(({ name }) => shape.are !== 'idle' || name !== 'socket.write'),
  prepare(contender, shape, settings) {
    const found = contenderOf(contender, shape);
    return shape.are === 'idle' ? prepareMemory(found, shape) : prepareTraffic(found, shape, settings);
  },
};
