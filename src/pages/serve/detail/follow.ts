/**
 * Follows one object: every state that the server sends, exactly as it was sent.
 *
 *     list of one ---> watch from its version ---> states, as they come
 *         ^                  | broken: again, from the last version, after a pause
 *         '--- expired (410) '
 *
 * Not an informer, because an informer's numbers are JavaScript's: an id beyond 2^53 would be shown, and written back, as a
 * different one.
 *
 * - `live` is reported while a watch is open, and nothing is reported after {@link ObjectFollower.stop}.
 * - What happens between two watches is not lost: the second one begins where the first one ended. If the server no longer has
 *   that version, a `gap` comes first.
 */

import type { FetchLike } from '../../../bridge/client.ts';
import { accepted, ask, Exchange, type HttpSettings, toHttpSettings } from '../../../cache/http/exchange.ts';
import { versionOf } from '../../../cache/object.ts';
import type { Codec } from '../../../decode/codec.ts';
import { decoderOf } from '../../../decode/decoder.ts';
import { NewlineFramer } from '../../../decode/framing.ts';
import { escapeFieldValue } from '../../../selectors/field-selector.ts';
import { Backoff } from '../../../watch/backoff.ts';
import { type Clock, sleep, systemClock } from '../../../watch/clock.ts';
import { refusalCode, refusedBy, WatchError } from '../../../watch/errors.ts';
import { isStatus, type Status, toStatus } from '../../../watch/event.ts';
import { parseExactly } from '../../words.ts';
import { type Happening, type HistoryEntry, toEntry, writtenAt } from './history.ts';
import { hasMembers, type Members } from './paths.ts';

/** The Status of an ERROR that has none. */
const UNKNOWN: Status = toStatus({ code: 500, reason: 'InternalError', message: 'unknown' });

export type FollowPhase =
  | { readonly is: 'connecting' | 'live' }
  | { readonly is: 'waiting'; readonly delayMs: number; readonly error: unknown };

/** What has happened, and the state after it; of a deletion, the last one. `undefined`: there is no such object. */
export interface ObjectState {
  readonly what: Happening;
  readonly object: Members | undefined;
}

interface FollowerOptions {
  /** The collection. */
  readonly url: URL;
  readonly name: string;
  readonly fetch: FetchLike;
  /** What a list does not say about its items. */
  readonly type: { readonly apiVersion: string; readonly kind: string };
  readonly onState: (state: ObjectState) => void;
  readonly onPhase: (phase: FollowPhase) => void;
  /** The server requires another token. Following has ended. */
  readonly onDenied: () => void;
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
}

/** An event of a watch; nothing about it is certain. */
interface WireEvent {
  readonly type: unknown;
  readonly object: Members;
}

const ANSWER_MS = 20_000;
/** How much is read of older states, and for how long. */
const MAX_OLDER_BYTES = 16 * 2 ** 20;
const OLDER_SECONDS = 2;
const PAUSES = { minMs: 500, maxMs: 10_000, factor: 2, apart: true } as const;

export class ObjectFollower {
  private readonly options: FollowerOptions;
  private readonly means: HttpSettings;
  private readonly clock: Clock;
  private running: AbortController | undefined = undefined;
  /** Where the next watch begins; undefined: with a list. */
  private version: string | undefined = undefined;
  /** The last state; undefined: there is no object. */
  private object: Members | undefined = undefined;
  private hasRead: boolean = false;

  constructor(options: FollowerOptions) {
    this.options = options;
    this.clock = options.clock ?? systemClock;
    this.means = toHttpSettings({ fetch: options.fetch, responseTimeoutMs: ANSWER_MS, clock: this.clock });
  }

  /** Follows from where it stopped. */
  start(): void {
    if (this.running) return;
    this.running = new AbortController();
    void this.run(this.running.signal);
  }

  stop(): void {
    this.running?.abort();
    this.running = undefined;
  }

  private async run(signal: AbortSignal): Promise<void> {
    const { onPhase, onDenied, random = Math.random } = this.options;
    const backoff = new Backoff({ ...PAUSES, random });
    while (!signal.aborted) {
      const begunMs = this.clock.now();
      let delayMs: number;
      onPhase({ is: 'connecting' });
      try {
        if (this.version === undefined) await this.list(signal);
        await this.watch(signal, () => backoff.healthy());
        delayMs = backoff.renewed(this.clock.now() - begunMs);
      } catch (error) {
        if (signal.aborted) return;
        const code = refusalCode(error);
        if (code === 401) {
          this.stop();
          onDenied();
          return;
        }
        const expired = code === 410;
        if (expired) this.version = undefined;
        delayMs = backoff.failed({ ranMs: this.clock.now() - begunMs, expired, curable: expired });
        onPhase({ is: 'waiting', delayMs, error });
      }
      await sleep(delayMs, { signal, clock: this.clock }).catch(() => {});
    }
  }

