// A hub with any of its options, its clients with any of theirs, over every transport, and all that can happen between them; for the
// property test of options that meet.
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import type { ClientWatch } from '../../src/bridge/client.ts';
import { connect, toCollection } from '../../src/bridge/client.ts';
import type { ClientOptions } from '../../src/bridge/fetch.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Objects } from '../../src/bridge/hub/hub-options.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import { isErrorEvent, isInitialEventsEnd, toStatus, type WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { LOSSY } from '../policies.ts';
import { KINDS } from '../unit/client-network.ts';
import type { Change, Copy, Thing } from './copies.ts';
import { apply, copyOf, NAMES, State, same, visible } from './copies.ts';
import type { Cut, Endpoint, Tamper } from './wires.ts';
import { toEndpoint, Wires } from './wires.ts';

const EVERYTHING = 1_000;
const MAX_EVENT_BYTES = 2_000;

/** Runs everything that is due, including streams. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 8; i++) await new Promise((resolve) => setImmediate(resolve));
}

const overflow = fc.constantFrom(...OVERFLOWS, 'coalesce' as const, 'disconnect' as const);
const hubs = fc.record({
  overflow,
  capacity: fc.constantFrom(1, 2, 5, 100),
  maxQueuedBytes: fc.constantFrom(undefined, undefined, 150, 1_000),
  replayItems: fc.constantFrom(0, 2, 5, EVERYTHING, EVERYTHING, EVERYTHING),
  replayBytes: fc.constantFrom(undefined, undefined, 400),
  snapshot: fc.constantFrom('none', 'at once', 'later', 'by object', 'fails', 'is stuck', 'is too large'),
  maxSnapshots: fc.integer({ min: 1, max: 3 }),
  flushIntervalMs: fc.constantFrom(0, 0, 250),
  bookmarkIntervalMs: fc.constantFrom(500, 30_000),
  maxConnectionAgeMs: fc.constantFrom(0, 20_000),
  hasTopics: fc.boolean(),
  hasOwnKey: fc.boolean(),
  hasSource: fc.boolean(),
  maxCatchUpItems: fc.constantFrom(undefined, 5),
  /** Whether new clients get what is kept. */
  replays: fc.boolean(),
  /** Whether there are places for all clients, and no more. */
  isFull: fc.boolean(),
  /** Whether each event is published after the one before it, or all at once. */
  isPatient: fc.boolean(),
  /** Whether a client that comes or goes is an event itself. */
  tellsOfClients: fc.boolean(),
});
type HubPlan = typeof hubs extends fc.Arbitrary<infer T> ? T : never;

const clients = fc.record({
  kind: fc.constantFrom(...KINDS, 'plain' as const, 'in process' as const),
  isCollection: fc.constantFrom(false, false, true),
  onExpired: fc.constantFrom('fail' as const, 'restart' as const),
  room: fc.constantFrom(1, 3, 100),
  maxBufferedBytes: fc.constantFrom(undefined, undefined, 100),
  bookmarks: fc.constantFrom(true, true, false),
  hasCodec: fc.boolean(),
  query: fc.constantFrom('', '', '?allowWatchBookmarks=true', '?sendInitialEvents=true', '?timeoutSeconds=3'),
  filter: fc.constantFrom('none', 'none', 'visible', 'visible', 'fails', 'disconnects'),
  topics: fc.constantFrom(undefined, undefined, ['even'], ['even', 'odd']),
  overflow: fc.oneof(fc.constant(undefined), overflow),
  capacity: fc.constantFrom(undefined, undefined, 1, 4),
  maxQueuedBytes: fc.constantFrom(undefined, undefined, undefined, 150),
  /** Where it begins, if not now: it may have been elsewhere before. */
  after: fc.constantFrom(
    undefined,
    undefined,
    undefined,
    undefined,
    'x.5',
    'e1.99',
    'e1.0',
    'fake1~0.0',
    'fake1~zz.1',
    'fake1~zz.99',
  ),
  lastsMs: fc.constantFrom(undefined, undefined, 2_000, 15_000),
  hooks: fc.constantFrom('at once', 'later', 'fail'),
});
type ClientPlan = typeof clients extends fc.Arbitrary<infer T> ? T : never;

