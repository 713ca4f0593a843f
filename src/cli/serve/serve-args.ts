import type { ApiServerOptions } from '../../apiserver/options.ts';
import { type Given, KEEP_ALIVE_SECONDS, type Options, preset, quote, quoteUrl, toHost, UsageError, valued } from '../usage.ts';
import type { LogFormat } from './log.ts';

export interface ServeCommand {
  readonly command: 'serve';
  readonly host: string;
  readonly port: number;
  readonly resources: readonly ServedResource[];
  /** Whether Kubernetes' own kinds are served, too. */
  readonly kubernetesKinds: boolean;
  /** Files, and folders of files, of CustomResourceDefinitions that are served from the start. */
  readonly crdFiles: readonly string[];
  /** Where the webhooks of services listen, by NAMESPACE/NAME. Undefined: clients cannot register webhooks. */
  readonly webhookServices: ReadonlyMap<string, string> | undefined;
  /** The new objects for which managers of fields are recorded. */
  readonly managedFields: ManagedFields;
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
  /** How long an idle connection is kept open for its next request. */
  readonly keepAliveMs: number;
  /** How long a shutdown may take, and how long within that everything is served while `/readyz` fails. */
  readonly drainMs: number;
  readonly drainDelayMs: number;
  /** The header in which a proxy passes on the client's address. */
  readonly clientHeader: string | undefined;
  /** Undefined: the default of an `ApiServer`. */
  readonly limits: ServeLimits;
}

type ManagedFields = NonNullable<ApiServerOptions['managedFields']>;

/** The server's own list would be loaded with the server. */
const MANAGED_FIELDS: readonly ManagedFields[] = ['named', 'always'];

