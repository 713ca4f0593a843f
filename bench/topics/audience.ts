import { setImmediate } from 'node:timers/promises';
import { collectGarbage } from '../heap.ts';
import { warmingUp } from '../warm.ts';
import type { Settings } from '../workload.ts';

/** A published event: the topic it belongs to, and its number among the events of this topic. */
export interface Told {
  readonly type: 'TOLD';
  readonly object: { readonly topic: string; readonly number: number };
}

/** A consumer, which checks what it gets. */
export interface Consumer {
  take(event: Told): void;
  /** One write to a connection. What it contains is checked after the timed part. */
  takeBytes(bytes: Uint8Array): void;
}

/** A running way to send events to those who want their topics. */
export interface TopicHub {
  publish(event: Told): void;
  watch(topics: readonly string[], consumer: Consumer): void;
  close(): Promise<void> | void;
}

interface AudienceOptions {
  readonly watchers: number;
  /** Number of topics that each watcher wants: 1 or 2. */
  readonly topicsEach: 1 | 2;
  /** Events published at once, all in one topic. */
  readonly burst: number;
  /** Into which topics events are published: always the same one, or each in turn. */
  readonly into: 'one topic' | 'all topics';
  readonly lateMs?: number;
}

/** Watchers of each topic. */
export const PER_TOPIC = 10;
const LATE_MS = 60_000;
/** The event loop gets a turn after about this many deliveries, as in any program. */
const PER_TURN = 1_000;
/** The heap is large and the code that runs is small, so both take longer than elsewhere to settle. */
const WARM_LONGER = 4;

/** Returns the topics of each watcher. Each topic is wanted by {@link PER_TOPIC} of them. */
export function topicsOf({ watchers, topicsEach }: Pick<AudienceOptions, 'watchers' | 'topicsEach'>): (readonly string[])[] {
  const count = Math.max(1, (watchers * topicsEach) / PER_TOPIC);
  const names = Array.from({ length: count }, (_, at) => `topic ${at}`);
  return Array.from({ length: watchers }, (_, at) => {
    const first = at % count;
    // Another distance for each of the five that share a first topic, so that no two watchers want the same two.
    const second = (first + 1 + 7 * Math.floor(at / count)) % count;
    return (topicsEach === 1 ? [first] : [first, second]).map((topic) => names[topic] as string);
  });
}

/**
 * Watchers of topics that check what they get, and their publisher. Events are numbered within their topic. An event of another
 * topic, or with a number that is lost, repeated or out of order, ends the run.
 */
export class Audience {
  private readonly hub: TopicHub;
  private readonly options: AudienceOptions;
  private readonly topics: readonly string[];
  /** The number of the next event of each topic. */
  private readonly next: Map<string, number> = new Map();
  private readonly members: Member[] = [];
  /** The number of the last event of the current burst, and how many have not received it. */
  private last: number = 0;
  private behind: number = 0;
  private turn: number = 0;
  private resolve: () => void = () => {};
  private reject: (error: Error) => void = () => {};
  private wrong: Error | undefined;

  constructor(hub: TopicHub, options: AudienceOptions) {
    this.hub = hub;
    this.options = options;
    const wanted = topicsOf(options);
    this.topics = [...new Set(wanted.flat())];
    for (const topics of wanted) {
      const member = new Member(this, topics);
      this.members.push(member);
      hub.watch(topics, member);
    }
  }

  /** Publishes bursts, each after the previous one was received. Returns the microseconds of processor time. */
  async run(bursts: number): Promise<number> {
    const { burst, into, lateMs = LATE_MS } = this.options;
    const perTurn = Math.ceil(PER_TURN / (burst * PER_TOPIC));
    await collectGarbage();
    const late = setTimeout(() => this.fail(`${this.behind} watchers do not have event ${this.last} yet`), lateMs);
    const before = process.cpuUsage();
    try {
      for (let i = 0; i < bursts; i++) {
        this.publish(this.topics[into === 'one topic' ? 0 : this.turn++ % this.topics.length] as string);
        if (this.behind > 0) await this.all();
        if (i % perTurn === perTurn - 1) await setImmediate();
      }
    } finally {
      clearTimeout(late);
    }
    const { user, system } = process.cpuUsage(before);
    // An event for somebody else would arrive now.
    for (let i = 0; i < 3; i++) await setImmediate();
    for (const member of this.members) member.checkBytes();
    if (this.wrong !== undefined) throw this.wrong;
    for (const member of this.members) member.checkNumbers(this.next);
    return user + system;
  }

  /** Runs for about `warmMs`. Returns the number of bursts in a round. */
  async warmUp({ warmMs, roundMs }: Settings): Promise<number> {
    const cold = warmingUp(warmMs * WARM_LONGER);
    let bursts = 1;
    let spent: number;
    do {
      spent = await this.run(bursts);
      if (spent < roundMs * 500) bursts *= 2;
    } while (cold());
    return Math.max(1, Math.round((bursts / spent) * roundMs * 1_000));
  }

  /** Called by members. */
  taken(number: number): void {
    if (number === this.last && --this.behind === 0) this.resolve();
  }

  /** Called by members whose connection was written to: a burst is one write. */
  wrote(): void {
    if (--this.behind === 0) this.resolve();
  }

  fail(why: string): void {
    this.wrong ??= new Error(`wrong answer: ${why}`);
    this.reject(this.wrong);
  }

  private publish(topic: string): void {
    const from = this.next.get(topic) ?? 0;
    const end = from + this.options.burst;
    this.next.set(topic, end);
    this.last = end - 1;
    this.behind = PER_TOPIC;
    for (let number = from; number < end; number++) this.hub.publish({ type: 'TOLD', object: { topic, number } });
  }

  private all(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      if (this.wrong !== undefined) reject(this.wrong);
    });
  }
}

/** One watcher of an audience. */
class Member implements Consumer {
  private readonly audience: Audience;
  private readonly topics: readonly string[];
  /** The number of the next event of each of its topics. */
  private readonly next: number[];
  private written: Uint8Array[] = [];

  constructor(audience: Audience, topics: readonly string[]) {
    this.audience = audience;
    this.topics = topics;
    this.next = topics.map(() => 0);
  }

  take({ object: { topic, number } }: Told): void {
    const at = this.topics.indexOf(topic);
    if (this.next[at] !== number) this.audience.fail(`event ${number} of ${topic} where ${this.next[at] ?? 'none'} was due`);
    this.next[at] = number + 1;
    this.audience.taken(number);
  }

  takeBytes(bytes: Uint8Array): void {
    this.written.push(bytes);
    this.audience.wrote();
  }

  checkBytes(): void {
    for (const bytes of this.written) for (const event of decoded(bytes)) this.take(event);
    this.written = [];
  }

  /** Throws if it has not received exactly what was published. */
  checkNumbers(published: ReadonlyMap<string, number>): void {
    for (const [at, topic] of this.topics.entries()) {
      const due = published.get(topic) ?? 0;
      if (this.next[at] !== due) throw new Error(`wrong answer: ${this.next[at]} events of ${topic}, and ${due} were published`);
    }
  }
}

/** What was decoded last: connections share their bytes. */
const known: WeakMap<Uint8Array, readonly Told[]> = new WeakMap();

function decoded(bytes: Uint8Array): readonly Told[] {
  let events = known.get(bytes);
  if (events === undefined) {
    const lines = new TextDecoder().decode(bytes).split('\n');
    if (lines.pop() !== '') throw new Error('wrong answer: the last line has no end');
    events = lines.map((line) => JSON.parse(line));
    known.set(bytes, events);
  }
  return events;
}
