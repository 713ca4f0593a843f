// A hub with any of its options, its clients with any of theirs, over every transport, and all that can happen between them; for the
// property test of options that meet.
import assert from 'node:assert/strict';
import type { ClientOptions } from '../../src/bridge/fetch.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { HubLog } from '../../src/bridge/hub/hub-log.ts';
import type { Objects } from '../../src/bridge/hub/hub-options.ts';
import type { Publisher } from '../../src/bridge/hub/publisher.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import { toStatus, type WatchEvent } from '../../src/watch/event.ts';
import { LOSSY } from '../policies.ts';
import type { Change, Copy, Thing } from './copies.ts';
import { copyOf, NAMES, State, same, visible } from './copies.ts';
import { Collected, Connected, type Follower, filterOf, InProcess, Plain } from './hub-followers.ts';
import { type ClientPlan, EVERYTHING, type HubPlan, type Plan } from './hub-plans.ts';
import type { Endpoint, Tamper } from './wires.ts';
import { toEndpoint, Wires } from './wires.ts';

const MAX_EVENT_BYTES = 2_000;

/** Runs everything that is due, including streams. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 8; i++) await new Promise((resolve) => setImmediate(resolve));
}

const status = (code: number) => toStatus({ code, reason: code === 410 ? 'Expired' : 'Because', message: 'of the application' });

const TOPICS: Readonly<Record<string, readonly string[] | undefined>> = {
  a: ['odd'],
  b: ['even'],
  c: ['odd', 'even'],
  d: undefined,
};

/** An event that the hub cannot publish, because code of the application fails. */
const REFUSED = 'REFUSED';

function topicsOf({ type, object }: WatchEvent): readonly string[] | undefined {
  if (type === REFUSED) throw new Error('nobody knows its topics');
  return type === 'ERROR' ? ['odd', 'even'] : TOPICS[(object as Thing).metadata.name];
}

/** A session of a client: how many of all events were for it when it began. */
interface Opened {
  readonly identity: { readonly at: number };
  readonly missed: number;
  readonly from: number;
}

/** What is known of a hub: what it has been given, in order, and its sessions. */
interface Recorded {
  readonly published: readonly WatchEvent[];
  readonly opened: Map<number, Opened>;
}

/** An event at which a watch that a hub follows fails. */
const FAILURE = 'FAILURE';

function failing({ type }: WatchEvent): boolean {
  if (type === FAILURE) throw new Error('the source is gone');
  return true;
}

/** What a hub keeps of clients and readers. */
function holdingsOf(hub: Hub): { readonly size: number }[] {
  const { sessions, readers, source } = coreOf(hub);
  const checks = source === undefined ? new Set() : Reflect.get(source.follower, 'checks');
  return [readers, checks, ...['all', 'opening', 'waiting', 'byView'].map((name) => Reflect.get(sessions, name))];
}

const isIts =
  (at: number) =>
  ({ identity }: { readonly identity?: unknown }): boolean =>
    (identity as Opened['identity']).at === at;