const who = fc.nat(2);
const changes = fc.array(fc.tuple(fc.constantFrom(...NAMES), fc.boolean()), { minLength: 1, maxLength: 8 });
const count = fc.integer({ min: 1, max: 4 });
const how = fc.constantFrom<Cut>('break', 'break', 'end');
const steps = fc.array(
  fc.oneof(
    { weight: 9, arbitrary: fc.record({ op: fc.constant('change' as const), all: changes }) },
    {
      weight: 5,
      arbitrary: fc.record({ op: fc.constant('cut' as const), who, bytes: fc.oneof(fc.constant(0), fc.nat(600)), how }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ op: fc.constant('cut next' as const), who, bytes: fc.integer({ min: 1, max: 600 }), how }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('fault' as const, 'reset' as const) }) },
    { weight: 6, arbitrary: fc.record({ op: fc.constantFrom('stall' as const, 'resume' as const), who }) },
    { weight: 6, arbitrary: fc.record({ op: fc.constant('read' as const), who, count }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constant('pass' as const), ms: fc.constantFrom(300, 1_000, 6_000, 20_000) }) },
    {
      weight: 2,
      arbitrary: fc.record({ op: fc.constantFrom('continue' as const, 'reconnect' as const, 'disconnect' as const), who }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constantFrom('sever' as const, 'down' as const, 'up' as const, 'hold' as const, 'release' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('trim' as const, 'lose' as const, 'recreate' as const), count }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('crash' as const, 'leave' as const) }) },
  ),
  { minLength: 4, maxLength: 40 },
);
export const plans = fc.record({
  hub: hubs,
  clients: fc.array(clients, { minLength: 1, maxLength: 3 }),
  steps,
  /** The stream ends, and not only its server goes. */
  ends: fc.boolean(),
});
export type Plan = typeof plans extends fc.Arbitrary<infer T> ? T : never;

const status = (code: number) => toStatus({ code, reason: code === 410 ? 'Expired' : 'Because', message: 'of the application' });

const TOPICS: Readonly<Record<string, readonly string[] | undefined>> = {
  a: ['odd'],
  b: ['even'],
  c: ['odd', 'even'],
  d: undefined,
};

function topicsOf({ type, object }: WatchEvent): readonly string[] | undefined {
  return type === 'ERROR' ? ['odd', 'even'] : TOPICS[(object as Thing).metadata.name];
}

type Event = WireEvent<string, unknown>;

/** What a client asks of the world it is in. */
interface Surroundings {
  readonly clock: FakeClock;
  readonly plan: HubPlan;
  /** The hub that is there now. */
  readonly hub: () => Hub;
  readonly wires: Wires;
  readonly filter: ClientOptions['filter'];
  readonly sees: (event: WatchEvent) => boolean;
}

/** A client that keeps a copy of what it sees. */
abstract class Follower {
  copy: Copy = new Map();
  /** It knows that its copy is not whole: it was told, or has lost its place, and no snapshot has come since. */
  told: boolean = false;
  /** What no client may see. */
  readonly faults: string[] = [];
  readonly plan: ClientPlan;
  readonly around: Surroundings;
  private last: { readonly epoch: string; readonly sequence: number } | undefined = undefined;

  constructor(plan: ClientPlan, around: Surroundings) {
    this.plan = plan;
    this.around = around;
  }

  /** Nothing will make its copy whole. */
  abstract readonly isLost: boolean;
  abstract readonly isClosed: boolean;
  abstract read(count: number): void;
  abstract end(): void;
  /** Leaves, and goes on with another watch. */
  continue(): void {}
  reconnect(): void {}

  get hasSnapshot(): boolean {
    return this.around.plan.snapshot !== 'none';
  }

  get shown(): Copy {
    return this.copy;
  }

  protected startOver(): void {
    this.copy.clear();
    this.told = true;
    this.last = undefined;
  }

