// `watchmux serve --etcd` while its etcd is killed, paused, cut off, compacted and replaced: what /readyz, /healthz and /livez say, what
// the log says, and that a watch either goes on or is told 410.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { component, isMissing } from '../components.ts';
import { killAll, type Run, run, until } from '../e2e/cli.ts';
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts';
import { type EtcdServer, startEtcd } from './etcd-server.ts';

const missing = isMissing(component('kube-apiserver'));
const RUN_MS = 90_000;
const MAPS = '/api/v1/namespaces/default/configmaps';

let etcd: EtcdServer;
let proxy: TcpProxy;
beforeEach(async () => {
  if (missing) return;
  etcd = await startEtcd();
  proxy = await startTcpProxy(etcd.port);
}, RUN_MS);
afterEach(async () => {
  killAll();
  await proxy?.close();
  await etcd?.stop();
});

interface Serving extends Run {
  readonly url: string;
  /** The codes of /readyz, /healthz and /livez. */
  readonly health: () => Promise<string>;
  readonly events: () => string[];
}

/** Through the proxy. */
async function serve(): Promise<Serving> {
  const started = run('serve', '--port', '0', '--log', 'json', '--etcd', proxy.url, '--prefix', `/${Math.random()}/`);
  await until(() => started.out().includes('\n') || started.child.exitCode !== null);
  const url = /^listening on (\S+)\n/.exec(started.out())?.[1];
  if (url === undefined) throw new Error(started.err());
  const code = async (path: string): Promise<number> => (await fetch(url + path)).status;
  const health = async (): Promise<string> => (await Promise.all(['/readyz', '/healthz', '/livez'].map(code))).join(' ');
  const parsed = (): { event: string }[] =>
    started
      .err()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { event: string });
  return { ...started, url, health, events: () => parsed().map(({ event }) => event) };
}

const create = async (url: string, name: string): Promise<number> => {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ metadata: { name } }) };
  return (await fetch(url + MAPS, init)).status;
};

/** What a watch has heard, and whether it has ended. */
async function watch(url: string): Promise<{ heard: () => string; ended: () => boolean }> {
  const { body } = await fetch(`${url}${MAPS}?watch=1&allowWatchBookmarks=true`);
  let heard = '';
  let ended = false;
  const utf8 = new TextDecoder();
  void (async () => {
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) heard += utf8.decode(chunk, { stream: true });
  })()
    .catch(() => {})
    .finally(() => {
      ended = true;
    });
  return { heard: () => heard, ended: () => ended };
}

const GOOD = '200 200 200';
const LOST = '503 503 200';

/** Faults that etcd comes back from with all that it had: clients go on where they were. */
const FAULTS: readonly [string, () => unknown, () => unknown][] = [
  ['killed and started again with its data', () => etcd.kill(), () => etcd.start()],
  ['paused', () => etcd.pause(), () => etcd.resume()],
  [
    'cut off: connections break, and new ones too',
    () => {
      proxy.refuse(true);
      proxy.cutAll();
    },
    () => proxy.refuse(false),
  ],
  ['cut off silently: nothing comes through any more', () => proxy.freeze(), () => proxy.cutAll()],
];

describe.skipIf(missing)('health, a real etcd', () => {
  test.each(FAULTS)(
    '%s: not ready and not healthy, but alive; then ready again, and the watch has gone on',
    async (_what, fail, mend) => {
      const { url, health, events, child, exit } = await serve();
      expect(await create(url, 'before')).toBe(201);
      const watching = await watch(url);
      await until(() => watching.heard().includes('"before"'));
      await until(() => events().includes('ready'));
      expect(await health()).toBe(GOOD);
      await fail();
      await until(async () => (await health()) === LOST);
      expect(await (await fetch(`${url}/readyz`)).text()).toContain('[-]storage failed: reason withheld');
      // What needs no answer of etcd is answered from the cache.
      expect((await fetch(`${url}${MAPS}?resourceVersion=0`)).status).toBe(200);
      await until(() => events().includes('storage-lost') && events().includes('not-ready'));
      await mend();
      await until(async () => (await health()) === GOOD);
      await until(async () => [201, 409].includes(await create(url, 'after')));
      await until(() => watching.heard().includes('"after"'));
      expect(watching.heard()).not.toContain('"ERROR"');
      await until(() => events().includes('storage-back') && events().filter((each) => each === 'ready').length === 2);
      child.kill('SIGTERM');
      expect(await exit).toBe(0);
      expect(watching.ended()).toBe(true);
    },
    RUN_MS,
  );

  test(
    'compacted while it was cut off: ready again, and the watch is told 410, because what happened is lost',
    async () => {
      const { url, health } = await serve();
      expect(await create(url, 'before')).toBe(201);
      const watching = await watch(url);
      await until(() => watching.heard().includes('"before"'));
      proxy.refuse(true);
      proxy.cutAll();
      await until(async () => (await health()) === LOST);
      await etcd.put('/elsewhere', 'x');
      await etcd.compact();
      proxy.refuse(false);
      await until(async () => (await health()) === GOOD);
      await until(() => watching.ended() || watching.heard().includes('"code":410'));
      expect(watching.heard()).toContain('"code":410');
      expect(await create(url, 'after')).toBe(201);
    },
    RUN_MS,
  );

  test(
    'replaced by an empty one: the watch is told 410; ready when the caches have what is there: nothing',
    async () => {
      const { url, health } = await serve();
      expect(await create(url, 'before')).toBe(201);
      const watching = await watch(url);
      await until(() => watching.heard().includes('"before"'));
      await etcd.restartEmpty();
      await until(() => watching.heard().includes('"code":410'));
      await until(async () => (await health()) === GOOD);
      const list = (await (await fetch(`${url}${MAPS}`)).json()) as { items: unknown[] };
      expect(list.items).toEqual([]);
      expect(await create(url, 'before')).toBe(201);
      await until(async () => (await fetch(`${url}/api/v1/namespaces/default`)).status === 200);
    },
    RUN_MS,
  );

  test(
    'full: not ready, since no write succeeds, but reads go on; clients get 503 and nothing of what etcd says',
    async () => {
      const { url, health, events } = await serve();
      expect(await create(url, 'before')).toBe(201);
      await until(() => events().includes('ready'));
      const alarm = (action: string): Promise<unknown> =>
        etcd.json('/v3/maintenance/alarm', { action, memberID: '0', alarm: 'NOSPACE' });
      await alarm('ACTIVATE');
      await until(async () => (await health()) === LOST);
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"metadata":{"name":"late"}}' };
      const refused = await fetch(url + MAPS, init);
      expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([503, null]);
      expect(await refused.text()).not.toContain('etcd');
      expect((await fetch(url + MAPS)).status).toBe(200);
      await until(() => events().includes('not-ready'));
      await alarm('DEACTIVATE');
      await until(async () => (await health()) === GOOD);
      expect(await create(url, 'after')).toBe(201);
    },
    RUN_MS,
  );
});
