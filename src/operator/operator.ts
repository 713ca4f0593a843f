import { hostname } from 'node:os';
import type { KubernetesObject } from '../cache/object.ts';
import { segment } from '../cache/resource-client.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { untilAborted, whenAborted } from '../watch/abort.ts';
import { type Clock, gaveUp, listed, systemClock, upkeepClock, within } from '../watch/clock.ts';
import {
  callable,
  checkOptions,
  checkSignal,
  invalid,
  isRecord,
  isWatchError,
  requireMethod,
  WatchError,
  wholeNumber,
  whyOf,
} from '../watch/errors.ts';
import { Failures, oneLine, quietly } from '../watch/failures.ts';
import { type Telemetry, toTelemetry } from '../watch/telemetry.ts';
import type { LeaseResource } from '../workqueue/election.ts';
import { LeaderElector } from '../workqueue/leader-elector.ts';
import { type CachesDeps, KindCaches } from './caches.ts';
import { OperatorController } from './controller.ts';
import { EventRecorder } from './event-recorder.ts';
import { checkListen, type HealthServer, OperatorHealth, serveHealth } from './health.ts';
import { type MetricsView, OperatorMetrics } from './metrics.ts';
import type {
  KindState,
  OperatorChecks,
  OperatorControllerOptions,
  OperatorElectionOptions,
  OperatorFailure,
  OperatorOptions,
  OperatorState,
} from './operator-options.ts';
import type { OperatorDeps } from './request.ts';
import { onSignals } from './signals.ts';

const NAMES = [
  ...(['cluster', 'name', 'namespace', 'leaderElection', 'listen', 'checks', 'webhooks'] as const),
  ...(['syncTimeoutMs', 'shutdownTimeoutMs', 'log', 'onError', 'telemetry', 'clock', 'now'] as const),
] as const;

/** A call of {@link Operator.idle} that waits. */
interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs controllers, with one cache per kind for all of them, as the only working instance, until it is told to stop. Upstream:
 * `Manager` of controller-runtime.
 *
 *     const operator = new Operator({ cluster: await loadCluster(), name: 'websites', leaderElection: true });
 *     operator.controller({
 *       for: WEBSITES,
 *       owns: [DEPLOYMENTS],
 *       reconcile: async ({ object, apply }) => {
 *         if (object) await apply(DEPLOYMENTS, { spec: { replicas: object.spec.replicas, ... } });
 *       },
 *     });
 *     await operator.run();
 *
 * One run, in this order:
 *
 *     follow all kinds ---> lead (if there is an election) ---> controllers work, each once its own kinds are synced
 *            |                ^                                    |
 *            |                '-------- no longer leads: they end -+
 *            |                                                     | told to stop
 *            '------------> stop the caches, write the events <----'-- give the lease back, once all work has ended
 *
 * Guarantees
 * - While this instance does not lead, no reconcile begins. It keeps its caches, and when it begins to lead, it lists each kind once
 *   more: nothing is reconciled without what its predecessor wrote.
 * - After `run` there is no pending request, timer or listener, including those for signals; only functions that did not end in
 *   time may go on, and `run` then rejects with their keys.
 */
export class Operator {
  readonly name: string;
  /** Answers what `listen` serves, for hosts with `fetch` handlers, such as Bun and Deno: `/healthz`, `/readyz` and `/metrics`. */
  readonly fetch: (request: Request) => Promise<Response>;
  readonly #options: OperatorOptions;
  readonly #clock: Clock;
  readonly #deps: OperatorDeps;
  readonly #failures: Failures;
  readonly #elector: LeaderElector | undefined;
  readonly #metrics: OperatorMetrics;
  readonly #telemetry: Telemetry | undefined;
  readonly #health: OperatorHealth;
  readonly #controllers: OperatorController<KubernetesObject>[] = [];
  /** Aborts when it must stop, for whatever reason. */
  readonly #stopped: AbortController = new AbortController();
  readonly #waiters: Set<Waiter> = new Set();
  #phase: 'new' | 'running' | 'ended' = 'new';
  #isChecking: boolean = false;
  #recorder: EventRecorder | undefined;
  #broken: { readonly error: unknown } | undefined;

