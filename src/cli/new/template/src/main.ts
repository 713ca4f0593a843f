import { loadCluster } from 'watchmux/kubernetes';
import { Operator } from 'watchmux/operator';
import { samples } from './sample.ts';

const cluster = await loadCluster();
const operator = new Operator({
  cluster,
  name: 'sample-operator',
  leaderElection: { namespace: cluster.namespace },
  listen: { host: '0.0.0.0', port: Number(process.env.PORT ?? 8080) },
});
operator.controller(samples);
await operator.run();
