import type { ConsumerConfig, JetStreamClient, JetStreamManager, StreamConfig, StreamInfo } from '@nats-io/jetstream';
import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { connect, nanos } from '@nats-io/transport-node';
import type {
  Following,
  HubSource,
  LastEvents,
  ReadFrom,
  ReadLimits,
  SourceEvent,
  SourceMessage,
  SourcePosition,
} from '../bridge/hub/source/source.ts';
import { sleep } from '../watch/clock.ts';
import { invalid, WatchError } from '../watch/errors.ts';
import { millisecondsOf, toEvent, toMark } from './message.ts';
import type { NatsSettings, NatsStreamOptions } from './options.ts';
import { toNatsSettings } from './options.ts';
import type { Handle, Portion } from './pull.ts';
import { Pull } from './pull.ts';
import { toSubject } from './subjects.ts';

/** A connection, and what JetStream does over it. */
interface Connected {
  readonly nats: NatsConnection;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
}

/** Where a stream begins and ends. */
interface Extent {
  readonly epoch: string;
  readonly first: number;
  readonly last: SourcePosition;
  /** Whether it holds everything in between. */
  readonly isWhole: boolean;
}

/** How long the server may take for one answer. */
const ANSWER_MS = 10_000;
/** After which a consumer that nobody asks goes away by itself. */
const UNUSED_MS = 30_000;
const PORTION: Portion = { items: 512, bytes: 4_194_304 };
const LOST = 'the connection to NATS is lost';
const RETRY_MS = { min: 50, max: 1_000 } as const;

/**
 * An event stream in NATS JetStream, for any number of hubs in any number of processes. All of them have the same events, in the
 * same order, with the same versions. Needs the packages `@nats-io/transport-node` and `@nats-io/jetstream`.
 *
 *     const stream = new NatsStream({ servers: '127.0.0.1:4222', stream: 'chat', create: { maxAgeMs: 86_400_000 } });
 *     const hub = new Hub({ source: stream });
 *     await hub.publish({ type: 'message', object: { text: 'hello' } });   // stored, and on its way to every hub
 *
 * The stream must drop events only by its limits, so that those it holds are consecutive; a stream with other rules is refused.
 * If somebody deletes a single event, that is a gap, and clients get a 410. Connects when it is first used, and reconnects when
 * necessary.
 */
export class NatsStream implements HubSource {
  private readonly settings: NatsSettings;
  private readonly ended: AbortController = new AbortController();
  private connected: Promise<Connected> | undefined = undefined;
  private nats: NatsConnection | undefined = undefined;
  /** Called when the connection is lost. */
  private readonly losses: Set<() => void> = new Set();
  /** Pending while the connection is lost: nats.js throws away what is sent meanwhile, and says nothing. */
  private back: Promise<void> | undefined = undefined;
  /** How long the stream remembers an id, as far as is known. */
  private rememberedMs: number = Number.POSITIVE_INFINITY;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option. */
  constructor(options: NatsStreamOptions) {
    this.settings = toNatsSettings(options);
  }

  /**
   * Publishes an event, and retries until it is acknowledged. The stream stores one event per id, as long as it remembers the id
   * (two minutes by default); there are no retries after that.
   *
   * @throws {WatchError} (rejects) TIMEOUT if it is not acknowledged by then; CLOSED after `close`; INVALID_ARGUMENT for an event
   * that is larger than the server accepts, and for topics that cannot be part of a subject.
   */
  async publish({ json, topics, id }: SourceMessage): Promise<void> {
    const { subject: root, stream, publishTimeoutMs } = this.settings;
    const subject = toSubject(root, topics);
    const payload = new TextEncoder().encode(json);
    const begunMs = performance.now();
    let cause: unknown;
    for (let delayMs: number = RETRY_MS.min; ; delayMs = Math.min(RETRY_MS.max, delayMs * 2)) {
      if (this.ended.signal.aborted) throw new WatchError('CLOSED', 'publish: the stream is closed');
      const limit = Math.min(publishTimeoutMs, this.rememberedMs);
      const leftMs = Math.ceil(begunMs + limit - performance.now());
      if (leftMs <= 0) throw new WatchError('TIMEOUT', `publish: not acknowledged within ${limit} ms`, { limit, cause });
      try {
        const { nats, client } = await this.connection(leftMs);
        const most = nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
        if (payload.length > most)
          throw invalid('event', `${payload.length} bytes`, `at most ${most} bytes (max_payload of the server)`);
        const timeout = Math.min(leftMs, ANSWER_MS);
        await this.answered(client.publish(subject, payload, { msgID: id, timeout, expect: { streamName: stream } }));
        return;
      } catch (error) {
        if (isFinal(error)) throw error;
        cause = error;
        // No stream listens: it may have to be created.
        if (nameOf(error) === 'JetStreamNotEnabled') await this.describe().catch(() => {});
      }
      await sleep(delayMs, { signal: this.ended.signal }).catch(() => {});
    }
  }

