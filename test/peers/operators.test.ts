// The same operator three times, with watchmux, controller-runtime and kopf, on one kube-apiserver: see operators/world.ts. Each gets
// the same edits, and then the same must be there. The proxy before each of them counts what it asks for.
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { bundled, countsOf, GO, KOPF, OperatorProcess, type Program, sumOf } from './operators/programs.ts';
import websites from './operators/website.json' with { type: 'json' };
import { type Look, lastEdits, rounds, storm, World } from './operators/world.ts';
import { startProxy } from './proxy.ts';

const SEED = Number(process.env.WATCHMUX_OPERATORS_SEED ?? 28);
const ROUNDS = 14;
const STORM = 25;
const LIMIT_MS = 90_000;
const QUIET_MS = 700;

const missing = (['kube-apiserver', 'controller-runtime', 'python-clients'] as const).map(component).some(isMissing);

/** What came of one operator. */
interface Outcome {
  /** After each round, and at the end. */
  readonly looks: readonly Look[];
  /** After the rounds. */
  readonly events: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
  /** In the storm. */
  readonly stormCounts: Readonly<Record<string, number>>;
  readonly seconds: number;
}

let server: ApiServer;
const outcomes = new Map<string, Outcome>();
let ours: Awaited<ReturnType<typeof bundled>>;

async function contend(name: string, program: Program): Promise<Outcome> {
  const world = new World((...request) => server.request(...request), name);
  await world.create();
  const proxy = await startProxy(server);
  const operator = new OperatorProcess(program, [proxy.url, world.namespace, world.registry]);
  onTestFailed(() => console.log(`${name}:\n${operator.log}`));
  const began = performance.now();
  let last = 0;
  /** Nothing but watches for a while. */
  const quiet = (): Promise<void> =>
    eventually(async () => {
      const before = proxy.requests;
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      expect(proxy.requests).toBe(before);
    });
  const counted = (): Record<string, number> => {
    const seen = proxy.seen.slice(last);
    last += seen.length;
    return countsOf(seen);
  };
  try {
    const looks: Look[] = [];
    for (const edits of rounds(SEED, ROUNDS)) {
      await world.play(edits.map((edit) => [edit]));
      await Promise.race([world.settled(), operator.ended]);
      looks.push(await world.look());
    }
    await quiet();
    const events = await world.events();
    const counts = counted();
    await world.play(storm(SEED, STORM));
    await world.finish(lastEdits(SEED));
    await Promise.race([world.settled(() => world.settle()), operator.ended]);
    await quiet();
    looks.push(await world.look());
    return { looks, events, counts, stormCounts: counted(), seconds: (performance.now() - began) / 1000 };
  } finally {
    await operator.end();
    await proxy.close();
  }
}

describe.skipIf(missing)('one operator, written three times', () => {
  beforeAll(async () => {
    server = await startApiServer();
    if (!process.env.NO_OURS) ours = await bundled();
    await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', websites);
    await eventually(() => server.get('/apis/example.com/v1/websites'));
  }, LIMIT_MS);

  afterAll(async () => {
    ours?.remove();
    await server?.stop();
    for (const [name, { seconds, counts, stormCounts, events }] of outcomes)
      console.log(name, seconds, sumOf(counts), counts, sumOf(stormCounts), stormCounts, events);
  });

  test.each([
    ['go', () => GO],
    ['kopf', () => KOPF],
    ['ours', () => ours],
  ] as const)(
    '%s comes to what follows from the websites',
    async (name, program) => {
      outcomes.set(name, await contend(name, program()));
    },
    LIMIT_MS,
  );
});
