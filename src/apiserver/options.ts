/** The options of an API server, with their defaults and checks. */

import type { AllowedOrigins, Identified } from '../bridge/hub/admission/refusals.ts';
import type { CutReason } from '../bridge/hub/connection.ts';
import { DEFAULTS } from '../bridge/protocol.ts';
import type { CacherOptions } from '../storage/cacher/engine.ts';
import type { Storage } from '../storage/storage.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import {
  callable,
  callables,
  checkOptions,
  invalid,
  isRecord,
  namesOf,
  oneOf,
  requireMethod,
  type Wholes,
  wholeNumbers,
} from '../watch/errors.ts';
import { quietly, reporter } from '../watch/failures.ts';
import { type Telemetry, toTelemetry } from '../watch/telemetry.ts';
import type { AdmissionHooks } from './admission.ts';
import type { Convert, ResourceDefinition, SchemaDefinition } from './definition.ts';
import type { UserInfo } from './kinds/reviews.ts';
import type { Verb } from './request/path.ts';

/** A request and its response, for logs. */
export interface RequestReport {
  readonly method: string;
  /** The path, as it was sent. */
  readonly path: string;
  /** Undefined if the path is not a resource, or if the request was refused earlier. */
  readonly verb?: Verb | undefined;
  readonly code: number;
  /** The time from its arrival until its response began, in ms. */
  readonly durationMs: number;
  readonly address: string;
}

/**
 * A client that was cut because it read nothing, was silent, was disconnected by `disconnect`, or was still connected at the end
 * of a shutdown; or one whose watch ended with 410.
 */
export interface CutReport extends Pick<RequestReport, 'path' | 'address' | 'durationMs'> {
  readonly verb: Verb;
  readonly reason: CutReason;
}

/** Decides whether a request for a resource, or for another path, is allowed. */
export type Authorize<I> = (
  /** `impersonate` for `Impersonate-*` headers; whatever is asked, for reviews. */
  verb: Verb | (string & {}),
  /** `orders.example.com`, followed by `/status` for that subresource; for other paths the path, such as `/metrics`. */
  resource: string,
  /** Undefined for all namespaces, and for resources that are not namespaced. */
  namespace: string | undefined,
  name: string | undefined,
  identity: I,
) => boolean | PromiseLike<boolean>;

/** Limits of an API server. */
export interface ApiServerLimits {
  /** The longest body, in bytes; default 3 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * The longest URL, without its origin, in bytes; default 16,384. node:http has its own limit for the URL and the headers together,
   * `maxHeaderSize`, and answers 431: set it to 16 KiB more than this.
   */
  readonly maxUrlBytes?: number | undefined;
  /** The longest selector, in characters; default 4,096. */
  readonly maxSelectorLength?: number | undefined;
  /** Watches that are open at the same time; default 10,000. */
  readonly maxWatchers?: number | undefined;
  /** The same from one address; default 1,000. The addresses of a /64 of IPv6 are one, except in private networks. */
  readonly maxWatchersPerAddress?: number | undefined;
  /** Concurrent requests, not counting watches; default 400. More are refused with 429. */
  readonly maxConcurrentRequests?: number | undefined;
  /** The same from one address; default 200. */
  readonly maxConcurrentRequestsPerAddress?: number | undefined;
  /** Watches of one tenant that are open at the same time; default 2,000. See `tenantOf`. */
  readonly maxWatchersPerTenant?: number | undefined;
  /** Concurrent requests of one tenant, not counting watches; default 100. */
  readonly maxConcurrentRequestsPerTenant?: number | undefined;
  /** Writes of one tenant within a second; default 1,000. More are refused with 429. 0: no limit. */
  readonly maxWritesPerSecondPerTenant?: number | undefined;
  /** How long a watch lasts if its client sets no timeout: between this and twice this, in ms; default 1,800,000. 0: forever. */
  readonly minRequestTimeoutMs?: number | undefined;
  /**
   * The longest that a watch may last, in ms; a watch whose client asks for more ends at a random time between half of this and
   * all of it. Default: twice `minRequestTimeoutMs`. 0: forever.
   */
  readonly maxWatchMs?: number | undefined;
  /**
   * How often `authorize` is called again for each open watch, in ms; default 0: never. The watch ends unless it returns true
   * within `handshakeTimeoutMs`.
   */
  readonly reauthorizeMs?: number | undefined;
  /** How long any other request may take until its response begins, including reading its body, in ms; default 60,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long events are kept after each write, in ms, in whole seconds; default 3,600,000. 0: forever. See `EVENTS`. */
  readonly eventTtlMs?: number | undefined;
  /** How long `authenticate` and `authorize` may take, in ms; default 10,000. */
  readonly handshakeTimeoutMs?: number | undefined;
  /** Bytes that may wait in a connection before its watch is paused; default 1 MiB. */
  readonly maxBufferedBytes?: number | undefined;
  /**
   * The shortest answer that is compressed with gzip, for clients that accept it, in bytes; default 131,072, as upstream. 0:
   * none. Watches are never compressed.
   */
  readonly minGzipBytes?: number | undefined;
  /** How long a client may read nothing while bytes wait for it, in ms; then it is cut. Default 30,000. 0: forever. */
  readonly stallTimeoutMs?: number | undefined;
}

