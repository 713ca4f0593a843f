/**
 * An API server: Kubernetes' HTTP protocol over a storage, for custom kinds.
 *
 *     node:http, fetch, WebSocket ---> Api: who may do what ---> verbs ---> storage (a scope per resource)
 *     resource('orders.example.com/v1'), in process -------------^
 *
 * Invariants
 * - The same functions check, perform and refuse every request, however it arrives.
 * - Objects are encoded once. Lists and watches are spliced from these bytes.
 * - A client that stops reading holds its slot, and at most `maxBufferedBytes` and a slice, until it is cut; nobody waits for it.
 * - After `shutdown` has resolved, no request is pending, no watch is open, and no timer runs.
 */
import { setMaxListeners } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { KubernetesObject } from '../cache/object.ts';
import {
  type GroupVersionKind,
  type KindOptions,
  nameOf,
  type ResourceSource,
  type ResourceType,
  type Typed,
} from '../cache/resource-client.ts';
import { Cacher } from '../storage/cacher/cacher.ts';
import { toSettings as checkCacherOptions } from '../storage/cacher/engine.ts';
import { internalError } from '../storage/statuses.ts';
import type { CacherStats, Storage } from '../storage/storage.ts';
import { untilAborted, whenAborted } from '../watch/abort.ts';
import { sleep } from '../watch/clock.ts';
import { checkOptions, refusedBy, WatchError, wholeNumber } from '../watch/errors.ts';
import type { Soon, Work } from '../watch/fair-queue.ts';
import { processMetrics } from '../watch/process-metrics.ts';
import { METRICS_TYPE, type MetricGroup, toText } from '../watch/telemetry.ts';
import { Admission } from './admission.ts';
import { LEAVING, NOT_STARTED, noSuchPath } from './api-status.ts';
import type { ResourceDefinition } from './definition.ts';
import { Definitions, toCrdDefinition } from './definitions/definitions.ts';
import { Documents } from './documents/openapi.ts';
import { GarbageCollector, isUncollected } from './garbage-collector.ts';
import { type Health, HealthChecks, healthText } from './health.ts';
import { Api } from './http/api.ts';
import type { WatchClient } from './http/clients.ts';
import { serveFetch } from './http/fetch-host.ts';
import { type HostDeps, serveNode } from './http/node-host.ts';
import { NO_WATCHES, Sessions } from './http/sessions.ts';
import { Upgrades } from './http/upgrade.ts';
import type { Answer, WholeAnswer, WireRequest } from './http/wire.ts';
import { EVENTS_PREFIX } from './kinds/events.ts';
import { typed } from './kinds/tables.ts';
import { Namespaces } from './namespaces.ts';
import { type ApiServerOptions, type Settings, toSettings } from './options.ts';
import { type OtherPath, splitTarget } from './request/path.ts';
import { type ApiServerSource, Resource } from './resource.ts';
import { Catalog, type ResourceContext, type ResourceInfo } from './resource-info.ts';
import { ApiCounts, type ApiServerStats, toCacheStats, toMetrics } from './stats.ts';
import { faultOfStored } from './stored-data.ts';
import { rowOf } from './subresources.ts';
import { Schemas } from './validation/object-schema.ts';
import { fieldsIn } from './verbs/read.ts';
import { isRegistration } from './webhooks/configurations.ts';
import { RegisteredWebhooks } from './webhooks/registered-webhooks.ts';

/** Options of {@link ApiServer.shutdown}. */
export interface ShutdownOptions {
  /** When it aborts, everything that has not ended is cut. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long everything is still served after `/readyz` begins to fail, in ms: time for load balancers to notice, and to send
   * clients elsewhere. Default 0.
   */
  readonly delayMs?: number | undefined;
  /**
   * Watches end at random times within this many milliseconds, at least a thousand per second, so that their clients do not all
   * reconnect at once. Default 0: all at once.
   */
  readonly spreadMs?: number | undefined;
}

const PUBLIC: ReadonlySet<string | undefined> = new Set(['healthz', 'livez', 'readyz', 'version']);

