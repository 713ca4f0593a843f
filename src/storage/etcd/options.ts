import type { SecureClientSessionOptions } from 'node:http2';
import type { KubernetesObject } from '../../cache/object.ts';
import { systemClock } from '../../watch/clock.ts';
import { callable, checkOptions, invalid, namesOf, type Wholes, wholeNumbers } from '../../watch/errors.ts';
import { reporter } from '../../watch/failures.ts';
import type { BackedStorageOptions } from '../backed-storage.ts';
import { checkPrefix } from '../keys.ts';
import type { ChannelConfig } from './wire/channel.ts';

/** Certificates for TLS with etcd, in PEM. */
export interface EtcdTls {
  /** The CA certificates of the members; default: the host's. */
  readonly ca?: string | Uint8Array | undefined;
  /** A client certificate, if etcd requires one, and its key. */
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  /** The name in the members' certificates, if it is not the endpoint's. */
  readonly serverName?: string | undefined;
}

/** Options of an `EtcdStorage`. */
export interface EtcdStorageOptions<T extends KubernetesObject = KubernetesObject> extends BackedStorageOptions<T> {
  /** The URLs of the members, such as `http://127.0.0.1:2379`. One is used until it fails, then the next. */
  readonly endpoints: readonly string[];
  /** The prefix of all keys; default `/watchmux/`. A slash is added at the beginning and the end if it is missing. */
  readonly prefix?: string | undefined;
  /** The user name; requires `password`. */
  readonly user?: string | undefined;
  /** The password, or a function, which is called for each new token, so that the password can change. */
  readonly password?: string | (() => string) | undefined;
  /** Only for `https:` endpoints. A function is called for each connection, so that certificates can change. */
  readonly tls?: EtcdTls | (() => EtcdTls) | undefined;
  /** How long a request may take, including retries, in milliseconds; default 10,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long connecting to one member may take, in milliseconds; default 3,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * In milliseconds; default 10,000, at least 5,000. While watches are open: how long a member may be silent before it is pinged,
   * and then how long it may take to answer. Otherwise: how long it may leave requests unanswered before its connection is
   * abandoned.
   */
  readonly keepAliveMs?: number | undefined;
  /** The longest response, in bytes; default 64 MiB. Lists are read in parts, so this limits a part, and the largest object. */
  readonly maxResponseBytes?: number | undefined;
  /** The largest number of objects that share a lease; default 1,000. */
  readonly maxLeaseObjects?: number | undefined;
}

const LIMITS = {
  requestTimeoutMs: [10_000, 1],
  connectTimeoutMs: [3_000, 1],
  keepAliveMs: [10_000, 5_000],
  maxResponseBytes: [67_108_864, 1],
  maxLeaseObjects: [1_000, 1],
} satisfies Wholes<string>;

const NAMES = [
  ...(['endpoints', 'prefix', 'user', 'password', 'tls', 'fields'] as const),
  ...([...namesOf(LIMITS), 'clock', 'random', 'onError'] as const),
] as const;

/** The options with their defaults. */
export interface Settings extends ChannelConfig {
  readonly root: string;
  readonly maxLeaseObjects: number;
  readonly onError: (error: unknown) => void;
}

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
export function settingsOf<T extends KubernetesObject>(options: EtcdStorageOptions<T>): Settings {
  const { endpoints, clock = systemClock, random = Math.random, ...given } = checkOptions(options, NAMES);
  if (!Array.isArray(endpoints) || endpoints.length === 0) throw invalid('endpoints', endpoints, 'an array of http(s) URLs');
  const { user, password, tls = {} } = given;
  if ((user === undefined) !== (password === undefined)) throw invalid('user', user, 'a user together with a password');
  // What they return now is validated immediately.
  const certificates = toTls(typeof tls === 'function' ? tls() : tls);
  return {
    endpoints: endpoints.map(toEndpoint),
    root: toRoot(given.prefix ?? '/watchmux/'),
    user,
    password,
    tls: typeof tls === 'function' ? () => toTls(tls()) : certificates,
    clock,
    random: callable('random', random),
    ...wholeNumbers(given, LIMITS),
    onError: reporter('etcd storage', { onError: given.onError, clock }),
  };
}

function toEndpoint(endpoint: string): string {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== '/') {
    throw invalid('endpoints', endpoint, 'http(s) URLs without a path, such as http://127.0.0.1:2379');
  }
  return url.origin;
}

function toRoot(prefix: string): string {
  if (typeof prefix !== 'string') throw invalid('prefix', prefix, 'a string');
  const inner = prefix.replace(/^\/|\/$/g, '');
  return inner === '' ? '/' : `/${checkPrefix(`${inner}/`)}`;
}

function toTls(tls: EtcdTls): SecureClientSessionOptions {
  const { serverName, ...pem } = checkOptions(tls, ['ca', 'cert', 'key', 'serverName']);
  const given = Object.entries(pem).filter(([, value]) => value !== undefined);
  const own = given.map(([name, value]) => [name, typeof value === 'string' ? value : Buffer.from(value as Uint8Array)]);
  return { ...Object.fromEntries(own), ...(serverName !== undefined && { servername: serverName }) };
}
