// Where a cluster is found, as kubectl finds it.
import { access, readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Clock, systemClock } from '../watch/clock.ts';
import { invalid, WatchError } from '../watch/errors.ts';
import { type KubeConfigLike, LoadedConfig } from './credentials.ts';
import {
  type Chosen,
  choose,
  isEmpty,
  type Kubeconfig,
  merged,
  parseKubeconfig,
  readKubeconfig,
  unreadable,
} from './kubeconfig-file.ts';
import { createProxyAgent, proxyOf } from './node-fetch.ts';

export type { KubeConfigLike };

/** Where to find a cluster. At most one of `file`, `text`, `server` and `inCluster` can be given. */
export interface KubeConfigOptions {
  /** The path of a kubeconfig file. Default: `$KUBECONFIG`, then `~/.kube/config`, then the service account of a pod. */
  readonly file?: string | undefined;
  /** A kubeconfig itself, in YAML or JSON. Paths in it are relative to the current folder. */
  readonly text?: string | undefined;
  /** The URL of a server that needs no kubeconfig, because it asks for no credentials, and any system trusts its certificate. */
  readonly server?: string | undefined;
  /**
   * Use the service account of the pod in which this runs, even if there are kubeconfig files. A string is a prefix for the paths
   * of the service account's files, for tools that mount them elsewhere.
   */
  readonly inCluster?: boolean | string | undefined;
  /** The name of a context of the kubeconfig. Default: its current context. */
  readonly context?: string | undefined;
}

/** How exec plugins run. */
interface PluginSettings {
  readonly timeoutMs: number;
  readonly clock?: Clock | undefined;
}

/** Reads the configuration of a cluster. Rejects with INVALID_ARGUMENT if there is none, or if it has no such context. */
export async function loadKubeConfig(options: KubeConfigOptions, plugins: PluginSettings): Promise<KubeConfigLike> {
  const { clock = systemClock, timeoutMs } = plugins;
  const config = new LoadedConfig(await findContext(options), { clock, timeoutMs });
  const { server, proxyUrl } = config.getCurrentCluster();
  const proxy = URL.canParse(server) ? proxyOf(new URL(server), proxyUrl) : undefined;
  if (proxy) (await createProxyAgent(proxy, undefined)).destroy(); // a package that is missing is missing now
  return config;
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
  if (process.platform !== 'win32') return [HOME || homedir()];
  return [HOME, HOMEDRIVE && HOMEPATH && HOMEDRIVE + HOMEPATH, homedir()].filter((each): each is string => Boolean(each));
}

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
