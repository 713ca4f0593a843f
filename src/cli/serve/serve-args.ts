import { isIPv6 } from 'node:net';
import {
  KEEP_ALIVE_SECONDS,
  keepAlive,
  milliseconds,
  type Options,
  type Parsed,
  quote,
  UsageError,
  whole,
  wrong,
} from '../usage.ts';
import type { LogFormat } from './log.ts';
import { type ServedResource, toServedResources } from './resource-flag.ts';
import { isToken } from './tokens.ts';

/** The options of `watchmux serve`. */
export interface ServeCommand {
  readonly command: 'serve';
  readonly host: string;
  readonly port: number;
  readonly resources: readonly ServedResource[];
  /** What clients must send. Undefined: nothing. */
  readonly token: string | undefined;
  /** The files of the certificate and its key. Undefined: plain HTTP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** Where etcd is. Empty: objects are in memory. */
  readonly etcd: readonly URL[];
  /** What all keys in etcd begin with. */
  readonly prefix: string;
  /** The files of the certificates for etcd. Undefined: none. */
  readonly etcdTls: EtcdTlsFiles | undefined;
  /** The user in etcd, and the file of its password. */
  readonly etcdUser: string | undefined;
  readonly etcdPasswordFile: string | undefined;
  /** The file that keeps memory across restarts. */
  readonly dataFile: string | undefined;
  /** The file of SQLite that keeps the objects, perhaps for other processes, too. */
  readonly sqliteFile: string | undefined;
  /** The file of tokens and the tenants that have them. */
  readonly tokenFile: string | undefined;
  /** Where numbers and health are served without a token. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
  readonly log: LogFormat;
  /** How long a connection is kept that waits for its next request. */
  readonly keepAliveMs: number;
  /** How long a shutdown may take, and how long within that everything is served while `/readyz` fails. */
  readonly drainMs: number;
  readonly drainDelayMs: number;
  /** The header in which a proxy passes on the client's address. */
  readonly clientHeader: string | undefined;
  /** Undefined: the default of an `ApiServer`. */
  readonly limits: ServeLimits;
}

