// Kubeconfigs side by side with a real kubectl: what it makes of several files, and what its request then looks like to a server.
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadCluster } from '../../src/kubernetes/index.ts';
import { findContext, readDefault } from '../../src/kubernetes/kube-config.ts';
import { component, isMissing } from '../components.ts';
import { base64, type ClusterServer, json, serveCluster } from '../unit/cluster-server.ts';
import { type ConnectProxy, serveProxy } from '../unit/connect-proxy.ts';

const kubectl = component('kubectl');
const missing = isMissing(kubectl);
const call = promisify(execFile);
const START_MS = 60_000;

const servers: ClusterServer[] = [];
let folder: string;
let proxy: ConnectProxy;

beforeAll(async () => {
  for (let at = 0; at < 2; at++) servers.push(await serveCluster());
  for (const server of servers) server.reply = json({ kind: 'Status', apiVersion: 'v1', status: 'Success' });
  proxy = await serveProxy();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watchmux-kubeconfig-'));
  vi.stubEnv('HOME', folder);
  for (const name of ['KUBECONFIG', 'HTTPS_PROXY', 'NO_PROXY', 'https_proxy', 'no_proxy', 'POD_NAMESPACE'])
    vi.stubEnv(name, undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});
afterAll(async () => {
  for (const server of servers) await server.close();
  await proxy.close();
});

const [A, B] = [0, 1] as const;
const cluster = (which: number, more: object = {}): object => ({
  server: servers[which]?.url,
  'certificate-authority-data': base64(servers[which]?.ca ?? ''),
  ...more,
});
type Named = Readonly<Record<string, object>>;
interface Parts {
  readonly clusters?: Named;
  readonly users?: Named;
  readonly contexts?: Named;
  readonly current?: string;
}
/** A kubeconfig, whose parts are named by the keys. */
function config({ clusters = {}, users = {}, contexts = {}, current }: Parts): string {
  const list = (member: string, entries: Named): object[] =>
    Object.entries(entries).map(([name, entry]) => ({ name, [member]: entry }));
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: list('cluster', clusters),
    users: list('user', users),
    contexts: list('context', contexts),
    ...(current !== undefined && { 'current-context': current }),
  });
}
/** One cluster, one user and one context, all of one name. */
const simple = (name: string, which: number, more: Parts & { user?: object; cluster?: object } = {}): string =>
  config({
    clusters: { [name]: cluster(which, more.cluster) },
    users: { [name]: more.user ?? { token: `token-of-${name}` } },
    contexts: { [name]: { cluster: name, user: name } },
    current: name,
    ...more,
  });

/** What a command of kubectl prints; undefined if it fails. */
async function printed(...args: string[]): Promise<string | undefined> {
  const running = call(kubectl.path, args, { env: process.env });
  running.child.stdin?.end(); // for a user that is missing, it asks for a name
  const { stdout } = await running.catch(() => ({ stdout: undefined }));
  return stdout;
}

/** kubectl does not show where paths lead. */
const PATHS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile', 'command'];

/** Without what means the same as nothing. */
function lean(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const shown = (name: string, each: unknown): unknown => (PATHS.includes(name) ? basename(String(each)) : lean(each));
  const entries = Object.entries(value).map(([name, each]) => [name, shown(name, each)] as const);
  const nothing = [undefined, null, false, ''];
  return Object.fromEntries(entries.filter(([name, each]) => name !== 'interactiveMode' && !nothing.includes(each as never)));
}

interface Shown {
  readonly [member: string]: unknown;
  readonly 'current-context': string;
}
/** Lists of kubectl as objects. */
function toShown(text: string | undefined): Shown | undefined {
  if (text === undefined) return undefined;
  const all = JSON.parse(text);
  const of = (member: string): object =>
    Object.fromEntries((all[`${member}s`] ?? []).map((each: { name: string }) => [each.name, lean((each as never)[member])]));
  return { clusters: of('cluster'), users: of('user'), contexts: of('context'), 'current-context': all['current-context'] };
}