  protected take(event: Event): void {
    this.look(event);
    if (event.type !== 'ERROR') {
      if (isInitialEventsEnd(event)) this.told = false;
      else if (!this.around.sees(event) && event.type !== 'BOOKMARK') this.faults.push(`not for it: ${JSON.stringify(event)}`);
      apply(this.copy, event);
    } else if (event.resourceVersion === undefined) {
      if (isErrorEvent(event) && event.object.code < 410 && event.object.code >= 400) this.faults.push(JSON.stringify(event));
      this.startOver();
    } else if (isErrorEvent(event) && event.object.code === 410) this.copy.clear();
  }

  /** Versions grow, and are of one stream, until it is told. */
  private look({ type, resourceVersion }: Event): void {
    const { last } = this;
    const [, epoch, digits] = /^([^~]+)(?:~\w+)?\.(\d+)$/.exec(resourceVersion ?? '') ?? [];
    if (epoch === undefined) return;
    const sequence = Number(digits);
    this.last = { epoch, sequence };
    if (last === undefined) return;
    const isNext = type === 'BOOKMARK' ? sequence >= last.sequence : sequence > last.sequence;
    if (epoch !== last.epoch || !isNext) this.faults.push(`${type} ${resourceVersion} after ${last.epoch}.${last.sequence}`);
  }
}

/** The client of this package. */
class Connected extends Follower {
  watch: ClientWatch<Event>;

  constructor(plan: ClientPlan, around: Surroundings) {
    super(plan, around);
    this.watch = this.connect(plan.after);
  }

  private connect(resourceVersion?: string): ClientWatch<Event> {
    return connectTo(this.plan, this.around, { resourceVersion });
  }

  get isClosed(): boolean {
    return this.watch.state === 'closed';
  }

  get isLost(): boolean {
    return this.told && (!this.hasSnapshot || this.isClosed);
  }

  read(most: number): void {
    for (let i = 0; i < most; i++) {
      const event = this.watch.tryNext();
      if (event === undefined) return;
      this.take(event as Event);
    }
  }

  override reconnect(): void {
    this.watch.reconnect();
  }

  override continue(): void {
    const { watch } = this;
    if (this.isClosed) return;
    void watch.return();
    const { resourceVersion } = watch;
    if (resourceVersion === undefined || (this.hasSnapshot && this.plan.query.includes('sendInitialEvents'))) this.startOver();
    this.watch = this.connect(resourceVersion);
  }

  end(): void {
    void this.watch.return();
  }
}

/** A collection on that client: it begins anew by itself. */
class Collected extends Follower {
  private readonly leave: () => void;
  private readonly items: () => readonly Thing[];
  private watch: ClientWatch<Event> | undefined = undefined;

  constructor(plan: ClientPlan, around: Surroundings) {
    super(plan, around);
    const open = ({ signal }: { signal: AbortSignal }): ClientWatch<never> => {
      this.watch = connectTo({ ...plan, onExpired: 'restart' }, around, { signal });
      return this.watch as unknown as ClientWatch<never>;
    };
    const collection = toCollection<Thing>({ watch: open } as never, { clock: around.clock });
    this.leave = collection.subscribe(() => {});
    this.items = () => collection.getSnapshot().items;
  }

  override get shown(): Copy {
    return new Map(this.items().map(({ metadata, n }) => [metadata.name, n]));
  }

  get isClosed(): boolean {
    return this.watch?.state === 'closed';
  }

  get isLost(): boolean {
    return false;
  }

  override reconnect(): void {
    this.watch?.reconnect();
  }

  read(): void {}

  end(): void {
    this.leave();
  }
}