/** What a hub has been given, in order, but for what it cannot publish. */
function recordOf(publisher: Publisher): readonly WatchEvent[] {
  const published: WatchEvent[] = [];
  const publish = publisher.publish.bind(publisher);
  publisher.publish = async (event, ...more) => {
    if (event.type === REFUSED) return publish(event, ...more);
    published.push(event);
    try {
      await publish(event, ...more);
    } catch (error) {
      published.splice(published.lastIndexOf(event), 1);
      throw error;
    }
  };
  return published;
}

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
  private readonly old: Promise<void>[] = [];
  /** Those that serve now. */
  private readonly hubs: Hub[] = [];
  private readonly records: Map<Hub, Recorded> = new Map();
  private turn: number = 0;
  private feed: Broadcaster<WatchEvent> = new Broadcaster();
  private isDown: boolean = false;
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
    this.filters = plan.clients.map((its, at) => filterOf(its, () => this.disconnect(at)));
    this.hubs.push(this.born());
    if (plan.hub.isPair && plan.hub.hasSource) this.hubs.push(this.born());
    this.wires = plan.clients.map(
      (_, at) => new Wires(() => this.endpointsOf(this.hubs[this.turn++ % this.hubs.length] as Hub)[at] as Endpoint),
    );
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

  /** The one that has served longest. */
  private get hub(): Hub {
    return this.hubs[0] as Hub;
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
    const {
      snapshot,
      hasTopics,
      hasOwnKey,
      hasSource,
      maxCatchUpItems,
      replays,
      isFull,
      isPair,
      follows,
      isPatient,
      tellsOfClients,
      ...more
    } = this.plan.hub;
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
    this.feed = new Broadcaster<WatchEvent>({ capacity: 10_000 });
    if (this.follows) this.old.push(hub.follow(this.feed.watch({ filter: failing })).catch(() => {}));
    const core = coreOf(hub);
    const record: Recorded = { published: recordOf(core.publisher), opened: new Map() };
    this.records.set(hub, record);
    const open = core.open.bind(core);
    core.open = (sink, client) => {
      const identity = client.identity as Opened['identity'];
      const sees = this.seenBy(this.plan.clients[identity.at] as ClientPlan);
      const missed = (client.start?.missed ?? []).filter((event) => event.sequence > 0 && sees(event)).length;
      const from = hub.stats().accepted;
      const session = open(sink, client);
      // How many of what it reads in the stream are for it, is not known.
      if (client.start?.catchUp === undefined) record.opened.set(session.id, { identity, missed, from });
      return session;
    };
    hub.observe({
      tell: (notice) => {
        if (notice.type === 'close') this.closed(hub, notice.client);
        if (!tellsOfClients || !isPatient || coreOf(hub).lifetime.closing || !this.hubs.includes(hub)) return;
        if (notice.type !== 'open' && notice.type !== 'close') return;
        if (this.deeds-- > 0) this.publish(this.state.change('b', false));
      },
    });
    return hub;
  }

  private closed(hub: Hub, client: ReturnType<Hub['stats']>['clients'][number]): void {
    const { at } = client.identity as Opened['identity'];
    this.dropped[at] = (this.dropped[at] ?? 0) + client.dropped;
    this.count(hub, client, false);
  }

  /** What came for a client was delivered, dropped, or is queued. */
  private count(hub: Hub, client: ReturnType<Hub['stats']>['clients'][number], isExact: boolean): void {
    const { published, opened } = this.records.get(hub) as Recorded;
    const began = opened.get(client.id);
    if (began === undefined) return;
    const sees = this.seenBy(this.plan.clients[began.identity.at] as ClientPlan);
    const due = began.missed + published.slice(began.from, hub.stats().accepted).filter(sees).length;
    const sum = client.delivered + client.dropped + client.queued;
    if (isExact ? sum !== due : sum > due) this.faults.push(`counted ${sum} of ${due}: ${JSON.stringify(client)}`);
  }

  /** Whether the hub gets its events from a watch, which ends with it. */
  private get follows(): boolean {
    return this.plan.hub.follows && !this.plan.hub.hasSource;
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
    if (!this.follows && (this.plan.hub.hasSource || this.plan.hub.isPatient)) {
      this.outbox.push(event);
      void this.pump();
      return;
    }
    void (this.follows ? this.feed : this.hub).publish(event).catch(() => {});
  }

  /** Publishes one after the other, each until the stream has it. */
  private async pump(): Promise<void> {
    if (this.pumping) return;
    this.pumping = true;
    for (let next = this.outbox[0]; next !== undefined; next = this.outbox[0]) {
      const { hub } = this;
      try {
        await hub.publish(next, this.source && { id: `its-${this.ids}` });
        this.outbox.shift();
        this.ids++;
      } catch {
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
    else if (step.op === 'refuse') this.refuse();
    else if (step.op === 'stall' || step.op === 'resume') wires.last?.[step.op]();
    else if (step.op === 'read') follower.read(step.count);
    else if (step.op === 'pass') this.clock.advance(step.ms);
    else if (step.op === 'continue' || step.op === 'reconnect') follower[step.op]();
    else if (step.op === 'disconnect') this.disconnect(at);
    else if (step.op === 'crash' || step.op === 'leave') await this.restart(step.op);
    else await this.disturb(step as { op: 'sever'; count?: number });
    await settle();
  }

  private disconnect(at: number): void {
    for (const hub of this.hubs) hub.disconnect(isIts(at));
  }

  /** Between other events, which may all wait for room, an event is refused. */
  private refuse(): void {
    const { hasTopics } = this.plan.hub;
    const object = hasTopics ? {} : { toJSON: () => assert.fail('no JSON') };
    for (const name of NAMES) this.publish(this.state.change(name, false));
    void this.hub.publish({ type: REFUSED, object }).then(
      () => this.faults.push('published what cannot be'),
      () => {},
    );
    for (const name of NAMES) this.publish(this.state.change(name, false));
  }

  private reset(): void {
    this.publish({ type: 'ERROR', object: status(410) });
    // To collections, an ERROR of the application is an event like any other, and tells nothing of their objects.
    for (const event of [...this.state.deletions, ...this.state.initial]) this.publish(event);
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
    this.hubs.push(this.born());
    this.hubs.shift();
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
    const { plan, dropped: own } = this.followers[at] as Follower;
    if (own > 0) return true;
    const dropped = [...this.records.keys()]
      .flatMap((hub) => hub.stats().clients)
      .filter(isIts(at))
      .reduce((sum, client) => sum + client.dropped, this.dropped[at] ?? 0);
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
    for (const hub of this.hubs) for (const client of hub.stats().clients) this.count(hub, client, true);
    for (const { faults } of this.followers) this.faults.push(...faults);
    if (!this.plan.hub.hasSource) for (const hub of this.hubs) this.number(hub);
  }

  /** The number of each event that is kept is its place in the stream, or who resumes there misses some. */
  private number(hub: Hub): void {
    const log = Reflect.get(coreOf(hub), 'log') as HubLog;
    const kept = log.since(log.oldest) ?? [];
    const wrong = kept.filter(({ sequence }, at) => sequence !== log.oldest + at + 1);
    if (wrong.length > 0) this.faults.push(`wrong numbers: ${wrong.map(({ version }) => version)} after ${log.oldest}`);
  }

  /** The stream ends with a last change. Returns whether everybody has it, and knows. */
  async finish(): Promise<boolean> {
    for (const name of NAMES) this.publish(this.state.change(name, false));
    await this.calm(() => this.outbox.length === 0);
    const fails = this.follows && this.plan.ends === 'fails';
    // Who comes after that, and gets the state, hears nothing of it.
    const isTold = fails && this.plan.hub.snapshot === 'none';
    if (fails) void this.feed.publish({ type: FAILURE, object: null });
    else void (this.follows ? this.feed : this.hub).shutdown();
    const knows = (follower: Follower, at: number): boolean =>
      follower.isClosed && (!isTold || this.outcomes[at] !== 'whole' || follower.knowsFailure);
    return this.calm(() => this.isRight && this.followers.every(knows));
  }

  /** Everybody leaves. Returns what is left of it. */
  async end(): Promise<unknown> {
    for (const follower of this.followers) follower.end();
    this.clock.advance(10_000);
    await settle();
    const done = AbortSignal.abort();
    await Promise.all([...this.old, ...this.hubs.map((hub) => hub.shutdown({ signal: done }))]);
    for (const wires of this.wires) for (const wire of wires.all) wire.cut(0, 'break');
    await settle();
    const held = [...this.records.keys()].flatMap(holdingsOf).reduce((sum, { size }) => sum + size, 0);
    return { pending: this.clock.pending, following: this.source?.following ?? 0, held };
  }
}