async function ours(): Promise<Shown | undefined> {
  const read = await readDefault().catch(() => undefined);
  if (!read) return undefined;
  const of = (map: ReadonlyMap<string, object>): object => Object.fromEntries([...map].map(([name, each]) => [name, lean(each)]));
  const { clusters, users, contexts, currentContext } = read;
  return { clusters: of(clusters), users: of(users), contexts: of(contexts), 'current-context': currentContext };
}

/** What a request looks like to whichever server gets it; what was refused has none. */
async function noted(request: () => Promise<unknown>): Promise<object | undefined> {
  for (const server of servers) server.requests.length = 0;
  await request();
  const seen = servers.flatMap(({ requests, url }) => requests.map(({ headers, client }) => ({ url, headers, client })));
  expect(seen.length).toBeLessThan(2);
  const [one] = seen;
  const headers = Object.entries(one?.headers ?? {}).filter(([name]) => /^(authorization|impersonate-.*|host)$/.test(name));
  return one && { ...one, headers: Object.fromEntries(headers) };
}

async function compare(): Promise<{ view: Shown | undefined; context: string | undefined; request: object | undefined }> {
  const view = toShown(await printed('config', 'view', '--raw', '-o', 'json'));
  expect(await ours()).toEqual(view);
  const minified = toShown(await printed('config', 'view', '--raw', '--minify', '-o', 'json'));
  const chosen = await findContext({}).catch(() => undefined);
  const theirs = await noted(() => printed('get', '--raw', '/api/v1/namespaces/x'));
  const own = await noted(async () => {
    const loaded = await loadCluster().catch(() => undefined);
    await loaded
      ?.resource('namespaces')
      .get('x')
      .catch(() => {});
    loaded?.close();
  });
  expect(own).toEqual(theirs);
  // Where kubectl shows a context that it refuses to use, a request tells.
  if (theirs) {
    const [entry, user] = [minified?.clusters, minified?.users].map((each) => Object.values(each as Named)[0]);
    expect([lean(chosen?.cluster), lean(chosen?.user)]).toEqual([entry, user ?? {}]);
    expect(chosen?.context).toBe(minified?.['current-context']);
  } else expect(chosen).toBeUndefined();
  return { view, context: chosen?.context, request: theirs };
}

interface Arrangement {
  /** Texts by path. */
  readonly files: Readonly<Record<string, string>>;
  /** The paths that KUBECONFIG names; default: all files. */
  readonly paths?: readonly string[];
  /** The context in which kubectl and we act; undefined: in none, because it is refused. */
  readonly context: string | undefined;
}
const yaml = (which: number, more: string): string => `
x-shared: &shared
  certificate-authority-data: ${base64(servers[which]?.ca ?? '')}
clusters:
- name: z
  cluster: {<<: *shared, server: '${servers[which]?.url}'}
users:
- {name: z, user: {token: t}}
contexts:
- {name: z, context: {cluster: z, user: z, namespace: on-call}}
current-context: z
${more}`;

