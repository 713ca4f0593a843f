import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream';
import { type Msg, nanos } from '@nats-io/transport-node';
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
import { whenAborted } from '../watch/abort.ts';
import { sleep } from '../watch/clock.ts';
import { invalid, WatchError } from '../watch/errors.ts';
import { toStatus } from '../watch/event.ts';
import { ANSWER_MS, type NatsHandle, NatsLink, type Portion, Pull } from './connection.ts';
import { type NatsSettings, type NatsStreamOptions, toNatsSettings, toSubject, toTopics } from './nats-options.ts';

/** Where a stream begins and ends. */
interface Extent {
  readonly epoch: string;
  readonly first: number;
  readonly last: SourcePosition;
  /** Whether it holds everything in between. */
  readonly isWhole: boolean;
}

/** The server removes a consumer without requests after this long. */
const UNUSED_MS = 30_000;
const PORTION: Portion = { items: 512, bytes: 4_194_304 };
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
 * If a single event is deleted, that is a gap, and clients get a 410. Connects when first used, and reconnects when necessary.
 */
export class NatsStream implements HubSource {
  private readonly settings: NatsSettings;
  private readonly link: NatsLink;
  /** How long the stream remembers an id, as far as is known. */
  private rememberedMs: number = Number.POSITIVE_INFINITY;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option. */
  constructor(options: NatsStreamOptions) {
    this.settings = toNatsSettings(options);
    this.link = new NatsLink(this.settings.connection);
  }

