import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../../src/cache/object.ts';
import type { ApiServer } from '../../test/peers/apiserver.ts';
import { versionsOf } from '../../test/peers/fold.ts';
import { type FaultProxy, startProxy } from '../../test/peers/proxy.ts';
import { CONTENDERS, type Contender, type Copy } from './copies.ts';
import { inTurn, type Scenario } from './scenarios.ts';
import { idOf, Writer } from './writer.ts';

/** What became of one informer. */
export interface Outcome {
  /** From the fault to the first later change that the handler was told; undefined if it was told none. */
  readonly againMs: number | undefined;
  /** Changes since the fault, and those of them that the handler was not told. */
  readonly changes: number;
  readonly untold: number;
  /** Objects that the store has and should not have, or the other way round, or in an old state. */
  readonly wrong: number;
  /** Lists that it has asked for since the fault; a list that is streamed is one. */
  readonly lists: number;
}

/** An informer behind its proxy, and when its handler was told what. */
interface Player {
  readonly proxy: FaultProxy;
  readonly copy: Copy;
  readonly told: ReadonlyMap<string, number>;
}

/** How long everybody runs before and after the fault while there are writes. */
const BEFORE_MS = 1_000;
const AFTER_MS = 3_000;
const POLL_MS = 50;

/** How many objects two collections do not have in common, in the same state. */
function differences(one: Iterable<KubernetesObject>, other: Iterable<KubernetesObject>): number {
  const [a, b] = [versionsOf(one), versionsOf(other)];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => a[key] !== b[key]).length;
}

async function until(limitMs: number, condition: () => boolean): Promise<boolean> {
  while (!condition()) {
    if (performance.now() > limitMs) return false;
    await sleep(POLL_MS);
  }
  return true;
}

interface ActOptions {
  readonly server: ApiServer;
  readonly namespace: string;
  /** How long an informer has to recover. */
  readonly limitMs: number;
}

/** Plays a scenario: all informers at once, while somebody writes. */
export async function act(scenario: Scenario, { server, namespace, limitMs }: ActOptions): Promise<Outcome[]> {
  const path = await server.collection(namespace, scenario.plural);
  const writer = new Writer(server, path, 1);
  await writer.fill();
  const fromStart = scenario.from === 'the start';
  const proxies = await Promise.all(CONTENDERS.map(() => startProxy(server, fromStart ? scriptOf(scenario) : undefined)));
  let beganMs = performance.now();
  const written = writer.run();
  const players = await Promise.all(
    CONTENDERS.map((each, at) => enter(each, proxies[at] as FaultProxy, { scenario, namespace })),
  );
  try {
    if (!fromStart) {
      const synced = await until(performance.now() + limitMs, () => players.every(({ told }) => told.size > 0));
      if (!synced) throw new Error(`${scenario.name}: not everybody was synced`);
      await sleep(BEFORE_MS);
      beganMs = await strike(scenario, { server, proxies });
    }
    const asked = proxies.map(({ seen }) => (fromStart ? 0 : seen.length));
    await sleep(AFTER_MS);
    writer.stop();
    await written;
    const { items } = (await server.get(path)) as { items: KubernetesObject[] };
    const isBack = ({ copy }: Player): boolean => differences(copy.objects(), items) === 0;
    await until(beganMs + limitMs, () => players.every(isBack));
    const changes = writer.writes.filter((write) => write.beganMs >= beganMs);
    await sleep(POLL_MS); // handlers are told after the store has it
    return players.map(({ copy, told, proxy }, at) => {
      const times = changes.flatMap(({ id }) => told.get(id) ?? []);
      const requests = proxy.seen.slice(asked[at]);
      return {
        againMs: times.length === 0 ? undefined : Math.min(...times) - beganMs,
        changes: changes.length,
        untold: changes.length - times.length,
        wrong: differences(copy.objects(), items),
        lists: requests.filter(isList).length,
      };
    });
  } finally {
    writer.stop();
    await written;
    for (const { copy } of players) await copy.stop();
    for (const proxy of proxies) await proxy.close();
  }
}

const scriptOf = ({ next = [] }: Scenario): ReturnType<typeof inTurn> => inTurn(next);

async function enter(
  contender: Contender,
  proxy: FaultProxy,
  { scenario, namespace }: { readonly scenario: Scenario; readonly namespace: string },
): Promise<Player> {
  const told = new Map<string, number>();
  const { plural, idleTimeoutMs } = scenario;
  const copy = await contender.start({
    url: proxy.url,
    namespace,
    plural,
    idleTimeoutMs,
    tell(what, object) {
      const id = idOf(what, object);
      if (!told.has(id)) told.set(id, performance.now());
    },
  });
  return { proxy, copy, told };
}

/** Does the damage, and returns when it was done. */
async function strike(
  scenario: Scenario,
  { server, proxies }: { readonly server: ApiServer; readonly proxies: readonly FaultProxy[] },
): Promise<number> {
  for (const proxy of proxies) proxy.play(scriptOf(scenario));
  for (const proxy of proxies) {
    if (scenario.open === 'cut') proxy.cutAll();
    else if (scenario.open === 'end') proxy.endAll();
    else if (scenario.open === 'stall') proxy.stallAll();
  }
  await scenario.during?.({ server, proxies });
  return performance.now();
}

/** Whether a request is for the whole collection. An informer that asks only for a server's version wants one object. */
function isList({ isWatch, url }: { readonly isWatch: boolean; readonly url: URL }): boolean {
  return isWatch ? url.searchParams.has('sendInitialEvents') : url.searchParams.get('limit') !== '1';
}
