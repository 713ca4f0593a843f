import type { Clock } from '../../watch/clock.ts';
import type { Status } from '../../watch/event.ts';
import { Failures } from '../../watch/failures.ts';
import type { Ending } from '../protocol.ts';
import { type ClientStats, CUT_REASONS, type CutReason } from './connection.ts';

/** Why a client was refused. */
export type RefusalReason =
  | 'badRequest'
  | 'unauthorized'
  | 'forbidden'
  | 'origin'
  | 'method'
  | 'expired'
  | 'full'
  | 'address'
  | 'ended'
  | 'pipelined'
  | 'timeout'
  | 'failed';

/** A refused client: the reason, the answer, its address, and the error of the hook that failed, if that was the reason. */
export interface Refusal {
  readonly reason: RefusalReason;
  readonly status: Status;
  readonly address: string;
  readonly error?: unknown;
}

/** Something that happened to a client. If the reason is `failed`, `error` is what a filter, a snapshot or a hook threw. */
export type HubNotice =
  | { readonly type: 'open'; readonly client: ClientStats; readonly error?: undefined }
  | {
      readonly type: 'close';
      readonly client: ClientStats;
      readonly reason: Ending | CutReason | 'gone';
      readonly error?: unknown;
    }
  | { readonly type: 'cut'; readonly client: ClientStats; readonly reason: CutReason; readonly error?: unknown }
  | ({ readonly type: 'refused' } & Refusal)
  | { readonly type: 'resume'; readonly client: ClientStats; readonly missed: number; readonly error?: undefined };

/** What has failed in a hub, as `onError` sees it. */
export interface HubFailure {
  /**
   * - `admission`: a hook of the application, such as `authenticate` or `watchOptions`, or the source, when it was asked where a
   *   client continues. The client was refused with 503.
   * - `client`: a filter, a snapshot or a connection. The client was cut, or got an ERROR.
   * - `source`: the hub's source. The hub tries again.
   * - `telemetry`: the hub's telemetry, whose first failure is reported.
   */
  readonly during: 'admission' | 'client' | 'source' | 'telemetry';
}

const SUBJECTS = {
  ...{ admission: 'the admission of a client', client: 'the watch of a client', telemetry: 'the telemetry' },
} as const;

type HubErrorListener = (error: unknown, failure: HubFailure) => void;

/** A receiver of notices. */
export interface Observer {
  /** Whether to create a notice of this type at all; default true. */
  wants?(type: HubNotice['type']): boolean;
  tell(notice: HubNotice): void;
}

/** The totals of a hub, including clients that have left. */
export interface HubTotals {
  /** Clients served since the hub was created. */
  readonly clients: number;
  /** Events written to connections. */
  readonly delivered: number;
  /** Events that clients did not get; with `coalesce`, those folded into a later one. */
  readonly dropped: number;
  /** Bytes of events written to connections, as their transports frame them; BOOKMARKs count, too. */
  readonly sentBytes: number;
  /** Clients that reconnected and continued where they were. */
  readonly resumes: number;
  /** Clients refused: in total, and by reason. */
  readonly refused: number;
  readonly refusals: Readonly<Partial<Record<RefusalReason, number>>>;
  /** Clients cut: in total, and by reason. */
  readonly cut: number;
  readonly cuts: Readonly<Partial<Record<CutReason, number>>>;
}

/** Counts what happens to clients, and notifies observers. */
export class Tally {
  clients: number = 0;
  private delivered: number = 0;
  private dropped: number = 0;
  private sentBytes: number = 0;
  private resumes: number = 0;
  private readonly refusals: Map<RefusalReason, number> = new Map();
  private readonly cuts: Map<CutReason, number> = new Map();
  private readonly observers: Set<Observer> = new Set();
  private readonly onError: HubErrorListener | undefined;
  private readonly failures: Failures;

  constructor({ onError, clock }: { readonly onError?: HubErrorListener | undefined; readonly clock?: Clock | undefined } = {}) {
    this.onError = onError;
    this.failures = new Failures('hub', { clock });
  }

  observe(observer: Observer): () => void {
    this.observers.add(observer);
    return () => void this.observers.delete(observer);
  }

  opened(client: () => ClientStats): void {
    this.tell('open', () => ({ type: 'open', client: client() }));
  }

  resumed(client: () => ClientStats, missed: number): void {
    this.resumes++;
    this.tell('resume', () => ({ type: 'resume', client: client(), missed }));
  }

  refused(refusal: Refusal): void {
    const { reason, error } = refusal;
    if (error !== undefined) this.failed(error, 'admission');
    this.refusals.set(reason, (this.refusals.get(reason) ?? 0) + 1);
    this.tell('refused', () => ({ type: 'refused', ...refusal }));
  }

  closed(client: ClientStats, reason: Ending | CutReason | 'gone', error: unknown): void {
    this.delivered += client.delivered;
    this.dropped += client.dropped;
    this.sentBytes += client.sentBytes;
    if (isCut(reason)) {
      this.cuts.set(reason, (this.cuts.get(reason) ?? 0) + 1);
      this.tell('cut', () => ({ type: 'cut', client, reason, ...causeOf(error) }));
    }
    if (error !== undefined) this.failed(error, 'client');
    this.tell('close', () => ({ type: 'close', client, reason, ...causeOf(error) }));
  }

  /** Returns the totals, including the clients that are still connected. */
  totals(present: readonly ClientStats[]): HubTotals {
    const sum = (of: (client: ClientStats) => number): number => present.reduce((so, client) => so + of(client), 0);
    return {
      clients: this.clients,
      delivered: this.delivered + sum(({ delivered }) => delivered),
      dropped: this.dropped + sum(({ dropped }) => dropped),
      sentBytes: this.sentBytes + sum(({ sentBytes }) => sentBytes),
      resumes: this.resumes,
      refused: all(this.refusals),
      refusals: Object.fromEntries(this.refusals),
      cut: all(this.cuts),
      cuts: Object.fromEntries(this.cuts),
    };
  }

  /** Reports an error of the application's code, or of the source. */
  failed(error: unknown, during: HubFailure['during']): void {
    const { onError } = this;
    if (onError) uncaught(() => onError(error, { during }));
    else if (during === 'source') this.failures.down('the source', error);
    else this.failures.failed(SUBJECTS[during], error);
  }

  sourceWorks(): void {
    this.failures.up('the source');
  }

  private tell(type: HubNotice['type'], notice: () => HubNotice): void {
    for (const observer of this.observers) {
      uncaught(() => {
        if (observer.wants?.(type) !== false) observer.tell(notice());
      });
    }
  }
}

/** Calls code of the application, which must not interfere with the hub and its clients. An error is reported as uncaught. */
function uncaught(code: () => void): void {
  try {
    code();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

function causeOf(error: unknown): { error?: unknown } {
  return error === undefined ? {} : { error };
}

function all(counts: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const count of counts.values()) sum += count;
  return sum;
}

function isCut(reason: string): reason is CutReason {
  return (CUT_REASONS as readonly string[]).includes(reason);
}
