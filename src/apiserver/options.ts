/** The options of an API server, with their defaults and checks. */

import type { AllowedOrigins } from '../bridge/hub/admission/origins.ts';
import type { Identified } from '../bridge/hub/admission/refusals.ts';
import type { CutReason } from '../bridge/hub/client-info.ts';
import { DEFAULTS } from '../bridge/protocol.ts';
import type { CacherOptions } from '../storage/cacher/options.ts';
import type { Storage } from '../storage/storage.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, having, wholeNumber } from '../watch/errors.ts';
import { known } from '../watch/options.ts';
import type { ResourceDefinition, SchemaDefinition } from './definition.ts';
import type { Verb } from './request/path.ts';

/** What was asked for, and how it was answered; for logs. */
export interface RequestReport {
  readonly method: string;
  /** The path, as it was sent. */
  readonly path: string;
  /** Undefined for what is no resource, or was refused before. */
  readonly verb?: Verb | undefined;
  readonly code: number;
  /** From its arrival until its answer began, in ms. */
  readonly durationMs: number;
  readonly address: string;
}

/** A client that was cut: it took nothing, or was silent, or the server waited no longer; or whose watch has ended with 410. */
export interface CutReport extends Pick<RequestReport, 'path' | 'address' | 'durationMs'> {
  readonly verb: Verb;
  readonly reason: CutReason;
}

/** What may be allowed: one request for a resource, or for another path. */
export type Authorize<I> = (
  verb: Verb,
  /** `orders.example.com`, with `/status` for that part of it; for other paths the path, such as `/metrics`. */
  resource: string,
  /** Undefined for all namespaces, and for what is in none. */
  namespace: string | undefined,
  name: string | undefined,
  identity: I,
) => boolean | PromiseLike<boolean>;

/** Limits of an API server. */
export interface ApiServerLimits {
  /** The longest body, in bytes; default 3 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * The longest URL without its origin, in bytes; default 16,384. node:http has a limit of its own for the URL and the headers
   * together, `maxHeaderSize`, and answers 431: set it to 16 KiB more than this.
   */
  readonly maxUrlBytes?: number | undefined;
  /** The longest selector, in characters; default 4,096. */
  readonly maxSelectorLength?: number | undefined;
  /** Watches that are open at once; default 10,000. */
  readonly maxWatchers?: number | undefined;
  /** The same from one address; default 1,000. */
  readonly maxWatchersPerAddress?: number | undefined;
  /** Requests that are answered at once, without watches; default 400. More are refused with 429. */
  readonly maxConcurrentRequests?: number | undefined;
  /** The same from one address; default 200. */
  readonly maxConcurrentRequestsPerAddress?: number | undefined;
  /** Watches of one tenant that are open at once; default 2,000. See `tenantOf`. */
  readonly maxWatchersPerTenant?: number | undefined;
  /** Requests of one tenant that are answered at once, without watches; default 100. */
  readonly maxConcurrentRequestsPerTenant?: number | undefined;
  /** How often one tenant may write within a second; default 1,000. More is refused with 429. 0: no limit. */
  readonly maxWritesPerSecondPerTenant?: number | undefined;
  /** How long a watch lasts that does not say: this long, up to twice. In ms; default 1,800,000. 0: for ever. */
  readonly minRequestTimeoutMs?: number | undefined;
  /** How long any other request may take until its answer begins, its body included, in ms; default 60,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long `authenticate` and `authorize` may take, in ms; default 10,000. */
  readonly handshakeTimeoutMs?: number | undefined;
  /** Bytes that may wait in a connection before its watch is read no more; default 1 MiB. */
  readonly maxBufferedBytes?: number | undefined;
  /** How long a client may take nothing while bytes wait for it, in ms; it is then cut. Default 30,000. 0: for ever. */
  readonly stallTimeoutMs?: number | undefined;
}

/** Options of the caches: those of a `Cacher` that do not depend on the resource. */
export type CacheOptions = Omit<CacherOptions, 'keyOf' | 'fields' | 'compareVersions' | 'clock' | 'random' | 'onError'>;

