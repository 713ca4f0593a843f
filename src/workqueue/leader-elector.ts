import { isAbortOf, untilAborted, whenAborted } from '../watch/abort.ts';
import { type Clock, gaveUp, sleep, systemClock } from '../watch/clock.ts';
import {
  callable,
  checkOptions,
  invalid,
  namesOf,
  refusalCode,
  requireMethod,
  WatchError,
  wholeNumber,
  wholeNumbers,
} from '../watch/errors.ts';
import { Failures, quietly } from '../watch/failures.ts';
import { Election, type ElectionStep, JITTER, type Lease, type LeaseAnswer, type LeaseResource } from './election.ts';

/** The argument of the leader's work. */
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
  /** How long others wait for a leader that has gone, in milliseconds, a multiple of 1,000; default 15,000. */
  readonly leaseDurationMs?: number | undefined;
  /** How long a leader keeps leading after it last renewed the lease, in milliseconds; default 10,000. */
  readonly renewDeadlineMs?: number | undefined;
  /** How often a leader renews the lease, and others check it, in milliseconds and with jitter; default 2,000. */
  readonly retryMs?: number | undefined;
  /** How long one request may take, in milliseconds; default a third of `renewDeadlineMs`. */
  readonly requestTimeoutMs?: number | undefined;
  /** Called with the identity of each new leader, including this program. If it throws, `run` ends with that error. */
  readonly onNewLeader?: ((identity: string) => void) | undefined;
  /**
   * Called for each failed request. If it throws, `run` ends with that error. Default: `console.error`, once per kind, and when
   * requests are answered again.
   */
  readonly onError?: ((error: unknown, failure: LeaderFailure) => void) | undefined;
  /** Called for each request that was answered: the lease can be reached. If it throws, `run` ends with that error. */
  readonly onAnswer?: (() => void) | undefined;
  /** Source of time. Default: the host's. */
  readonly clock?: Clock | undefined;
  /** The time of day for the lease's timestamps, which only people read, in ms since 1970. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
  /** Source of jitter: a number from 0 to below 1. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** The options with all defaults filled in. */
type LeaderSettings = { readonly [Name in keyof LeaderElectorOptions]-?: NonNullable<LeaderElectorOptions[Name]> };

const NUMBERS = { leaseDurationMs: [15_000, 1], renewDeadlineMs: [10_000, 1], retryMs: [2_000, 1] } as const;
const HOOKS = ['onNewLeader', 'onError', 'onAnswer', 'now', 'random'] as const;
const OTHERS = ['leases', 'name', 'identity', 'requestTimeoutMs', 'clock'] as const;

/** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
function toLeaderSettings(options: LeaderElectorOptions): LeaderSettings {
  const { leases, name, identity = crypto.randomUUID() } = checkOptions(options, [...namesOf(NUMBERS), ...HOOKS, ...OTHERS]);
  for (const name of HOOKS) callable(name, options[name]);
  const { onNewLeader, onError, onAnswer, now, random } = options;
  const clock = options.clock ?? systemClock;
  const failures = new Failures(`leader elector ${name}`, { clock });
  for (const method of ['get', 'create', 'update'] as const) requireMethod('leases', leases, method, 'a resource of leases');
  return {
    ...toDurations(options),
    leases,
    name: text('name', name),
    identity: text('identity', identity),
    onNewLeader: onNewLeader ?? (() => {}),
    onError: onError ?? ((error, { during }) => failures.down('the lease', error, ` (${during})`)),
    onAnswer: () => {
      failures.up('the lease');
      return onAnswer?.();
    },
    clock,
    now: now ?? Date.now,
    random: random ?? Math.random,
  };
}

type Durations = Pick<LeaderSettings, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryMs' | 'requestTimeoutMs'>;

/** Together, they must leave a leader time to renew, and to notice that it cannot, before another one takes over. */
function toDurations(options: LeaderElectorOptions): Durations {
  const { leaseDurationMs, renewDeadlineMs, retryMs } = wholeNumbers(options, NUMBERS);
  const { requestTimeoutMs = Math.max(1, Math.floor(renewDeadlineMs / 3)) } = options;
  // A lease is in seconds.
  if (leaseDurationMs % 1_000 !== 0) {
    throw invalid('leaseDurationMs', leaseDurationMs, 'whole seconds, such as 15000');
  }
  if (renewDeadlineMs >= leaseDurationMs) {
    throw invalid('renewDeadlineMs', renewDeadlineMs, `less than leaseDurationMs (${leaseDurationMs})`);
  }
  if (retryMs * JITTER >= renewDeadlineMs) {
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

/**
 * One of several programs leads, and only that one does the work. They agree by means of a lease: an object that the leader
 * renews, and that others take over when it has not been renewed for long enough. This part sends requests and waits; which ones
 * to send, and when, is decided in election.ts.
 *
 *     run ---> campaign ---- won ----> lead({ signal, term }) ---- has returned ----> give the lease back ---> end
 *                 ^                     |  meanwhile: renew
 *                 '--- has returned ----'  lost: `signal` aborts
 *
 * Invariants
 * - `lead` runs at most once at a time, and begins only while the lease is held.
 * - The lease is renewed until `lead` has returned, even after it was told to stop: no other program begins before that. Only if
 *   the lease is lost can another one begin earlier, and not before `signal` has aborted.
 * - After `run` has settled, no timer runs, no request pends, and no listener is left.
 */

/** The work of a leader. Resolves when it has ended; if it ends on its own, the lease is released. */
export type Lead = (context: LeadContext) => Promise<unknown>;

type Request = Exclude<ElectionStep, { readonly do: 'wait' }>;

interface End {
  /** Whether the lease was lost before the work ended. */
  readonly lost: boolean;
  /** What `lead` threw. */
  readonly thrown?: { readonly error: unknown } | undefined;
  /** Whether the wait was given up: the work may still be running, so the lease is not given back. */
  readonly abandoned?: boolean | undefined;
}

/** Options of {@link LeaderElector.run}. */
export interface LeadOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * How long `lead` may take to return after its signal has aborted, in milliseconds; default 0: forever. After that, `run`
   * rejects with TIMEOUT, and the lease is left to expire, because the work may still be running.
   */
  readonly timeoutMs?: number | undefined;
}

/**
 * Lets only one of several programs do the work, the leader.
 *
 *     const elector = new LeaderElector({ leases: cluster.resource('leases.coordination.k8s.io/v1').in('default'), name: 'orders' });
 *     const lead = async ({ signal }) => {
 *       await Promise.all(informers.map((informer) => informer.refresh({ signal }))); // what the leader before wrote
 *       await new Controller({ informers, reconcile }).run(signal);
 *     };
 *     await elector.run(lead, { signal });
 *
 * This holds as long as nobody else writes or deletes the lease, no two programs have the same identity, and the speeds of their
 * clocks differ by less than a factor of `leaseDurationMs / renewDeadlineMs`. The clocks need not show the same time. A program
 * that was paused believes that it still leads until its timers run: check {@link isLeader} immediately before anything that must
 * not happen twice, or have `term` checked where it happens. After a machine was suspended, when its clock stood still, only
 * `term` helps.
 *
 * Upstream: `LeaderElector` of client-go. docs/workqueue.md lists the differences.
 */
export class LeaderElector {
  /** The name of this program. */
  readonly identity: string;
  readonly #settings: LeaderSettings;
  readonly #election: Election;
  /** Aborts when it should stop, whatever the reason. */
  readonly #stopped: AbortController = new AbortController();
  #began: boolean = false;
  #isLeading: boolean = false;
  #leader: string | undefined;
  #broken: { readonly error: unknown } | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
  constructor(options: LeaderElectorOptions) {
    this.#settings = toLeaderSettings(options);
    this.#election = new Election(this.#settings);
    this.identity = this.#settings.identity;
  }

  /** Whether this program leads at this moment. The signal of `lead` may abort slightly later. */
  get isLeader(): boolean {
    return this.#isLeading && this.#leads;
  }

  /** The identity of the leader, as far as it is known; undefined for nobody. */
  get leader(): string | undefined {
    return this.#election.holder;
  }

  /**
   * Calls `lead` whenever this program becomes the leader, until the signal aborts or `lead` returns on its own; then the lease
   * is released. If the lease is lost, the signal of `lead` aborts, and once `lead` has returned, the program competes again. An
   * elector runs only once.
   *
   * @throws What `lead` throws, except for the abort of its signal. What `onError` and `onNewLeader` throw. {WatchError}
   *   INVALID_ARGUMENT if it ran before; TIMEOUT, see `timeoutMs`.
   */
  async run(lead: Lead, options: LeadOptions = {}): Promise<void> {
    const { signal, timeoutMs = 0 } = checkOptions(options, ['signal', 'timeoutMs']);
    wholeNumber('timeoutMs', timeoutMs);
    if (this.#began) throw new WatchError('INVALID_ARGUMENT', 'an elector runs once');
    this.#began = true;
    const leave = whenAborted(signal, (reason) => this.#stopped.abort(reason));
    try {
      let end: End | undefined;
      do end = (await this.#campaign()) ? await this.#lead(lead, timeoutMs) : undefined;
      while (end?.lost && !end.thrown && !this.#stopped.signal.aborted);
      if (end?.thrown) this.#broken ??= end.thrown;
      if (!end?.abandoned) await this.#resign();
    } finally {
      leave();
    }
    if (this.#broken) throw this.#broken.error;
  }

  /** Resolves with true if the lease is ours, and with false if the elector should stop. */
  async #campaign(): Promise<boolean> {
    const { signal } = this.#stopped;
    while (!this.#leads) {
      if (signal.aborted) return false;
      await this.#turn(signal);
    }
    // A write that was answered after the abort has taken effect, so the lease is given back.
    return !signal.aborted;
  }

  async #lead(lead: Lead, timeoutMs: number): Promise<End> {
    const stop = this.#stopped.signal;
    if (stop.aborted) return { lost: false };
    const leading = new AbortController();
    const settled = new AbortController();
    const leave = whenAborted(stop, (reason) => leading.abort(reason));
    this.#isLeading = true;
    let thrown: End['thrown'];
    const work = (async () => lead({ signal: leading.signal, term: this.#election.term }))()
      .catch((error: unknown) => {
        if (!isAbortOf(leading.signal, error)) thrown = { error };
      })
      .then(() => settled.abort());
    const { late, cancel } = this.#limit(leading.signal, timeoutMs);
    void late.then(() => settled.abort());
    const lost = await this.#renew(leading, settled.signal);
    this.#isLeading = false;
    const error = await Promise.race([work, late]);
    cancel();
    leave();
    return error ? { lost, thrown: thrown ?? { error }, abandoned: true } : { lost, thrown };
  }

  /** `late` resolves with an error when `lead` has been told to end, and takes too long. */
  #limit(told: AbortSignal, timeoutMs: number): { readonly late: Promise<WatchError>; readonly cancel: () => void } {
    let cancelTimer = (): void => {};
    let leave = (): void => {};
    const late = new Promise<WatchError>((resolve) => {
      const give = (): void => resolve(gaveUp(timeoutMs, `the work of the leader ${this.identity}`));
      if (timeoutMs === 0) return;
      leave = whenAborted(told, () => {
        cancelTimer = this.#settings.clock.schedule(timeoutMs, give);
      });
    });
    return {
      late,
      cancel: () => {
        leave();
        cancelTimer();
      },
    };
  }

  /** Renews the lease until the work has settled. Resolves with whether it was lost before that. */
  async #renew(leading: AbortController, settled: AbortSignal): Promise<boolean> {
    const { clock, renewDeadlineMs } = this.#settings;
    const late = `the lease was not renewed for ${renewDeadlineMs} ms`;
    let isLost = false;
    const lose = (): void => {
      isLost = true;
      const { leader } = this;
      const isTaken = leader !== undefined && leader !== this.identity;
      const isGone = this.#election.leadsUntilMs === -Infinity; // an answer said so, before its time
      this.#election.lose();
      leading.abort(
        isTaken || isGone
          ? new WatchError('CLOSED', isTaken ? `${leader} leads` : 'the lease was deleted, or has no holder')
          : new WatchError('TIMEOUT', late, { limit: renewDeadlineMs }),
      );
    };
    while (this.#leads) {
      // The lease may have been lost and taken again since: the work that has ended belongs to the earlier leadership.
      if (settled.aborted) return isLost;
      // A request may take longer than the time that is left.
      const cancel = clock.schedule(this.#election.leadsUntilMs - clock.now(), lose);
      await this.#turn(settled);
      cancel();
    }
    // Work that ended because the lease was lost still counts as having lost it.
    if (isLost || !settled.aborted) lose();
    return isLost;
  }

  /** Gives the lease back, if it is ours. */
  async #resign(): Promise<void> {
    for (let requests = 0; requests < MAX_RESIGN_REQUESTS; requests++) {
      const request = this.#election.resign();
      if (request === undefined || (await this.#ask(request)) === 'failed') return;
    }
  }

  /** Takes the next step. `end` interrupts a wait or a read, but not a write, whose outcome must be known. */
  async #turn(end: AbortSignal): Promise<void> {
    const { clock } = this.#settings;
    const nowMs = clock.now();
    const step = this.#election.next(nowMs);
    if (step.do !== 'wait') await this.#ask(step, step.do === 'get' ? end : undefined);
    else await sleep(step.untilMs - nowMs, { clock, signal: end }).catch(() => {});
  }

  async #ask(request: Request, end?: AbortSignal): Promise<LeaseAnswer> {
    const { clock, requestTimeoutMs } = this.#settings;
    const cut = new AbortController();
    const leave = whenAborted(end, (reason) => cut.abort(reason));
    const late = `no answer within ${requestTimeoutMs} ms`;
    const sentMs = clock.now();
    const cancel = clock.schedule(requestTimeoutMs, () => {
      cut.abort(new WatchError('TIMEOUT', late, { limit: requestTimeoutMs }));
    });
    let answer: LeaseAnswer = 'failed';
    try {
      answer = { lease: await untilAborted(this.#send(request, cut.signal), cut.signal) };
    } catch (error) {
      answer = answerOf(error, request);
      if (answer === 'failed' && !end?.aborted) this.#guarded(() => this.#settings.onError(error, { during: request.do }));
    }
    cancel();
    leave();
    if (answer !== 'failed') this.#guarded(this.#settings.onAnswer);
    this.#election.answered(request, answer, { sentMs, nowMs: clock.now() });
    this.#announce();
    return answer;
  }

  async #send(request: Request, signal: AbortSignal): Promise<Lease | undefined> {
    const { leases, name } = this.#settings;
    return request.do === 'get' ? leases.get(name, { signal }) : leases[request.do](request.lease, { signal });
  }

  #announce(): void {
    const { leader } = this;
    if (leader === this.#leader) return;
    this.#leader = leader;
    if (leader !== undefined) this.#guarded(() => this.#settings.onNewLeader(leader));
  }

  #guarded(tell: () => void): void {
    quietly(tell, (error) => {
      this.#broken ??= { error };
      this.#stopped.abort(error);
    });
  }

  get #leads(): boolean {
    return this.#election.leads(this.#settings.clock.now());
  }
}

/** A read and a write, and both again if the write is refused. */
const MAX_RESIGN_REQUESTS = 4;

/**
 * What an error says about the lease. If something that a new lease needs, such as its namespace, is missing, that is a failure.
 */
function answerOf(error: unknown, { do: what }: Request): LeaseAnswer {
  const code = refusalCode(error);
  if (code === 404 && what === 'get') return { lease: undefined };
  if (code === 404 && what === 'update') return 'conflict';
  return code === 409 ? 'conflict' : 'failed';
}
