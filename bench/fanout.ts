import { setImmediate } from 'node:timers/promises';
import { CONTENDERS, type Contender, type Tick } from './contenders.ts';

export interface Shape {
  readonly watchers: number;
  /** Events per burst; each burst is published in one go, and consumed before the next. */
  readonly burst: number;
}

export interface Row {
  readonly name: string;
  readonly queue: Contender['queue'];
  /** Millions of deliveries per second, a figure per round. */
  readonly rounds: number[];
}

/** Makes a burst whose events are numbered on from `from`. */
function burstFrom(from: number, length: number): Tick[] {
  return Array.from({ length }, (_, i) => ({ type: 'TICK' as const, object: from + i }));
}

/** Runs bursts through a contender and answers deliveries per second. Throws if a watcher got anything else than all, in order. */
export async function run(contender: Contender, shape: Shape, deliveries: number): Promise<number> {
  const { watchers, burst } = shape;
  const bursts = Math.max(1, Math.round(deliveries / (watchers * burst)));
  const next = new Float64Array(watchers);
  let wrong = 0;
  let seen = 0;
  const running = contender.start(watchers, (watcher, event) => {
    if (next[watcher] !== event.object) wrong++;
    next[watcher] = event.object + 1;
    seen++;
  });
  const prepared = Array.from({ length: bursts }, (_, i) => burstFrom(i * burst, burst));
  await setImmediate(); // consumers are waiting now
  const began = performance.now();
  let published = 0;
  for (const events of prepared) {
    running.publish(events);
    published += events.length;
    // Microtasks are enough for all who keep up; who is not done by then gets turns of the event loop.
    for (let hop = 0; hop < 16 && seen < published * watchers; hop++) await Promise.resolve();
    while (seen < published * watchers) await setImmediate();
  }
  const seconds = (performance.now() - began) / 1000;
  await running.stop();
  if (wrong > 0 || seen !== published * watchers) {
    throw new Error(`${contender.name}: wrong answer: ${wrong} out of order, ${seen} of ${published * watchers} delivered`);
  }
  return seen / seconds;
}

export async function compare(
  shape: Shape,
  options: { rounds: number; deliveries: number; only?: string | undefined },
): Promise<Row[]> {
  const contenders = CONTENDERS.filter(({ name }) => options.only === undefined || name.includes(options.only));
  // The answer is checked, and the code warmed up, before anything is timed.
  for (const contender of contenders) for (let i = 0; i < 3; i++) await run(contender, shape, options.deliveries / 10);
  const rows: Row[] = contenders.map(({ name, queue }) => ({ name, queue, rounds: [] }));
  for (let round = 0; round < options.rounds; round++) {
    process.stderr.write(`\r${shape.watchers} watchers, bursts of ${shape.burst}: round ${round + 1} of ${options.rounds} `);
    for (const [at, contender] of contenders.entries())
      rows[at]?.rounds.push((await run(contender, shape, options.deliveries)) / 1e6);
  }
  process.stderr.write('\r\x1b[K');
  return rows;
}
