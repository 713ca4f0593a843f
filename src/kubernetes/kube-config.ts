/**
 * Finds a cluster as kubectl does, and reads kubeconfig files as kubectl does (client-go's clientcmd):
 *
 *     files ---> each: YAML, checked, with absolute paths ---> merged: the first one to name something wins ---> one context
 *
 * - A file that is missing or empty is skipped. A broken one is an error, because its content might have mattered.
 * - An entry counts as a whole: two files never make one user or one cluster between them.
 * - Paths in a file are relative to its folder, and so is the command of an exec plugin, unless it is a bare name.
 * - Contradictions are refused: ignoring `as-groups` without `as` would mean acting with more rights than intended.
 */

import { access, readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { invalid, isRecord, isWatchError, tried, WatchError, whyOf } from '../watch/errors.ts';
import { optional } from './node-fetch.ts';

/** The kinds of values that a kubeconfig has. */
interface Values {
  readonly string: string;
  readonly boolean: boolean;
  readonly object: Readonly<Record<string, unknown>>;
  readonly list: readonly unknown[];
  readonly strings: readonly string[];
  readonly stringLists: Readonly<Record<string, readonly string[]>>;
}

const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every((each) => typeof each === 'string');

const KINDS: Readonly<Record<keyof Values, readonly [test: (value: unknown) => boolean, expected: string]>> = {
  string: [(value) => typeof value === 'string', 'a string'],
  boolean: [(value) => typeof value === 'boolean', 'true or false'],
  object: [isRecord, 'an object'],
  list: [Array.isArray, 'a list'],
  strings: [isStrings, 'a list of strings'],
  stringLists: [(value) => isRecord(value) && Object.values(value).every(isStrings), 'an object of lists of strings'],
};

/** The members of an object, each with its kind, or with its own members. */
interface Fields {
  readonly [name: string]: keyof Values | Fields;
}

/** An object with these members. */
type Entry<F> = { readonly [Name in keyof F]?: F[Name] extends keyof Values ? Values[F[Name]] : Entry<F[Name]> };

const CLUSTER = {
  server: 'string',
  'certificate-authority': 'string',
  'certificate-authority-data': 'string',
  'insecure-skip-tls-verify': 'boolean',
  'tls-server-name': 'string',
  'proxy-url': 'string',
  'disable-compression': 'boolean',
  extensions: 'list',
} as const;
const USER = {
  token: 'string',
  tokenFile: 'string',
  username: 'string',
  password: 'string',
  'client-certificate': 'string',
  'client-certificate-data': 'string',
  'client-key': 'string',
  'client-key-data': 'string',
  as: 'string',
  'as-uid': 'string',
  'as-groups': 'strings',
  'as-user-extra': 'stringLists',
  exec: {
    command: 'string',
    args: 'strings',
    env: 'list',
    apiVersion: 'string',
    installHint: 'string',
    provideClusterInfo: 'boolean',
    interactiveMode: 'string',
  },
  'auth-provider': { name: 'string', config: 'object' },
} as const;
const CONTEXT = { cluster: 'string', user: 'string', namespace: 'string' } as const;
const FILE = {
  'current-context': 'string',
  kind: 'string',
  apiVersion: 'string',
  clusters: 'list',
  users: 'list',
  contexts: 'list',
} as const;

/** Where a server is, and whom to trust. */
export type ClusterEntry = Entry<typeof CLUSTER>;
/** The user who makes the requests. */
export type UserEntry = Entry<typeof USER>;
/** A program that issues credentials. */
export type ExecEntry = NonNullable<UserEntry['exec']>;
export type ProviderEntry = NonNullable<UserEntry['auth-provider']>;
type ContextEntry = Entry<typeof CONTEXT>;

/** A file, or several that have been merged. */
interface Kubeconfig {
  readonly currentContext: string;
  readonly clusters: ReadonlyMap<string, ClusterEntry>;
  readonly users: ReadonlyMap<string, UserEntry>;
  readonly contexts: ReadonlyMap<string, ContextEntry>;
}

/** One context, with everything that it names. */
export interface Chosen {
  readonly context: string;
  readonly namespace: string | undefined;
  readonly cluster: ClusterEntry;
  /** Empty: anonymous. */
  readonly user: UserEntry;
}

/** A file that is not a valid kubeconfig. The message names only the type of a value, because the value may be a secret. */
class Unreadable extends Error {
  override readonly name: string = 'Unreadable';
  static at(place: string, expected: string, value: unknown): Unreadable {
    const got = value === null ? 'null' : Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`;
    return new Unreadable(`${place && `${place}: `}expected ${expected}, got ${got}`);
  }
}

/** The known members of a value, each of its kind. */
function known<F extends Fields>(value: unknown, fields: F, place: string): Entry<F> {
  const found: Record<string, unknown> = {};
  if (value !== undefined && value !== null && !isRecord(value)) throw Unreadable.at(place, 'an object', value);
  for (const [name, kind] of Object.entries(fields)) {
    const each = value?.[name];
    if (each === undefined || each === null || each === '') continue;
    const where = `${place && `${place}.`}${name}`;
    if (typeof kind === 'object') found[name] = known(each, kind, where);
    else {
      const [test, expected] = KINDS[kind];
      if (!test(each)) throw Unreadable.at(where, expected, each);
      found[name] = each;
    }
  }
  return found as Entry<F>;
}

function named<T>(
  list: readonly unknown[] | undefined,
  member: string,
  read: (value: unknown, place: string) => T,
): Map<string, T> {
  const entries = new Map<string, T>();
  for (const [at, entry] of (list ?? []).entries()) {
    const place = `${member}s[${at}]`;
    const { name = '' } = known(entry, { name: 'string' } as const, place);
    if (entries.has(name)) throw new Unreadable(`${place}: there is another ${member} "${name}"`);
    entries.set(name, read((entry as Record<string, unknown> | null)?.[member], `${place}.${member}`));
  }
  return entries;
}

/** Reads the text of a kubeconfig. Paths in it are relative to `folder`. Rejects with INVALID_ARGUMENT if it is not one. */
async function parseKubeconfig(text: string, what: string, folder: string): Promise<Kubeconfig> {
  try {
    const all = known(await toValue(text), FILE, '');
    if ((all.kind ?? 'Config') !== 'Config' || (all.apiVersion ?? 'v1') !== 'v1') {
      throw new Unreadable('expected kind Config of apiVersion v1');
    }
    return {
      currentContext: all['current-context'] ?? '',
      clusters: named(all.clusters, 'cluster', (value, place) => {
        return within(folder, known(value, CLUSTER, place), ['certificate-authority']);
      }),
      users: named(all.users, 'user', (value, place) => toUser(known(value, USER, place), folder)),
      contexts: named(all.contexts, 'context', (value, place) => known(value, CONTEXT, place)),
    };
  } catch (cause) {
    throw isWatchError(cause) ? cause : unreadable(what, cause);
  }
}

function unreadable(what: string, cause: unknown): WatchError {
  const why = whyOf(cause);
  return new WatchError('INVALID_ARGUMENT', `kubeconfig: cannot read ${what}: ${why}`, { cause });
}

function toUser(user: UserEntry, folder: string): UserEntry {
  const { exec } = user;
  return {
    ...within(folder, user, ['client-certificate', 'client-key', 'tokenFile']),
    ...(exec?.command?.includes(sep) && { exec: within(folder, exec, ['command']) }),
  };
}

/** Makes paths absolute. */
function within<T>(folder: string, entry: T, names: readonly (keyof T & string)[]): T {
  const paths = names.flatMap((name) => {
    const path = entry[name] as string | undefined;
    return path === undefined || isAbsolute(path) ? [] : [[name, join(folder, path)]];
  });
  return { ...entry, ...Object.fromEntries(paths) };
}

/** To kubectl, times are texts, and so is `e1`. */
const isKnownToKubectl = ({ format, tag }: { readonly format?: string; readonly tag: string }): boolean =>
  format !== 'TIME' && format !== 'EXP' && !tag.endsWith(':timestamp');

/** JSON needs no package. Anything else is YAML of the version that kubectl reads, in which `yes` is true. */
async function toValue(text: string): Promise<unknown> {
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    const { parseDocument } = await optional('yaml', { load: () => import('yaml'), what: 'a kubeconfig in YAML' });
    const document = parseDocument(text, {
      version: '1.1',
      customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || isKnownToKubectl(tag)),
      merge: true,
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: 'silent',
    });
    const [error] = document.errors.filter(({ code }) => code !== 'MULTIPLE_DOCS'); // the first one counts
    if (error) throw error;
    return document.toJS();
  }
}

/** Reads a file. Resolves with undefined if there is none. */
async function readKubeconfig(path: string): Promise<Kubeconfig | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw unreadable(path, cause);
  }
  return parseKubeconfig(text, path, dirname(resolve(path)));
}

/** Merges files: earlier ones take precedence. */
function merged(files: readonly Kubeconfig[]): Kubeconfig {
  return {
    currentContext: files.find(({ currentContext }) => currentContext !== '')?.currentContext ?? '',
    clusters: firsts(files.map(({ clusters }) => clusters)),
    users: firsts(files.map(({ users }) => users)),
    contexts: firsts(files.map(({ contexts }) => contexts)),
  };
}

function firsts<T>(all: readonly ReadonlyMap<string, T>[]): ReadonlyMap<string, T> {
  const found = new Map<string, T>();
  for (const entries of all) for (const [name, entry] of entries) if (!found.has(name)) found.set(name, entry);
  return found;
}

const isEmpty = ({ clusters, users, contexts, currentContext }: Kubeconfig): boolean =>
  clusters.size + users.size + contexts.size === 0 && currentContext === '';

/** Returns the context of a name, or the current one. Throws INVALID_ARGUMENT if it cannot be used. */
function choose(config: Kubeconfig, wanted: string | undefined): Chosen {
  const name = wanted ?? config.currentContext;
  const context = config.contexts.get(name);
  if (!context) {
    const names = [...config.contexts.keys()].join(', ');
    throw invalid(wanted === undefined ? 'kubeconfig: current-context' : 'context', name, `one of ${names || 'none'}`);
  }
  const chosen: Chosen = {
    context: name,
    namespace: context.namespace,
    cluster: entryOf(config.clusters, context.cluster, `the cluster of context "${name}"`),
    user: context.user === undefined ? {} : entryOf(config.users, context.user, `the user of context "${name}"`),
  };
  const [fault] = faultsOf(chosen);
  if (fault) throw new WatchError('INVALID_ARGUMENT', `kubeconfig: context "${name}": ${fault}`);
  return chosen;
}

function entryOf<T>(entries: ReadonlyMap<string, T>, name: string | undefined, what: string): T {
  const entry = entries.get(name ?? '');
  if (entry) return entry;
  throw invalid(`kubeconfig: ${what}`, name, `one of ${[...entries.keys()].join(', ') || 'none'}`);
}

/** Faults that kubectl refuses, too: two answers to one question, or half an answer. */
function* faultsOf({ cluster, user }: Chosen): Generator<string> {
  const has = <T extends object>(entry: T, ...names: (keyof T)[]): boolean => names.some((name) => entry[name] !== undefined);
  const both = (one: string): string => `expected ${one} or ${one}-data, got both`;
  if (!cluster.server) yield 'its cluster has no server';
  const authority = [has(cluster, 'certificate-authority'), has(cluster, 'certificate-authority-data')];
  if (authority.every(Boolean)) yield both('certificate-authority');
  if (cluster['insecure-skip-tls-verify'] && authority.some(Boolean)) {
    yield 'expected insecure-skip-tls-verify or a certificate-authority, got both';
  }
  if (has(user, 'client-certificate') && has(user, 'client-certificate-data')) yield both('client-certificate');
  if (has(user, 'client-key') && has(user, 'client-key-data')) yield both('client-key');
  if (has(user, 'client-certificate', 'client-certificate-data') !== has(user, 'client-key', 'client-key-data')) {
    yield 'expected a client-certificate and its client-key, got one of them';
  }
  if (has(user, 'token') && has(user, 'username', 'password')) yield 'expected a token or a username, got both';
  if (user.exec && user['auth-provider']) yield 'expected exec or an auth-provider, got both';
  if (user.exec && !user.exec.command) yield 'exec has no command';
  if (!user.as && has(user, 'as-uid', 'as-groups', 'as-user-extra')) {
    yield 'expected as together with as-uid, as-groups and as-user-extra';
  }
}

/** Where to find a cluster. At most one of `file`, `text`, `server` and `inCluster` can be given. */
export interface KubeConfigOptions {
  /** The path of a kubeconfig file. Default: `$KUBECONFIG`, then `~/.kube/config`, then the service account of a pod. */
  readonly file?: string | undefined;
  /** A kubeconfig itself, in YAML or JSON. Paths in it are relative to the current folder. */
  readonly text?: string | undefined;
  /**
   * The URL of a server that needs no kubeconfig, because it needs no credentials, and its certificate is generally trusted.
   */
  readonly server?: string | undefined;
  /**
   * Use the service account of the pod in which this runs, even if there are kubeconfig files. A string is a prefix for the paths
   * of the service account's files, for tools that mount them elsewhere.
   */
  readonly inCluster?: boolean | string | undefined;
  /** The name of a context of the kubeconfig. Default: its current context. */
  readonly context?: string | undefined;
}

/** Finds the context that a program acts in. */
export async function findContext({ file, text, server, inCluster = false, context }: KubeConfigOptions): Promise<Chosen> {
  const given = Object.entries({ file, text, server, inCluster: inCluster === false ? undefined : inCluster });
  const [one, other] = given.filter(([, value]) => value !== undefined);
  if (one && other) throw invalid(one[0], one[1], `no ${one[0]} together with ${other[0]}`);
  if (context !== undefined && (server !== undefined || inCluster !== false)) {
    throw invalid('context', context, `none together with ${one?.[0]}, which has only one`);
  }
  if (server !== undefined) return { context: 'server', namespace: undefined, cluster: { server }, user: {} };
  if (inCluster !== false) return serviceAccount(typeof inCluster === 'string' ? inCluster : '');
  if (text !== undefined) return choose(await parseKubeconfig(text, 'text', ''), context);
  if (file !== undefined) return choose(await only(file), context);
  const config = await readDefault();
  if (!isEmpty(config) || context !== undefined) return choose(config, context);
  if (await isInPod()) return serviceAccount('');
  const expected = '$KUBECONFIG, ~/.kube/config, or the service account of a pod';
  throw new WatchError('INVALID_ARGUMENT', `kubeconfig: expected ${expected}, found none`);
}

async function only(file: string): Promise<Kubeconfig> {
  const config = await readKubeconfig(file);
  if (!config) throw unreadable(file, new Error('ENOENT: no such file'));
  if (isEmpty(config)) throw unreadable(file, new Error('it is not a kubeconfig'));
  return config;
}

/** The files that kubectl reads if none is named. */
export async function readDefault(): Promise<Kubeconfig> {
  const { KUBECONFIG } = process.env;
  const paths = KUBECONFIG ? KUBECONFIG.split(delimiter) : homes().map((home) => join(home, '.kube', 'config'));
  const files: Kubeconfig[] = [];
  for (const path of new Set(paths)) {
    const config = path === '' ? undefined : await readKubeconfig(path);
    if (config) files.push(config);
    if (config && !KUBECONFIG) break;
  }
  return merged(files);
}

function homes(): readonly string[] {
  const { HOME, HOMEDRIVE, HOMEPATH } = process.env;
  const known =
    process.platform === 'win32' ? [HOME, HOMEDRIVE && HOMEPATH && HOMEDRIVE + HOMEPATH, ownHome()] : [HOME || ownHome()];
  return known.filter((each): each is string => Boolean(each));
}

/** In a container, a user may be just a number, about which nothing else is known. */
const ownHome = (): string | undefined => tried(homedir);

/** Where a pod has its service account. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

async function isInPod(): Promise<boolean> {
  const { KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT } = process.env;
  if (!KUBERNETES_SERVICE_HOST || !KUBERNETES_SERVICE_PORT) return false;
  return access(`${SERVICE_ACCOUNT}/token`).then(
    () => true,
    () => false,
  );
}

async function serviceAccount(prefix: string): Promise<Chosen> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, POD_NAMESPACE } = process.env;
  if (!host || !port) {
    throw new WatchError('INVALID_ARGUMENT', 'kubeconfig: expected KUBERNETES_SERVICE_HOST and _PORT, found none');
  }
  const folder = `${prefix}${SERVICE_ACCOUNT}`;
  const namespace = POD_NAMESPACE || (await readFile(`${folder}/namespace`, 'utf8').catch(() => '')).trim();
  return {
    context: 'service account',
    namespace: namespace || undefined,
    cluster: {
      server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      'certificate-authority': `${folder}/ca.crt`,
    },
    user: { tokenFile: `${folder}/token` },
  };
}