/** Options of the caches: those of a `Cacher` that do not depend on the resource. */
export type CacheOptions = Omit<CacherOptions, 'keyOf' | 'fields' | 'compareVersions' | 'clock' | 'random' | 'onError'>;

/**
 * A function of a request. It is typed as a method, whose parameters are bivariant: it may name the type of its host's requests,
 * `IncomingMessage` or `Request`.
 */
type OfRequest<Result> = { of(request: unknown): Result }['of'];

/** A service in a cluster. Upstream: `ServiceReference`. */
export interface WebhookService {
  readonly namespace: string;
  readonly name: string;
  readonly path?: string;
  readonly port: number;
}

/** Where the webhook of a service listens, as `HOST:PORT`; undefined: there is no such service. */
export type ServiceAddress = (service: WebhookService) => string | undefined;

/** Options of an `ApiServer`. `I` is the application's identity of a client. */
export interface ApiServerOptions<I = unknown> extends ApiServerLimits {
  /**
   * Where all objects are stored. Each resource has its own scope: `<group or core>/<plural>/`. The server does not close the
   * storage.
   */
  readonly storage: Storage;
  /** The resources to serve. `BUILT_IN_KINDS` are Kubernetes' own; `CONFIG_MAPS`, `EVENTS` and others are some of them. */
  readonly resources: readonly (ResourceDefinition | SchemaDefinition)[];
  /**
   * Whether clients may define further kinds, with CustomResourceDefinitions of `apiextensions.k8s.io/v1`, which are stored and
   * served like any other. It must be the same for all servers of one storage. Default false.
   */
  readonly customResourceDefinitions?: boolean | undefined;
  /**
   * For kinds that are served in several versions: functions that convert an object to another version, by resource name, such as
   * `orders.example.com`. Default: only `apiVersion` changes.
   */
  readonly convert?: Readonly<Record<string, Convert>> | undefined;
  /**
   * Identifies a client by its request (an `IncomingMessage`, or a `Request`). The result is passed to `authorize`; anything
   * falsy, such as undefined or an empty string, means 401. Default: everybody is admitted. If it is an object with
   * `expiresAtMs`, in ms since 1970, the client's watches end at that time, so that it comes again with a fresh token.
   */
  readonly authenticate?: OfRequest<Identified<I> | PromiseLike<Identified<I>>> | undefined;
  /**
   * The identity of whoever has a bearer token, as `authenticate` returns it; anything falsy: nobody has. TokenReviews are answered
   * by it, and, without `authenticate`, clients are identified by it. Default: no token is known.
   */
  readonly authenticateToken?: ((token: string) => Identified<I> | PromiseLike<Identified<I>>) | undefined;
  /**
   * The identity of a user whom somebody else names, as `authenticate` would return it; anything falsy: there is no such user. Asked
   * for SubjectAccessReviews, and for `Impersonate-*` headers, if `authorize` allows the sender `impersonate` on `users`, `groups`
   * and so on. Default: such headers are refused with 403, and such reviews are answered only if there is no `authorize`.
   */
  readonly identityOf?: ((user: UserInfo) => Identified<I> | PromiseLike<Identified<I>>) | undefined;
  /**
   * The tenant to which a client belongs, such as a customer or a team, for the limits per tenant (`maxWatchersPerTenant` and
   * others). Empty or undefined: no tenant, and no such limits. Default: the identity, if it is a string.
   */
  readonly tenantOf?: ((identity: I) => string | undefined) | undefined;
  /**
   * The client's address, for the limits per address and for reports. Default: the remote address. Empty: unknown, and not
   * counted. Behind a proxy, read a header that the proxy sets and that clients cannot. An IPv6 address counts by its /64, but
   * not if it is in brackets; any other text counts as it is.
   */
  readonly clientAddress?: OfRequest<string | null | undefined> | undefined;
  /** Whether a request is allowed; anything but true means 403. Default: everything is allowed. */
  readonly authorize?: Authorize<I> | undefined;
  /**
   * Called before every write, including dry runs: `mutate` may change what is written, `validate` may refuse it. Default: no
   * hooks. A definition's own `validate` says what its objects must look like; hooks also see the writer and the stored object.
   */
  readonly admission?: AdmissionHooks<I> | undefined;
  /**
   * Where the webhooks of services listen, as `HOST:PORT`, for registrations of webhooks that name a service: see
   * `WEBHOOK_CONFIGURATIONS`. Default: no service is known, only URLs.
   */
  readonly serviceAddress?: ServiceAddress | undefined;
  /** Origins whose web pages may connect, as for a hub; default: only this host's own. */
  readonly allowedOrigins?: AllowedOrigins<unknown>;
  /**
   * Whether each resource has a cache, created when the resource is first used: lists and watches are then answered from memory,
   * whatever the storage is. Default true; an object sets the caches' options. A storage in memory needs no cache: only the
   * options `bookmarkMs` and `maxWatches` apply to it.
   */
  readonly cache?: boolean | CacheOptions | undefined;
  /**
   * Whether objects are deleted when their owners, which `metadata.ownerReferences` name, are gone, and whether a deletion's
   * `propagationPolicy` has an effect. The server then follows all kinds. Default false.
   */
  readonly garbageCollection?: boolean | undefined;
  /**
   * The new objects for which the server records in `metadata.managedFields` who manages which fields. `named`: those whose
   * creator names a `fieldManager`, as kubectl does; others cost no time and no bytes until they are first applied. `always`:
   * all, as a kube-apiserver does; a creator without a name is recorded by its user agent. Default `named`.
   */
  readonly managedFields?: (typeof TRACKED)[number] | undefined;
  /**
   * Where metrics go until the server is shut down, and the spans of requests over the network: an `OpenTelemetry` of
   * `watchmux/opentelemetry`. Default: nowhere.
   */
  readonly telemetry?: Telemetry | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
  /** The time of day for timestamps, in ms since 1970. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
  /** Random numbers for generated names and the lengths of watches. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Creates a `metadata.uid`. Default `crypto.randomUUID`. */
  readonly uid?: (() => string) | undefined;
  /**
   * Called with unexpected errors, including those of hooks and caches. The client gets only 500, or 503 if `authenticate`
   * failed, without the error. What it throws is ignored. Default: `console.error`, once per kind.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Called once for each request over the network, when its response begins. What it throws goes to `onError`. */
  readonly onRequest?: ((report: RequestReport) => void) | undefined;
  /**
   * Called when a client is cut because it does not read its response, or does not end during a shutdown, and when its watch
   * expires. What it throws goes to `onError`.
   */
  readonly onCut?: ((report: CutReport) => void) | undefined;
}

