/**
 * The entry point `watchmux/operator-testing`, separate from `watchmux/testing`, which needs no server or operator. It runs
 * controllers unchanged, on an API server in the same process and on a clock that moves only when told to:
 *
 *     test writes ---> ApiServer ---> informers ---> queues ---> reconcile ---> ApiServer ---> ...
 *        ^                                                          |
 *        '------- settled(): none of this is going on, and no cache lags <--'            advance(ms): then the clock goes on
 *
 * - **What is waited for?** Turns of the event loop, in each of which everything that can proceed does: nothing here is behind
 *   a socket. If a reconcile waits for something else, such as a file, so does the test.
 * - **What is not?** Whatever is due at a later time: retries, `requeueAfterMs`, resyncs. `advance` gets there.
 * - **What fails?** Whatever the operator reports as a failure: the next `settled`, `advance` or `close` rejects with it,
 *   unless the test listens with `onError`. A controller that never settles is named. Nothing is reported twice.
 */
import { BUILT_IN_KINDS } from '../apiserver/builtin.ts';
import type { CoreEvent } from '../apiserver/kinds/events.ts';
import type { ApiServerOptions } from '../apiserver/options.ts';
import { ApiServer } from '../apiserver/server.ts';
import { type KubernetesObject, keyOf, metadataOf, versionOf } from '../cache/object.ts';
import { type GroupVersionKind, nameOf, type ResourceClient, type ResourceType } from '../cache/resource-client.ts';
import { compareVersions } from '../cache/versions.ts';
import { type Condition, findCondition, isConditionTrue, type WithConditions } from '../operator/conditions.ts';
import { checkController } from '../operator/controller.ts';
import { controllerNameOf, type KindName, queryOf, textOf } from '../operator/kinds.ts';
import { Operator } from '../operator/operator.ts';
import type { Log, OperatorControllerOptions, OperatorFailure, ReconcileRequest } from '../operator/operator-options.ts';
import { MemoryStorage } from '../storage/memory/memory-storage.ts';
import type { Storage } from '../storage/storage.ts';
import { whenAborted } from '../watch/abort.ts';
import { gaveUp, listed } from '../watch/clock.ts';
import { callable, checkOptions, invalid, isWatchError, refusalCode, WatchError, wholeNumber } from '../watch/errors.ts';
import { oneLine } from '../watch/failures.ts';
import { nextTurn } from '../watch/turn.ts';
import { FakeClock } from './fakes/fake-clock.ts';
import { kindsOf, kubernetesDefinitions, type Named, servedKinds, type TestResource } from './operator/served-kinds.ts';
import { explained, frozen, readOnlyCopy, strictly, strictSource } from './operator/strict.ts';

export type { TestOperator, TestResource };

/** Options of `testOperator`. */
export interface TestOperatorOptions {
  readonly controllers: readonly OperatorControllerOptions[];
  /**
   * Kinds that the server has: definitions for an `ApiServer`, CustomResourceDefinitions, and names of Kubernetes' own kinds.
   * Kubernetes' kinds that controllers or `objects` name need not be listed, nor kinds that they describe completely. Kinds
   * that are not in `BUILT_IN_KINDS`, such as deployments, have no schema.
   */
  readonly resources?: readonly TestResource[] | undefined;
  /** Objects that are there before the operator runs, with apiVersion and kind; their namespaces are created if need be. */
  readonly objects?: readonly (KubernetesObject | Readonly<Record<string, unknown>>)[] | undefined;
  /** The operator's name, which is its field manager. Default `test`. */
  readonly name?: string | undefined;
  /** As for an `Operator`. */
  readonly namespace?: string | undefined;
  /** The time at which the clock starts, in ms since 1970; default 2026-01-01. All timestamps come from this clock. */
  readonly startMs?: number | undefined;
  /** More options of the server, such as `admission`. */
  readonly server?: Partial<Omit<ApiServerOptions, 'storage' | 'resources' | 'clock' | 'now'>> | undefined;
  /** Called with each failure; `settled` then no longer rejects with it. Default: it does. */
  readonly onError?: ((error: unknown, failure: OperatorFailure) => void) | undefined;
  /** Default: nothing is logged. */
  readonly log?: Log | undefined;
  /** How often a key may be reconciled at one time of the clock before it counts as never settling; default 1,000. */
  readonly maxReconciles?: number | undefined;
  /** How long the test waits while nothing happens, in milliseconds of real time; default 4,000. */
  readonly timeoutMs?: number | undefined;
}

