import { loadCluster } from 'watchmux/kubernetes';
import { Operator } from 'watchmux/operator';
import { samples } from './sample.ts';

const operator = new Operator({
  cluster: await loadCluster(),
  name: 'sample-operator',
  leaderElection: true,
  listen: { port: Number(process.env.PORT ?? 8080) }, // /healthz, /readyz, /metrics
});
await operator.controller(samples).run();
