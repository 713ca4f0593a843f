// website.ts as a program: URL NAMESPACE REGISTRY [IDENTITY]. It ends with its input, as the test does.
import { loadCluster } from 'watchmux/kubernetes';
import { Operator } from 'watchmux/operator';
import { websiteController } from './website.ts';

const [server = '', namespace = '', registry = '', identity] = process.argv.slice(2);
const ended = new AbortController();
process.stdin.on('end', () => ended.abort()).resume();
process.once('SIGTERM', () => ended.abort());

const cluster = await loadCluster({ server });
const leaderElection = identity ? { identity, leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryMs: 400 } : false;
await new Operator({ cluster, name: 'website', namespace, leaderElection })
  .controller(websiteController(registry))
  .run(ended.signal);
process.exit();