/** A failure that an operator has reported. */
export interface TestFailure extends OperatorFailure {
  readonly error: unknown;
}

const NAMES = [
  ...(['controllers', 'resources', 'objects', 'name', 'namespace', 'startMs', 'server', 'onError', 'log'] as const),
  ...(['maxReconciles', 'timeoutMs'] as const),
];
const START_MS = Date.UTC(2026, 0, 1);
/** A bookmark brings no news, and each takes the time of ten turns. */
const QUIET = { bookmarkMs: 3_600_000 };
const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
/** Turns without a change after which nothing is going on: what a server does by itself takes a few for each step. */
const QUIET_TURNS = 10;
/** Turns without a change after which whatever is going on waits for more than a turn. */
const STUCK_TURNS = 50;
/**
 * If the clock is to move: how long nothing must happen, in milliseconds of real time, until whatever is going on is assumed to
 * wait for the clock.
 */
const STUCK_MS = 10;
/** How far the clock moves at a time while the operator ends. */
const STEP_MS = 100;
/** Reconciles between which the event loop turns, so that one that never ends does not stop the test. */
const STRIDE = 50;

// Tests may replace them.
const { setTimeout: setRealTimeout, clearTimeout: clearRealTimeout, performance } = globalThis;
const turn = (): Promise<void> => new Promise(nextTurn);

/**
 * Starts an operator with its server, for a test: no cluster, no sleep, no polling.
 *
 *     await using test = await testOperator({ resources: [websiteCrd], controllers: [websites] });
 *     await test.resource(WEBSITES).create({ metadata: { name: 'web', namespace: 'default' }, spec: { replicas: 2 } });
 *     await test.settled();
 *     expect(await test.resource(DEPLOYMENTS).get('default/web')).toMatchObject({ spec: { replicas: 2 } });
 *
 * @throws {WatchError} (rejects) INVALID_ARGUMENT for an invalid option, and for a kind that the server does not have; the
 * server's error for an object that it refuses.
 */
export async function testOperator(options: TestOperatorOptions): Promise<TestOperator> {
  const { controllers, resources = [], startMs = START_MS, onError, ...more } = checkOptions(options, NAMES);
  const objects = (more.objects ?? []) as readonly KubernetesObject[];
  if (!Array.isArray(controllers)) throw invalid('controllers', controllers, 'an array of controllers');
  for (const each of controllers) checkController(each);
  for (const [name, list] of Object.entries({ resources, objects })) {
    if (!Array.isArray(list)) throw invalid(name, list, 'an array');
  }
  callable('onError', onError);
  const kinds = objects.map(({ apiVersion = '', kind = '' }, at) => ({ name: { apiVersion, kind }, place: `objects[${at}]` }));
  const names = [...kindsOf(controllers), ...kinds];
  const known = [...BUILT_IN_KINDS, ...(await kubernetesDefinitions())];
  const { definitions, crds } = servedKinds(resources, { names, known });
  const clock = new FakeClock(startMs);
  const now = (): number => clock.now();
  const storage = new MemoryStorage();
  const server = new ApiServer({
    ...{ garbageCollection: true, cache: QUIET, ...options.server, storage, resources: definitions as never, clock },
    now,
    customResourceDefinitions: true,
  });
  try {
    const test = new TestOperator({ options, clock, now, storage, server });
    await server.ready;
    await test.prepare([...crds, ...objects], names);
    return test;
  } catch (error) {
    await server.shutdown();
    await storage.close();
    throw error;
  }
}

interface Parts {
  readonly options: TestOperatorOptions;
  readonly clock: FakeClock;
  readonly now: () => number;
  readonly storage: Storage;
  readonly server: ApiServer;
}

