import { CONTENDERS, contenderOf } from './contenders.ts';
import { OURS } from './contenders-ours.ts';
import { Fleet } from './fleet.ts';
import { prepareGo } from './go.ts';
import { GO } from './go-programs.ts';
import { LeftOut, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

/** From this many deliveries per burst on, a slow contender may take too long. */
const LARGE = 150_000;
const PROBE_MS = 50;

/** Leaves out a contender whose smallest possible round would take too long, estimated from growing bursts. */
async function refuseSlow(fleet: Fleet, limitMs: number): Promise<void> {
  const { watchers, burst: whole } = fleet.options;
  if (watchers * whole < LARGE) return;
  for (let burst = 1; burst < whole; burst *= 4) {
    let tookMs = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 3; i++) tookMs = Math.min(tookMs, (await fleet.run(1, burst)) * 1000);
    const wholeMs = (tookMs * whole) / burst;
    if (wholeMs <= limitMs) return;
    if (tookMs > PROBE_MS) throw new LeftOut(`one burst would take about ${(wholeMs / 1000).toFixed(1)} s`);
  }
}

async function prepare(contender: string, shape: Shape, settings: Settings): Promise<Prepared> {
  const size = { watchers: numberOf(shape, 'watchers'), burst: numberOf(shape, 'burst') };
  if (contender === GO.name) return prepareGo(size, settings);
  const hub = await contenderOf(contender).start();
  const fleet = new Fleet(hub, size);
  // Ours must show their cost, whatever it is.
  if (!OURS.some(({ name }) => name === contender)) await refuseSlow(fleet, settings.tooSlowMs);
  const bursts = await fleet.warmUp(settings);
  return {
    async round() {
      const seconds = await fleet.run(bursts);
      return [(bursts * size.watchers * size.burst) / seconds / 1e6];
    },
    end: () => hub.close(),
  };
}

/** Events are published to all watchers, burst by burst: a burst at once, and the next one when everyone has it. */
export const fanout: Workload = {
  name: 'fanout',
  about: 'deliveries per second to 1 ... 10,000 watchers, in bursts; burst 1 is one event per turn',
  reference: 'Node events.on',
  shapes: ({ watchers = [1, 10, 100, 1000, 10_000], burst = [1, 16, 64, 512] }) =>
    watchers.flatMap((some) => burst.map((each) => ({ watchers: some, burst: each }))),
  figures: () => [{ shape: {}, unit: 'million deliveries/s', better: 'higher' }],
  entries: () => [...CONTENDERS, GO],
  prepare,
};
