import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, invalid, requireMethod, wholeNumber } from '../watch/errors.ts';
import { Failures } from '../watch/failures.ts';
import { checkOptions } from '../watch/options.ts';
import { JITTER } from './election.ts';
import type { LeaseResource } from './lease.ts';

/** What the leader's work gets. */
export interface LeadContext {
  /**
   * Aborts when this program no longer leads, or should stop. Pass it on to whatever the work waits for. Its reason is a
   * WatchError with code TIMEOUT if the lease could not be renewed, or CLOSED if another program has it; otherwise the reason of
   * the signal of `run`.
   */
  readonly signal: AbortSignal;
  /**
   * The number of this leadership: each later one, of any program, has a greater number. Include it in what you write elsewhere,
   * so that late writes of a former leader can be refused there.
   */
  readonly term: number;
}

/** What went wrong in an elector, as `onError` sees it. */
export interface LeaderFailure {
  /** The request that has failed. It is retried. */
  readonly during: 'get' | 'create' | 'update';
}

/** Options of a `LeaderElector`. */
export interface LeaderElectorOptions {
  /**
   * Where the lease is kept: `cluster.resource('leases.coordination.k8s.io/v1').in('default')`, or the same resource of an
   * `ApiServer`.
   */
  readonly leases: LeaseResource;
  /** The name of the lease, the same for all programs that compete. `namespace/name` if `leases` has several namespaces. */
  readonly name: string;
  /** The name of this program. No two programs may have the same. Default: a random UUID. */
  readonly identity?: string | undefined;
  /** How long others wait for a leader that is gone, in milliseconds; must be whole seconds; default 15,000. */
  readonly leaseDurationMs?: number | undefined;
  /** How long a leader leads after it last renewed the lease, in milliseconds; default 10,000. */
  readonly renewDeadlineMs?: number | undefined;
  /** How often a leader renews the lease, and others check it, in milliseconds and with jitter; default 2,000. */
  readonly retryMs?: number | undefined;
  /** How long one request may take, in milliseconds; default a third of `renewDeadlineMs`. */
  readonly requestTimeoutMs?: number | undefined;
  /** Called with the identity of each new leader, including this program. If it throws, `run` ends with that error. */
  readonly onNewLeader?: ((identity: string) => void) | undefined;
  /**
   * Called for each request that has failed. If it throws, `run` ends with that error. Default: `console.error`, once per kind, and
   * when requests are answered again.
   */
  readonly onError?: ((error: unknown, failure: LeaderFailure) => void) | undefined;
  /** Source of time. Default: the host's. */
  readonly clock?: Clock | undefined;
  /** The time of day for the lease's timestamps, which only people read, in ms since 1970. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
  /** Source of jitter: a number from 0 to below 1. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** The options with all defaults filled in. */
export type LeaderSettings = { readonly [Name in keyof LeaderElectorOptions]-?: NonNullable<LeaderElectorOptions[Name]> } & {
  /** A request was answered. */
  readonly onAnswer: () => void;
};

const NAMES = [
  'leases',
  'name',
  'identity',
  'leaseDurationMs',
  'renewDeadlineMs',
  'retryMs',
  'requestTimeoutMs',
  'onNewLeader',
  'onError',
  'clock',
  'now',
  'random',
] as const;

/** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
export function toLeaderSettings(options: LeaderElectorOptions): LeaderSettings {
  const { leases, name, identity = crypto.randomUUID(), onNewLeader, onError, now, random } = checkOptions(options, NAMES);
  const clock = requireMethod('clock', options.clock ?? systemClock, 'schedule', 'a Clock');
  const failures = new Failures(`leader elector ${name}`, { clock });
  for (const method of ['get', 'create', 'update'] as const) requireMethod('leases', leases, method, 'a resource of leases');
  return {
    ...toDurations(options),
    leases,
    name: text('name', name),
    identity: text('identity', identity),
    onNewLeader: callable('onNewLeader', onNewLeader) ?? (() => {}),
    onError: callable('onError', onError) ?? ((error, { during }) => failures.down('the lease', error, ` (${during})`)),
    onAnswer: () => failures.up('the lease'),
    clock,
    now: callable('now', now) ?? Date.now,
    random: callable('random', random) ?? Math.random,
  };
}

type Durations = Pick<LeaderSettings, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryMs' | 'requestTimeoutMs'>;

/** They must leave a leader time to renew, and to notice that it cannot, before another one takes over. */
function toDurations(options: LeaderElectorOptions): Durations {
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryMs = 2_000 } = options;
  const { requestTimeoutMs = Math.max(1, Math.floor(renewDeadlineMs / 3)) } = options;
  // A lease is in seconds.
  if (wholeNumber('leaseDurationMs', leaseDurationMs, 1) % 1_000 !== 0) {
    throw invalid('leaseDurationMs', leaseDurationMs, 'whole seconds, such as 15000');
  }
  if (wholeNumber('renewDeadlineMs', renewDeadlineMs, 1) >= leaseDurationMs) {
    throw invalid('renewDeadlineMs', renewDeadlineMs, `less than leaseDurationMs (${leaseDurationMs})`);
  }
  if (wholeNumber('retryMs', retryMs, 1) * JITTER >= renewDeadlineMs) {
    throw invalid('retryMs', retryMs, `less than renewDeadlineMs (${renewDeadlineMs}) divided by ${JITTER}`);
  }
  if (wholeNumber('requestTimeoutMs', requestTimeoutMs, 1) >= renewDeadlineMs) {
    throw invalid('requestTimeoutMs', requestTimeoutMs, `less than renewDeadlineMs (${renewDeadlineMs})`);
  }
  return { leaseDurationMs, renewDeadlineMs, retryMs, requestTimeoutMs };
}

function text(name: string, value: string): string {
  if (typeof value !== 'string' || value === '') throw invalid(name, value, 'a non-empty string');
  return value;
}
