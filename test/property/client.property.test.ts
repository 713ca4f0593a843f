// The client with a server that has a log: whatever happens to connections, the reader gets the log, or an error.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CLIENT_POLICIES } from '../../src/bridge/client/connect.ts';
import type { Action, MachineOptions } from '../../src/bridge/client/machine.ts';
import { ClientMachine, toFailure } from '../../src/bridge/client/machine.ts';
import type { ClientOverflow, PerAttempt } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';
import { toBookmark, toVersion } from '../../src/bridge/protocol.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { MAX_HINT_MS } from '../../src/watch/backoff.ts';
import { isErrorEvent, toStatus } from '../../src/watch/event.ts';
import { LOSSY } from '../policies.ts';
import { runs } from '../runs.ts';
import type { Kind, Link } from '../unit/client-network.ts';
import { FakeNetwork, KINDS, settle } from '../unit/client-network.ts';

/** An event's place, as the server knows it. */
interface Place {
  readonly epoch: number;
  readonly sequence: number;
}
type Event = WireEvent<string, Place | object>;

const DROPPING = (Object.keys(CLIENT_POLICIES) as ClientOverflow[]).filter((policy) => LOSSY.includes(policy));
const EXPIRED: Event = { type: 'ERROR', object: toStatus({ code: 410, reason: 'Expired', message: 'too old' }) };

/** A server with a log of events and a window of it for those who resume. It serves whoever was the last to connect. */
class Server {
  epoch = 1;
  head = 0;
  /** Events up to this one are kept no more. */
  swept = 0;
  /** Whether anything was lost that someone could have asked for. */
  forgetful = false;
  private readonly cursors: Map<Link, number> = new Map();
  private readonly kind: Kind;

  constructor(kind: Kind) {
    this.kind = kind;
  }

  accept(link: Link): void {
    if (this.cursors.has(link) || link.closed) return;
    const asked = link.url.searchParams.get('resourceVersion');
    const [epoch, sequence] =
      asked === null ? [String(this.epoch), this.head] : [asked.split('.')[0], Number(asked.split('.')[1])];
    const here = epoch === String(this.epoch) && sequence >= this.swept && sequence <= this.head;
    this.cursors.set(link, here ? sequence : Number.POSITIVE_INFINITY);
    if (!here && this.kind === 'http') {
      link.refuse(410, JSON.stringify(EXPIRED.object));
      return;
    }
    link.accept();
    if (!here) {
      link.send(EXPIRED);
      if (this.kind !== 'sse') link.end(4410, 'expired');
    } else if (asked === null) this.mark(link);
  }

  /** Returns whether there is a place to vouch for. */
  mark(link: Link, retryAfterMs?: number): boolean {
    const cursor = this.cursors.get(link) ?? Number.POSITIVE_INFINITY;
    if (cursor > this.head) return false;
    link.send(toBookmark(toVersion(String(this.epoch), cursor), { retryAfterMs }) as Event);
    return true;
  }

  /** The next events for this client, `again` of them for the second time. */
  deliver(link: Link, count: number, again: number = 0): void {
    const cursor = this.cursors.get(link) ?? Number.POSITIVE_INFINITY;
    // What a client has not got yet waits in its own queue, swept or not.
    const from = Math.min(cursor, Math.max(this.swept, cursor - again));
    const to = Math.min(this.head, cursor + count);
    const events: Event[] = [];
    for (let sequence = from + 1; sequence <= to; sequence++) {
      const resourceVersion = toVersion(String(this.epoch), sequence);
      events.push({ type: 'ADDED', object: { epoch: this.epoch, sequence }, resourceVersion });
    }
    if (cursor <= this.head) this.cursors.set(link, Math.max(cursor, to));
    link.send(...events);
  }

  /** Cuts one that is too slow. */
  tooSlow(link: Link): void {
    const missed = { ...EXPIRED, object: { ...EXPIRED.object, details: { missed: 3 } } };
    if (!this.cursors.has(link)) return;
    if ((this.cursors.get(link) as number) <= this.head) link.send(missed);
    this.cursors.set(link, Number.POSITIVE_INFINITY);
  }

