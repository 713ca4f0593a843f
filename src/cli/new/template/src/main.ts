import { loadCluster } from 'watchmux/kubernetes';
import { Operator } from 'watchmux/operator';
import { samples } from './sample.ts';

const operator = new Operator({
  cluster: await loadCluster(),
  name: 'sample-operator',
  leaderElection: true,
  listen: { host: '0.0.0.0', port: Number(process.env.PORT ?? 8080) },
});
await operator.controller(samples).run();