const ARRANGEMENTS: Readonly<Record<string, () => Arrangement>> = {
  'one file': () => ({ files: { a: simple('a', A) }, context: 'a' }),
  'two current contexts': () => ({ files: { a: simple('a', A), b: simple('b', B) }, context: 'a' }),
  'two current contexts, the other way round': () => {
    return { files: { a: simple('a', A), b: simple('b', B) }, paths: ['b', 'a'], context: 'b' };
  },
  'the current context of the second, because the first has none': () => {
    return { files: { a: simple('a', A, { current: '' }), b: simple('b', B) }, context: 'b' };
  },
  'a file that is missing': () => ({ files: { b: simple('b', B) }, paths: ['nowhere', 'b', 'nowhere/either'], context: 'b' }),
  'a file that is empty': () => ({ files: { a: '', b: simple('b', B) }, context: 'b' }),
  'a file of white space, and one with only a comment': () => {
    return { files: { a: ' \n\n', c: '# nothing yet\n', b: simple('b', B) }, context: 'b' };
  },
  'the same file twice': () => ({ files: { a: simple('a', A), b: simple('b', B) }, paths: ['a', 'a', 'b', 'a'], context: 'a' }),
  'empty paths': () => ({ files: { a: simple('a', A) }, paths: ['', 'a', ''], context: 'a' }),
  'equal names everywhere': () => ({ files: { a: simple('x', A), b: simple('x', B) }, context: 'x' }),
  'users of one name are not mixed': () => {
    const { cert, key } = servers[A]?.client('ann') ?? { cert: '', key: '' };
    const user = { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) };
    return { files: { a: simple('x', A, { user }), b: simple('x', B) }, context: 'x' };
  },
  'clusters of one name are not mixed': () => {
    const bare = config({ clusters: { x: { server: servers[B]?.url, 'insecure-skip-tls-verify': true } } });
    return { files: { a: bare, b: simple('x', A) }, context: 'x' };
  },
  'a file with only a context': () => {
    const only = config({ contexts: { mine: { cluster: 'b', user: 'a', namespace: 'team' } }, current: 'mine' });
    return { files: { only, a: simple('a', A), b: simple('b', B) }, context: 'mine' };
  },
  'a file with only a current context': () => {
    return { files: { only: 'current-context: b\n', a: simple('a', A), b: simple('b', B) }, context: 'b' };
  },
  'paths that are relative to their files': () => {
    const [ann, bob] = ['ann', 'bob'].map((name) => servers[A]?.client(name) ?? { cert: '', key: '' });
    const user = { 'client-certificate': 'pki/client.crt', 'client-key': '../keys/client.key' };
    return {
      files: {
        'one/config': simple('one', A, {
          user,
          clusters: { one: { server: servers[A]?.url ?? '', 'certificate-authority': './ca.crt' } },
          current: 'two',
        }),
        'one/ca.crt': servers[A]?.ca ?? '',
        'one/pki/client.crt': ann?.cert ?? '',
        'keys/client.key': ann?.key ?? '',
        'two/config': simple('two', B, { user: { 'client-certificate': 'c', 'client-key': 'k' } }),
        'two/c': bob?.cert ?? '',
        'two/k': bob?.key ?? '',
      },
      paths: ['one/config', 'two/config'],
      context: 'two',
    };
  },
  'a token file, which counts before a token': () => ({
    files: { 'x/a': simple('a', A, { user: { token: 'old', tokenFile: 't' } }), 'x/t': 'fresh\n' },
    paths: ['x/a'],
    context: 'a',
  }),
  'a plugin beside its file': () => {
    const user = {
      exec: {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: './bin/plugin',
        args: ['a b'],
        env: [{ name: 'WHO', value: 'me' }],
        provideClusterInfo: true,
        interactiveMode: 'IfAvailable',
      },
    };
    const status = `{"token":"'"$WHO $1"'"}`;
    const credential = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":${status}}`;
    const script = `#!/bin/sh\nprintf '%s' '${credential}'\n`;
    return { files: { 'x/a': simple('a', A, { user }), 'x/bin/plugin': script }, paths: ['x/a'], context: 'a' };
  },
  'somebody else, with groups': () => {
    const more = { 'as-groups': ['one', 'two words'], 'as-uid': '7', 'as-user-extra': { 'a/b%': ['x', 'y'], Ü: ['z'] } };
    return { files: { a: simple('a', A, { user: { token: 't', as: 'Jürgen', ...more } }) }, context: 'a' };
  },
  'a name and a password': () => ({ files: { a: simple('a', A, { user: { username: 'ü', password: 'p:q' } }) }, context: 'a' }),
  'a name that the certificate must have': () => {
    return { files: { a: simple('a', A, { cluster: { 'tls-server-name': 'cluster.example' } }) }, context: 'a' };
  },
  'YAML with an anchor and a merge key': () => ({ files: { y: yaml(A, ''), b: simple('b', B) }, context: 'z' }),
  'two documents in a file: the first': () => ({
    files: { y: yaml(A, '---\ncurrent-context: b\n'), b: simple('b', B) },
    context: 'z',
  }),
  'a flag that is "yes"': () => {
    const insecure = `clusters: [{name: z, cluster: {insecure-skip-tls-verify: yes, server: '${servers[B]?.url}'}}]`;
    return { files: { i: insecure, y: yaml(A, '') }, context: 'z' };
  },
  'a key that is there twice': () => ({ files: { y: yaml(A, 'current-context: b\n'), b: simple('b', B) }, context: 'b' }),
  'names of another case mean nothing': () => ({
    files: { y: yaml(A, 'Current-Context: b\n'), b: simple('b', B) },
    context: 'z',
  }),
  'names that look like a day, a time of day and a number': () => ({
    files: {
      y: yaml(A, '')
        .replaceAll('user: z', 'user: 1:30')
        .replaceAll('cluster: z', 'cluster: e1')
        .replace('name: z\n  cluster', 'name: e1\n  cluster')
        .replace('name: z, user:', 'name: 1:30, user:')
        .replaceAll(/(text: |- \{name: )z(?=$|, context)/gm, '$12024-01-31'),
    },
    context: '2024-01-31',
  }),
  'a name that is "y", which is true in this YAML': () => {
    return { files: { y: yaml(A, '').replaceAll('current-context: z', 'current-context: y') }, context: undefined };
  },
  'a broken file beside a good one': () => ({ files: { a: simple('a', A), b: 'clusters: [' }, context: undefined }),
  'a folder': () => ({ files: { 'd/a': simple('a', A) }, paths: ['d/a', 'd'], context: undefined }),
  'something that is no kubeconfig': () => {
    return { files: { a: simple('a', A), b: '{"apiVersion":"v1","kind":"Pod"}' }, context: undefined };
  },
  'a list where a text belongs': () => ({ files: { a: simple('a', A, { user: { token: ['t'] } }) }, context: undefined }),
  'a number where a text belongs': () => ({ files: { y: yaml(A, '').replace('token: t', 'token: 5') }, context: undefined }),
  'one name twice in a file': () => {
    const twice = simple('a', A).replace('"users":[', '"users":[{"name":"a","user":{}},');
    return { files: { a: twice }, context: undefined };
  },
  'a current context that no file has': () => ({ files: { a: simple('a', A, { current: 'b' }) }, context: undefined }),
  'a context without its cluster': () => ({ files: { a: simple('a', A, { clusters: {} }) }, context: undefined }),
  'a context without its user': () => ({ files: { a: simple('a', A, { users: {} }) }, context: undefined }),
  'an authority in a file and in data': () => {
    return { files: { a: simple('a', A, { cluster: { 'certificate-authority': 'a' } }) }, context: undefined };
  },
  'an authority that need not be checked': () => {
    return { files: { a: simple('a', A, { cluster: { 'insecure-skip-tls-verify': true } }) }, context: undefined };
  },
  'a token and a password': () => {
    return { files: { a: simple('a', A, { user: { token: 't', username: 'u', password: 'p' } }) }, context: undefined };
  },
  'groups without a user': () => {
    return { files: { a: simple('a', A, { user: { token: 't', 'as-groups': ['viewers'] } }) }, context: undefined };
  },
  'a certificate without its key': () => {
    const user = { 'client-certificate-data': base64(servers[A]?.client('ann').cert ?? '') };
    return { files: { a: simple('a', A, { user }) }, context: undefined };
  },
};