function connectTo(plan: ClientPlan, { clock, wires, plan: hub }: Surroundings, more: object): ClientWatch<Event> {
  const { kind, onExpired, room: capacity, hasCodec, query } = plan;
  // A browser's WebSocket cannot be held up, so half a snapshot must fit.
  const maxBufferedBytes = kind === 'browser' && hub.snapshot !== 'none' ? undefined : plan.maxBufferedBytes;
  // A stream that ends before anything has come has no version, and is over.
  const bookmarks = plan.bookmarks || hub.snapshot === 'none';
  const asksInVain = query === '?sendInitialEvents=true' && hub.snapshot === 'none';
  const decoder = new TextDecoder();
  return connect<Event>(`http://h/watch${asksInVain ? '' : query}`, {
    ...wires.options(kind as (typeof KINDS)[number]),
    ...{ onExpired, capacity, maxBufferedBytes, bookmarks, clock, ...more },
    ...(hasCodec && { codec: { decode: (bytes: Uint8Array) => JSON.parse(decoder.decode(bytes)) as Event } }),
    random: () => 0.5,
  }) as ClientWatch<Event>;
}

/** An EventSource of a browser. It starts over when it is told to, as its page must. */
class Plain extends Follower {
  private id: string = '';
  private retryMs: number = 3_000;
  private over: boolean = false;
  private reader: ReadableStreamDefaultReader<Uint8Array> | undefined = undefined;
  private again: (() => void) | undefined = undefined;
  private readonly inbox: Event[] = [];

  constructor(plan: ClientPlan, around: Surroundings) {
    super(plan, around);
    this.id = plan.after ?? '';
    void this.run();
  }

  get isClosed(): boolean {
    return this.over;
  }

  get isLost(): boolean {
    return this.told && !this.hasSnapshot;
  }

  read(most: number): void {
    for (const event of this.inbox.splice(0, most)) this.take(event);
  }

  end(): void {
    this.over = true;
    this.again?.();
    void this.reader?.cancel().catch(() => {});
  }

  private async run(): Promise<void> {
    const { wires, clock } = this.around;
    for (let isFirst = true; !this.over; isFirst = false) {
      if (this.id === '' && !isFirst) {
        this.read(EVERYTHING);
        this.startOver();
      }
      const headers = { accept: 'text/event-stream', ...(this.id && { 'last-event-id': this.id }) };
      const { fetch } = wires.options('sse');
      const response = (await fetch?.('http://h/watch', { headers } as never)) as Response;
      if (response.status === 204) this.over = true;
      else if (response.status === 200) await this.listen(response);
      // A page that wants to go on makes another one.
      else this.id = '';
      if (this.over) return;
      await new Promise<void>((resolve) => {
        const cancel = clock.schedule(this.retryMs, resolve);
        this.again = () => {
          cancel();
          resolve();
        };
      });
    }
  }

  private async listen({ body }: Response): Promise<void> {
    let isOld = false;
    const parser = createParser({
      onEvent: ({ data, id, event }) => {
        if (isOld) return;
        if (id !== undefined) this.id = id;
        if (event !== undefined || data === '') return;
        const message = JSON.parse(data) as Event;
        this.inbox.push(message);
        if (message.type !== 'ERROR' || message.resourceVersion !== undefined) return;
        isOld = true;
        this.id = '';
      },
      onRetry: (ms) => {
        this.retryMs = ms;
      },
    });
    const decoder = new TextDecoder();
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    this.reader = reader;
    while (!isOld && !this.over) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
    }
    await reader.cancel().catch(() => {});
  }
}

/** A watch of the hub in its process, which goes on at the next hub. */
class InProcess extends Follower {
  private watch: Watch<Event> | undefined = undefined;
  private hub: Hub | undefined = undefined;
  private version: string | undefined = undefined;

  constructor(plan: ClientPlan, around: Surroundings) {
    super(plan, around);
    this.version = plan.after;
    this.open();
  }

  get isClosed(): boolean {
    return this.watch?.stopped === true;
  }

  get isLost(): boolean {
    return this.told;
  }

  private open(): void {
    const { hub, plan: of } = this.around;
    const { topics, capacity } = this.plan;
    this.hub = hub();
    this.watch = this.hub.watch({
      ...(of.hasTopics && topics && { topics }),
      ...(capacity !== undefined && { capacity }),
      after: this.version,
      filter: this.around.filter,
    }) as Watch<Event>;
  }

