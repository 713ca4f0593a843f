// The clients, in a process of their own: watchers, readers of lists, and writers.
import { type Listed, type ListOrder, Lists } from './lists.ts';
import { type Audience, type Changes, Watchers } from './watchers.ts';
import { type WriteOrder, Writers } from './writers.ts';

export type Order =
  | { readonly do: 'join'; readonly port: number; readonly audiences: readonly Audience[] }
  | ({ readonly do: 'expect' } & Changes)
  | ({ readonly do: 'list' | 'begin'; readonly port: number } & ListOrder)
  | ({ readonly do: 'write'; readonly port: number } & WriteOrder)
  | { readonly do: 'stall'; readonly port: number; readonly path: string }
  | { readonly do: 'arrivals' }
  | { readonly do: 'leave' };

export interface Reply {
  readonly error?: string;
  readonly listed?: Listed;
  readonly arrivals?: readonly (readonly number[])[];
}

const watchers = new Watchers();
const lists = new Lists();
const writers = new Writers();

async function obey(order: Order): Promise<Reply> {
  if (order.do === 'join') await watchers.join(order.port, order.audiences);
  else if (order.do === 'expect') await watchers.expect(order);
  else if (order.do === 'list') return { listed: await lists.list(order.port, order) };
  else if (order.do === 'begin') await lists.begin(order.port, order);
  else if (order.do === 'stall') await watchers.stall(order.port, order.path);
  else if (order.do === 'arrivals') return { arrivals: watchers.arrivals() };
  else if (order.do === 'write') await writers.write(order.port, order);
  else {
    watchers.leave();
    lists.end();
    writers.end();
  }
  return {};
}

// The main process has gone. Exit, so that an aborted run leaves nothing behind.
process.on('disconnect', () => process.exit());
process.on('message', (order: Order) => {
  obey(order)
    .catch((error): Reply => ({ error: String(error?.stack ?? error) }))
    .then((reply) => process.send?.(reply));
});
