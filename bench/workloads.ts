import { UsageError } from './arguments.ts';
import { backlog } from './backlog.bench.ts';
import { bridge } from './bridge.bench.ts';
import { churn } from './churn.bench.ts';
import { decode } from './decode.bench.ts';
import { definitions } from './definitions.bench.ts';
import { etcd } from './etcd.bench.ts';
import { fanout } from './fanout.bench.ts';
import { filters } from './filters.bench.ts';
import { laggards } from './laggards.bench.ts';
import { latency } from './latency.bench.ts';
import { memory } from './memory.bench.ts';
import { peers } from './peers.bench.ts';
import { queue } from './queue.bench.ts';
import { replicas } from './replicas.bench.ts';
import { server } from './server.bench.ts';
import { stack } from './stack.bench.ts';
import { stalled } from './stalled.bench.ts';
import { storm } from './storm.bench.ts';
import { topics } from './topics.bench.ts';
import type { Workload } from './workload.ts';

export const WORKLOADS: readonly Workload[] = [
  fanout,
  latency,
  stalled,
  backlog,
  laggards,
  memory,
  churn,
  decode,
  filters,
  topics,
  bridge,
  queue,
  stack,
  server,
  peers,
  etcd,
  definitions,
  storm,
  replicas,
];

export function workloadOf(name: string): Workload {
  const found = WORKLOADS.find((each) => each.name === name);
  if (found === undefined) {
    const names = WORKLOADS.map((each) => each.name).join(', ');
    throw new UsageError(`there is no workload "${name}"; there are ${names}`);
  }
  return found;
}