describe.skipIf(missing)('as kubectl does', () => {
  it.each(Object.entries(ARRANGEMENTS))(
    '%s',
    async (_what, arrange) => {
      const { files, paths = Object.keys(files), context } = arrange();
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(join(folder, dirname(path)), { recursive: true });
        writeFileSync(join(folder, path), text);
        chmodSync(join(folder, path), 0o700);
      }
      vi.stubEnv('KUBECONFIG', paths.map((path) => path && join(folder, path)).join(delimiter));
      const { context: acted, request } = await compare();
      expect(acted).toBe(context);
      expect(request === undefined).toBe(context === undefined);
    },
    START_MS,
  );

  it(
    'the file at home, if KUBECONFIG is empty',
    async () => {
      mkdirSync(join(folder, '.kube'));
      writeFileSync(join(folder, '.kube', 'config'), simple('home', B));
      vi.stubEnv('KUBECONFIG', '');
      expect(await compare()).toMatchObject({ context: 'home' });
    },
    START_MS,
  );
});

describe.skipIf(missing)('plugins', () => {
  it(
    'are told the same about the cluster',
    async () => {
      const user = {
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: './plugin',
          args: ['one'],
          provideClusterInfo: true,
          interactiveMode: 'IfAvailable',
        },
      };
      const extensions = [
        { name: 'client.authentication.k8s.io/exec', extension: { audience: ['me'] } },
        { name: 'x', extension: 1 },
      ];
      const more = { extensions, 'tls-server-name': 'cluster.example', 'proxy-url': proxy.url };
      writeFileSync(join(folder, 'config'), simple('a', A, { user, cluster: more }));
      const credential = '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t"}}';
      const told = `printf '%s\\n' "$KUBERNETES_EXEC_INFO" >> "$(dirname "$0")/told"`;
      writeFileSync(join(folder, 'plugin'), `#!/bin/sh\n${told}\nprintf '%s' '${credential}'\n`, { mode: 0o700 });
      vi.stubEnv('KUBECONFIG', join(folder, 'config'));
      expect(await compare()).toMatchObject({ request: { headers: { authorization: 'Bearer t' } } });
      const [theirs, own] = readFileSync(join(folder, 'told'), 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      expect(lean(own)).toEqual(lean(theirs));
      expect(own.spec).toMatchObject({ interactive: false, cluster: { server: servers[A]?.url, config: { audience: ['me'] } } });
    },
    START_MS,
  );
});