  /**
   * The second argument is for tests.
   *
   * @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option.
   */
  constructor(options: OperatorOptions, { keep, random }: Pick<CachesDeps, 'keep' | 'random'> = {}) {
    const { cluster, name, namespace, log = console, clock, onError } = checkOptions(options, NAMES);
    requireMethod('cluster', cluster, 'resource', 'a Cluster or an ApiServer');
    if (typeof name !== 'string' || !NAME.test(name))
      throw invalid('name', name, 'at most 63 of a-z, 0-9, "-" and ".", such as "websites"');
    if (namespace !== undefined) segment('namespace', namespace);
    requireMethod('log', log, 'error', 'a Log');
    callable('onError', onError);
    this.#telemetry = toTelemetry(options.telemetry, (error) => this.#failures.failed('the telemetry', error));
    callable('now', options.now);
    const { listen, leaderElection = false } = options;
    if (listen !== undefined) checkListen(listen);
    if (typeof leaderElection !== 'boolean' && !isRecord(leaderElection)) {
      throw invalid('leaderElection', leaderElection, 'true, false or an object with its options');
    }
    if (options.webhooks) requireMethod('webhooks', options.webhooks, 'run', 'a WebhookServer');
    const { syncTimeoutMs = SYNC_TIMEOUT_MS, shutdownTimeoutMs = SHUTDOWN_TIMEOUT_MS } = options;
    wholeNumber('syncTimeoutMs', syncTimeoutMs);
    wholeNumber('shutdownTimeoutMs', shutdownTimeoutMs);
    this.name = name;
    this.#options = options;
    this.#metrics = new OperatorMetrics(this.#telemetry);
    this.#clock = clock ?? systemClock;
    this.#failures = new Failures(`operator ${name}`, {
      clock: this.#clock,
      print: (line, isGood) => log[isGood ? 'info' : 'error'](line),
    });
    const tell: OperatorDeps['tell'] = (error, failure) => this.#tell(error, failure);
    const caches: KindCaches = new KindCaches({
      ...{ cluster, namespace, clock, keep, random },
      tell: (text) => log.warn(text),
      onError: (error, kind) => tell(error, { during: 'source', kind }),
      onWell: (kind) => this.#failures.up(`the source of ${kind}`),
      onAway: (text) => this.#limitSync(() => caches.states.filter(({ kind, synced }) => kind === text && !synced)),
      fail: (error) => this.#fail(error),
    });
    const observer = this.#metrics;
    const changed = (): void => this.#changed();
    const now = options.now ?? Date.now;
    this.#deps = {
      ...{ name, namespace, clock, now, log, caches, observer, telemetry: this.#telemetry, tell, changed },
      events: () => this.events,
    };
    this.#elector = this.#createElector();
    // An operator that is stopping is not ready.
    const state = (): OperatorState => ({ ...this.state, running: this.state.running && !this.#stopped.signal.aborted });
    const readyWithoutKinds = Boolean(options.webhooks);
    const checks = checksOf(options);
    this.#health = new OperatorHealth({ state, metrics: () => this.metrics, checks, readyWithoutKinds, log, clock });
    this.fetch = (request) => this.#health.fetch(request);
  }

  /**
   * Adds a controller.
   *
   * @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option, for a name that another controller has, and once it runs.
   */
  controller<
    T extends KubernetesObject,
    Owned extends readonly unknown[] = readonly KubernetesObject[],
    Watched extends readonly unknown[] = readonly KubernetesObject[],
  >(options: OperatorControllerOptions<T, Owned, Watched>): this {
    if (this.#phase !== 'new') throw new WatchError('INVALID_ARGUMENT', 'a running operator takes no more controllers');
    this.#deps.caches.allOrNothing(() => {
      const controller = new OperatorController(options as unknown as OperatorControllerOptions, this.#deps);
      if (this.#controllers.some(({ name }) => name === controller.name)) {
        throw invalid('name', controller.name, 'a name that no other controller of the operator has');
      }
      this.#controllers.push(controller);
    });
    return this;
  }

  /**
   * Reconciles an object because something outside the cluster has changed: `namespace/name`, or the name of a cluster-scoped
   * object. Returns whether that will happen: not if this instance does not work, because it does not lead, is not synced, or has
   * ended. A controller begins with all objects, so only a leader elsewhere would have to be told. Upstream: `source.Channel`.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a controller that does not exist, and for a key of which its cache can have no object.
   */
  enqueue(controller: string, key: string): boolean {
    const found = this.#controllers.find(({ name }) => name === controller);
    if (found) return found.enqueue(key);
    throw invalid('controller', controller, `one of ${this.#controllers.map(({ name }) => name).join(', ')}`);
  }

  /** Emits events in the operator's name. Shut down when `run` ends. */
  get events(): EventRecorder {
    const { cluster, clock, now } = this.#options;
    const onError = (error: unknown): void => this.#tell(error, { during: 'events' });
    this.#recorder ??= new EventRecorder({ cluster, clock, now, name: this.name, onError });
    return this.#recorder;
  }

  /** What it is doing. For health checks. */
  get state(): OperatorState {
    const running = this.#phase === 'running';
    return {
      running,
      leads: running && (this.#elector?.isLeader ?? true),
      kinds: this.#deps.caches.states,
      controllers: this.#controllers.map(({ state }) => state),
    };
  }

  /** Its metrics, in Prometheus' text format, as at `/metrics`. */
  get metrics(): string {
    return this.#metrics.toText(this.#view);
  }

  get #view(): MetricsView {
    const { requestCounts } = this.#options.cluster as Partial<Pick<Cluster, 'requestCounts'>>;
    return { state: this.state, lease: this.#elector && this.#leaseName, requests: requestCounts };
  }

  /**
   * Works until the signal aborts, or without one until SIGINT or SIGTERM; a second one ends the process at once. Resolves when
   * everything has ended. An operator runs only once.
   *
   * @throws Whatever `onError` throws. {WatchError} INVALID_ARGUMENT if it ran before, or has no controller; TIMEOUT, see
   *   `shutdownTimeoutMs`.
   */
  async run(signal?: AbortSignal): Promise<void> {
    checkSignal(signal);
    if (this.#phase !== 'new') throw new WatchError('INVALID_ARGUMENT', 'an operator runs once');
    if (this.#controllers.length === 0) throw invalid('controllers', 'none', 'at least one controller: call controller() first');
    this.#phase = 'running';
    const stop = (reason: unknown): void => this.#stopped.abort(reason);
    const leave = signal
      ? whenAborted(signal, stop)
      : onSignals((name) => stop(new WatchError('CLOSED', name)), ['SIGINT', 'SIGTERM']);
    const unobserve = this.#telemetry?.observe(() => this.#metrics.groups(this.#view));
    const server = await this.#listen();
    const closing = new AbortController();
    const webhooks = this.#options.webhooks?.run(closing.signal).catch((error: unknown) => this.#fail(error));
    const caches = this.#deps.caches.run(closing.signal);
    const { caches: kinds } = this.#deps;
    const cancel = this.#limitSync(() => kinds.states.filter(({ synced }) => !synced));
    kinds.synced().then(cancel, cancel);
    await this.#lead().catch((error: unknown) => this.#fail(error));
    cancel();
    for (const controller of this.#controllers) controller.abandon();
    closing.abort(this.#stopped.signal.reason);
    await Promise.all([caches, webhooks]);
    await this.events.shutdown(); // later callers get a recorder that drops what it is given
    await server?.close();
    unobserve?.();
    leave();
    this.#phase = 'ended';
    for (const { reject } of this.#waiters) reject(ended());
    this.#waiters.clear();
    if (this.#broken) throw this.#broken.error;
  }

  /**
   * Resolves when all controllers work and have nothing left to do: no key is queued or being processed, and the caches have
   * what reconciles have written. Keys that run later do not count.
   *
   * @throws {WatchError} (rejects) CLOSED when the operator has ended, or ends before that.
   */
  idle(): Promise<void> {
    if (this.#phase === 'ended') return Promise.reject(ended());
    return new Promise((resolve, reject) => {
      this.#waiters.add({ resolve, reject });
      this.#changed();
    });
  }

  async #listen(): Promise<HealthServer | undefined> {
    const { listen, log = console } = this.#options;
    if (!listen) return undefined;
    let server: HealthServer | undefined;
    try {
      server = await serveHealth(this.#health, listen);
      log.info(`health and metrics at ${server.url}`);
    } catch (error) {
      this.#fail(error);
    }
    return server;
  }

  /** Checks the waiting calls of `idle` again, after the current step. */
  #changed(): void {
    if (this.#waiters.size === 0 || this.#isChecking) return;
    this.#isChecking = true;
    queueMicrotask(() => {
      this.#isChecking = false;
      if (!this.#controllers.every(({ idle }) => idle) || this.#phase !== 'running') return;
      for (const { resolve } of this.#waiters) resolve();
      this.#waiters.clear();
    });
  }

  /** Works whenever this instance may, until it is told to stop. */
  async #lead(): Promise<void> {
    const { signal } = this.#stopped;
    const limitMs = this.#options.shutdownTimeoutMs ?? SHUTDOWN_TIMEOUT_MS;
    const what = (): string =>
      listed(this.#controllers.flatMap(({ name, reconciling }) => reconciling.map((key) => `${name} ${oneLine(key)}`)));
    const elector = this.#elector;
    if (!elector) {
      const work = this.#work(signal);
      await untilAborted(work, signal).catch(() => {}); // `shutdownTimeoutMs` starts here
      await within(work, { limitMs, clock: this.#clock, what });
      return;
    }
    const { log } = this.#deps;
    const lead = async ({ signal: until }: { readonly signal: AbortSignal }): Promise<void> => {
      log.info(`${elector.identity} leads (this instance)`);
      // Told to stop, it gives the lease back, and everybody knows why.
      whenAborted(until, (reason) => signal.aborted || log.warn(`${elector.identity} no longer leads: ${whyOf(reason)}`));
      this.#deps.caches.refresh();
      whenAborted(
        until,
        this.#limitSync(() => this.#deps.caches.behind, ' of leading'),
      );
      await this.#work(until);
    };
    await elector.run(lead, { signal, timeoutMs: limitMs }).catch((error: unknown) => {
      const stuck = what();
      throw stuck && isWatchError(error, 'TIMEOUT') ? gaveUp(limitMs, stuck, error) : error;
    });
  }

  async #work(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#controllers.map((each) => each.run(signal).catch((error: unknown) => this.#fail(error))));
  }

  get #leaseName(): string {
    const { leaderElection } = this.#options;
    return (typeof leaderElection === 'object' ? leaderElection.name : undefined) ?? this.name;
  }

  #createElector(): LeaderElector | undefined {
    const { log } = this.#deps;
    const { cluster, leaderElection, namespace: own, clock } = this.#options;
    if (!leaderElection) return undefined;
    const { namespace, ...settings }: OperatorElectionOptions = leaderElection === true ? {} : leaderElection;
    const context = (cluster as { readonly namespace?: string }).namespace;
    const leases = cluster.resource('leases.coordination.k8s.io/v1').in(namespace ?? own ?? context ?? 'default');
    const { identity = `${hostname()}_${crypto.randomUUID().slice(0, 8)}` } = settings;
    return new LeaderElector({
      clock,
      onNewLeader: (leader) => leader === identity || log.info(`${leader} leads`),
      ...settings,
      identity,
      name: this.#leaseName,
      leases: leases as unknown as LeaseResource,
      onError: (error) => this.#tell(error, { during: 'leader' }),
      onAnswer: () => this.#failures.up(LEASE),
    });
  }

  /** Names the kinds that take too long to sync. Returns a function that stops this. */
  #limitSync(toLate: () => readonly KindState[], since: string = ''): () => void {
    const limitMs = this.#options.syncTimeoutMs ?? SYNC_TIMEOUT_MS;
    if (limitMs === 0) return () => {};
    return upkeepClock(this.#clock).schedule(limitMs, () => {
      const late = toLate();
      if (late.length === 0) return;
      const names = late.map(({ kind, absent, error }) => {
        const why = absent ? 'the server does not have it' : error === undefined ? '' : whyOf(error);
        return kind + (why && ` (${why})`);
      });
      const cause = late.find(({ error }) => error !== undefined)?.error;
      const what = `${listed(names)} ${names.length === 1 ? 'is' : 'are'} not synced after ${limitMs} ms${since}`;
      this.#tell(new WatchError('TIMEOUT', what, { limit: limitMs, cause }), { during: 'sync' });
    });
  }

  #tell(error: unknown, failure: OperatorFailure): void {
    const { onError } = this.#options;
    if (!onError) {
      this.#print(error, failure);
      return;
    }
    quietly(
      () => onError(error, failure),
      (thrown) => this.#fail(thrown),
    );
  }

  #print(error: unknown, { during, controller, key, attempt, dropped, kind }: OperatorFailure): void {
    if (during === 'source' || during === 'leader') {
      this.#failures.down(during === 'leader' ? LEASE : `the source of ${kind}`, error);
      return;
    }
    const what = `${during === 'event' ? 'an event' : during}${controller === undefined ? '' : ` of ${controller}`}`;
    const more = key === undefined ? '' : ` for ${oneLine(key)}${attempt ? `, attempt ${attempt}` : ''}`;
    this.#failures.failed(dropped ? `${what} finally` : what, error, more);
  }

  #fail(error: unknown): void {
    if (this.#stopped.signal.aborted && error === this.#stopped.signal.reason) return; // it was told to stop
    this.#broken ??= { error };
    this.#stopped.abort(error);
  }
}

const NAME = /^(?!.{64})[a-z0-9](?:-*[a-z0-9])*(?:\.[a-z0-9](?:-*[a-z0-9])*)*$/;
/** What a request of the election fails for, in a log. */
const LEASE = 'the lease';
const SYNC_TIMEOUT_MS = 120_000;
const SHUTDOWN_TIMEOUT_MS = 30_000;

const ended = (): WatchError => new WatchError('CLOSED', 'the operator has ended');

/** The user's checks, and that the webhooks listen. */
function checksOf({ checks, webhooks }: OperatorOptions): OperatorChecks | undefined {
  return webhooks ? { ...checks, readyz: { webhooks: () => webhooks.ready, ...checks?.readyz } } : checks;
}