/** The files for TLS with etcd. */
export interface EtcdTlsFiles {
  readonly caFile: string | undefined;
  /** Together, or neither. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
}

/** Limits that the command line can change. */
export interface ServeLimits {
  readonly maxWatchers: number | undefined;
  readonly maxWatchersPerAddress: number | undefined;
  readonly maxConcurrentRequestsPerAddress: number | undefined;
  readonly maxWatchersPerTenant: number | undefined;
  readonly maxConcurrentRequestsPerTenant: number | undefined;
  readonly maxWritesPerSecondPerTenant: number | undefined;
}

export const SERVE_OPTIONS: Options = {
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string', default: '8080' },
  resource: { type: 'string', multiple: true },
  token: { type: 'string' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  etcd: { type: 'string', multiple: true },
  prefix: { type: 'string' },
  'etcd-ca': { type: 'string' },
  'etcd-cert': { type: 'string' },
  'etcd-key': { type: 'string' },
  'etcd-user': { type: 'string' },
  'etcd-password-file': { type: 'string' },
  data: { type: 'string' },
  sqlite: { type: 'string' },
  'token-file': { type: 'string' },
  metrics: { type: 'string' },
  log: { type: 'string', default: 'text' },
  'keep-alive': { type: 'string', default: KEEP_ALIVE_SECONDS },
  drain: { type: 'string', default: '10' },
  'drain-delay': { type: 'string', default: '0' },
  'client-address': { type: 'string' },
  'max-watchers': { type: 'string' },
  'max-watchers-per-address': { type: 'string' },
  'max-requests-per-address': { type: 'string' },
  'max-watchers-per-tenant': { type: 'string' },
  'max-requests-per-tenant': { type: 'string' },
  'max-writes-per-second-per-tenant': { type: 'string' },
};

/** Without tokens nobody is a tenant. */
const OF_TENANTS = ['max-watchers-per-tenant', 'max-requests-per-tenant', 'max-writes-per-second-per-tenant'] as const;

/** Options that are texts which may not be empty. */
const TEXTS = [
  ...(['data', 'sqlite', 'prefix', 'tls-cert', 'tls-key', 'token-file'] as const),
  ...(['etcd-ca', 'etcd-cert', 'etcd-key', 'etcd-user', 'etcd-password-file'] as const),
] as const;

/** Prefixes of other programs' keys would be overwritten; this one is ours. */
const DEFAULT_PREFIX = '/watchmux/';

export function toServe({ values, positionals }: Parsed): ServeCommand {
  const [extra] = positionals;
  if (extra !== undefined) throw new UsageError(`unexpected argument ${quote(extra)}: serve takes options only`, 'serve');
  // A script whose variable is empty would silently serve without what it names.
  for (const option of TEXTS) {
    if (values[option] === '') throw wrong('serve', option, '', 'a non-empty value');
  }
  const text = (option: string): string | undefined => values[option] as string | undefined;
  const list = (option: string): readonly string[] => (values[option] as string[] | undefined) ?? [];
  const etcd = toEtcd(list('etcd').map(toEtcdUrl), text);
  const stray = OF_TENANTS.find((option) => values[option] !== undefined);
  if (stray !== undefined && text('token-file') === undefined && text('token') === undefined) {
    throw new UsageError(`--${stray} goes with --token-file`, 'serve');
  }
  const command: ServeCommand = {
    command: 'serve',
    host: toHost(values.host as string),
    port: whole('serve', 'port', values.port, { max: 65_535 }),
    resources: toServedResources(list('resource')),
    token: toToken(text('token')),
    tls: toTls(text('tls-cert'), text('tls-key')),
    ...etcd,
    prefix: text('prefix') ?? DEFAULT_PREFIX,
    dataFile: text('data'),
    sqliteFile: text('sqlite'),
    tokenFile: text('token-file'),
    metrics: toMetrics(text('metrics')),
    log: toLogFormat(values.log as string),
    keepAliveMs: keepAlive('serve', values['keep-alive']),
    ...toDrain(values),
    clientHeader: toHeader(text('client-address')),
    limits: toLimits(values),
  };
  checkExposure(command);
  return command;
}

/** Anyone who reaches this server can read and write everything: other machines need a token. */
function checkExposure({ host, token, tokenFile, tls }: ServeCommand): void {
  if (isLoopback(host) || token !== undefined || tokenFile !== undefined) return;
  const also = tls === undefined ? '; kubectl sends a token over HTTPS only, so add --tls-cert and --tls-key too' : '';
  throw new UsageError(`--host ${quote(host)} lets other machines in, and needs --token${also}`, 'serve');
}

/** Whether only this machine can reach an address. Nobody knows what a name means tomorrow, except `localhost`. */
export function isLoopback(host: string): boolean {
  return /^127(\.\d{1,3}){3}$/.test(host) || host === '::1' || host.toLowerCase() === 'localhost';
}

function toHost(value: string): string {
  const host = value.replace(/^\[(.*)\]$/, '$1');
  if (!isIPv6(host) && !/^[^\s:/[\]]+$/.test(host)) {
    throw wrong('serve', 'host', value, 'an address or a host name, without a port');
  }
  return host;
}

function toToken(value: string | undefined): string | undefined {
  // The token is not shown: this message may end up in a log.
  if (value !== undefined && !isToken(value)) {
    throw new UsageError('--token takes 1 to 1000 visible ASCII characters without spaces', 'serve');
  }
  return value;
}

function toTls(certFile: string | undefined, keyFile: string | undefined): ServeCommand['tls'] {
  checkPair('tls', [certFile, keyFile]);
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
}

function checkPair(of: 'tls' | 'etcd', [certFile, keyFile]: readonly (string | undefined)[]): void {
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new UsageError(`--${of}-cert and --${of}-key go together`, 'serve');
  }
}

/** What goes with `--etcd` and nothing else. */
function toEtcd(
  etcd: readonly URL[],
  text: (option: string) => string | undefined,
): Pick<ServeCommand, 'etcd' | 'etcdTls' | 'etcdUser' | 'etcdPasswordFile'> {
  const places = [text('data') && '--data', text('sqlite') && '--sqlite', etcd.length > 0 && '--etcd'].filter(Boolean);
  if (places.length > 1) throw new UsageError(`${places.slice(0, 2).join(' and ')} cannot be combined`, 'serve');
  const stray = OF_ETCD.find((option) => text(option) !== undefined);
  if (etcd.length === 0 && stray !== undefined) throw new UsageError(`--${stray} goes with --etcd`, 'serve');
  const [caFile, certFile, keyFile] = OF_ETCD_TLS.map(text);
  checkPair('etcd', [certFile, keyFile]);
  const secret = OF_ETCD_TLS.find((option) => text(option) !== undefined);
  if (secret !== undefined && !etcd.some(({ protocol }) => protocol === 'https:')) {
    throw new UsageError(`--${secret} goes with an https: URL in --etcd`, 'serve');
  }
  const [etcdUser, etcdPasswordFile] = [text('etcd-user'), text('etcd-password-file')];
  const named = etcd.some(({ username }) => username !== '');
  if (named && etcdUser !== undefined) throw new UsageError('--etcd-user and a user in --etcd cannot be combined', 'serve');
  if (etcdPasswordFile !== undefined && etcdUser === undefined && !named) {
    throw new UsageError('--etcd-password-file goes with --etcd-user', 'serve');
  }
  return { etcd, etcdTls: secret === undefined ? undefined : { caFile, certFile, keyFile }, etcdUser, etcdPasswordFile };
}

const OF_ETCD_TLS = ['etcd-ca', 'etcd-cert', 'etcd-key'] as const;
const OF_ETCD = ['prefix', ...OF_ETCD_TLS, 'etcd-user', 'etcd-password-file'] as const;

/** `9090`, `127.0.0.1:9090` or `[::]:9090`. */
function toMetrics(value: string | undefined): ServeCommand['metrics'] {
  if (value === undefined) return undefined;
  const [, host = '127.0.0.1', port = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(value) ?? [];
  if (port === '' || Number(port) > 65_535)
    throw wrong('serve', 'metrics', value, 'a port, or a host and a port such as 0.0.0.0:9090');
  return { host: toHost(host), port: Number(port) };
}

function toLogFormat(value: string): LogFormat {
  if (value === 'text' || value === 'json') return value;
  throw wrong('serve', 'log', value, 'text or json');
}

function toDrain(values: Parsed['values']): Pick<ServeCommand, 'drainMs' | 'drainDelayMs'> {
  const drainMs = milliseconds('serve', 'drain', values.drain);
  const drainDelayMs = milliseconds('serve', 'drain-delay', values['drain-delay']);
  if (drainDelayMs > drainMs) throw new UsageError('--drain-delay is part of --drain, and cannot be longer', 'serve');
  return { drainMs, drainDelayMs };
}

function toHeader(value: string | undefined): string | undefined {
  if (value === undefined || /^[a-z][a-z0-9-]{0,99}$/i.test(value)) return value?.toLowerCase();
  throw wrong('serve', 'client-address', value, 'the name of a header, such as x-forwarded-for');
}

function toLimits(values: Parsed['values']): ServeLimits {
  const limit = (option: string, min: number = 1): number | undefined =>
    values[option] === undefined ? undefined : whole('serve', option, values[option], { min });
  return {
    maxWatchers: limit('max-watchers'),
    maxWatchersPerAddress: limit('max-watchers-per-address'),
    maxConcurrentRequestsPerAddress: limit('max-requests-per-address'),
    maxWatchersPerTenant: limit('max-watchers-per-tenant'),
    maxConcurrentRequestsPerTenant: limit('max-requests-per-tenant'),
    maxWritesPerSecondPerTenant: limit('max-writes-per-second-per-tenant', 0),
  };
}

function toEtcdUrl(value: string): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url;
  throw wrong('serve', 'etcd', value, 'a URL such as http://127.0.0.1:2379');
}