/** An operator under test. Made by `testOperator`. */
class TestOperator implements AsyncDisposable {
  readonly server: ApiServer;
  readonly operator: Operator;
  readonly clock: FakeClock;
  readonly #options: TestOperatorOptions;
  readonly #storage: Storage;
  /** The kinds that controllers and objects have named. */
  readonly #types: Map<string, ResourceType> = new Map();
  readonly #maxReconciles: number;
  readonly #timeoutMs: number;
  readonly #errors: TestFailure[] = [];
  /** The failures with which `settled` rejects. */
  #untold: TestFailure[] = [];
  readonly #stopped: AbortController = new AbortController();
  /** By controller and key: how often it was reconciled at which time, and how many reconciles are running. */
  readonly #reconciled: Map<string, { at: number; count: number; running: number }> = new Map();
  #reconciles: number = 0;
  #runaway: WatchError | undefined;
  #run: Promise<void> = Promise.resolve();
  #broken: { readonly error: unknown } | undefined;
  /** The last error of a reconcile, by controller and key. */
  readonly #causes: Map<string, unknown> = new Map();
  /** Something that never ends, or the end of the operator, was reported: the end of the test does not report it again. */
  #isTold: boolean = false;
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor({ options, clock, now, storage, server }: Parts) {
    const { name = 'test', namespace, log = SILENT, onError, maxReconciles = 1_000, timeoutMs = 4_000 } = options;
    this.#maxReconciles = wholeNumber('maxReconciles', maxReconciles, 1);
    this.#timeoutMs = wholeNumber('timeoutMs', timeoutMs, 1);
    this.#options = options;
    this.#storage = storage;
    this.clock = clock;
    this.server = server;
    const told = (error: unknown, failure: OperatorFailure): void => {
      this.#errors.push({ ...failure, error });
      if (failure.during === 'reconcile') this.#causes.set(`${failure.controller} ${failure.key}`, error);
      if (onError) onError(error, failure);
      else this.#untold.push({ ...failure, error });
    };
    this.operator = new Operator(
      { cluster: strictSource(server), name, namespace, log, clock, now, onError: told },
      // Without jitter, a cache whose watch has ended watches again at that time of the clock, and not at a later one.
      { keep: readOnlyCopy, random: () => 0 },
    );
    for (const each of options.controllers) this.operator.controller(this.#watched(each));
  }

  /** The failures that the operator has reported so far, of `reconcile` and others. */
  get errors(): readonly TestFailure[] {
    return this.#errors;
  }

  /** The objects of a kind, in all namespaces: use keys such as `default/web`, or `in('default')`. */
  resource<O extends object = KubernetesObject>(kind: KindName<O>): ResourceClient<O> {
    if (typeof kind === 'string' || 'plural' in kind) return strictly(this.server.resource<O>(queryOf(kind) as string));
    const type = this.#types.get(textOf(kind));
    if (!type) throw invalid('kind', textOf(kind), 'a kind that a controller or an object names, or the name of a resource');
    return strictly(this.server.resource<O>(type));
  }

  /** The events about an object, or all of them, in the form of `v1` and in the order in which they were created. */
  async events(object?: KubernetesObject): Promise<readonly CoreEvent[]> {
    await this.#drain({ isStrict: false });
    const { items } = await this.server.resource<CoreEvent>('events/v1').list();
    const { uid, name, namespace } = metadataOf(object);
    const concerns = ({ involvedObject: about }: CoreEvent): boolean =>
      about.name === name && about.namespace === namespace && (!uid || !about.uid || about.uid === uid);
    // Within a second, the end of its name counts up.
    const order = ({ metadata }: CoreEvent): string => `${metadata?.creationTimestamp} ${metadata?.name?.replace(/.*\./, '')}`;
    const chosen = object ? items.filter(concerns) : items;
    return chosen.toSorted((one, other) => (order(one) < order(other) ? -1 : 1));
  }

  /**
   * Resolves when nothing is left to do at this time of the clock: no key is queued or being reconciled, the caches have
   * everything that is stored, and events are written.
   *
   * @throws {AggregateError} (rejects) The failures since the last call, unless `onError` is set. {WatchError} TIMEOUT, with
   * what is going on: after `timeoutMs` without any progress, and after `maxReconciles` of one key. Whatever ends the operator.
   */
  async settled(): Promise<void> {
    await this.#drain({ isStrict: true });
    this.#throwUntold();
  }

  /**
   * Moves the clock, step by step: what falls due runs at its time, and settles before the clock goes on. Then as {@link settled}.
   * A reconcile that waits endlessly, such as for a time, does not hold up the clock.
   */
  async advance(ms: number): Promise<void> {
    const { clock } = this;
    // A text would be appended to the time.
    if (typeof ms !== 'number' || !(ms >= 0 && ms < Number.POSITIVE_INFINITY))
      throw invalid('ms', ms, 'a number of milliseconds >= 0');
    const endMs = clock.now() + ms;
    await this.#drain({ isStrict: false });
    for (let next = clock.nextMs; next !== undefined && next <= endMs; next = clock.nextMs) {
      clock.advance(next - clock.now());
      await this.#drain({ isStrict: false });
    }
    clock.advance(endMs - clock.now());
    await this.settled();
  }

  /**
   * Stops the operator and its server. Leaves no timer, request or listener.
   *
   * @throws {AggregateError} (rejects) As {@link settled}. {WatchError} TIMEOUT with the keys whose reconcile did not end.
   * Nothing that `settled` or `advance` has already rejected with.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /**
   * Like {@link close}, but prints the error that it would reject with and fails the process: test runners hide the assertion
   * that failed before behind an error thrown here.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch (error) {
      console.error(error);
      const { process } = globalThis as { process?: { exitCode?: unknown } };
      if (process) process.exitCode ||= 1;
    }
  }

  /** @internal Creates the initial objects, and starts the operator. */
  async prepare(objects: readonly KubernetesObject[], names: readonly Named[]): Promise<void> {
    const isFirst = ({ kind }: KubernetesObject): boolean => kind === 'CustomResourceDefinition' || kind === 'Namespace';
    for (const object of [...objects.filter(isFirst), ...objects.filter((each) => !isFirst(each))]) await this.#create(object);
    for (const { name, place } of names) {
      const { type } = await this.server.kind(queryOf(name));
      const { kind = type.kind, namespaced = type.namespaced }: Partial<ResourceType> = Object(name);
      if (kind !== type.kind) throw invalid(`${place}: kind`, kind, `${type.kind}, as ${nameOf(type)} is defined`);
      if (namespaced !== type.namespaced)
        throw invalid(`${place}: namespaced`, namespaced, `${type.namespaced}, as ${nameOf(type)} is defined`);
      this.#types.set(textOf(name), type);
    }
    this.#run = this.operator.run(this.#stopped.signal).catch((error: unknown) => {
      this.#broken = { error };
    });
  }

  async #create(object: KubernetesObject): Promise<void> {
    const { apiVersion, kind } = object;
    const resource = await this.server.kind(queryOf({ apiVersion, kind } as GroupVersionKind));
    const { namespace } = metadataOf(object);
    if (namespace) await this.#createNamespace(namespace);
    const created = await strictly(resource).create(object);
    if (kind === 'CustomResourceDefinition') await this.#established(keyOf(object));
    const { status } = object as { readonly status?: object };
    if (status && !('status' in created)) await resource.subresource('status').patch(keyOf(created), { status });
  }

  async #createNamespace(name: string): Promise<void> {
    try {
      await this.server.resource('namespaces/v1').create({ metadata: { name } });
    } catch (error) {
      // It exists; or namespaces are not served, so all of them exist.
      if (!isWatchError(error, 'INVALID_ARGUMENT') && refusalCode(error) !== 409) throw error;
    }
  }

  /** Waits until a definition is served, or rejects with why it is not. */
  async #established(name: string): Promise<void> {
    const definitions = this.server.resource<WithConditions<Condition>>('customresourcedefinitions.apiextensions.k8s.io/v1');
    for (const startMs = performance.now(); performance.now() - startMs < this.#timeoutMs; await turn()) {
      const definition = await definitions.get(name);
      if (isConditionTrue(definition, 'Established')) return;
      const structure = findCondition(definition, 'NonStructuralSchema');
      const names = findCondition(definition, 'NamesAccepted');
      const bad = structure?.status === 'True' ? structure : names?.status === 'False' ? names : undefined;
      if (bad) throw invalid('resources', name, `a definition that can be served: ${bad.message}`);
    }
    throw gaveUp(this.#timeoutMs, `the definition ${name}`);
  }

  /** A controller that reports when it reconciles what. */
  #watched(options: OperatorControllerOptions): OperatorControllerOptions {
    const name = options.name ?? controllerNameOf((kindsOf([options])[0] as Named).name);
    const run = <R>(
      { key, object }: Pick<ReconcileRequest, 'key' | 'object'>,
      work: () => R,
    ): Promise<Awaited<R> | undefined> => {
      if (object) frozen(object); // also if it was just written
      return this.#attempt(`${name} ${key}`, work);
    };
    const { finalizer } = options;
    return {
      ...options,
      reconcile: (request) => run(request, () => options.reconcile(request)),
      ...(finalizer && {
        finalizer: { ...finalizer, finalize: (request) => run(request, () => finalizer.finalize(request)) },
      }),
    };
  }

  async #attempt<R>(what: string, work: () => R): Promise<Awaited<R> | undefined> {
    const at = this.clock.now();
    const known = this.#reconciled.get(what);
    const now = { at, count: known?.at === at ? known.count + 1 : 1, running: (known?.running ?? 0) + 1 };
    this.#reconciled.set(what, now);
    if (++this.#reconciles % STRIDE === 0) await turn();
    try {
      if (now.count <= this.#maxReconciles) return await work();
      const text = `${what} was reconciled ${this.#maxReconciles.toLocaleString('en')} times without settling`;
      this.#runaway ??= new WatchError('TIMEOUT', text, { limit: this.#maxReconciles });
      await new Promise<void>((resolve) => whenAborted(this.#stopped.signal, () => resolve()));
      return undefined;
    } catch (error) {
      throw explained(error, what);
    } finally {
      (this.#reconciled.get(what) as { running: number }).running--;
    }
  }

  /** Turns until nothing is going on; if it is not strict, or until what is going on makes no progress. */
  async #drain({ isStrict }: { readonly isStrict: boolean }): Promise<void> {
    const { events } = this.operator;
    let [mark, quiet, isFlushed, progressMs] = ['', 0, false, performance.now()];
    for (;;) {
      this.clock.advance(0);
      await turn();
      this.#throwEnd();
      const now = `${this.#reconciles} ${events.stats.emitted} ${events.stats.written} ${await this.#storage.currentVersion()}`;
      const goesOn = this.#goesOn();
      quiet = now === mark ? quiet + 1 : 0;
      if (quiet === 0) progressMs = performance.now();
      mark = now;
      if (quiet < QUIET_TURNS) continue;
      // They may be why there is no progress.
      if (isStrict && goesOn.length > 0) this.#throwUntold();
      if (goesOn.length === 0 && !isFlushed && events.stats.pending > 0) {
        // The rest waits for the clock, to be retried.
        void events.flush();
        [isFlushed, quiet] = [true, 0];
      } else if (goesOn.length === 0) {
        const stale = isStrict ? await this.#stale() : [];
        if (stale.length === 0) return;
        this.#throwUntold();
        goesOn.push(...stale);
      } else if (!isStrict && performance.now() - progressMs >= STUCK_MS) return;
      const idleMs = performance.now() - progressMs;
      if (isStrict && idleMs > this.#timeoutMs) throw this.#gaveUp(goesOn);
      // It waits for something other than the event loop's next turn.
      if (quiet > STUCK_TURNS) await this.#idleWithin(isStrict ? this.#timeoutMs - idleMs : STUCK_MS - idleMs);
    }
  }

  #gaveUp(goesOn: readonly string[]): WatchError {
    this.#isTold = true;
    const cause = Array.from(this.#reconciled).find(([what, { running }]) => running > 0 && this.#causes.has(what))?.[0];
    return gaveUp(this.#timeoutMs, listed(goesOn), cause && this.#causes.get(cause));
  }

  /** Resolves when the operator says that it is idle, and at the latest after this time. */
  #idleWithin(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setRealTimeout(resolve, limitMs + 1);
      const done = (): void => {
        clearRealTimeout(timer);
        resolve();
      };
      this.operator.idle().then(done, done);
    });
  }

  /** What is going on in the operator, in words. */
  #goesOn(): string[] {
    const { kinds, controllers } = this.operator.state;
    const working = controllers.flatMap(({ name, working, queued, inWork }) => {
      if (!working && !kinds.some(({ absent }) => absent)) return [`${name}, which is not running yet`];
      if (queued + inWork === 0) return [];
      const running = Array.from(this.#reconciled).filter(([what, each]) => each.running > 0 && what.startsWith(`${name} `));
      if (running.length > 0) return running.map(([what]) => this.#textOfRunning(what));
      return [queued > 0 ? `${name}, which has ${queued} keys queued` : `${name}, which waits for a cache to have what it wrote`];
    });
    const whyNot = (error: unknown): string => (error === undefined ? '' : ` (${oneLine(error)})`);
    const unsynced = kinds.filter(({ synced, absent }) => !synced && !absent);
    return [...working, ...unsynced.map(({ kind, error }) => `${kind}, which is not synced${whyNot(error)}`)];
  }

  #textOfRunning(what: string): string {
    const before = this.#causes.has(what) ? ` (the last failure before: ${oneLine(this.#causes.get(what))})` : '';
    return `${what}, which is being reconciled: something that it awaits never settles${before}`;
  }

  /** The kinds whose caches lack something that is stored. */
  async #stale(): Promise<readonly string[]> {
    const stale: string[] = [];
    for (const { kind, absent, objects, resourceVersion } of this.operator.state.kinds) {
      if (absent) continue;
      const resource = this.server.resource(kind);
      const { namespace } = this.#options;
      const { items } = await (namespace && resource.type.namespaced ? resource.in(namespace) : resource).list();
      const isBehind = items.some((each) => compareVersions(versionOf(each), resourceVersion) > 0);
      if (isBehind || items.length !== objects) stale.push(`the cache of ${kind}, which lacks something that is stored`);
    }
    return stale;
  }

  #throwEnd(): void {
    this.#isTold ||= (this.#runaway ?? this.#broken) !== undefined;
    if (this.#runaway) throw this.#runaway;
    if (this.#broken) throw this.#broken.error;
    if (this.#stopped.signal.aborted) throw new WatchError('CLOSED', 'the test operator was closed');
  }

  #throwUntold(): void {
    const failures = this.#untold;
    if (failures.length === 0) return;
    this.#untold = [];
    const texts = failures.map(({ during, controller, key, attempt, kind, error }) => {
      const what = [controller ?? kind, key, attempt === undefined ? '' : `(attempt ${attempt})`].filter(Boolean).join(' ');
      return `${what || during}: ${oneLine(error)}`;
    });
    const text = `${failures.length === 1 ? 'a failure' : `${failures.length} failures`} in the operator: ${listed(texts)}`;
    throw new AggregateError(
      failures.map(({ error }) => error),
      text,
    );
  }

  async #close(): Promise<void> {
    this.#stopped.abort(new WatchError('CLOSED', 'the test operator was closed'));
    const ended = this.#run.then(() => this.server.shutdown()).then(() => this.#storage.close());
    let isOver = false;
    void ended.then(
      () => (isOver = true),
      () => (isOver = true),
    );
    // The deadlines of the shutdown are on this clock, too.
    while (!isOver) await this.clock.advanceAsync(STEP_MS);
    await ended;
    this.#throwUntold();
    // The operator's own end is part of this: it gives up on what hangs.
    if (this.#isTold) return;
    if (this.#runaway) throw this.#runaway;
    if (this.#broken) throw this.#broken.error;
  }
}