  private async list(signal: AbortSignal): Promise<void> {
    const { object, version } = await this.listed({}, signal);
    if (signal.aborted) return;
    this.version = version;
    const before = this.object;
    if (this.hasRead && versionOf(before) === versionOf(object)) return;
    const what = !this.hasRead ? 'read' : object === undefined ? 'deleted' : 'gap';
    this.hasRead = true;
    this.tell({ what, object: object ?? before });
  }

  /** The object, and the version of the answer. */
  private async listed(
    more: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<{ object: Members | undefined; version: string }> {
    const list = await ask(this.means, this.urlOf(more), { signal, limit: 'maxListBytes', read: parseExactly });
    const { items } = (list ?? {}) as { items?: unknown };
    const [item] = Array.isArray(items) ? (items as unknown[]) : [];
    return { object: hasMembers(item) ? { ...this.options.type, ...item } : undefined, version: versionOf(list) };
  }

  private async watch(signal: AbortSignal, onHealthy: () => void): Promise<void> {
    const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion: this.version as string };
    const onOpen = (): void => this.options.onPhase({ is: 'live' });
    for await (const { type, object } of this.events(query, { signal, onOpen })) {
      if (signal.aborted) return;
      onHealthy();
      this.version = versionOf(object);
      if (type === 'ADDED') this.tell({ what: 'created', object });
      else if (type === 'MODIFIED') this.tell({ what: 'changed', object });
      else if (type === 'DELETED') this.tell({ what: 'deleted', object });
    }
  }

  private tell(state: ObjectState): void {
    this.object = state.what === 'deleted' ? undefined : state.object;
    this.options.onState(state);
  }

  /**
   * What happened to the object from `since`, the oldest version that the server still has, until it was `until`; oldest first.
   * With an empty `until`, everything that the server sends. Rejects if the server refuses.
   */
  async older(
    { since, until }: { readonly since: string; readonly until: string },
    signal: AbortSignal,
  ): Promise<readonly HistoryEntry[]> {
    const first = await this.listed({ resourceVersion: since, resourceVersionMatch: 'Exact' }, signal);
    if (until !== '' && versionOf(first.object) === until) return [];
    let before = first.object;
    let bytes = 0;
    const entries = before ? [toEntry({ what: 'read', at: writtenAt('read', before), before: undefined, after: before })] : [];
    const query = { watch: 'true', resourceVersion: since, timeoutSeconds: `${OLDER_SECONDS}` };
    const onBytes = (more: number): void => {
      bytes += more;
    };
    for await (const { type, object } of this.events(query, { signal, onBytes })) {
      if (type === 'BOOKMARK') continue;
      const what = type === 'DELETED' ? 'deleted' : type === 'ADDED' ? 'created' : 'changed';
      entries.push(toEntry({ what, at: writtenAt(what, object), before, after: object }));
      before = what === 'deleted' ? undefined : object;
      if (versionOf(object) === until || bytes > MAX_OLDER_BYTES) break;
    }
    // The last one is the state with which the page began.
    return entries;
  }

  /** The events of a watch until it ends. Throws the server's error, and for anything that is not an event. */
  private async *events(
    query: Readonly<Record<string, string>>,
    { signal, onOpen, onBytes }: EventsOptions,
  ): AsyncGenerator<WireEvent> {
    const exchange = new Exchange(this.means, signal);
    try {
      const response = await accepted(exchange, this.urlOf(query));
      exchange.disarmTimeout();
      onOpen?.();
      if (!response.body) return;
      const decoder = decoderOf(response.body, new NewlineFramer({ maxFrameBytes: this.means.maxFrameBytes }), exactly(onBytes));
      const close = (): void => decoder.close();
      exchange.signal.addEventListener('abort', close);
      for (let event = await decoder.decode(); event; event = await decoder.decode()) {
        if (event.type === 'ERROR') throw refusedBy(isStatus(event.object) ? event.object : UNKNOWN);
        yield event;
      }
    } finally {
      exchange.end();
    }
  }

  private urlOf(query: Readonly<Record<string, string>>): URL {
    const url = new URL(this.options.url);
    const fieldSelector = `metadata.name=${escapeFieldValue(this.options.name)}`;
    url.search = String(new URLSearchParams({ fieldSelector, ...query }));
    return url;
  }
}

interface EventsOptions {
  readonly signal: AbortSignal;
  readonly onOpen?: () => void;
  /** Called with the size of each event. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/** Events with numbers as they were sent. */
function exactly(onBytes: EventsOptions['onBytes']): Codec<WireEvent> {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  return {
    decode: (frame) => {
      onBytes?.(frame.length);
      const { type, object } = parseExactly(utf8.decode(frame)) as { type?: unknown; object?: unknown };
      if (!hasMembers(object)) throw new WatchError('INVALID_FRAME', 'the server has sent something that is not an event');
      return { type, object };
    },
  };
}
