// An operator on an API server in the same process, for test/e2e/operator-runtimes.test.ts: what it makes, its events, its health and metrics, and
// that SIGTERM ends it. Prints a line for each.
import { ApiServer, BUILT_IN_KINDS } from 'watchmux/apiserver';
import { kind, Operator, setCondition } from 'watchmux/operator';
import { MemoryStorage } from 'watchmux/storage';

const SITES = kind({ group: 'example.com', version: 'v1', plural: 'sites', kind: 'Site', namespaced: true });
const CONFIG_MAPS = kind('configmaps/v1');
const storage = new MemoryStorage();
const cluster = new ApiServer({ storage, resources: [{ ...SITES, status: true }, ...BUILT_IN_KINDS] });

const log = { debug() {}, info() {}, warn: console.log, error: console.log };
const operator = new Operator({ cluster, name: 'sites', leaderElection: true, listen: { port: 0, host: '127.0.0.1' }, log });
operator.controller({
  for: SITES,
  owns: [CONFIG_MAPS],
  finalizer: { name: 'example.com/files', finalize: ({ name }) => console.log('finalized', name) },
  async reconcile({ object, apply, updateStatus, events }) {
    if (!object) return;
    await apply(CONFIG_MAPS, { data: { text: object.spec.text } });
    await updateStatus((site) => setCondition(site, { type: 'Ready', status: 'True', reason: 'Applied' }));
    events.normal('Applied', object.spec.text);
  },
});
/** Looks until there is something to see. */
async function seen(look) {
  for (;;) {
    const found = await look().catch(() => undefined);
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const ran = operator.run();

const sites = cluster.resource(SITES).in('default');
await sites.create({ metadata: { name: 'home' }, spec: { text: 'hello' } });
console.log('says', await seen(async () => (await sites.get('home')).status.conditions[0].reason));
console.log('made', (await cluster.resource(CONFIG_MAPS).get('default/home')).data.text);
console.log('told', await seen(async () => (await cluster.resource('events/v1').list()).items[0].reason));
const page = async (path) => (await operator.fetch(new Request(`http://localhost${path}`))).text();
console.log('ready', await page('/readyz'));
console.log(
  'counts',
  /^controller_runtime_reconcile_total\{controller="sites",result="success"\} [1-9]/m.test(await page('/metrics')),
);
await sites.delete('home');
await seen(async () => (await sites.list()).items.length === 0);
console.log('waits');
await ran;
await cluster.shutdown();
await storage.close();
console.log('ended');