  /**
   * Publishes an event, and retries until it is acknowledged. The stream stores one event per id, as long as it remembers the id
   * (two minutes by default); there are no retries after that.
   *
   * @throws {WatchError} (rejects) TIMEOUT if it is not acknowledged by then; REFUSED if NATS has refused it until then, for
   * example because the stream is full, or at once if a permission is missing: it is not stored, and the message names the
   * reason; CLOSED after `close`; INVALID_ARGUMENT for an event that is larger than the server accepts, and for topics that
   * cannot be part of a subject.
   */
  async publish({ json, topics, id }: SourceMessage): Promise<void> {
    const { subject: root, stream, publishTimeoutMs } = this.settings;
    const subject = toSubject(root, topics);
    const payload = new TextEncoder().encode(json);
    const begunMs = performance.now();
    let cause: unknown;
    for (let delayMs: number = RETRY_MS.min; ; delayMs = Math.min(RETRY_MS.max, delayMs * 2)) {
      if (this.link.closed.aborted) throw new WatchError('CLOSED', 'publish: the stream is closed');
      const limit = Math.min(publishTimeoutMs, this.rememberedMs);
      const leftMs = Math.ceil(begunMs + limit - performance.now());
      if (leftMs <= 0) throw unpublished(cause, limit);
      try {
        const { nats, client } = await this.link.connection(leftMs);
        const most = nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
        if (payload.length > most)
          throw invalid('event', `${payload.length} bytes`, `at most ${most} bytes (max_payload of the server)`);
        const timeout = Math.min(leftMs, ANSWER_MS);
        await this.link.answered(client.publish(subject, payload, { msgID: id, timeout, expect: { streamName: stream } }));
        return;
      } catch (error) {
        if (isForbidden(error)) throw toRefusal(error, { code: 403, reason: 'Forbidden' });
        if (isFinal(error)) throw error;
        cause = error;
        // No stream listens: it may have to be created.
        if (nameOf(error) === 'JetStreamNotEnabled') await this.describe().catch(() => {});
      }
      await sleep(delayMs, { signal: this.link.closed }).catch(() => {});
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
    // Asked after the consumer was created: if the stream was replaced in the meantime, the consumer is gone with it, and
    // nothing was read.
    return own.epoch === epoch ? events.filter(({ sequence }) => sequence >= first) : undefined;
  }

  /** Closes the connection. Shut down the hubs that follow the stream first. Idempotent. */
  close(): Promise<void> {
    return this.link.close();
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
    // The preceding event is requested as well: only it shows that this is still the same stream.
    const proof = !atEnd && after.sequence >= first && after.mark !== UNKNOWN;
    const isFirst = after.sequence === 0 || after.mark === UNKNOWN;
    if (!proof && !atEnd && !(isFirst && first <= after.sequence + 1)) return undefined;
    const handle = await this.consume(proof ? after.sequence : after.sequence + 1);
    // The stream may have been replaced meanwhile, by one in which the consumer would wait for a distant sequence.
    const now = await this.describe();
    if (now.epoch !== epoch || now.last.sequence < after.sequence || signal.aborted) {
      handle.remove();
      return undefined;
    }
    const batches = this.batchesOf(new Pull(handle, this.portionFor(handle, PORTION), true), handle, signal);
    if (!proof) return batches;
    const begun = await batches.next();
    const [head, ...rest] = begun.done ? [] : begun.value;
    if (head?.sequence === after.sequence && head.mark === after.mark) return prepend(rest, batches);
    await batches.return(undefined);
    return undefined;
  }

  private portionFor({ nats }: NatsHandle, { items, bytes }: Portion): Portion {
    // A message that is larger than the request allows would never come.
    return { items, bytes: Math.max(bytes, 2 * (nats.info?.max_payload ?? bytes)) };
  }

  /** Reads until the end, or until the signal aborts, even if the result is never iterated. */
  private batchesOf(pull: Pull, handle: Consumer, signal: AbortSignal): Batches {
    const forget = this.link.onLoss((error) => pull.fail(error));
    let leave = (): void => {};
    const end = (): void => {
      leave();
      if (!forget()) return;
      pull.close();
      handle.remove();
    };
    leave = whenAborted(signal, end);
    return batches(pull, this.settings.subject, end);
  }

  /** Creates a consumer that begins at a sequence. It is removed with its last reader. */
  private async consume(sequence: number): Promise<Consumer> {
    const { stream } = this.settings;
    const { nats, manager } = await this.link.connection(ANSWER_MS);
    const config: Partial<ConsumerConfig> = {
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: sequence,
      inactive_threshold: nanos(UNUSED_MS),
      mem_storage: true,
      num_replicas: 1,
    };
    const { name } = await this.link.answered(manager.consumers.add(stream, config));
    const remove = (): void => {
      if (!nats.isClosed()) manager.consumers.delete(stream, name).catch(() => {});
    };
    return { nats, subject: `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`, remove };
  }

  /** Asks where the stream begins and ends. Creates it if that is allowed. */
  private async describe(): Promise<Extent> {
    const { stream, create } = this.settings;
    const { manager } = await this.link.connection(ANSWER_MS);
    let info: StreamInfo;
    try {
      info = await this.link.answered(manager.streams.info(stream));
    } catch (error) {
      if (nameOf(error) !== 'StreamNotFoundError' || create === undefined) throw error;
      info = await this.link.answered(manager.streams.add(toConfig(this.settings)));
    }
    // Of two that create it at once, the server may answer one before it knows when that was.
    while (!isCreated(info) && !this.link.closed.aborted) {
      await sleep(RETRY_MS.min);
      info = await this.link.answered(manager.streams.info(stream));
    }
    checkConfig(info.config, this.settings);
    const { created, state, config } = info;
    this.rememberedMs = config.duplicate_window / 1e6;
    const epoch = toEpoch(created);
    const mark = state.last_seq === 0 ? '0' : toMark(Math.max(0, millisecondsOf(state.last_ts)));
    const isWhole = state.messages === state.last_seq + 1 - Math.max(1, state.first_seq);
    return { epoch, first: Math.max(1, state.first_seq), last: { epoch, sequence: state.last_seq, mark }, isWhole };
  }

  /** Returns the sequence of the last event that is still there: later ones may have been deleted. */
  private async lastHeld({ last }: Extent): Promise<number> {
    const { stream } = this.settings;
    const { manager } = await this.link.connection(ANSWER_MS);
    const { state } = await this.link.answered(manager.streams.info(stream, { deleted_details: true }));
    const deleted = new Set(state.deleted);
    let { sequence } = last;
    while (deleted.has(sequence)) sequence--;
    return sequence;
  }
}

/** A consumer, and a function that removes it from the server. */
interface Consumer extends NatsHandle {
  readonly remove: () => void;
}

type Batches = AsyncGenerator<readonly SourceEvent[], undefined>;

/** The mark of a position before the last events: no client has it, so there is nothing to compare it with. */
const UNKNOWN = 'unknown';

/** Returns the position before the last events. */
function beforeLast(count: number, { epoch, first, last, end }: Extent & { readonly end: number }): SourcePosition {
  const sequence = Math.max(first - 1, end - count);
  if (count === 0 || sequence >= last.sequence) return last;
  return sequence === 0 ? { epoch, sequence, mark: '0' } : { epoch, sequence, mark: UNKNOWN };
}

/** Whether another attempt would also fail. */
function isFinal(error: unknown): boolean {
  const { code, status } = error as { code?: unknown; status?: unknown };
  if (code === 'INVALID_ARGUMENT' || code === 'CLOSED') return true;
  return nameOf(error) === 'JetStreamApiError' && typeof status === 'number' && status < 500;
}

/** Whether the connection's user lacks the permission. No attempt would be answered. */
function isForbidden(error: unknown): boolean {
  if (nameOf(error) === 'PermissionViolationError') return true;
  const { cause } = (error ?? {}) as { cause?: unknown };
  return cause !== undefined && isForbidden(cause);
}

/**
 * The error of a publish that has run out of time. If the server has refused it, it is not a timeout: the event is not stored.
 */
function unpublished(cause: unknown, limit: number): WatchError {
  if (nameOf(cause) === 'JetStreamApiError') return toRefusal(cause, { code: 503, reason: 'ServiceUnavailable' });
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  return new WatchError('TIMEOUT', `publish: not acknowledged within ${limit} ms${why}`, { limit, cause });
}

function toRefusal(cause: unknown, about: { readonly code: number; readonly reason: string }): WatchError {
  const message = `publish: NATS refuses the event: ${(cause as Error).message}`;
  return new WatchError('REFUSED', message, { status: toStatus({ ...about, message }), cause });
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

async function* prepend(first: readonly SourceEvent[], batches: Batches): Batches {
  try {
    if (first.length > 0) yield first;
    yield* batches;
  } finally {
    await batches.return(undefined);
  }
}

/** What a message of a consumer says about itself in its reply subject. */
interface MessageInfo {
  readonly sequence: number;
  readonly mark: string;
}

const decoder = new TextDecoder();

/** Returns the event of a message from a consumer. A stream may also have other subjects: their messages are not events. */
function toEvent(message: Msg, root: string): SourceEvent {
  const { sequence, mark } = readMessageInfo(message);
  const topics = toTopics(root, message.subject);
  return { sequence, mark, json: topics ? decoder.decode(message.data) : '', topics: topics ?? [] };
}

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<own sequence>.<time>.<pending>`; newer servers have a domain and an
 * account before the stream, and one more token at the end.
 */
function readMessageInfo({ reply = '' }: Msg): MessageInfo {
  const tokens = reply.split('.');
  const at = tokens.length > 9 ? 7 : 5;
  const [sequence = '', , time = ''] = tokens.slice(at);
  if (!reply.startsWith('$JS.ACK.') || !/^\d+$/.test(sequence) || !/^\d{7,}$/.test(time)) {
    throw new Error(`not a message from a consumer: ${reply.slice(0, 80)}`);
  }
  return { sequence: Number(sequence), mark: toMark(Number(time.slice(0, -6))) };
}

/** The mark of an event: the millisecond in which the stream stored it. */
function toMark(milliseconds: number): string {
  return milliseconds.toString(36);
}

/** Returns the milliseconds of a time such as `2026-11-23T16:23:59.424831858Z`, truncated like those of a message. */
export function millisecondsOf(time: string): number {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(time) ?? [];
  return Date.parse(`${seconds}Z`) + Number(fraction.padEnd(3, '0').slice(0, 3));
}

function toConfig({ stream, subject, create = {} }: NatsSettings): Partial<StreamConfig> & { name: string } {
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

/** Refuses a stream that would drop events from between others, or that does not listen to the events' subjects. */
function checkConfig(config: StreamConfig, { stream, subject }: NatsSettings): void {
  const holes = config.retention !== RetentionPolicy.Limits || config.max_msgs_per_subject > 0 || config.allow_msg_ttl === true;
  if (holes) {
    throw invalid('stream', stream, 'a stream that drops events only by limits of items, bytes and age');
  }
  if (config.no_ack) throw invalid('stream', stream, 'a stream that acknowledges');
  const covers = [subject, `${subject}.>`].every((each) => config.subjects?.some((own) => own === each || own === '>'));
  if (!covers) throw invalid('stream', stream, `a stream with the subjects ${subject} and ${subject}.>`);
}

/** Whether the server says when the stream was created: its zero time is the year 1. */
function isCreated({ created }: StreamInfo): boolean {
  return !created.startsWith('0001-');
}

/** The identity of a stream: the nanosecond in which it was created. */
function toEpoch(created: string): string {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(created) ?? [];
  const nanoseconds = BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0').slice(0, 9));
  return nanoseconds.toString(36);
}