/**
 * Serves your own objects over Kubernetes' protocol, from any storage: over node:http, `fetch` handlers and WebSocket, and in the
 * same process with {@link resource}.
 */
export class ApiServer<I = unknown> implements ResourceSource {
  readonly #settings: Settings;
  readonly #catalog: Catalog;
  readonly #counts: ApiCounts = new ApiCounts();
  readonly #sessions: Sessions;
  readonly #api: Api;
  readonly #namespaces: Namespaces;
  readonly #collector: GarbageCollector | undefined;
  readonly #definitions: Definitions;
  /** Undefined if they cannot be registered. */
  readonly #webhooks: RegisteredWebhooks | undefined;
  readonly #documents: Documents;
  readonly #schemas: Schemas = new Schemas();
  readonly #health: HealthChecks;
  /** Aborts when nothing is admitted any more. */
  readonly #closing: AbortController = new AbortController();
  /** Aborts when admitted requests are no longer waited for. */
  readonly #cut: AbortController = new AbortController();
  readonly #storages: Map<string, Storage> = new Map();
  /** Pending until it is known whether the stored objects can be served. */
  #checking: Promise<void> | undefined;
  /** What is wrong with the stored objects, by prefix. */
  readonly #unservable: Map<string, WatchError> = new Map();
  readonly #contexts: Map<ResourceInfo, ResourceContext> = new Map();
  readonly #answering: Set<Promise<Answer>> = new Set();
  /** Requests in process. */
  readonly #working: Set<Promise<unknown>> = new Set();
  /** Storages whose watches end once earlier requests have been answered. */
  readonly #retiring: Set<Promise<void>> = new Set();
  #shutdown: Promise<void> | undefined;
  readonly #unobserve: (() => void) | undefined;
  /**
   * Resolves when the server has started. Requests need not wait for it. Rejects with INVALID_ARGUMENT for a schema that is
   * invalid, or needs a package that is not installed, and with the storage's error if that fails. The start is not tried again:
   * requests for kinds that may be defined are refused with 503, and nothing is collected.
   */
  readonly ready: Promise<void>;
  /** The handler for node:http: `createServer(server.handler)`. In frameworks such as Express, use it for all paths. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** The handler for hosts with `fetch` handlers. Pass the host's second argument on: it has the client's address. */
  readonly fetch: (request: Request, host?: unknown) => Promise<Response>;