  async follow(from: SourcePosition | LastEvents, signal: AbortSignal): Promise<Following | undefined> {
    const extent = await this.describe();
    const end = extent.isWhole ? extent.last.sequence : await this.lastHeld(extent);
    const after = 'last' in from ? beforeLast(from.last, { ...extent, end }) : from;
    const opened = await this.open(after, extent, signal);
    if (opened === undefined) return undefined;
    return { position: after, last: end, batches: opened };
  }

  async read({ epoch, first }: ReadFrom, { items, bytes, signal }: ReadLimits): Promise<readonly SourceEvent[] | undefined> {
    const handle = await this.consume(first);
    const pull = new Pull(handle, this.portionFor(handle, { items, bytes }), false);
    const batches = this.batchesOf(pull, handle, signal);
    const [own, events] = await Promise.all([this.describe(), collected(batches)]);
    signal.throwIfAborted();
    // Asked after the consumer was created: if the stream was replaced since, the consumer has gone with it, and nothing was read.
    return own.epoch === epoch ? events.filter(({ sequence }) => sequence >= first) : undefined;
  }

  /** Closes the connection. Shut down the hubs that follow the stream first. Idempotent. */
  async close(): Promise<void> {
    this.ended.abort();
    // One that is still being made is closed as soon as it is there.
    await this.nats?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Returns the batches after a position, or undefined if the stream does not continue there. */
  private async open(after: SourcePosition, extent: Extent, signal: AbortSignal): Promise<Batches | undefined> {
    const { epoch, first, last } = extent;
    if (after.epoch !== epoch || after.sequence > last.sequence) return undefined;
    const atEnd = after.sequence === last.sequence;
    if (atEnd && after.mark !== last.mark) return undefined;
    // The event before is asked for, too: only that shows that it is still the same.
    const proof = !atEnd && after.sequence >= first && after.mark !== UNKNOWN;
    const isFirst = after.sequence === 0 || after.mark === UNKNOWN;
    if (!proof && !atEnd && !(isFirst && first <= after.sequence + 1)) return undefined;
    const handle = await this.consume(proof ? after.sequence : after.sequence + 1);
    // Since it was asked, the stream may have become another one, in which the consumer would wait for a distant sequence.
    const now = await this.describe();
    if (now.epoch !== epoch || now.last.sequence < after.sequence || signal.aborted) {
      handle.remove();
      return undefined;
    }
    const batches = this.batchesOf(new Pull(handle, this.portionFor(handle, PORTION), true), handle, signal);
    if (!proof) return batches;
    const begun = await batches.next();
    const [head, ...rest] = begun.done ? [] : begun.value;
    if (head?.sequence === after.sequence && head.mark === after.mark) return preceded(rest, batches);
    await batches.return(undefined);
    return undefined;
  }

  private portionFor({ nats }: Handle, { items, bytes }: Portion): Portion {
    // A message that is larger than what may be sent would never come.
    return { items, bytes: Math.max(bytes, 2 * (nats.info?.max_payload ?? bytes)) };
  }

  /** Reads until the end, or until the signal aborts, also if nobody ever iterates. */
  private batchesOf(pull: Pull, handle: Consumer, signal: AbortSignal): Batches {
    const lost = (): void => pull.fail(new Error(LOST));
    const end = (): void => {
      signal.removeEventListener('abort', end);
      if (!this.losses.delete(lost)) return;
      pull.close();
      handle.remove();
    };
    this.losses.add(lost);
    signal.addEventListener('abort', end);
    return batches(pull, this.settings.subject, end);
  }

  /** Creates a consumer that begins at a sequence. It goes away with its last reader. */
  private async consume(sequence: number): Promise<Consumer> {
    const { stream } = this.settings;
    const { nats, manager } = await this.connection(ANSWER_MS);
    const config: Partial<ConsumerConfig> = {
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: sequence,
      inactive_threshold: nanos(UNUSED_MS),
      mem_storage: true,
      num_replicas: 1,
    };
    const { name } = await this.answered(manager.consumers.add(stream, config));
    const remove = (): void => {
      if (!nats.isClosed()) manager.consumers.delete(stream, name).catch(() => {});
    };
    return { nats, subject: `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`, remove };
  }

  /** Asks where the stream begins and ends. Creates it if it may. */
  private async describe(): Promise<Extent> {
    const { stream, create } = this.settings;
    const { manager } = await this.connection(ANSWER_MS);
    let info: StreamInfo;
    try {
      info = await this.answered(manager.streams.info(stream));
    } catch (error) {
      if (nameOf(error) !== 'StreamNotFoundError' || create === undefined) throw error;
      info = await this.answered(manager.streams.add(this.toConfig()));
    }
    checkConfig(info.config, this.settings);
    const { created, state, config } = info;
    this.rememberedMs = config.duplicate_window / 1e6;
    const epoch = toEpoch(created);
    const mark = state.last_seq === 0 ? '0' : toMark(Math.max(0, millisecondsOf(state.last_ts)));
    const isWhole = state.messages === state.last_seq + 1 - Math.max(1, state.first_seq);
    return { epoch, first: Math.max(1, state.first_seq), last: { epoch, sequence: state.last_seq, mark }, isWhole };
  }

  /** Returns the sequence of the last event that is still there: somebody may have deleted those behind it. */
  private async lastHeld({ last }: Extent): Promise<number> {
    const { stream } = this.settings;
    const { manager } = await this.connection(ANSWER_MS);
    const { state } = await this.answered(manager.streams.info(stream, { deleted_details: true }));
    const deleted = new Set(state.deleted);
    let { sequence } = last;
    while (deleted.has(sequence)) sequence--;
    return sequence;
  }

  private toConfig(): Partial<StreamConfig> & { name: string } {
    const { stream, subject, create = {} } = this.settings;
    const { maxItems, maxBytes, maxAgeMs, duplicateWindowMs, replicas = 1, storage = 'file' } = create;
    return {
      name: stream,
      subjects: [subject, `${subject}.>`],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      storage: storage === 'file' ? StorageType.File : StorageType.Memory,
      num_replicas: replicas,
      ...(maxItems !== undefined && { max_msgs: maxItems }),
      ...(maxBytes !== undefined && { max_bytes: maxBytes }),
      ...(maxAgeMs !== undefined && { max_age: nanos(maxAgeMs) }),
      ...(duplicateWindowMs !== undefined && { duplicate_window: nanos(duplicateWindowMs) }),
    };
  }

  /** Returns the connection, the same for all. Rejects if there is none within this time; it is still being made then. */
  private async connection(limitMs: number): Promise<Connected> {
    if (this.ended.signal.aborted) throw new WatchError('CLOSED', 'the stream is closed');
    this.connected ??= this.connect();
    const late = new AbortController();
    try {
      return await Promise.race([
        this.connected.then((connected) => this.back?.then(() => connected) ?? connected),
        sleep(limitMs, { signal: late.signal }).then((): never => {
          throw new WatchError('TIMEOUT', `NATS: no connection within ${limitMs} ms`, { limit: limitMs });
        }),
      ]);
    } finally {
      late.abort();
    }
  }

  private connect(): Promise<Connected> {
    const connecting = connect(this.settings.connection).then(async (nats) => {
      this.nats = nats;
      if (this.ended.signal.aborted) await nats.close();
      void this.observe(nats);
      const manager = await jetstreamManager(nats, { timeout: ANSWER_MS, checkAPI: false });
      return { nats, manager, client: jetstream(nats, { timeout: ANSWER_MS }) };
    });
    connecting.catch(() => {
      this.connected = undefined;
    });
    return connecting;
  }

  /** An answer, or a failure as soon as the connection is lost: then there will be none. */
  private async answered<T>(answer: Promise<T>): Promise<T> {
    let lost = (): void => {};
    const loss = new Promise<never>((_, reject) => {
      lost = () => reject(new Error(LOST));
    });
    this.losses.add(lost);
    return Promise.race([answer, loss]).finally(() => this.losses.delete(lost));
  }

  /** Tells who waits when the connection is lost. One that has closed for good is made anew when it is next needed. */
  private async observe(nats: NatsConnection): Promise<void> {
    let isBack = (): void => {};
    for await (const { type } of nats.status()) {
      if (type === 'reconnect') isBack();
      if (type !== 'disconnect') continue;
      this.back = new Promise((resolve) => {
        isBack = resolve;
      });
      for (const lost of [...this.losses]) lost();
    }
    this.connected = undefined;
    this.back = undefined;
    isBack();
    for (const lost of [...this.losses]) lost();
  }
}

/** A consumer, and a function that removes it from the server. */
interface Consumer extends Handle {
  readonly remove: () => void;
}

type Batches = AsyncGenerator<readonly SourceEvent[], undefined>;

/** The mark of a position that nobody has been told, and which is the oldest that there is. */
const UNKNOWN = 'unknown';

/** Returns the position before the last events. */
function beforeLast(count: number, { epoch, first, last, end }: Extent & { readonly end: number }): SourcePosition {
  const sequence = Math.max(first - 1, end - count);
  if (count === 0 || sequence >= last.sequence) return last;
  return sequence === 0 ? { epoch, sequence, mark: '0' } : { epoch, sequence, mark: UNKNOWN };
}

/** The identity of a stream: the nanosecond in which it was created. */
function toEpoch(created: string): string {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(created) ?? [];
  const nanoseconds = BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0').slice(0, 9));
  return nanoseconds.toString(36);
}

/** Refuses a stream that would drop events from among others, or that does not listen to the events' subjects. */
function checkConfig(config: StreamConfig, { stream, subject }: NatsSettings): void {
  const holes = config.retention !== RetentionPolicy.Limits || config.max_msgs_per_subject > 0 || config.allow_msg_ttl === true;
  if (holes) {
    throw invalid('stream', stream, 'a stream that keeps events by limits of items, bytes and age alone');
  }
  if (config.no_ack) throw invalid('stream', stream, 'a stream that acknowledges');
  const covers = [subject, `${subject}.>`].every((each) => config.subjects?.some((own) => own === each || own === '>'));
  if (!covers) throw invalid('stream', stream, `a stream with the subjects ${subject} and ${subject}.>`);
}

/** Whether another attempt would fail, too. */
function isFinal(error: unknown): boolean {
  const { code, status } = error as { code?: unknown; status?: unknown };
  if (code === 'INVALID_ARGUMENT' || code === 'CLOSED') return true;
  return nameOf(error) === 'JetStreamApiError' && typeof status === 'number' && status < 500;
}

function nameOf(error: unknown): string | undefined {
  return (error as { name?: string } | undefined)?.name;
}

async function* batches(pull: Pull, root: string, end: () => void): Batches {
  try {
    for (let messages = await pull.next(); messages.length > 0; messages = await pull.next()) {
      yield messages.map((message) => toEvent(message, root));
      pull.more();
    }
  } finally {
    end();
  }
}

async function collected(batches: Batches): Promise<SourceEvent[]> {
  const events: SourceEvent[] = [];
  for await (const batch of batches) events.push(...batch);
  return events;
}

async function* preceded(first: readonly SourceEvent[], batches: Batches): Batches {
  try {
    if (first.length > 0) yield first;
    yield* batches;
  } finally {
    await batches.return(undefined);
  }
}