  restart(): void {
    this.epoch++;
    this.head = this.swept = 0;
    this.forgetful = true;
    this.cursors.clear();
  }
}

type Step =
  | { readonly do: 'publish' | 'deliver' | 'again' | 'read'; readonly count: number }
  | { readonly do: 'accept' | 'cut' | 'end' | 'refuse' | 'mark' | 'sweep' | 'restart' | 'slow' | 'wait' | 'idle' | 'leave' };

const STEPS: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constantFrom('publish' as const, 'deliver' as const, 'read' as const, 'again' as const),
        count: fc.integer({ min: 1, max: 6 }),
      }),
    },
    { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('accept' as const, 'wait' as const) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom(
          'cut' as const,
          'end' as const,
          'refuse' as const,
          'mark' as const,
          'idle' as const,
          'leave' as const,
        ),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('sweep' as const, 'restart' as const, 'slow' as const) }) },
  ),
  { maxLength: 60 },
);

/** How the URL is given: as it is, or asked for before each attempt, by a function that fails now and then. */
type Source = 'text' | 'function' | 'promise';
const SOURCES = fc.constantFrom<Source>('text', 'function', 'promise');

function toSource(source: Source): PerAttempt<string> {
  const url = 'http://h/watch';
  let asked = 0;
  const ask = (): string => {
    if (++asked % 3 === 2) throw new Error('no URL now');
    return url;
  };
  return source === 'text' ? url : source === 'function' ? ask : async () => ask();
}

/** The delay that a departing server asks for. */
const AWAY_MS = 60_000;

interface Plan {
  readonly source: Source;
  readonly kind: Kind;
  readonly overflow: ClientOverflow;
  readonly onExpired: 'fail' | 'restart';
  readonly capacity: number;
  readonly steps: readonly Step[];
}

/** What the reader got: places, gaps before them, and the codes of errors. */
type Got = Place | { readonly gap: number } | { readonly code: number };

async function perform({
  source,
  kind,
  overflow,
  onExpired,
  capacity,
  steps,
}: Plan): Promise<{ got: Got[]; server: Server; dropped: number }> {
  const clock = new FakeClock();
  const network = new FakeNetwork();
  const server = new Server(kind);
  const got: Got[] = [];
  let delayMs = 0;
  const watch = connect<Event>(toSource(source), {
    ...network.options(kind),
    ...{ overflow, onExpired, capacity, clock, random: () => 0.5 },
    onGap: (gap) => void got.push({ gap }),
    onStateChange: (_, detail) => {
      delayMs = detail.delayMs ?? 0;
    },
  });
  const read = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const event = watch.tryNext();
      if (event === undefined) return;
      got.push(isErrorEvent(event) ? { code: event.object.code } : (event.object as Place));
    }
  };
  const wait = (): void => clock.advance(delayMs);
  /** The server vouches for the place, says when to come back, and then it goes, in a way that looks like an end or a loss. */
  const leave = async (link: Link): Promise<void> => {
    const told = server.mark(link, AWAY_MS);
    await settle();
    if (told && watch.state === 'open' && watch.queued < capacity) {
      link.end(1001, '');
      await settle();
      expect([watch.state, delayMs >= AWAY_MS]).toEqual(['waiting', true]);
    } else link.cut();
  };
  const act = async (step: Step): Promise<void> => {
    const { link } = network;
    if (step.do === 'publish') server.head += step.count;
    else if (step.do === 'read') read(step.count);
    else if (step.do === 'wait') wait();
    else if (step.do === 'idle') clock.advance(200_000);
    else if (step.do === 'sweep') {
      server.swept = Math.max(server.swept, server.head - 1);
      server.forgetful = true;
    } else if (step.do === 'restart') {
      server.restart();
      link.cut();
    } else if (link.closed) return;
    else if (step.do === 'deliver') server.deliver(link, step.count);
    else if (step.do === 'again') server.deliver(link, step.count, step.count);
    else if (step.do === 'refuse') link.refuse(503);
    else if (step.do === 'slow') server.tooSlow(link);
    else if (step.do === 'end') link.end(1001, '');
    else if (step.do === 'cut') link.cut();
    else if (step.do === 'leave') await leave(link);
    else if (step.do === 'mark') server.mark(link);
    else server.accept(link);
  };
  await settle();
  // The first connection stands: what the reader is owed begins here.
  server.accept(network.link);
  await settle();
  for (const step of steps) {
    await act(step);
    await settle();
    expect(watch.queued).toBeLessThanOrEqual(capacity + 2);
  }
  // Then all is well for long enough, and everyone gets what there is.
  for (let round = 0; round < 400; round++) {
    if (watch.state === 'closed' && watch.queued === 0) break;
    const quiet = got.length;
    wait();
    await settle();
    server.accept(network.link);
    await settle();
    server.deliver(network.link, 1_000);
    await settle();
    read(1_000);
    if (round > 20 && watch.state === 'open' && got.length === quiet && watch.queued === 0) break;
  }
  const { dropped } = watch;
  await watch.return();
  expect([clock.pending, network.links.every(({ closed }) => closed)]).toEqual([0, true]);
  return { got, server, dropped };
}