/** The default of `maxUrlBytes`. */
export const MAX_URL_BYTES = 16_384;

const LIMITS: Wholes<keyof ApiServerLimits> = {
  maxBodyBytes: [3_145_728, 1],
  maxUrlBytes: [MAX_URL_BYTES, 1],
  maxSelectorLength: [4_096],
  maxWatchers: [DEFAULTS.maxClients, 1],
  maxWatchersPerAddress: [DEFAULTS.maxClientsPerAddress, 1],
  maxConcurrentRequests: [400, 1],
  maxConcurrentRequestsPerAddress: [200, 1],
  maxWatchersPerTenant: [2_000, 1],
  maxConcurrentRequestsPerTenant: [100, 1],
  maxWritesPerSecondPerTenant: [1_000],
  minRequestTimeoutMs: [1_800_000],
  maxWatchMs: [0], // see toSettings
  reauthorizeMs: [0],
  requestTimeoutMs: [60_000, 1],
  eventTtlMs: [3_600_000],
  handshakeTimeoutMs: [DEFAULTS.handshakeTimeoutMs, 1],
  maxBufferedBytes: [DEFAULTS.maxBufferedBytes, 1],
  minGzipBytes: [131_072],
  stallTimeoutMs: [DEFAULTS.stallTimeoutMs],
};

