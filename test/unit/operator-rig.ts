import { ApiServer, CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject, ListWatchOptions } from '../../src/cache/index.ts';
import {
  kind,
  type Log,
  Operator,
  type OperatorControllerOptions,
  type OperatorFailure,
  type OperatorOptions,
  type ResourceSource,
} from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { ORDERS, type Order } from './apiserver-rig.ts';
import { fate, macrotask } from './support.ts';

export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

export const ORDER = kind<Order>('orders.example.com/v1');
export const CONFIG_MAP = kind<ConfigMap>('configmaps');

/** Lets everything happen that needs no time. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await macrotask();
}

/** A server in this process with orders and config maps, a clock, and operators on it. */
export function world() {
  const clock = new FakeClock();
  const server = new ApiServer({
    storage: new MemoryStorage(),
    resources: [ORDERS, CONFIG_MAPS, NAMESPACES, LEASES, ...EVENTS] as ResourceDefinition[],
    clock: new FakeClock(),
  });
  /** The watches that were opened, by plural. */
  const watches: string[] = [];
  const watched = <O extends { type: { plural: string }; watch(options?: ListWatchOptions): unknown }>(resource: O): O => {
    const watch = resource.watch.bind(resource);
    return Object.assign(resource, {
      watch: (options?: ListWatchOptions) => {
        watches.push(resource.type.plural);
        return watch(options);
      },
    });
  };
  const cluster: ResourceSource = {
    resource: (type) => watched(server.resource(type)) as never,
    kind: async (type, options) => watched(await server.kind(type, options)) as never,
  };
  const told: string[] = [];
  const lines: string[] = [];
  const log = Object.fromEntries(
    ['debug', 'info', 'warn', 'error'].map((level) => [level, (text: string) => void lines.push(`${level}: ${text}`)]),
  ) as unknown as Log;
  const onError = (error: unknown, { during, controller, key, attempt, dropped, kind: of }: OperatorFailure): void => {
    const more = [controller, key, attempt, dropped && 'dropped', of].filter(Boolean).join(' ');
    told.push(`${during} ${more}: ${(error as Error).message}`.replace(' : ', ': '));
  };
  const operator = (options: Partial<OperatorOptions> = {}): Operator =>
    new Operator({ cluster, name: 'shop', clock, log, onError, ...options });
  /** Runs an operator with one controller, of orders if nothing else is said. */
  const start = async (
    controller: Partial<OperatorControllerOptions<Order>> = {},
    options: Partial<OperatorOptions> = {},
  ): Promise<Started> =>
    started(operator(options).controller<Order>({ for: ORDER, reconcile: () => {}, ...controller } as never));
  return {
    ...{ clock, server, cluster, watches, told, lines, log, operator, start },
    orders: server.resource<Order>('orders.example.com/v1').in('default'),
    maps: server.resource<ConfigMap>('configmaps').in('default'),
  };
}

export interface Started {
  readonly operator: Operator;
  readonly stopper: AbortController;
  readonly run: ReturnType<typeof fate<void>>;
  /** Stops it, and returns what became of the run. */
  readonly stop: () => Promise<ReturnType<typeof fate<void>>>;
}

export async function started(operator: Operator): Promise<Started> {
  const stopper = new AbortController();
  const run = fate(operator.run(stopper.signal));
  await settle();
  const stop = async (): Promise<typeof run> => {
    stopper.abort();
    await settle();
    return run;
  };
  return { operator, stopper, run, stop };
}

export const order = (name: string, more: object = {}): Order => ({ metadata: { name }, spec: { item: 'tea' }, ...more });
