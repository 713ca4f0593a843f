// kubernetes-fluent-client: node fluent.mjs FOLDER URL. It prints what came of each step of clients.test.ts.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const [folder, server] = process.argv.slice(2);
// It takes no other configuration than a file, and no HTTP unless it need not verify TLS.
const home = mkdtempSync(join(tmpdir(), 'watchmux-fluent-'));
process.on('exit', () => rmSync(home, { recursive: true, force: true }));
process.env.KUBECONFIG = join(home, 'config');
writeFileSync(
  process.env.KUBECONFIG,
  JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'here' },
    clusters: [{ name: 'here', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'here', user: {} }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'here' } }],
  }),
);
const index = join(folder, 'node_modules', 'kubernetes-fluent-client', 'dist', 'index.js');
const { K8s, GenericKind, RegisterKind } = await import(pathToFileURL(index).href);

class Order extends GenericKind {}
RegisterKind(Order, { group: 'example.com', version: 'v1', kind: 'Order', plural: 'orders' });

const lines = createInterface(process.stdin)[Symbol.asyncIterator]();
const say = (line) => console.log(JSON.stringify(line));
const orders = () => K8s(Order).InNamespace('default');
const order = (name, item) => ({ metadata: { name, namespace: 'default' }, spec: { item } });
const until = async (condition) => {
  while (!(await condition())) await sleep(50);
};

/** Starts a watch, and returns the set of what it has seen, as `name=item`. */
async function watching() {
  const seen = new Set();
  await orders()
    .Watch(({ metadata, spec }) => seen.add(`${metadata.name}=${spec.item}`), {
      resyncDelaySec: 1,
      lastSeenLimitSeconds: 2,
      relistIntervalSec: 1,
    })
    .start();
  return seen;
}

const STEPS = {
  async create() {
    const made = [];
    for (const name of ['a', 'b', 'c']) made.push(await K8s(Order).Create(order(name, 'tea')));
    assert.equal(made[0].spec.count, 1);
  },
  async list() {
    assert.deepEqual(
      (await orders().Get()).items.map(({ metadata }) => metadata.name),
      ['a', 'b', 'c'],
    );
  },
  async patch() {
    const patched = await K8s(Order, { name: 'a', namespace: 'default' }).Patch([
      { op: 'replace', path: '/spec/count', value: 4 },
    ]);
    assert.equal(patched.spec.count, 4);
  },
  async apply() {
    const applied = await K8s(Order).Apply(order('d', 'milk'));
    assert.equal(applied.metadata.managedFields[0].operation, 'Apply');
    assert.equal((await K8s(Order).Apply(order('d', 'cream'), { force: true })).spec.item, 'cream');
  },
  async status() {
    await K8s(Order).PatchStatus({ ...order('a'), spec: { count: 9 }, status: { phase: 'done' } });
    const { spec, status } = await orders().Get('a');
    assert.deepEqual([status.phase, spec.count], ['done', 4]);
  },
  async delete() {
    await orders().Delete('b');
    assert.ok(!(await orders().Get()).items.some(({ metadata }) => metadata.name === 'b'));
  },
  async controller() {
    const seen = await watching();
    await until(() => seen.has('a=tea'));
    say({ type: 'restart' });
    await lines.next();
    await K8s(Order).Create(order('e', 'water'));
    await until(() => seen.has('e=water'));
  },
};

for (const [verb, step] of Object.entries(STEPS)) {
  try {
    await step();
    say({ type: 'passed', verb });
  } catch (error) {
    say({ type: 'failed', verb, message: String(error?.data ? JSON.stringify(error) : error).slice(0, 600) });
  }
}
process.exit(0);