  read(most: number): void {
    for (let i = 0; i < most; i++) {
      let event: Event | undefined;
      try {
        event = this.watch?.tryNext();
      } catch {
        this.continue();
        return;
      }
      if (event === undefined) break;
      this.take(event);
      this.version = event.resourceVersion;
      if (event.type === 'ERROR' && event.resourceVersion === undefined) this.continue();
    }
    if (this.hub !== this.around.hub()) this.continue();
  }

  override continue(): void {
    void this.watch?.return();
    const { closing } = coreOf(this.around.hub()).lifetime;
    if (this.version === undefined || closing) this.startOver();
    if (!closing) this.open();
  }

  end(): void {
    void this.watch?.return();
  }
}

/** The filter of a client. One that fails does so once for an event, or its client would never get past it. */
function filterOf({ filter }: ClientPlan, disconnect: () => void): ((event: WatchEvent) => boolean) | undefined {
  if (filter === 'none') return undefined;
  const failed = new Set<number>();
  return (event) => {
    if (event.type === 'ERROR') return true;
    const { n } = event.object as Thing;
    if (n % 7 === 3 && !failed.has(n)) {
      failed.add(n);
      if (filter === 'fails') throw new Error(`no verdict on ${n}`);
      if (filter === 'disconnects') disconnect();
    }
    return visible(event);
  };
}

/** A session of a client: how many of all events were for it when it began. */
interface Opened {
  readonly identity: { readonly at: number };
  readonly missed: number;
  readonly from: number;
}

const isIts =
  (at: number) =>
  ({ identity }: { readonly identity?: unknown }): boolean =>
    (identity as Opened['identity']).at === at;

export class World {
  readonly clock: FakeClock = new FakeClock();
  readonly followers: Follower[];
  readonly faults: string[] = [];
  private readonly state: State = new State();
  private readonly plan: Plan;
  private readonly source: FakeSource | undefined;
  private readonly wires: Wires[];
  private readonly filters: readonly ClientOptions['filter'][];
  private readonly endpoints: Map<Hub, Endpoint[]> = new Map();
  private readonly dropped: number[] = [];
  private readonly opened: Map<number, Opened> = new Map();
  private readonly old: Promise<void>[] = [];
  private hub: Hub;
  private isDown: boolean = false;
  /** What the hub of now has been given, in order. */
  private published: WatchEvent[] = [];
  private outbox: WatchEvent[] = [];
  private pumping: boolean = false;
  private ids: number = 0;
  private lives: number = 0;
  private snapshots: number = 0;
  /** How often the application may still publish because of its clients. */
  private deeds: number = 6;

  constructor(plan: Plan, tamper?: Tamper) {
    this.plan = plan;
    this.source = plan.hub.hasSource ? new FakeSource() : undefined;
    this.filters = plan.clients.map((its, at) => filterOf(its, () => void this.hub.disconnect(isIts(at))));
    this.hub = this.born();
    this.wires = plan.clients.map((_, at) => new Wires(() => this.endpointsOf(this.hub)[at] as Endpoint));
    for (const wires of this.wires) wires.tamper = tamper;
    this.followers = plan.clients.map((its, at) => this.follower(its, at));
  }

  private follower(its: ClientPlan, at: number): Follower {
    const wires = this.wires[at] as Wires;
    const filter = this.filters[at];
    const around = { filter, clock: this.clock, plan: this.plan.hub, hub: () => this.hub, wires, sees: this.seenBy(its) };
    if (its.kind === 'plain') return new Plain(its, around);
    if (its.kind === 'in process') return new InProcess(its, around);
    return its.isCollection && this.plan.hub.snapshot !== 'none' ? new Collected(its, around) : new Connected(its, around);
  }

  private seenBy({ filter, topics }: ClientPlan): (event: WatchEvent) => boolean {
    const { hasTopics } = this.plan.hub;
    return (event) => {
      if (hasTopics && topics && !topicsOf(event)?.some((topic) => topics.includes(topic))) return false;
      return filter === 'none' || event.type === 'ERROR' || visible(event);
    };
  }