interface EtcdTlsFiles {
  readonly caFile: string | undefined;
  /** Together, or neither. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
}

/** Limits that the command line can change: their options, and those of an `ApiServer`. */
const LIMITS = {
  'max-watchers': 'maxWatchers',
  'max-watchers-per-address': 'maxWatchersPerAddress',
  'max-requests-per-address': 'maxConcurrentRequestsPerAddress',
  'max-watchers-per-tenant': 'maxWatchersPerTenant',
  'max-requests-per-tenant': 'maxConcurrentRequestsPerTenant',
  'max-writes-per-second-per-tenant': 'maxWritesPerSecondPerTenant',
} as const;

type ServeLimits = Readonly<Record<(typeof LIMITS)[keyof typeof LIMITS], number | undefined>>;

/** Options that are texts which may not be empty. */
const TEXTS = [
  ...(['data', 'sqlite', 'prefix', 'tls-cert', 'tls-key', 'token-file'] as const),
  ...(['etcd-ca', 'etcd-cert', 'etcd-key', 'etcd-user', 'etcd-password-file'] as const),
] as const;

export const SERVE_OPTIONS: Options = {
  ...preset({ host: '127.0.0.1', port: '8080', log: 'text', 'keep-alive': KEEP_ALIVE_SECONDS, drain: '10', 'drain-delay': '0' }),
  ...preset({ 'managed-fields': 'named' }),
  ...valued(...TEXTS, 'token', 'metrics', 'client-address', ...Object.keys(LIMITS)),
  ...{
    resource: { type: 'string', multiple: true },
    crd: { type: 'string', multiple: true },
    etcd: { type: 'string', multiple: true },
    'kubernetes-kinds': { type: 'boolean', default: false },
    webhooks: { type: 'boolean', default: false },
    'webhook-service': { type: 'string', multiple: true },
  },
};

/** Without tokens there are no tenants. */
const OF_TENANTS = ['max-watchers-per-tenant', 'max-requests-per-tenant', 'max-writes-per-second-per-tenant'] as const;

/** Prefixes of other programs' keys would be overwritten; this one is ours. */
const DEFAULT_PREFIX = '/watchmux/';

export function toServe(given: Given): ServeCommand {
  given.atMost(0, 'serve takes options only');
  given.notEmpty(TEXTS);
  const text = (option: string): string | undefined => given.text(option);
  const etcd = toEtcd(given);
  const stray = OF_TENANTS.find((option) => given.has(option));
  if (stray !== undefined && !given.has('token-file') && !given.has('token')) {
    throw given.error(`--${stray} goes with --token-file`);
  }
  const drainMs = given.milliseconds('drain');
  const drainDelayMs = given.milliseconds('drain-delay');
  const command: ServeCommand = {
    command: 'serve',
    host: given.host(),
    port: given.whole('port', { max: 65_535 }),
    resources: toServedResources(given.list('resource')),
    kubernetesKinds: given.flag('kubernetes-kinds'),
    crdFiles: toCrdFiles(given),
    webhookServices: toWebhookServices(given),
    managedFields: given.oneOf('managed-fields', MANAGED_FIELDS),
    token: text('token'),
    tls: toTls(given),
    ...etcd,
    prefix: text('prefix') ?? DEFAULT_PREFIX,
    dataFile: text('data'),
    sqliteFile: text('sqlite'),
    tokenFile: text('token-file'),
    metrics: toMetrics(given),
    log: toLogFormat(given),
    keepAliveMs: given.milliseconds('keep-alive', 1),
    drainMs,
    drainDelayMs,
    clientHeader: toHeader(given),
    limits: toLimits(given),
  };
  if (drainDelayMs > drainMs) throw given.error('--drain-delay is part of --drain, and cannot be longer');
  // The token is not shown: this message may end up in a log.
  if (command.token !== undefined && !isToken(command.token)) {
    throw given.error('--token takes 1 to 1000 visible ASCII characters without spaces');
  }
  checkExposure(command);
  return command;
}

function toCrdFiles(given: Given): readonly string[] {
  const files = given.list('crd');
  if (files.includes('')) throw given.wrong('crd', 'a file or a folder', '');
  return files;
}

/** Reads `NAMESPACE/NAME=HOST:PORT`, once for each service. */
function toWebhookServices(given: Given): ServeCommand['webhookServices'] {
  const values = given.list('webhook-service');
  if (values.length === 0) return given.flag('webhooks') ? new Map() : undefined;
  const services = new Map<string, string>();
  for (const value of values) {
    const [, service = '', host = '', port = ''] = /^([a-z\d-]+\/[a-z\d-]+)=(.+):(\d{1,5})$/.exec(value) ?? [];
    if (toHost(host) === undefined || Number(port) < 1 || Number(port) > 65_535) {
      throw given.wrong('webhook-service', 'NAMESPACE/NAME=HOST:PORT, such as shop/webhooks=127.0.0.1:9443', value);
    }
    if (services.has(service)) throw given.error(`--webhook-service: ${service} is given twice`);
    services.set(service, `${host}:${port}`);
  }
  return services;
}

/** Anyone who reaches this server can read and write everything: other machines need a token. */
function checkExposure({ host, token, tokenFile, tls }: ServeCommand): void {
  if (isLoopback(host) || token !== undefined || tokenFile !== undefined) return;
  const also = tls === undefined ? '; kubectl sends a token over HTTPS only, so add --tls-cert and --tls-key too' : '';
  throw new UsageError(`--host ${quote(host)} lets other machines in, and needs --token${also}`, 'serve');
}

/** Whether only this machine can reach an address. What a name means may change, except for `localhost`. */
export function isLoopback(host: string): boolean {
  return /^127(\.\d{1,3}){3}$/.test(host) || host === '::1' || host.toLowerCase() === 'localhost';
}

/** Whether a text can be a token: it travels in a header. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]{1,1000}$/.test(text);
}

function toTls(given: Given): ServeCommand['tls'] {
  checkPair(given, 'tls');
  const [certFile, keyFile] = [given.text('tls-cert'), given.text('tls-key')];
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
}

function checkPair(given: Given, of: 'tls' | 'etcd'): void {
  if (given.has(`${of}-cert`) !== given.has(`${of}-key`)) throw given.error(`--${of}-cert and --${of}-key go together`);
}

/** The options that go only with `--etcd`. */
function toEtcd(given: Given): Pick<ServeCommand, 'etcd' | 'etcdTls' | 'etcdUser' | 'etcdPasswordFile'> {
  const etcd = given.list('etcd').map((url) => toEtcdUrl(given, url));
  const places = ['data', 'sqlite', 'etcd'].filter((option) => given.has(option)).map((option) => `--${option}`);
  if (places.length > 1) throw given.error(`${places.slice(0, 2).join(' and ')} cannot be combined`);
  const stray = OF_ETCD.find((option) => given.has(option));
  if (etcd.length === 0 && stray !== undefined) throw given.error(`--${stray} goes with --etcd`);
  checkPair(given, 'etcd');
  const secret = OF_ETCD_TLS.find((option) => given.has(option));
  if (secret !== undefined && !etcd.some(({ protocol }) => protocol === 'https:')) {
    throw given.error(`--${secret} goes with an https: URL in --etcd`);
  }
  const [caFile, certFile, keyFile] = OF_ETCD_TLS.map((option) => given.text(option));
  const [etcdUser, etcdPasswordFile] = [given.text('etcd-user'), given.text('etcd-password-file')];
  const named = etcd.some(({ username }) => username !== '');
  const users = etcd.flatMap(({ username, password }) => (username === '' ? [] : [`${username}:${password}`]));
  if (new Set(users).size > 1) throw given.error('--etcd takes one user and one password for all members, not several');
  if (named && etcdUser !== undefined) throw given.error('--etcd-user and a user in --etcd cannot be combined');
  if (etcdPasswordFile !== undefined && etcdUser === undefined && !named) {
    throw given.error('--etcd-password-file goes with --etcd-user');
  }
  return { etcd, etcdTls: secret === undefined ? undefined : { caFile, certFile, keyFile }, etcdUser, etcdPasswordFile };
}

const OF_ETCD_TLS = ['etcd-ca', 'etcd-cert', 'etcd-key'] as const;
const OF_ETCD = ['prefix', ...OF_ETCD_TLS, 'etcd-user', 'etcd-password-file'] as const;

/** `9090`, `127.0.0.1:9090` or `[::]:9090`. */
function toMetrics(given: Given): ServeCommand['metrics'] {
  const value = given.text('metrics');
  if (value === undefined) return undefined;
  const [, host = '127.0.0.1', port = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(value) ?? [];
  const address = toHost(host);
  if (address === undefined || port === '' || Number(port) > 65_535) {
    throw given.wrong('metrics', 'a port, or a host and a port such as 0.0.0.0:9090');
  }
  return { host: address, port: Number(port) };
}

function toLogFormat(given: Given): LogFormat {
  const value = given.text('log');
  if (value === 'text' || value === 'json') return value;
  throw given.wrong('log', 'text or json');
}

function toHeader(given: Given): string | undefined {
  const value = given.text('client-address');
  if (value === undefined || /^[a-z][a-z0-9-]{0,99}$/i.test(value)) return value?.toLowerCase();
  throw given.wrong('client-address', 'the name of a header, such as x-forwarded-for');
}

function toLimits(given: Given): ServeLimits {
  const least = (option: string): number => (option === 'max-writes-per-second-per-tenant' ? 0 : 1);
  const limits = Object.entries(LIMITS).map(([option, limit]) => [limit, given.wholeIf(option, { min: least(option) })]);
  return Object.fromEntries(limits) as ServeLimits;
}

function toEtcdUrl(given: Given, value: string): URL {
  const url = given.httpUrl(value);
  if (url === undefined) throw given.error(`--etcd takes a URL such as http://127.0.0.1:2379, not ${quoteUrl(value)}`);
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') {
    throw given.error(`--etcd takes a URL without a path and a query: expected ${url.origin}`);
  }
  return url;
}

/** A kind of object, as `--resource` names it. */
interface ServedResource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Whether `status` is a subresource, and `scale`. */
  readonly status: boolean;
  readonly scale?: typeof SCALE;
}