/** Cuts what was got at each error, which must be a 410. */
function segments(got: readonly Got[]): (Place | { readonly gap: number })[][] {
  const all: (Place | { readonly gap: number })[][] = [[]];
  for (const each of got) {
    if ('code' in each) {
      expect(each.code).toBe(410);
      all.push([]);
    } else all.at(-1)?.push(each);
  }
  return all;
}

/** In order, none twice, none missing but what a gap says, of one epoch; answers the last place. */
function checkSegment(segment: readonly (Place | { readonly gap: number })[]): Place | undefined {
  let last: Place | undefined;
  let gap = 0;
  for (const each of segment) {
    if ('gap' in each) gap += each.gap;
    else {
      if (last !== undefined) expect(each).toEqual({ epoch: last.epoch, sequence: last.sequence + 1 + gap });
      last = each;
      gap = 0;
    }
  }
  return last;
}

const CAPACITIES = fc.constantFrom(1, 2, 3, 50);

describe.each(KINDS)('any schedule of cuts, over %s', (kind) => {
  test('wait, fail: exactly the log in order, or one 410 after a part of it', async () => {
    await fc.assert(
      fc.asyncProperty(SOURCES, CAPACITIES, STEPS, async (source, capacity, steps) => {
        const { got, server, dropped } = await perform({ source, kind, overflow: 'wait', onExpired: 'fail', capacity, steps });
        const [first = [], ...rest] = segments(got);
        const last = checkSegment(first);
        expect(first.some((each) => 'gap' in each)).toBe(false);
        expect(dropped).toBe(0);
        if (first.length > 0) expect(first[0]).toEqual({ epoch: 1, sequence: 1 });
        if (rest.length === 0) expect(last?.sequence ?? 0).toBe(server.head);
        else {
          expect(rest).toEqual([[]]);
          expect(server.forgetful).toBe(true);
        }
      }),
      { numRuns: runs(150) },
    );
  });

  test('wait, restart: a 410 wherever the log is not continued, and the last part is complete', async () => {
    await fc.assert(
      fc.asyncProperty(SOURCES, CAPACITIES, STEPS, async (source, capacity, steps) => {
        const { got, server } = await perform({ source, kind, overflow: 'wait', onExpired: 'restart', capacity, steps });
        const parts = segments(got);
        const last = parts.map(checkSegment).at(-1);
        if (!server.forgetful) expect(parts).toHaveLength(1);
        if (last !== undefined) expect(last).toEqual({ epoch: server.epoch, sequence: server.head });
      }),
      { numRuns: runs(150) },
    );
  });

  test('policies that drop events: in order, no repetition, and every gap is reported with its exact size', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...DROPPING), SOURCES, CAPACITIES, STEPS, async (overflow, source, capacity, steps) => {
        const { got, server } = await perform({ source, kind, overflow, onExpired: 'fail', capacity, steps });
        const [first = []] = segments(got);
        const last = checkSegment(first);
        const [head] = first;
        if (head !== undefined && !('gap' in head)) expect(head).toEqual({ epoch: 1, sequence: 1 });
        if (!server.forgetful && overflow === 'drop-oldest') expect(last?.sequence ?? 0).toBe(server.head);
      }),
      { numRuns: runs(100) },
    );
  });
});