describe.skipIf(missing)('proxies', () => {
  const there = (): string => `https://cluster.example:${new URL(servers[A]?.url ?? '').port}`;

  it.each([
    ['a proxy-url', () => ({ url: proxy.url }), {}, true],
    ['HTTPS_PROXY', () => ({}), { HTTPS_PROXY: 'URL' }, true],
    ['https_proxy, without a scheme', () => ({}), { https_proxy: 'HOST' }, true],
    ['NO_PROXY with the domain', () => ({}), { HTTPS_PROXY: 'URL', NO_PROXY: 'other, .example' }, false],
    ['NO_PROXY with another port', () => ({}), { HTTPS_PROXY: 'URL', NO_PROXY: 'cluster.example:1' }, true],
    ['a proxy-url, whatever NO_PROXY says', () => ({ url: proxy.url }), { NO_PROXY: '*' }, true],
    ['HTTPS_PROXY, for this machine', () => ({ server: servers[A]?.url }), { HTTPS_PROXY: 'URL' }, false],
  ] as const)(
    '%s',
    async (_what, of, env, used) => {
      const { url, server = there() } = of() as { url?: string; server?: string };
      for (const [name, value] of Object.entries(env)) {
        vi.stubEnv(name, value === 'URL' ? proxy.url : value === 'HOST' ? new URL(proxy.url).host : value);
      }
      writeFileSync(join(folder, 'config'), simple('a', A, { cluster: { server, ...(url && { 'proxy-url': url }) } }));
      vi.stubEnv('KUBECONFIG', join(folder, 'config'));
      proxy.asked.length = 0;
      const theirs = await noted(() => printed('get', '--raw', '/api/v1/namespaces/x'));
      const askedByThem = proxy.asked.splice(0).length;
      const own = await noted(async () => {
        const loaded = await loadCluster();
        await loaded
          .resource('namespaces')
          .get('x')
          .catch(() => {});
        loaded.close();
      });
      expect([own, proxy.asked.length]).toEqual([theirs, askedByThem]);
      expect(askedByThem > 0).toBe(used);
    },
    START_MS,
  );
});