  private born(): Hub {
    const { clock, source } = this;
    const { snapshot, hasTopics, hasOwnKey, hasSource, maxCatchUpItems, replays, isFull, isPatient, tellsOfClients, ...more } =
      this.plan.hub;
    const hub = new Hub({
      ...more,
      ...(hasTopics && { topicsOf }),
      ...(hasOwnKey && {
        keyOf: ({ type, object }) => (type === 'ERROR' ? `error ${this.ids++}` : `its ${(object as Thing).metadata.name}`),
      }),
      ...(hasSource ? { source, maxCatchUpItems } : { epoch: `e${++this.lives}` }),
      ...{ clock, random: () => 0.5, now: () => clock.now(), onError: () => {} },
      ...(isFull && { maxClients: this.plan.clients.length }),
      replay: replays ? more.replayItems : 0,
      maxEventBytes: MAX_EVENT_BYTES,
      snapshotTimeoutMs: 5_000,
      snapshot: snapshot === 'none' ? undefined : () => this.read(snapshot),
    });
    const core = coreOf(hub);
    const open = core.open.bind(core);
    core.open = (sink, client) => {
      const identity = client.identity as Opened['identity'];
      const sees = this.seenBy(this.plan.clients[identity.at] as ClientPlan);
      const missed = (client.start?.missed ?? []).filter((event) => event.sequence > 0 && sees(event)).length;
      const from = hub.stats().accepted;
      const session = open(sink, client);
      this.opened.set(session.id, { identity, missed, from });
      return session;
    };
    hub.observe({
      tell: (notice) => {
        if (notice.type === 'close') this.closed(hub, notice.client);
        if (!tellsOfClients || !isPatient || coreOf(hub).lifetime.closing || hub !== this.hub) return;
        if (notice.type !== 'open' && notice.type !== 'close') return;
        if (this.deeds-- > 0) this.publish(this.state.change('b', false));
      },
    });
    return hub;
  }

  private closed(hub: Hub, client: ReturnType<Hub['stats']>['clients'][number]): void {
    const { at } = client.identity as Opened['identity'];
    this.dropped[at] = (this.dropped[at] ?? 0) + client.dropped;
    if (hub === this.hub) this.count(client, false);
  }

  /** What came for a client was delivered, dropped, or is queued. */
  private count(client: ReturnType<Hub['stats']>['clients'][number], isExact: boolean): void {
    const began = this.opened.get(client.id);
    if (this.source !== undefined || began === undefined) return;
    const sees = this.seenBy(this.plan.clients[began.identity.at] as ClientPlan);
    const due = began.missed + this.published.slice(began.from, this.hub.stats().accepted).filter(sees).length;
    const sum = client.delivered + client.dropped + client.queued;
    if (isExact ? sum !== due : sum > due) this.faults.push(`counted ${sum} of ${due}: ${JSON.stringify(client)}`);
  }

  private endpointsOf(hub: Hub): Endpoint[] {
    const known = this.endpoints.get(hub);
    if (known !== undefined) return known;
    const all = this.plan.clients.map((its, at) => toEndpoint(hub, this.clock, this.hooksOf(its, at)));
    this.endpoints.set(hub, all);
    return all;
  }

  private hooksOf(its: ClientPlan, at: number): object {
    const { clock } = this;
    const { topics, overflow: policy, capacity, maxQueuedBytes, lastsMs, hooks } = its;
    const filter = this.filters[at];
    const own = (): ClientOptions => ({
      ...{ filter, overflow: policy, capacity, maxQueuedBytes },
      ...(this.plan.hub.hasTopics && topics && { topics }),
      ...(lastsMs && { expiresAtMs: clock.now() + lastsMs }),
    });
    let asked = 0;
    return {
      authenticate: () => {
        if (hooks === 'fail' && ++asked % 3 === 2 && asked < 8) throw new Error('nobody can tell now');
        return { at };
      },
      watchOptions: () => (hooks === 'later' ? Promise.resolve().then(own) : own()),
    };
  }

