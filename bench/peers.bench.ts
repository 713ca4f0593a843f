import type { Writing } from './peers/load.ts';
import { CHANGING, LISTED, UNWATCHED, WATCHED } from './peers/objects.ts';
import { Clients, KUBERNETES, kubernetes, OURS, ours, type Peer } from './peers/stage.ts';
import { type Entry, numberOf, type Prepared, type Shape, type Workload } from './workload.ts';

/** Enough for hundredths of a second, in which Linux counts the time of another process. */
const BURSTS = 20;
const OBJECT_BYTES = 1_000;
const LISTS = 3;

type Kind = 'watch' | 'list' | 'write';

const WRITINGS: readonly Writing[] = ['apply', 'PUT', 'POST'];

async function opened(contender: string): Promise<{ peer: Peer; clients: Clients; end: () => Promise<void> }> {
  const peer = contender === OURS.name ? await ours() : await kubernetes();
  const clients = new Clients();
  const end = async (): Promise<void> => {
    clients.end();
    await peer.end();
  };
  await clients.ask({ do: 'connect', ...peer.access });
  return { peer, clients, end };
}

/** Bursts that watchers are told of, and the same bursts where nobody watches: the difference is what deliveries cost. */
async function prepareWatch(contender: string, shape: Shape): Promise<Prepared> {
  const [watchers, burst] = [numberOf(shape, 'watchers'), numberOf(shape, 'burst')];
  const { peer, clients, end } = await opened(contender);
  for (const namespace of [WATCHED, UNWATCHED]) {
    await clients.ask({ do: 'fill', namespace, from: 0, count: CHANGING, bytes: OBJECT_BYTES });
  }
  await clients.ask({ do: 'join', watchers });
  let from = CHANGING;
  const bursts = burst === 1 ? BURSTS * 2 : BURSTS;
  const cpu = async (namespace: string): Promise<number> => {
    const before = peer.cpuMs();
    await clients.ask({ do: 'burst', namespace, from, bursts, burst, bytes: OBJECT_BYTES });
    return peer.cpuMs() - before;
  };
  const round = async (): Promise<readonly number[]> => {
    const [watched, unwatched] = [await cpu(WATCHED), await cpu(UNWATCHED)];
    from += bursts * burst;
    const deliveries = bursts * burst * watchers;
    return [deliveries / Math.max(watched - unwatched, 1), deliveries / watched];
  };
  for (let i = 0; i < 2; i++) await round();
  return { round, end };
}

async function prepareList(contender: string, shape: Shape): Promise<Prepared> {
  const { peer, clients, end } = await opened(contender);
  // In parts, as there is a limit for how long the load may be silent.
  for (let from = 0, count = numberOf(shape, 'objects'); from < count; from += 1_000) {
    await clients.ask({ do: 'fill', namespace: LISTED, from, count: Math.min(1_000, count - from), bytes: 0 });
  }
  const round = async (): Promise<readonly number[]> => {
    const before = peer.cpuMs();
    let [objects, firstByteMs] = [0, 0];
    for (let i = 0; i < LISTS; i++) {
      const listed = await clients.ask({ do: 'list' });
      objects += listed.objects ?? Number.NaN;
      firstByteMs = Math.max(firstByteMs, listed.firstByteMs ?? Number.NaN);
    }
    return [objects / (peer.cpuMs() - before), firstByteMs];
  };
  for (let i = 0; i < 2; i++) await round();
  return { round, end };
}

/** Objects of 10 KB of a kind with a schema: applied, replaced and created. */
async function prepareWrite(contender: string, shape: Shape): Promise<Prepared> {
  const { peer, clients, end } = await opened(contender);
  await clients.ask({ do: 'define' });
  const count = numberOf(shape, 'writes');
  let from = 0;
  const round = async (): Promise<readonly number[]> => {
    const figures: number[] = [];
    for (const how of WRITINGS) {
      const before = peer.cpuMs();
      await clients.ask({ do: 'write', how, from, count });
      figures.push((count / (peer.cpuMs() - before)) * 1_000);
    }
    from += count;
    return figures;
  };
  // Node compiles what is run often, and has done so after some thousand writes; the other one is compiled.
  for (let i = 0; i < (contender === OURS.name ? 8 : 1); i++) await round();
  return { round, end };
}

const PREPARE: Readonly<Record<Kind, typeof prepareList>> = { watch: prepareWatch, list: prepareList, write: prepareWrite };

const ENTRIES: readonly Entry[] = [OURS, KUBERNETES];

/** An API server beside the real one: the same requests by the same clients, over TLS, on the same machine. */
export const peers: Workload = {
  name: 'peers',
  about: 'an API server beside the real kube-apiserver, both over TLS: watches, lists of 10,000 ConfigMaps, and writes of 10 KB',
  reference: KUBERNETES.name,
  shapes: ({ quick, watchers, burst }) => [
    ...(watchers ?? [quick ? 50 : 500]).flatMap((each) =>
      (burst ?? [16, 1]).map((size) => ({ what: 'watch', watchers: each, burst: size })),
    ),
    { what: 'list', objects: quick ? 500 : 10_000 },
    { what: 'write', writes: quick ? 40 : 500 },
  ],
  figures: ({ what }) =>
    (what as Kind) === 'watch'
      ? [
          { shape: { of: 'deliveries' }, unit: 'thousand/s of processor time, without what the writes cost', better: 'higher' },
          { shape: { of: 'all' }, unit: 'thousand/s of processor time', better: 'higher' },
        ]
      : (what as Kind) === 'write'
        ? WRITINGS.map((of) => ({ shape: { of }, unit: 'writes/s of processor time of the server', better: 'higher' as const }))
        : [
            { shape: { of: 'processor time' }, unit: 'objects/ms of the server', better: 'higher' },
            { shape: { of: 'first byte' }, unit: 'ms', better: 'lower' },
          ],
  entries: () => ENTRIES,
  prepare: (contender, shape) => PREPARE[shape.what as Kind](contender, shape),
};
