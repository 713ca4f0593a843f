// The process of one contender written in TypeScript: node client.js CONTENDER URL OBJECTS. It prints a line of JSON, a Step, when
// its store has the initial list and its handler was called for all of it, then one for every line "updates VERSION" that it reads:
// when the update of that version was handled. The Go program does the same.
import { createInterface } from 'node:readline';
import { sumOf } from './collection.ts';
import type { Pod, StartCopy } from './copy.ts';
import { clientNode, clientNodePlain } from './copy-client-node.ts';
import { watchmux, watchmuxCluster, watchmuxPaged } from './copy-watchmux.ts';
import { type Step, stopwatch } from './measure.ts';

/** The package of a peer is loaded only if it is the contender. */
const STARTS: Readonly<Record<string, () => Promise<StartCopy>>> = {
  watchmux,
  'watchmux, paged list': watchmuxPaged,
  'watchmux, kubeconfig': watchmuxCluster,
  'client-node': clientNode,
  'client-node, plain list': clientNodePlain,
};

const [contender = '', url = '', objects = ''] = process.argv.slice(2);

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}

const keyOf = ({ metadata }: Pod): string => `${metadata?.namespace}/${metadata?.name}`;
const versionOf = ({ metadata }: Pod): string => metadata?.resourceVersion ?? '';

async function main(): Promise<void> {
  const startCopy = await STARTS[contender]?.();
  if (startCopy === undefined) throw new Error(`there is no contender "${contender}"`);
  let [added, updated] = [0, 0];
  let wanted = '';
  let reached = (): void => {};
  const allAdded = new Promise<void>((resolve) => (reached = resolve));
  let read = stopwatch();
  const copy = startCopy({
    url,
    fail,
    handler: {
      onAdd() {
        if (++added === Number(objects)) reached();
      },
      onUpdate(pod) {
        updated++;
        if (versionOf(pod) === wanted) reached();
      },
    },
  });
  const say = (): void => {
    const taken = read();
    const pods = copy.pods();
    const sum = sumOf(pods.map((pod) => [keyOf(pod), versionOf(pod)]));
    console.log(JSON.stringify({ ...taken, size: pods.length, added, updated, sum } satisfies Step));
  };
  await Promise.all([copy.synced, allAdded]);
  say();
  for await (const line of createInterface({ input: process.stdin })) {
    wanted = line.replace('updates ', '');
    const handled = new Promise<void>((resolve) => (reached = resolve));
    read = stopwatch();
    console.log('{"ready":true}');
    await handled;
    say();
  }
  process.exit();
}

main().catch(fail);