  private read(kind: HubPlan['snapshot']): Objects<Thing> | Promise<Objects<Thing>> {
    const { things } = this.state;
    const attempt = this.snapshots++;
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    async function* byObject(): AsyncGenerator<Thing> {
      for (const thing of things.values()) {
        await turn();
        yield thing;
        if (attempt % 3 === 1 && kind === 'fails') throw new Error('half a snapshot');
        if (attempt % 2 === 1 && kind === 'is stuck') await new Promise(() => {});
      }
    }
    if (kind === 'by object' || (kind === 'fails' && attempt % 3 === 1) || kind === 'is stuck') return byObject();
    if (kind === 'fails' && attempt % 3 === 0) throw new Error('no snapshot');
    const all = [...things.values()];
    if (kind === 'is too large' && attempt % 2 === 0)
      return [...all, { metadata: { name: 'a' }, n: 0, x: 'x'.repeat(MAX_EVENT_BYTES) } as Thing];
    return kind === 'later' ? turn().then(() => all) : all;
  }

  private publish(event: WatchEvent): void {
    if (this.plan.hub.hasSource || this.plan.hub.isPatient) {
      this.outbox.push(event);
      void this.pump();
      return;
    }
    this.published.push(event);
    void this.hub.publish(event).catch(() => {});
  }

  /** Publishes one after the other, each until the stream has it. */
  private async pump(): Promise<void> {
    if (this.pumping) return;
    this.pumping = true;
    for (let next = this.outbox[0]; next !== undefined; next = this.outbox[0]) {
      const { published, hub } = this;
      published.push(next);
      try {
        await hub.publish(next, this.source && { id: `its-${this.ids}` });
        this.outbox.shift();
        this.ids++;
      } catch {
        published.pop();
        // Another hub may have taken its place.
        if (hub === this.hub) break;
      }
    }
    this.pumping = false;
  }

  async perform(step: Plan['steps'][number]): Promise<void> {
    const at = 'who' in step ? step.who % this.followers.length : 0;
    const [follower, wires] = [this.followers[at] as Follower, this.wires[at] as Wires];
    if (step.op === 'change') for (const [name, remove] of step.all) this.publish(this.state.change(name, remove));
    else if (step.op === 'cut') wires.last?.cut(step.bytes, step.how);
    else if (step.op === 'cut next') wires.next = step;
    else if (step.op === 'fault') this.publish({ type: 'ERROR', object: status(500) });
    else if (step.op === 'reset') this.reset();
    else if (step.op === 'stall' || step.op === 'resume') wires.last?.[step.op]();
    else if (step.op === 'read') follower.read(step.count);
    else if (step.op === 'pass') this.clock.advance(step.ms);
    else if (step.op === 'continue' || step.op === 'reconnect') follower[step.op]();
    else if (step.op === 'disconnect') this.hub.disconnect(isIts(at));
    else if (step.op === 'crash' || step.op === 'leave') await this.restart(step.op);
    else await this.disturb(step as { op: 'sever'; count?: number });
    await settle();
  }

  private reset(): void {
    this.publish({ type: 'ERROR', object: status(410) });
    for (const event of this.state.initial) this.publish(event);
  }

  private async disturb({ op, count: some = 0 }: { op: string; count?: number }): Promise<void> {
    const { source } = this;
    if (source === undefined) return;
    if (op === 'sever') source.cut();
    else if (op === 'down') {
      this.isDown = true;
      source.stop();
    } else if (op === 'up') await this.up();
    else if (op === 'hold' || op === 'release') source[op]();
    else if (op === 'trim') source.trim(some);
    else {
      // What a hub has not seen before it is lost, nobody can tell.
      await this.up();
      if (op === 'recreate') source.recreate();
      else source.lose(some);
      // Nor what it was to one who had not got it, but the application.
      this.reset();
    }
  }

  private async up(): Promise<void> {
    this.isDown = false;
    this.source?.start();
    this.source?.release();
    for (let i = 0; i < 6; i++) {
      await this.pump();
      await settle();
      this.clock.advance(2_000);
    }
    await settle();
  }