  /**
   * The listener for a node:http server's `upgrade` event, for watches over WebSocket, which the Java client fabric8 prefers.
   * Without it, requests for a WebSocket are refused with 501, and `onError` is called once.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and for a resource that cannot be served. */
  constructor(options: ApiServerOptions<I>) {
    this.#settings = toSettings(options);
    // Each request listens until it is answered, and each in-process watch until it ends: Node 20 would warn of a leak.
    setMaxListeners(0, this.#closing.signal, this.#cut.signal);
    const { resources, customResourceDefinitions, convert } = this.#settings;
    const own = customResourceDefinitions ? [toCrdDefinition(convert) as ResourceDefinition] : [];
    this.#catalog = new Catalog([...resources, ...own], convert);
    this.#documents = new Documents(() => this.#catalog.all);
    this.#sessions = new Sessions(this.#settings, this.#counts);
    const contextOf = (info: ResourceInfo): ResourceContext => this.#contextOf(info);
    const { onError, maxBufferedBytes, storage, clock, random } = this.#settings;
    const [closing, caches] = [this.#closing.signal, () => this.#caches()];
    this.#health = new HealthChecks({ storage, clock, caches, closing });
    this.#namespaces = new Namespaces({
      ...{ catalog: this.#catalog, storage, contextOf, clock, random, onError },
      admissionOf: (info) => this.#admissionOf(info),
    });
    const kindsKnown = (): Promise<void> => this.#definitions.caughtUp();
    const collected = { catalog: this.#catalog, contextOf, kindsKnown, clock, random, onError };
    this.#collector = this.#settings.garbageCollection ? new GarbageCollector(collected) : undefined;
    const replaced = (infos: readonly ResourceInfo[], ends: boolean): void => this.#replaced(infos, ends);
    const { now } = this.#settings;
    this.#definitions = new Definitions({
      ...{ catalog: this.#catalog, storage, contextOf, clock, random, onError, now, convert, replaced },
    });
    const registers = this.#catalog.fixed.some(isRegistration);
    const { uid, serviceAddress } = this.#settings;
    const asking = { catalog: this.#catalog, contextOf, uid, serviceAddress, clock, random, onError };
    this.#webhooks = registers ? new RegisteredWebhooks(asking) : undefined;
    this.#api = new Api({
      ...{ settings: this.#settings, catalog: this.#catalog, contextOf, counts: this.#counts },
      ...{ closing, cut: this.#cut.signal, checking: () => this.#checking, loading: () => this.#definitions.loading },
      other: (path, request) => this.#other(path, request),
      isPublic: ({ segments }) => segments.length <= 2 && PUBLIC.has(segments[0]),
    });
    const sessions = this.#sessions;
    const cutEarly = (): void => sessions.cutEarly();
    const deps: HostDeps = { answer: (request) => this.#answer(request), sessions, cutEarly, maxBufferedBytes, clock };
    this.handler = (request, response) => void serveNode(deps, request, response).catch(onError);
    this.fetch = (request, host) => serveFetch(deps, request, host);
    const upgrades = new Upgrades(deps, this.#settings);
    this.upgrade = (request, socket, head) => upgrades.serve(request, socket, head);
    this.#unobserve = this.#settings.telemetry?.observe(() => {
      const { prefix, metrics } = this.#metrics;
      // Durations are recorded with each request.
      return [{ prefix, metrics: metrics.filter(({ type }) => type !== 'histogram') }];
    });
    this.ready = this.#start();
    // Reported even if nobody awaits it; `/readyz` shows it, too.
    this.ready.catch((error: unknown) => closing.aborted || onError(error));
  }

  /**
   * Returns a resource in the same process: `PLURAL.GROUP/VERSION`, `PLURAL/v1` for the core group, any other name that kubectl
   * accepts, such as `cm`, or a `ResourceType`.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a resource that is not served.
   */
  resource<T extends object = KubernetesObject>(type: string | (ResourceType & Typed<T>)): Resource<T> {
    return this.#resource<T>(this.#catalog.named(typeof type === 'string' ? type : nameOf(type)));
  }

  /**
   * Like `resource`, but also finds a resource by its objects' kind, and waits until stored definitions are served.
   *
   *     await server.kind({ apiVersion: 'example.com/v1', kind: 'Order' })
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT for a resource that is not served; REFUSED with code 503 if the server could not
   * start, or shuts down meanwhile.
   */
  async kind<T extends object = KubernetesObject>(
    kind: string | (GroupVersionKind & Typed<T>),
    options: KindOptions = {},
  ): Promise<Resource<T>> {
    const { signal } = checkOptions(options, ['signal', 'maxAgeMs']);
    signal?.throwIfAborted();
    const { loading } = this.#definitions;
    if (loading) await (signal ? untilAborted(loading, signal) : loading);
    return this.#resource<T>(this.#catalog.named(kind));
  }

  #resource<T extends object>(info: ResourceInfo): Resource<T> {
    return new Resource<T>(() => {
      if (this.#closing.signal.aborted) throw new WatchError('CLOSED', 'the server has shut down');
      // It may have been redefined since.
      return this.#contextOf(info);
    });
  }

  /**
   * The same as a function, in one namespace if one is named: the source for an `InformerFactory`.
   *
   *     const orders = new InformerFactory(server.source).informer<Order>('orders.example.com/v1');
   */
  readonly source: ApiServerSource = (name, { namespace } = {}) => {
    const resource = this.resource(name);
    return namespace === undefined ? resource : resource.in(namespace);
  };

  /**
   * The server's metrics, in Prometheus' text format, as at `/metrics`, which also has those of the process. Health metrics are
   * from the last check: they are missing until somebody has asked for the health, or for `/metrics`.
   */
  get metrics(): string {
    const { metrics, prefix } = this.#metrics;
    return toText(metrics, { prefix });
  }

  get #metrics(): MetricGroup {
    const { requestsByVerb, durationsByVerb } = this.#counts;
    return toMetrics(this.stats, { requestsByVerb, durationsByVerb, health: this.#health.known });
  }

  /** The server's statistics and the state of its resources, as at `/stats`. Looks at every watch. */
  get stats(): ApiServerStats {
    const { requests, requestsLimited, watchers, watchersOpened, watchersStalled, events, sentBytes } = this.#counts;
    const { sent, watches } = this.#sessions;
    return {
      ...{ requests, requestsLimited, watchers, watchersOpened, watchersStalled },
      ...{ events: events + sent.events, sentBytes: sentBytes + sent.bytes },
      resources: Array.from(this.#storages, ([prefix, storage]) => {
        const resource = this.#nameOf(prefix);
        const cache = storage.cacheStats && toCacheStats(storage.cacheStats);
        return { resource, ...(watches.get(resource) ?? NO_WATCHES), cache };
      }),
    };
  }

  /** The server's health, as at `/readyz`, with the reasons. Asks the storage at most once per second. */
  health(): Promise<Health> {
    return this.#health.now();
  }

  /**
   * Immediately disconnects the clients of the watches that `which` selects, for example because their tokens have been revoked.
   * Returns how many. They come again, and only `authenticate` and `authorize`, which are then called again, can keep them out.
   * Watches in the same process have no client. Throws INVALID_ARGUMENT if `which` returns a promise.
   */
  disconnect(which: (client: WatchClient<I>) => boolean): number {
    return this.#api.watchClients.disconnect(which as (client: WatchClient) => boolean);
  }

  /**
   * Makes `/readyz` fail, then refuses new requests with 503, ends all watches, and lets admitted requests finish, also those in
   * process. Resolves when nothing is left. Close the storage and the HTTP server yourself.
   */
  shutdown(options: ShutdownOptions = {}): Promise<void> {
    const { signal, delayMs = 0, spreadMs = 0 } = checkOptions(options, ['signal', 'delayMs', 'spreadMs']);
    wholeNumber('delayMs', delayMs);
    wholeNumber('spreadMs', spreadMs);
    const cut = (): void => {
      this.#cut.abort(refusedBy(LEAVING));
      this.#sessions.cut();
    };
    const leave = whenAborted(signal, cut);
    this.#shutdown ??= this.#close(delayMs, spreadMs);
    return this.#shutdown.finally(leave);
  }

  async #start(): Promise<void> {
    const checked = this.#checkStored();
    this.#checking = checked
      .catch(() => {})
      .finally(() => {
        this.#checking = undefined;
      });
    const { signal } = this.#closing;
    try {
      await this.#schemas.prepare(this.#catalog.fixed);
      await checked;
      signal.throwIfAborted();
      await this.#namespaces.prepare(signal);
      signal.throwIfAborted();
      await this.#definitions.prepare();
      signal.throwIfAborted();
      await this.#webhooks?.prepare();
      this.#collector?.start();
      this.#health.start = { name: 'start', ok: true };
    } catch (error) {
      this.#definitions.giveUp(refusedBy(NOT_STARTED));
      this.#webhooks?.giveUp(refusedBy(NOT_STARTED));
      this.#health.start = { name: 'start', ok: false, error };
      throw error;
    }
  }

  /** Throws if stored objects do not fit their definitions. Requests for them fail from then on. */
  async #checkStored(): Promise<void> {
    const { signal } = this.#closing;
    const { storage, onError } = this.#settings;
    for (const prefix of new Set(this.#catalog.fixed.map((info) => info.prefix))) {
      const all = this.#catalog.fixed.filter((info) => info.prefix === prefix);
      // Others also notice that a storage cannot be reached.
      const fault = await untilAborted(faultOfStored(storage, all, signal), signal).catch((error: unknown) => {
        if (!signal.aborted) onError(error);
      });
      if (fault) this.#unservable.set(prefix, fault);
    }
    for (const fault of this.#unservable.values()) throw fault;
  }

  async #close(delayMs: number, spreadMs: number): Promise<void> {
    this.#health.isLeaving = true;
    const { signal } = this.#cut;
    if (delayMs > 0) await sleep(delayMs, { clock: this.#settings.clock, signal }).catch(() => {});
    this.#closing.abort(refusedBy(LEAVING));
    this.#definitions.giveUp(refusedBy(LEAVING));
    this.#webhooks?.giveUp(refusedBy(LEAVING));
    this.#sessions.stop(spreadMs);
    await Promise.allSettled([...this.#answering, ...this.#working]);
    await this.#sessions.drained();
    await Promise.all([this.#namespaces.stop(), this.#definitions.stop(), this.#webhooks?.stop(), this.#collector?.stop()]);
    // The start may still open storages.
    await this.ready.catch(() => {});
    await Promise.allSettled([...this.#retiring, ...[...this.#storages.values()].map((storage) => storage.close())]);
    this.#unobserve?.();
  }

  #answer(request: WireRequest): Promise<Answer> {
    const answer = this.#api.answer(request);
    this.#answering.add(answer);
    void answer.then(() => this.#answering.delete(answer));
    return answer;
  }

  /** A request in process: until it is over, or cut, it has what it began with. */
  #during<R>(verb: Promise<R>): Promise<R> {
    const working = untilAborted(verb, this.#cut.signal);
    this.#working.add(working);
    const done = (): void => void this.#working.delete(working);
    working.then(done, done);
    return working;
  }

  /** What the verbs of a resource currently need. */
  #contextOf(found: ResourceInfo): ResourceContext {
    const info = this.#catalog.current(found);
    if (info === undefined) throw noSuchPath();
    const fault = this.#unservable.get(info.prefix);
    if (fault) throw internalError(fault.message);
    let context = this.#contexts.get(info);
    if (context === undefined) {
      const { cache, now, random, uid, maxSelectorLength, onError, managedFields } = this.#settings;
      context = {
        ...{ info, now, random, uid, maxSelectorLength, onError },
        asker: this.#api.trusted,
        during: (verb) => this.#during(verb),
        tracksAll: managedFields === 'always',
        versions: () => {
          const all = info.versions?.values() ?? this.#catalog.all.filter((each) => each.prefix === info.prefix);
          return [...all].filter((each) => each.apiVersion !== info.apiVersion);
        },
        // A cache ends its watches when it is closed, so they need no listeners.
        closing: cache === false ? this.#closing.signal : undefined,
        storage: this.#storageOf(info),
        ttlSeconds: info.prefix === EVENTS_PREFIX ? Math.ceil(this.#settings.eventTtlMs / 1_000) : undefined,
        bySchema: this.#schemas.checkOf(info),
        admission: this.#admissionOf(info),
        namespaceExists: (namespace, name) => this.#namespaces.check(namespace, { info, name }),
        namespaceHolds: (namespace, checked) => this.#namespaces.confirm(namespace, checked, info),
        related: (apiVersion, plural) => {
          const other = this.#catalog.find(apiVersion, plural);
          return other && this.#contextOf(other);
        },
        collected: this.#collector !== undefined && !isUncollected(info),
        removed: (namespace) => {
          this.#namespaces.removed(namespace);
          this.#definitions.removed(info);
        },
        definition: this.#definitions.guardOf(info),
        ...(info === this.#catalog.namespaces ? this.#namespaces.hooks : this.#definitions.hooksOf(info)),
      };
      this.#contexts.set(info, context);
    }
    return context;
  }

  /** What is asked before an object is written; undefined: nothing. */
  #admissionOf(info: ResourceInfo): Admission | undefined {
    const { admission, handshakeTimeoutMs: timeoutMs, clock } = this.#settings;
    const webhooks = this.#webhooks?.of(info);
    if (webhooks === undefined && admission === undefined) return undefined;
    const read = (made: unknown, part: string | undefined): Work<unknown> =>
      typed(rowOf(info, part || undefined)?.kind ?? info, made);
    return new Admission({ hooks: admission ?? {}, webhooks, resource: info.resourceName, read, timeoutMs, clock });
  }

  /** The part of the storage for a resource, with its cache if it needs one; all versions of the resource share them. */
  #storageOf(info: ResourceInfo): Storage {
    let storage = this.#storages.get(info.prefix);
    if (storage === undefined) {
      const { cache = true, clock, random, onCacheError: onError } = this.#settings;
      const fields = Object.assign({}, ...this.#catalog.all.filter(({ prefix }) => prefix === info.prefix).map(fieldsIn));
      const scope = this.#settings.storage.scope(info.prefix, { fields });
      const options = { ...(typeof cache === 'object' && cache), fields, clock, random, onError };
      const { bookmarkMs, maxWatches } = checkCacherOptions(options);
      storage = cache === false ? scope : (scope.served?.({ bookmarkMs, maxWatches, clock }) ?? new Cacher(scope, options));
      this.#storages.set(info.prefix, storage);
    }
    return storage;
  }

  /** Forgets what was served. Requests that have begun keep it; once they have ended, its watches end. */
  #replaced(infos: readonly ResourceInfo[], ends: boolean): void {
    for (const info of infos) this.#contexts.delete(info);
    const prefix = ends ? infos[0]?.prefix : undefined;
    const storage = prefix === undefined ? undefined : this.#storages.get(prefix);
    if (prefix !== undefined) this.#storages.delete(prefix);
    this.#collector?.kindsChanged();
    if (storage === undefined) return;
    const { onError } = this.#settings;
    const closed = Promise.allSettled([...this.#answering, ...this.#working])
      .then(() => storage.close())
      .catch(onError)
      .finally(() => this.#retiring.delete(closed));
    this.#retiring.add(closed);
  }

  /** The caches that are in use, by the resource. */
  *#caches(): IterableIterator<readonly [string, CacherStats]> {
    for (const [prefix, { cacheStats }] of this.#storages) if (cacheStats) yield [this.#nameOf(prefix), cacheStats];
  }

  #nameOf(prefix: string): string {
    return this.#catalog.all.find((info) => info.prefix === prefix)?.resourceName ?? prefix;
  }

  #other({ segments }: OtherPath, request: WireRequest): Soon<WholeAnswer | undefined> {
    const [first, second] = segments;
    const document = (): Soon<WholeAnswer | undefined> => this.#documents.answer(segments, request);
    const { loading } = this.#definitions;
    if (second !== undefined) return loading ? loading.then(document) : document();
    if (first === 'version') return document();
    if (first === 'livez') return this.#liveAnswer();
    if (first === 'healthz' || first === 'readyz') return this.#healthAnswer(first, request);
    if (first === 'metrics') {
      return this.#health.now().then(() => text(200, this.metrics + processMetrics(), METRICS_TYPE));
    }
    if (first === 'stats') return text(200, `${JSON.stringify(this.stats)}\n`, 'application/json');
    return loading ? loading.then(document) : document();
  }

  #liveAnswer(): WholeAnswer {
    // A liveness probe must not wait for a storage: it shows the result of the last check.
    void this.#health.now();
    return this.#health.isBroken ? text(503, healthText('livez', [{ name: 'storage', ok: false }])) : text(200, 'ok');
  }

  async #healthAnswer(path: 'healthz' | 'readyz', { target }: WireRequest): Promise<WholeAnswer> {
    const { checks } = await this.#health.now();
    const looked = path === 'readyz' ? checks : checks.filter(({ name }) => name !== 'shutdown');
    const ok = looked.every((each) => each.ok);
    const isVerbose = new URLSearchParams(splitTarget(target).search).has('verbose');
    return text(ok ? 200 : 503, ok && !isVerbose ? 'ok' : healthText(path, looked));
  }
}

function text(code: number, body: string, type: string = 'text/plain; charset=utf-8'): WholeAnswer {
  return { code, headers: { 'content-type': type, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }, body };
}