/** Where the numbers of a `scale` are: where Kubernetes' own kinds have them. */
const SCALE = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
} as const;

/** What may follow a kind. */
const TRAITS = ['cluster', 'status', 'scale'] as const;

/** The form of the option, for messages. */
const RESOURCE_FORM = 'PLURAL[.GROUP]/VERSION=Kind[:cluster][:status][:scale]';

const EXAMPLE = 'orders.example.com/v1=Order';
const LABEL = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const MAX_GROUP_CHARS = 253;

/** Reads `orders.example.com/v1=Order`, `zones.example.com/v1=Zone:cluster:status`, or `pods/v1=Pod` of the core group. */
function toServedResource(value: string): ServedResource {
  const [, plural = '', group = '', version = '', kind = '', more] =
    /^([^./=]+)(?:\.([^/=]+))?\/([^/=]+)=([^:]+)(?::(.*))?$/.exec(value) ?? [];
  if (plural === '') throw wrongResource(value, `the form is ${RESOURCE_FORM}`);
  if (!LABEL.test(plural) || plural !== plural.toLowerCase())
    throw wrongResource(value, `the plural ${quote(plural)} is not in lower-case letters`);
  if (group.length > MAX_GROUP_CHARS || !(group === '' || group.split('.').every((part) => LABEL.test(part)))) {
    throw wrongResource(value, `the group ${quote(group)} is not a domain name in lower case`);
  }
  if (!LABEL.test(version)) throw wrongResource(value, `the version ${quote(version)} is not like v1 or v1beta1`);
  if (!KIND.test(kind)) throw wrongResource(value, `the kind ${quote(kind)} is not a word`);
  const traits = more?.split(':') ?? [];
  const wrong = traits.find((each, at) => !(TRAITS as readonly string[]).includes(each) || traits.indexOf(each) !== at);
  if (wrong !== undefined) {
    throw wrongResource(value, `after the kind :cluster, :status and :scale may follow, each once, not ${quote(`:${wrong}`)}`);
  }
  const [namespaced, status] = [!traits.includes('cluster'), traits.includes('status')];
  return { group, version, plural, kind, namespaced, status, ...(traits.includes('scale') && { scale: SCALE }) };
}

/** Reads all values of `--resource`. No two may have the same name, and all versions of a resource must have the same kind. */
function toServedResources(values: readonly string[]): ServedResource[] {
  const resources = values.map(toServedResource);
  for (const [at, { group, version, plural, kind, namespaced }] of resources.entries()) {
    const value = values[at] as string;
    const before = resources.slice(0, at).filter((each) => each.group === group);
    if (before.some((each) => each.version === version && (each.plural === plural || each.kind === kind))) {
      throw wrongResource(value, 'another --resource has this name or this kind');
    }
    if (before.some((each) => each.plural === plural && (each.kind !== kind || each.namespaced !== namespaced))) {
      throw wrongResource(value, 'another version of it has a different kind, or :cluster');
    }
  }
  return resources;
}

function wrongResource(value: string, why: string): UsageError {
  return new UsageError(`--resource ${quote(value)}: ${why}; for example --resource ${EXAMPLE}`, 'serve');
}
