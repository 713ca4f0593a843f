// Clients of every kind that keep a copy of what they see, for the property test of options that meet.
import { createParser } from 'eventsource-parser';
import type { ClientWatch } from '../../src/bridge/client.ts';
import { connect, toCollection } from '../../src/bridge/client.ts';
import type { ClientOptions } from '../../src/bridge/fetch.ts';
import { coreOf, type Hub } from '../../src/bridge/hub/hub.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';
import type { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { isErrorEvent, isInitialEventsEnd, type WatchEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { LOSSY } from '../policies.ts';
import type { KINDS } from '../unit/client-network.ts';
import type { Copy, Thing } from './copies.ts';
import { apply, visible } from './copies.ts';
import { type ClientPlan, EVERYTHING, type HubPlan } from './hub-plans.ts';
import type { Wires } from './wires.ts';

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
export abstract class Follower {
  copy: Copy = new Map();
  /** It knows that its copy is not whole: it was told, or has lost its place, and no snapshot has come since. */
  told: boolean = false;
  /** It was told that what the hub follows has failed. */
  knowsFailure: boolean = false;
  /** Nothing has come since it has begun, or begun anew. */
  protected isEmpty: boolean = true;
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

  /** How many events it has lost itself. */
  get dropped(): number {
    return 0;
  }

  get hasSnapshot(): boolean {
    return this.around.plan.snapshot !== 'none';
  }

  get shown(): Copy {
    return this.copy;
  }

  protected startOver(): void {
    this.isEmpty = true;
    this.copy.clear();
    this.told = true;
    this.last = undefined;
  }

  protected take(event: Event): void {
    this.isEmpty = false;
    this.look(event);
    if (event.type !== 'ERROR') {
      if (isInitialEventsEnd(event)) this.told = false;
      else if (!this.around.sees(event) && event.type !== 'BOOKMARK') this.faults.push(`not for it: ${JSON.stringify(event)}`);
      apply(this.copy, event);
    } else if (event.resourceVersion === undefined) {
      if (isErrorEvent(event) && event.object.code < 410 && event.object.code >= 400) this.faults.push(JSON.stringify(event));
      this.startOver();
    } else if (isErrorEvent(event) && event.object.code === 410) this.copy.clear();
    else if (isErrorEvent(event) && event.object.message === 'the source of this watch failed') this.knowsFailure = true;
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
export class Connected extends Follower {
  watch: ClientWatch<Event>;
  private before: number = 0;

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
    // A stream that ends before anything has come is over, and no more is known of it.
    return this.told ? !this.hasSnapshot || this.isClosed : this.isClosed && this.isEmpty;
  }

  read(most: number): void {
    for (let i = 0; i < most; i++) {
      const event = this.watch.tryNext();
      if (event === undefined) return;
      this.take(event as Event);
    }
  }

  override get dropped(): number {
    return this.before + (LOSSY.includes(this.plan.loses) ? this.watch.dropped : 0);
  }

  override reconnect(): void {
    this.watch.reconnect();
  }

  override continue(): void {
    const { watch } = this;
    if (this.isClosed) return;
    this.before = this.dropped;
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
export class Collected extends Follower {
  private readonly leave: () => void;
  private readonly items: () => readonly Thing[];
  private watch: ClientWatch<Event> | undefined = undefined;

  constructor(plan: ClientPlan, around: Surroundings) {
    super(plan, around);
    const open = ({ signal }: { signal: AbortSignal }): ClientWatch<never> => {
      this.watch = connectTo({ ...plan, onExpired: 'restart', loses: 'wait' }, around, { signal });
      return this.watch as unknown as ClientWatch<never>;
    };
    const collection = toCollection<Thing>({ watch: open } as never, { clock: around.clock, onError: () => {} });
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
  const url = `http://h/watch${asksInVain ? '' : query}`;
  let asked = 0;
  const ask = (): string | Promise<string> => {
    if (plan.url === 'fails' && ++asked % 3 === 2) throw new Error('no URL now');
    return Promise.resolve(url);
  };
  return connect<Event>(plan.url === 'text' ? url : ask, {
    overflow: plan.loses,
    ...wires.options(kind as (typeof KINDS)[number]),
    ...{ onExpired, capacity, maxBufferedBytes, bookmarks, clock, ...more },
    ...(hasCodec && { codec: { decode: (bytes: Uint8Array) => JSON.parse(decoder.decode(bytes)) as Event } }),
    random: () => 0.5,
  }) as ClientWatch<Event>;
}

/** An EventSource of a browser. It starts over when it is told to, as its page must. */
export class Plain extends Follower {
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
      const response = (await fetch?.(new URL('http://h/watch'), { headers } as never)) as Response;
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
export class InProcess extends Follower {
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
export function filterOf({ filter }: ClientPlan, disconnect: () => void): ((event: WatchEvent) => boolean) | undefined {
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
