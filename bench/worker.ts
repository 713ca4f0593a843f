// The process of one contender, for one shape of one workload. It answers requests over IPC.
import { setMaxListeners } from 'node:events';
import { LeftOut, type Prepared, type Settings, type Shape } from './workload.ts';
import { workloadOf } from './workloads.ts';

export type Order =
  | {
      readonly do: 'prepare';
      readonly workload: string;
      readonly contender: string;
      readonly shape: Shape;
      readonly settings: Settings;
    }
  | { readonly do: 'round' };

export type Reply =
  | { readonly is: 'ready' }
  | { readonly is: 'values'; readonly values: readonly number[] }
  | { readonly is: 'left out'; readonly why: string }
  | { readonly is: 'failed'; readonly why: string };

setMaxListeners(0); // thousands of listeners are intended

let prepared: Prepared | undefined;

async function obey(order: Order): Promise<Reply> {
  if (order.do === 'prepare') {
    prepared = await workloadOf(order.workload).prepare(order.contender, order.shape, order.settings);
    return { is: 'ready' };
  }
  if (prepared === undefined) return { is: 'failed', why: 'a round before it is prepared' };
  return { is: 'values', values: await prepared.round() };
}

process.on('message', (order: Order) => {
  obey(order)
    .catch((error): Reply => {
      if (error instanceof LeftOut) return { is: 'left out', why: error.message };
      return { is: 'failed', why: String(error?.stack ?? error) };
    })
    .then((reply) => process.send?.(reply));
});

process.on('disconnect', async () => {
  await prepared?.end?.();
  process.exit();
});
