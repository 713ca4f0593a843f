// A retry watcher against a server that fails in every way: what its reader gets is the server's sequence, without a gap or a
// repetition, for as long as the server does not answer 410.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RetryWatcher } from '../../src/cache/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { type ObjectEvent, toStatus } from '../../src/watch/event.ts';
import { runs } from '../runs.ts';
import { FaultySource, settle, type Thing, thing } from '../unit/faulty-source.ts';

const RUNS = runs(300);

const command = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constantFrom('add' as const, 'delete' as const), name: fc.constantFrom('a', 'b') }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('settle' as const, 'read' as const, 'poll' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('bookmark' as const, 'cut', 'hold', 'release') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('error' as const), code: fc.constantFrom(404, 429, 500, 504, 666) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('fail' as const), code: fc.constantFrom(400, 429, 500, 503), times: fc.nat(3) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('unreachable' as const, 'shortEnds' as const), times: fc.nat(3) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cutAfter' as const), events: fc.integer({ min: 0, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 1_100, 70_000) }) },
);
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;

const shown = ({ type, object }: ObjectEvent<Thing>): string =>
  type === 'ERROR' ? `ERROR ${object.code}` : `${type} ${object.metadata.resourceVersion}`;

class World {
  readonly source: FaultySource = new FaultySource();
  readonly clock: FakeClock = new FakeClock();
  readonly abort: AbortController = new AbortController();
  readonly listeners: ListenerCount = new ListenerCount(this.abort.signal);
  readonly watch: RetryWatcher<Thing>;
  /** What the server has done since. */
  readonly sequence: string[] = [];
  readonly got: string[] = [];
  expired: boolean = false;
  ended: boolean = false;
  #reading: boolean = false;
  #release: () => void = () => {};

  constructor(random: number) {
    const { clock, source } = this;
    source.fake.delete(thing('x'));
    this.watch = new RetryWatcher(source, { resourceVersion: '1', clock, random: () => random, signal: this.abort.signal });
    source.fake.list().then(() => {}); // tells the version
  }

  read(): void {
    if (this.#reading) return;
    this.#reading = true;
    void this.watch.next().then(({ done, value }) => {
      this.#reading = false;
      if (done) this.ended = true;
      else this.#take(value);
    });
  }

  #take(event: ObjectEvent<Thing>): void {
    this.got.push(shown(event));
    // What was read, and no more, is what a later watch need not deliver.
    if (event.type !== 'ERROR') expect(this.watch.resourceVersion).toBe(event.object.metadata.resourceVersion);
  }

  async take(step: Command): Promise<void> {
    const { source, watch } = this;
    const { fake } = source;
    switch (step.do) {
      case 'add': {
        const type = source.state[step.name] ? 'MODIFIED' : 'ADDED';
        source.add(thing(step.name));
        this.sequence.push(`${type} ${fake.resourceVersion}`);
        return;
      }
      case 'delete':
        if (!source.state[step.name]) return;
        source.delete(step.name);
        this.sequence.push(`DELETED ${fake.resourceVersion}`);
        return;
      case 'read':
        return this.read();
      case 'poll': {
        const event = watch.tryNext();
        if (event) this.#take(event);
        return;
      }
      case 'settle':
        return settle();
      case 'hold':
        this.#release();
        this.#release = fake.hold();
        return;
      case 'release':
        return this.#release();
      case 'error':
        return fake.sendError(toStatus({ code: step.code, reason: 'No', message: '' }));
      case 'fail':
        return fake.failWatch(FakeListWatcher.refusal(step.code, 'No'), step.times);
      case 'expire':
        this.expired = true;
        return fake.expire();
      case 'cutAfter':
        return fake.cutAfter(step.events);
      case 'advance':
        return this.clock.advance(step.ms);
      case 'unreachable':
      case 'shortEnds':
        source[step.do] = step.times;
        return;
      default:
        fake[step.do]();
    }
  }

  async mend(): Promise<void> {
    const { fake } = this.source;
    this.#release();
    fake.failWatch();
    fake.cutAfter(Number.POSITIVE_INFINITY);
    this.source.unreachable = this.source.shortEnds = 0;
    for (let i = 0; i < 5 + this.sequence.length; i++) {
      this.read();
      await settle();
      this.clock.advance(31_000); // an ERROR may be in any place, and a delay behind it
    }
    await settle();
  }
}

test('P5.1, P5.2: the events are those of the server, each once, in order; an ERROR is the last', async () => {
  const random = fc.double({ min: 0, max: 0.999, noNaN: true });
  const property = fc.asyncProperty(random, fc.array(command, { maxLength: 40 }), fc.boolean(), async (jitter, steps, early) => {
    const world = new World(jitter);
    for (const step of steps) await world.take(step);
    if (!early) await world.mend();
    await settle();
    const errors = world.got.filter((text) => text.startsWith('ERROR'));
    const events = world.got.filter((text) => !text.startsWith('ERROR'));
    expect(events).toEqual(world.sequence.slice(0, events.length));
    expect(errors).toEqual(errors.length ? [world.got.at(-1)] : []);
    if (!world.expired) expect(errors).toEqual([]);
    else expect(['ERROR 410', undefined]).toContain(errors[0]);
    if (!early && errors.length === 0) expect(events).toEqual(world.sequence);
    const last = world.got.at(-1);
    if (last && !last.startsWith('ERROR')) {
      const at = Number(world.watch.resourceVersion);
      // BOOKMARKs may have brought it further, but not past an event that is yet to be read.
      expect(world.sequence.filter((text) => Number(text.split(' ')[1]) <= at)).toEqual(events);
    }
    world.abort.abort();
    await settle();
    await world.watch.return(); // drops the event that is in hand
    expect((await world.watch.next()).done).toBe(true);
    expect([world.clock.pending, world.listeners.count, world.watch.stopped]).toEqual([0, 0, true]);
    expect(world.source.ends).toBe(world.source.opened);
    expect(world.source.fake.openWatches).toBe(0);
  });
  await fc.assert(property, { numRuns: RUNS });
});
