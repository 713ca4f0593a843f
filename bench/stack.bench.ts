import { prepareByIndex, STORE_SIZES } from './stack/by-index.ts';
import { CLIENT_GO } from './stack/client-go.ts';
import { prepareRelist } from './stack/relist.ts';
import { Stage } from './stack/stage.ts';
import { prepareStalledHandler } from './stack/stalled-handler.ts';
import { type Entry, type Figure, numberOf, type Prepared, type Shape, type Workload } from './workload.ts';

const WATCHMUX: Entry = { name: 'watchmux', queue: 'bounded' };
const WATCHMUX_PAGED: Entry = { name: 'watchmux, paged list', queue: 'bounded' };
const WATCHMUX_KUBECONFIG: Entry = { name: 'watchmux, kubeconfig', queue: 'bounded' };
const CLIENT_NODE: Entry = { name: 'client-node', queue: 'none' };
const CLIENT_NODE_PLAIN: Entry = { name: 'client-node, plain list', queue: 'none' };

/** A fresh process for each round: nobody syncs twice, and the peak of its memory is that of one list. */
async function prepareSync(contender: string, shape: Shape): Promise<Prepared> {
  const stage = await Stage.open(numberOf(shape, 'objects'));
  const sync = async (): Promise<readonly number[]> => {
    const { client, step } = await stage.sync(contender);
    await client.end();
    return [step.size / step.wallMs, step.size / step.cpuMs, step.peakMB];
  };
  await sync(); // the server makes its bytes
  return { round: sync, end: () => stage.end() };
}

async function prepareUpdates(contender: string, shape: Shape): Promise<Prepared> {
  const updates = numberOf(shape, 'updates');
  const stage = await Stage.open(numberOf(shape, 'objects'));
  const { client } = await stage.sync(contender);
  const run = async (): Promise<readonly number[]> => {
    const { cpuMs, wallMs } = await stage.update(client, updates);
    return [updates / cpuMs, updates / wallMs];
  };
  await run();
  return {
    round: run,
    async end() {
      await client.end();
      stage.end();
    },
  };
}

type Kind = 'initial sync' | 'updates' | 'relist' | 'byIndex' | 'stalled handler';

const FIGURES: Readonly<Record<Kind, readonly Figure[]>> = {
  'initial sync': [
    { shape: { of: 'clock' }, unit: 'objects/ms', better: 'higher' },
    { shape: { of: 'processor time' }, unit: 'objects/ms', better: 'higher' },
    { shape: { of: 'peak memory' }, unit: 'MB', better: 'lower' },
  ],
  updates: [
    { shape: { of: 'processor time' }, unit: 'thousand updates/s', better: 'higher' },
    { shape: { of: 'clock' }, unit: 'thousand updates/s', better: 'higher' },
  ],
  relist: [
    { shape: { of: 'list' }, unit: 'bytes per byte of the list', better: 'lower' },
    { shape: { of: 'sum' }, unit: 'MB', better: 'lower' },
  ],
  byIndex: STORE_SIZES.map((size) => ({ shape: { store: size }, unit: 'ns per object', better: 'lower' })),
  'stalled handler': [{ shape: { of: 'queue' }, unit: 'changes that wait', better: 'lower' }],
};

const ENTRIES: Readonly<Record<Kind, readonly Entry[]>> = {
  'initial sync': [WATCHMUX, WATCHMUX_PAGED, WATCHMUX_KUBECONFIG, CLIENT_NODE, CLIENT_NODE_PLAIN, CLIENT_GO],
  updates: [WATCHMUX, WATCHMUX_PAGED, WATCHMUX_KUBECONFIG, CLIENT_NODE, CLIENT_NODE_PLAIN, CLIENT_GO],
  relist: [WATCHMUX, WATCHMUX_PAGED],
  byIndex: [WATCHMUX],
  'stalled handler': [WATCHMUX],
};

const PREPARE: Readonly<Record<Kind, Workload['prepare']>> = {
  'initial sync': prepareSync,
  updates: prepareUpdates,
  relist: (contender, shape) => prepareRelist(numberOf(shape, 'objects'), { streamingList: contender === WATCHMUX.name }),
  byIndex: async (_contender, _shape, settings) => prepareByIndex(settings),
  'stalled handler': async (_contender, shape) =>
    prepareStalledHandler({ objects: numberOf(shape, 'objects'), updates: numberOf(shape, 'updates') }),
};

/** Live copies of a collection of Pods: the initial list, changes, a list again, an index, and a handler that stalls. */
export const stack: Workload = {
  name: 'stack',
  about: 'informers of 10,000 Pods: initial list, updates, relist; indexes; a stalled handler',
  reference: CLIENT_NODE.name,
  mostRounds: 3,
  shapes: ({ quick }) => {
    const objects = quick ? 1_000 : 10_000;
    return [
      { what: 'initial sync', objects },
      { what: 'updates', objects, updates: quick ? 1_000 : 20_000 },
      { what: 'relist', objects },
      { what: 'byIndex' },
      { what: 'stalled handler', objects: 1_000, updates: quick ? 10_000 : 100_000 },
    ];
  },
  figures: ({ what }) => FIGURES[what as Kind],
  entries: ({ what }) => ENTRIES[what as Kind],
  prepare: (contender, shape, settings) => PREPARE[shape.what as Kind](contender, shape, settings),
};