  private async restart(op: 'crash' | 'leave'): Promise<void> {
    if (this.isDown) return;
    const old = this.hub;
    const { clients: live } = old.stats();
    for (const { identity, dropped } of live) {
      const { at } = identity as Opened['identity'];
      this.dropped[at] = (this.dropped[at] ?? 0) + dropped;
    }
    this.hub = this.born();
    this.published = [];
    this.opened.clear();
    if (op === 'crash') for (const wires of this.wires) for (const wire of wires.all) wire.cut(0, 'break');
    const deadline = new AbortController();
    this.old.push(old.shutdown({ retryAfterMs: 1_000, signal: deadline.signal }));
    await settle();
    if (op === 'crash') deadline.abort();
  }

  /** All is well for long enough, and everything that can be read is read. Returns whether the copies are right. */
  async calm(isRight: () => boolean = () => this.isRight): Promise<boolean> {
    await this.up();
    for (let round = 0; round < 80; round++) {
      for (const wires of this.wires) for (const wire of wires.all) wire.resume();
      this.clock.advance(700);
      await settle();
      for (const follower of this.followers) follower.read(EVERYTHING);
      await settle();
      if (round > 8 && isRight()) return true;
    }
    return false;
  }

  get isRight(): boolean {
    return this.followers.every((_, at) => this.isRightFor(at));
  }

  /** How many connections more than clients there were. */
  get reconnects(): number {
    return this.wires.reduce((sum, { all }) => sum + Math.max(0, all.length - 1), 0);
  }

  /** How it is with each client at the end. */
  get outcomes(): readonly ('lossy' | 'lost' | 'whole')[] {
    return this.followers.map((follower, at) => (this.isLossy(at) ? 'lossy' : follower.isLost ? 'lost' : 'whole'));
  }

  /** It may have missed something without being told, as its policy says. */
  private isLossy(at: number): boolean {
    const { plan } = this.followers[at] as Follower;
    const { clients: live } = this.hub.stats();
    const dropped = live.filter(isIts(at)).reduce((sum, client) => sum + client.dropped, this.dropped[at] ?? 0);
    return plan.kind !== 'in process' && LOSSY.includes(plan.overflow ?? this.plan.hub.overflow) && dropped > 0;
  }

  private isRightFor(at: number): boolean {
    const follower = this.followers[at] as Follower;
    const { plan } = follower;
    if (this.isLossy(at)) return true;
    return follower.isLost || (!follower.told && same(follower.shown, this.truthFor(plan)));
  }

  private truthFor(its: ClientPlan): Copy {
    return copyOf(this.state.initial.filter(this.seenBy(its)) as Change[]);
  }

  /** What is wrong, for a person to read. */
  report(): unknown {
    return this.followers.map((follower, at) => ({
      right: this.isRightFor(at),
      kind: follower.plan.kind,
      shown: [...follower.shown],
      truth: [...this.truthFor(follower.plan)],
      told: follower.told,
      closed: follower.isClosed,
    }));
  }

  /** Counts of all who are connected and have everything. */
  check(): void {
    for (const client of this.hub.stats().clients) this.count(client, true);
    for (const { faults } of this.followers) this.faults.push(...faults);
  }

  /** The stream ends with a last change. Returns whether everybody has it, and knows. */
  async finish(): Promise<boolean> {
    for (const name of NAMES) this.publish(this.state.change(name, false));
    await this.calm(() => this.outbox.length === 0);
    void this.hub.shutdown();
    return this.calm(() => this.isRight && this.followers.every(({ isClosed }) => isClosed));
  }

  /** Everybody leaves. Returns what is left of it. */
  async end(): Promise<unknown> {
    for (const follower of this.followers) follower.end();
    this.clock.advance(10_000);
    await settle();
    const done = AbortSignal.abort();
    await Promise.all([...this.old, this.hub.shutdown({ signal: done })]);
    for (const wires of this.wires) for (const wire of wires.all) wire.cut(0, 'break');
    await settle();
    const { sessions, readers, slots, timers } = coreOf(this.hub) as unknown as Record<string, Record<string, unknown>>;
    const sizes = [sessions?.all, sessions?.opening, sessions?.waiting, sessions?.byView, readers].map(
      (one) => (one as unknown as Set<unknown>).size,
    );
    void slots;
    void timers;
    return { pending: this.clock.pending, following: this.source?.following ?? 0, sizes };
  }
}