describe('the machine', () => {
  type Input =
    | { readonly do: 'connect' | 'opened' | 'lasted' | 'full' | 'close' | 'unversioned' }
    | { readonly do: 'event'; readonly skip: number }
    | { readonly do: 'over'; readonly code: number; readonly hintMs: number };
  const inputs: fc.Arbitrary<Input[]> = fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('connect' as const, 'opened' as const) }) },
      { weight: 4, arbitrary: fc.record({ do: fc.constant('event' as const), skip: fc.integer({ min: -2, max: 3 }) }) },
      {
        weight: 3,
        arbitrary: fc.record({
          do: fc.constant('over' as const),
          code: fc.constantFrom(200, 204, 400, 404, 408, 410, 422, 429, 500, 503, 503, 503, 503),
          hintMs: fc.constantFrom(0, 0, 1_000, 1e9),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          do: fc.constantFrom('full' as const, 'close' as const, 'unversioned' as const, 'lasted' as const),
        }),
      },
    ),
    { maxLength: 80 },
  );

  test('only makes valid transitions, limits its delay, closes for good, and never loses its position without a notice', () => {
    const options = fc.record({
      ...{ minMs: fc.constantFrom(0, 100), maxMs: fc.constantFrom(0, 1_000), factor: fc.constantFrom(1, 2) },
      ...{
        maxAttempts: fc.constantFrom(0, 3, Number.POSITIVE_INFINITY),
        onExpired: fc.constantFrom('fail' as const, 'restart' as const),
      },
      ...{ reconnectOnEnd: fc.boolean(), random: fc.constantFrom(() => 0, () => 1) }, // biome-ignore format: short functions
    });
    fc.assert(
      fc.property(options, fc.constantFrom(undefined, 'e.500'), inputs, (given: MachineOptions, start, list) => {
        const machine = new ClientMachine(given, start);
        let sequence = 500; // far from where a sequence would be negative, and no version
        let failures = 0;
        /** The last end was a 410, so that another one is a loop. */
        let expired = false;
        for (const input of list) {
          const before = { state: machine.state, position: machine.position };
          let action: Action | undefined;
          if (input.do === 'event') {
            const order = machine.accept(`e.${sequence + input.skip}`);
            expect(order).toBe(before.position === undefined || input.skip > 0 ? 'next' : 'known');
            if (order === 'next') [sequence, failures] = [sequence + input.skip, 0];
            continue;
          }
          if (input.do === 'unversioned') {
            expect(machine.accept(undefined)).toBe('next');
            // It may be the beginning of a snapshot that always breaks off: the row of failures goes on.
            expect(machine.position).toBe(before.position);
            continue;
          }
          if (input.do === 'lasted') {
            machine.lasted();
            [failures, expired] = [0, false];
            continue;
          }
          if (input.do === 'opened') machine.opened();
          else if (input.do === 'full') machine.full();
          else if (input.do === 'over') action = machine.over({ ...input, error: toFailure(input.code, 'said') });
          else if (input.do === 'connect') machine.connect();
          else action = machine.close();
          if (before.state === 'closed') {
            expect([action, machine.state]).toEqual([undefined, 'closed']);
            continue;
          }
          // The place is given up only with a notice, and then for a fresh start.
          if (machine.position !== before.position) expect(action).toMatchObject({ notice: true, error: { code: 410 } });
          if (action === undefined) continue;
          if (machine.state === 'waiting') {
            const hintMs = input.do === 'over' ? Math.min(input.hintMs, MAX_HINT_MS) : 0;
            const longest = Math.min(given.maxMs, given.minMs * given.factor ** failures++);
            const again = input.do === 'over' && input.code === 410;
            expect(action.delayMs).toBe(hintMs + (again && !expired ? 0 : given.random() * longest));
            expired = again;
            expect(failures).toBeLessThanOrEqual(given.maxAttempts);
          } else if (machine.state === 'closed') {
            expect(action.delayMs).toBeUndefined();
            if (action.notice === true) expect(action.error?.code).toBeGreaterThanOrEqual(400);
          } else expect.unreachable('an action is to wait or to end');
        }
      }),
      { numRuns: runs(3_000) },
    );
  });
});