/** Options of an `ApiServer`. `I` is the application's identity of a client. */
export interface ApiServerOptions<I = unknown> extends ApiServerLimits {
  /** Where all objects are. Each resource has a scope of it: `<group or core>/<plural>/`. The server does not close it. */
  readonly storage: Storage;
  /** What is served. `CONFIG_MAPS`, `LEASES` and `NAMESPACES` are some of Kubernetes' own. */
  readonly resources: readonly (ResourceDefinition | SchemaDefinition)[];
  /**
   * Identifies a client by its request (an `IncomingMessage`, or a `Request`). What it returns is passed to `authorize`; anything
   * falsy, such as undefined or an empty text, means 401. Default: everybody is admitted.
   */
  readonly authenticate?: ((request: unknown) => Identified<I> | PromiseLike<Identified<I>>) | undefined;
  /**
   * Whose limits count for a client (`maxWatchersPerTenant` and those beside it): a customer, a team. Empty or undefined: nobody's.
   * Default: the identity, if it is a text.
   */
  readonly tenantOf?: ((identity: I) => string | undefined) | undefined;
  /**
   * The client's address, for the limits per address and for reports. Default: the remote address. Empty: unknown, and not counted.
   * Behind a proxy, read a header that the proxy sets and that clients cannot. As the hub's.
   */
  readonly clientAddress?: ((request: unknown) => string) | undefined;
  /** Whether a request is allowed; anything but true means 403. Default: everything is. */
  readonly authorize?: Authorize<I> | undefined;
  /** Origins whose web pages may connect; default: only this host's own. As the hub's. */
  readonly allowedOrigins?: AllowedOrigins<unknown>;
  /**
   * A cache before each resource, made when the resource is first used: lists and watches are then answered from memory, whatever the
   * storage is. Default true; an object has options for it.
   */
  readonly cache?: boolean | CacheOptions | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
  /** The time of day for timestamps, in ms since 1970. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
  /** For generated names and for how long watches last. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** For `metadata.uid`. Default `crypto.randomUUID`. */
  readonly uid?: (() => string) | undefined;
  /** Called with what was not expected: it was answered with 500, and its client does not learn what it was. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Called once for each request over a wire, when its answer begins. */
  readonly onRequest?: ((report: RequestReport) => void) | undefined;
  /** Called when a client is cut, because it takes nothing of what it asked for, or does not end; and when its watch expires. */
  readonly onCut?: ((report: CutReport) => void) | undefined;
}

/** The default of `maxUrlBytes`. */
export const MAX_URL_BYTES = 16_384;

const LIMITS: { readonly [K in keyof ApiServerLimits]-?: { readonly default: number; readonly min: number } } = {
  maxBodyBytes: { default: 3_145_728, min: 1 },
  maxUrlBytes: { default: MAX_URL_BYTES, min: 1 },
  maxSelectorLength: { default: 4_096, min: 0 },
  maxWatchers: { default: DEFAULTS.maxClients, min: 1 },
  maxWatchersPerAddress: { default: DEFAULTS.maxClientsPerAddress, min: 1 },
  maxConcurrentRequests: { default: 400, min: 1 },
  maxConcurrentRequestsPerAddress: { default: 200, min: 1 },
  maxWatchersPerTenant: { default: 2_000, min: 1 },
  maxConcurrentRequestsPerTenant: { default: 100, min: 1 },
  maxWritesPerSecondPerTenant: { default: 1_000, min: 0 },
  minRequestTimeoutMs: { default: 1_800_000, min: 0 },
  requestTimeoutMs: { default: 60_000, min: 1 },
  handshakeTimeoutMs: { default: DEFAULTS.handshakeTimeoutMs, min: 1 },
  maxBufferedBytes: { default: DEFAULTS.maxBufferedBytes, min: 1 },
  stallTimeoutMs: { default: DEFAULTS.stallTimeoutMs, min: 0 },
};

const OTHERS = [
  ...(['storage', 'resources', 'authenticate', 'authorize', 'tenantOf', 'clientAddress', 'allowedOrigins', 'cache'] as const),
  ...(['clock', 'now', 'random', 'uid', 'onError', 'onRequest', 'onCut'] as const),
] as const;

const HOOKS = [
  ...(['authenticate', 'authorize', 'tenantOf', 'clientAddress'] as const),
  ...(['now', 'random', 'uid', 'onError', 'onRequest', 'onCut'] as const),
] as const;

type Limits = { readonly [K in keyof ApiServerLimits]-?: number };

/** The options with their defaults. */
export interface Settings extends Limits, Omit<ApiServerOptions, keyof ApiServerLimits> {
  readonly clock: Clock;
  readonly now: () => number;
  readonly random: () => number;
  readonly uid: () => string;
  readonly onError: (error: unknown) => void;
  readonly onRequest: (report: RequestReport) => void;
  readonly onCut: (report: CutReport) => void;
}

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
export function toSettings<I>(options: ApiServerOptions<I>): Settings {
  const names = Object.keys(LIMITS) as (keyof ApiServerLimits)[];
  known(options, [...names, ...OTHERS]);
  having('storage', options.storage, 'scope', 'a Storage');
  for (const name of HOOKS) callable(name, options[name]);
  const limit = (name: keyof ApiServerLimits): [string, number] => {
    const { default: fallback, min } = LIMITS[name];
    return [name, wholeNumber(name, options[name] ?? fallback, min)];
  };
  const { clock = systemClock, now = Date.now, random = Math.random, uid = () => crypto.randomUUID() } = options;
  return {
    ...(options as unknown as ApiServerOptions),
    ...(Object.fromEntries(names.map(limit)) as unknown as Limits),
    ...{ clock: having('clock', clock, 'schedule', 'a Clock'), now, random, uid },
    onError: guarded(options.onError),
    onRequest: guarded(options.onRequest),
    onCut: guarded(options.onCut),
  };
}

/** What user code throws while it is told something is of no interest. */
function guarded<T>(told: ((value: T) => void) | undefined): (value: T) => void {
  return (value) => {
    try {
      told?.(value);
    } catch {
      // Nobody is left to tell.
    }
  };
}
