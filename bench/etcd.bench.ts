import { EtcdStorage } from '../src/storage/etcd/index.ts';
import { writeGuarded } from '../src/storage/etcd/wire/messages.ts';
import { builtBinary } from '../test/peers/binary.mjs';
import { type EtcdServer, startEtcd } from '../test/peers/etcd-server.ts';
import { RawCalls } from './etcd/raw.ts';
import { overStorage, type Running, THINGS_PATH } from './server/contenders.ts';
import { type Thing, thingOf } from './server/objects.ts';
import { Stage, type Took, timed } from './server/stage.ts';
import { warmingUp } from './warm.ts';
import { type Entry, LeftOut, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

const RAW: Entry = { name: 'HTTP/2, ready bytes', queue: 'none' };
const STORAGE: Entry = { name: 'EtcdStorage', queue: 'none' };
const SERVER: Entry = { name: 'watchmux, HTTP and cache', queue: 'bounded' };

const ROUND_WRITES = 1_000;
const WARM_LONGER = 4;

/** Does so many things, a fixed number of them at a time. */
async function inFlight(count: number, atOnce: number, act: (number: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let number = next++; number < count; number = next++) await act(number);
    }),
  );
}

interface Writer {
  write(from: number): Promise<Took>;
  end(): Promise<void> | void;
}

function raw(etcd: EtcdServer, atOnce: number, bytes: number): Writer {
  const calls = new RawCalls(etcd.url);
  const encoder = new TextEncoder();
  return {
    write(from) {
      const messages = Array.from({ length: ROUND_WRITES }, (_, i) => {
        const value = encoder.encode(JSON.stringify(thingOf(from + i, bytes)));
        const key = encoder.encode(`/watchmux/raw/default/thing-${from + i}`);
        return writeGuarded({ key, expected: 0n, put: { value, lease: 0n } });
      });
      return timed(() => inFlight(ROUND_WRITES, atOnce, (number) => calls.send(messages[number] as Uint8Array)));
    },
    end: () => calls.end(),
  };
}

function direct(etcd: EtcdServer, atOnce: number, bytes: number): Writer {
  const storage = new EtcdStorage<Thing>({ endpoints: [etcd.url] });
  const scope = storage.scope<Thing>('things/');
  return {
    write(from) {
      const things = Array.from({ length: ROUND_WRITES }, (_, i) => thingOf(from + i, bytes));
      return timed(() =>
        inFlight(ROUND_WRITES, atOnce, (number) => scope.create(`default/thing-${from + number}`, things[number] as Thing)),
      );
    },
    end: () => storage.close(),
  };
}

async function served(etcd: EtcdServer, atOnce: number, bytes: number): Promise<Writer> {
  const storage = new EtcdStorage({ endpoints: [etcd.url] });
  const running: Running = await overStorage(storage, { thingBytes: bytes, pods: 0 });
  const stage = await Stage.open(running);
  return {
    write: () => stage.write({ path: THINGS_PATH, connections: atOnce, count: ROUND_WRITES, thingBytes: bytes, watched: false }),
    end() {
      stage.end();
      return storage.close();
    },
  };
}

async function prepare(contender: string, shape: Shape, { warmMs }: Settings): Promise<Prepared> {
  if (builtBinary() === undefined) throw new LeftOut('there is no etcd: node test/peers/build.mjs');
  const [atOnce, bytes] = [numberOf(shape, 'writers'), numberOf(shape, 'objectBytes')];
  const etcd = await startEtcd();
  const open = contender === RAW.name ? raw : contender === STORAGE.name ? direct : served;
  const writer = await open(etcd, atOnce, bytes);
  let from = 0;
  const run = (): Promise<Took> => {
    from += ROUND_WRITES;
    return writer.write(from);
  };
  const isCold = warmingUp(warmMs * WARM_LONGER);
  while (isCold()) await run();
  return {
    async round() {
      const { wallMs, cpuMs } = await run();
      return [ROUND_WRITES / cpuMs, ROUND_WRITES / wallMs];
    },
    async end() {
      await writer.end();
      await etcd.stop();
    },
  };
}

/** Writes to a real etcd. */
export const etcd: Workload = {
  name: 'etcd',
  about: 'writes to a real etcd: through EtcdStorage, and through an API server and its cache, against the transport alone',
  reference: RAW.name,
  shapes: () => [{ what: 'writes', writers: 64, objectBytes: 1_000 }],
  figures: () => [
    { shape: { of: 'processor time' }, unit: 'thousand writes/s of the client', better: 'higher' },
    { shape: { of: 'clock' }, unit: 'thousand writes/s', better: 'higher' },
  ],
  entries: () => [RAW, STORAGE, SERVER],
  prepare,
};
