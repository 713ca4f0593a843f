// The same operator three times, with watchmux, controller-runtime and kopf, on one kube-apiserver: see operators/world.ts. Each gets
// the same edits, and then the same must be there. The proxy before each of them counts what it asks for.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { inProcess } from './operators/in-process.ts';
import { bundled, countsOf, GO, KOPF, OperatorProcess, type Program, sumOf } from './operators/programs.ts';
import websites from './operators/website.json' with { type: 'json' };
import { type Look, lastEdits, rounds, type Settled, storm, World } from './operators/world.ts';
import { startProxy } from './proxy.ts';

const SEED = Number(process.env.WATCHMUX_OPERATORS_SEED ?? 28);
const ROUNDS = 14;
const STORM = 25;
const LIMIT_MS = 90_000;
const QUIET_MS = 400;

const missing = (['kube-apiserver', 'controller-runtime', 'python-clients'] as const).map(component).some(isMissing);

type Counts = Readonly<Record<string, number>>;

/** What came of one operator. */
interface Outcome {
  /** After each round. */
  readonly looks: readonly Look[];
  readonly events: Counts;
  readonly requests: Counts;
  readonly afterStorm: Look;
  readonly stormRequests: Counts;
  readonly seconds: number;
}

let server: ApiServer;
let ours: Awaited<ReturnType<typeof bundled>>;
const outcomes = new Map<string, Outcome>();

/** Runs an operator before a proxy. Resolves with what it asked the server for, and with what `work` did. */
async function contend<R>(program: Program, world: World, work: (run: Run) => Promise<R>): Promise<readonly [R, Counts]> {
  const proxy = await startProxy(server);
  const operator = new OperatorProcess(program, [proxy.url, world.namespace, world.registry]);
  onTestFailed(() => console.log(`${world.namespace}:\n${operator.log}`));
  const settled: Run['settled'] = async (options) => {
    await Promise.race([world.settled(options), operator.ended]);
    // What it does because of its own writes is over, too: else the next edit comes in between.
    for (let before = -1; before !== proxy.requests; await sleep(QUIET_MS)) before = proxy.requests;
  };
  try {
    const result = await work({ settled });
    await operator.end();
    return [result, countsOf(proxy.seen)];
  } finally {
    await operator.end();
    await proxy.close();
  }
}

interface Run {
  readonly settled: Settled;
}

/** Edits round by round, each after what the one before has led to. */
async function roundsOf(world: World, { settled }: Run): Promise<readonly Look[]> {
  const looks: Look[] = [];
  for (const edits of rounds(SEED, ROUNDS)) {
    await world.play(edits.map((edit) => [edit]));
    await settled();
    looks.push(await world.look());
  }
  return looks;
}

/** Edits as fast as they come. */
async function stormOf(world: World, { settled }: Run): Promise<Look> {
  await world.play(storm(SEED, STORM));
  await world.finish(lastEdits(SEED));
  await settled({ ready: true });
  return await world.look();
}

async function outcomeOf(name: string, program: Program): Promise<Outcome> {
  const world = new World((...request) => server.request(...request), name);
  await world.create();
  const began = performance.now();
  const [looks, requests] = await contend(program, world, (run) => roundsOf(world, run));
  const events = await world.events();
  const [afterStorm, stormRequests] = await contend(program, world, (run) => stormOf(world, run));
  return { looks, events, requests, afterStorm, stormRequests, seconds: (performance.now() - began) / 1000 };
}

describe.skipIf(missing)('one operator, written three times', () => {
  beforeAll(async () => {
    [server, ours] = await Promise.all([startApiServer(), bundled()]);
    await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', websites);
    await eventually(() => server.get('/apis/example.com/v1/websites'));
  }, LIMIT_MS);

  afterAll(async () => {
    ours?.remove();
    await server?.stop();
    console.log(table());
  });

  test.each([
    ['controller-runtime', 'go', () => GO],
    ['kopf', 'kopf', () => KOPF],
    ['watchmux', 'ours', () => ours],
  ] as const)(
    '%s comes to what follows from the websites, after every round of edits and after a storm of them',
    async (_, name, program) => {
      outcomes.set(name, await outcomeOf(name, program()));
    },
    LIMIT_MS,
  );

  const compared = (): readonly [Outcome, Outcome, Outcome] =>
    ['ours', 'go', 'kopf'].map((name) => outcomes.get(name) as Outcome) as never;

  test('objects and conditions are the same', () => {
    const [own, go, kopf] = compared();
    expect(own.looks).toEqual(go.looks);
    expect(own.afterStorm).toEqual(go.afterStorm);
    expect(kopf.looks).toEqual(go.looks);
    expect(kopf.afterStorm).toEqual(go.afterStorm);
    expect(own.looks.flatMap(({ websites }) => Object.keys(websites)).length).toBeGreaterThan(ROUNDS);
  });

  test('the same events have been told, as often', () => {
    const [own, go, kopf] = compared();
    expect(own.events).toEqual(kopf.events);
    // Its cache may be behind its own writes.
    expect(Object.keys(go.events)).toEqual(expect.arrayContaining(Object.keys(own.events)));
    expect(eventsOfStatus(own.events)).toEqual(eventsOfStatus(go.events));
    expect(sumOf(own.events).all).toBeGreaterThan(3 * ROUNDS);
  });

  test('in process, on a server of ours, it comes to the same, and tells the same', async () => {
    const [own] = compared();
    await inProcess('inside', async ({ world, ...run }) => {
      expect(await roundsOf(world, run)).toEqual(own.looks);
      expect(await run.events()).toEqual(own.events);
      expect(await stormOf(world, run)).toEqual(own.afterStorm);
    });
  });

  test('watchmux asks for no more than controller-runtime', () => {
    const [own, go] = compared();
    expect(sumOf(own.requests).all).toBeLessThanOrEqual(sumOf(go.requests).all);
    expect(sumOf(own.requests).writes).toBeLessThanOrEqual(sumOf(go.requests).writes);
  });
});

const eventsOfStatus = (events: Counts): Counts =>
  Object.fromEntries(Object.entries(events).filter(([event]) => !/ Normal (Created|Updated): /.test(event)));

/** Requests by verb and resource, one operator beside the other. */
function table(): string {
  const rows = new Set([...outcomes.values()].flatMap(({ requests }) => Object.keys(requests)));
  const row = (title: string, of: (outcome: Outcome) => number): string =>
    [title.padEnd(24), ...Array.from(outcomes.values(), (outcome) => String(of(outcome)).padStart(8))].join('');
  return [
    ['requests'.padEnd(24), ...Array.from(outcomes.keys(), (name) => name.padStart(8))].join(''),
    ...[...rows].sort().map((what) => row(what, ({ requests }) => requests[what] ?? 0)),
    row('all', ({ requests }) => sumOf(requests).all),
    row('writes', ({ requests }) => sumOf(requests).writes),
    row('all, in the storm', ({ stormRequests }) => sumOf(stormRequests).all),
    row('events', ({ events }) => sumOf(events).all),
    row('seconds', ({ seconds }) => Math.round(seconds)),
  ].join('\n');
}