const TRACKED = ['named', 'always'] as const;

const HOOKS = [
  ...(['authenticate', 'authenticateToken', 'authorize', 'identityOf', 'tenantOf', 'clientAddress'] as const),
  ...(['serviceAddress', 'now', 'random', 'uid', 'onError', 'onRequest', 'onCut'] as const),
] as const;

const OTHERS = [
  ...(['storage', 'resources', 'customResourceDefinitions', 'convert', 'allowedOrigins', 'cache'] as const),
  ...(['garbageCollection', 'admission', 'managedFields', 'telemetry', 'clock'] as const),
] as const;

/** The options with their defaults. */
export interface Settings extends Readonly<Record<keyof ApiServerLimits, number>>, Omit<ApiServerOptions, keyof ApiServerLimits> {
  readonly clock: Clock;
  readonly now: () => number;
  readonly random: () => number;
  readonly uid: () => string;
  readonly onError: (error: unknown) => void;
  readonly customResourceDefinitions: boolean;
  readonly convert: Readonly<Record<string, Convert>>;
  /** Undefined: a cache itself reports that its storage fails, and that it works again. */
  readonly onCacheError: ApiServerOptions['onError'];
  readonly onRequest: (report: RequestReport) => void;
  readonly onCut: (report: CutReport) => void;
}

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
export function toSettings<I>(options: ApiServerOptions<I>): Settings {
  checkOptions(options, [...namesOf(LIMITS), ...HOOKS, ...OTHERS]);
  requireMethod('storage', options.storage, 'scope', 'a Storage');
  for (const name of HOOKS) callable(name, options[name]);
  const { garbageCollection = false, admission } = options;
  if (admission !== undefined) {
    const { mutate, validate } = checkOptions(admission, ['mutate', 'validate']);
    callable('admission.mutate', mutate);
    callable('admission.validate', validate);
  }
  if (typeof garbageCollection !== 'boolean') throw invalid('garbageCollection', garbageCollection, 'true or false');
  const { customResourceDefinitions = false, convert = {} } = options;
  if (typeof customResourceDefinitions !== 'boolean') {
    throw invalid('customResourceDefinitions', customResourceDefinitions, 'true or false');
  }
  callables('convert', convert);
  const { authenticateToken } = options;
  const byToken = authenticateToken && ((request: unknown) => authenticatedBy(authenticateToken, request));
  const { resources, cache = true, authenticate = byToken } = options;
  if (!Array.isArray(resources)) throw invalid('resources', resources, 'an array of definitions');
  if (typeof cache !== 'boolean' && !isRecord(cache)) throw invalid('cache', cache, 'true, false or an object');
  if (options.managedFields !== undefined) oneOf('managedFields', options.managedFields, TRACKED);
  const { clock = systemClock, now = Date.now, random = Math.random, uid = () => crypto.randomUUID() } = options;
  const limits = wholeNumbers(options, LIMITS);
  const onError = reporter('API server', options);
  return {
    ...(options as unknown as ApiServerOptions),
    ...{ customResourceDefinitions, convert, authenticate },
    ...{ ...limits, maxWatchMs: options.maxWatchMs ?? 2 * limits.minRequestTimeoutMs },
    ...{ clock, now, random, uid },
    onError,
    telemetry: toTelemetry(options.telemetry, onError),
    onCacheError: options.onError,
    onRequest: (report) => quietly(() => options.onRequest?.(report), onError),
    onCut: (report) => quietly(() => options.onCut?.(report), onError),
  };
}

/** Identifies the sender of a request by its token. */
function authenticatedBy<I>(authenticateToken: (token: string) => I, request: unknown): I | undefined {
  const { headers } = request as { readonly headers: Headers | { readonly authorization?: string } };
  const sent = headers instanceof Headers ? headers.get('authorization') : headers.authorization;
  const [, token] = /^bearer +(\S+)$/i.exec(sent ?? '') ?? [];
  return token === undefined ? undefined : authenticateToken(token);
}
