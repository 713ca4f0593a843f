// The examples on etcd, with a real etcd and HAProxy: the script of three replicas while they go away, the description of the same in
// containers as far as it can be checked without any, and the order board.
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { createListWatcher, Informer, type KubernetesObject } from '../../src/cache/index.ts';
import { parseCommand } from '../../src/cli/args.ts';
import { component, isMissing } from '../components.ts';
import { CLI, hear, until } from '../e2e/cli.ts';
import { startEtcd } from './etcd-server.ts';
import { freePorts } from './ports.ts';

const HAPROXY = '/usr/sbin/haproxy';
const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'watchmux-replicas-'));
const noEtcd = isMissing(component('kube-apiserver'));
const noProxy = !existsSync(HAPROXY) && process.env.REQUIRE_COMPONENTS !== '1';
if (noProxy) console.warn(`skipped: there is no ${HAPROXY} (REQUIRE_COMPONENTS=1 makes that a failure)`);
const RUN_MS = 90_000;

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
}, RUN_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly out: () => string;
  readonly exit: Promise<number | NodeJS.Signals>;
}

function start(command: string, args: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, NO_COLOR: '1', ...env } });
  const { out, err } = hear(child);
  const exit = new Promise<number | NodeJS.Signals>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? (signal as NodeJS.Signals)));
  });
  // Children of its own end with it, so it is not killed at once.
  ends.push(async () => {
    if (child.exitCode === null) child.kill('SIGTERM');
    await exit;
  });
  return { child, out: () => out() + err(), exit };
}

/** A command `etcd` that takes what the script says, and runs the one that the tests have. */
function etcdCommand(): string {
  const file = join(folder, 'etcd');
  const binary = component('kube-apiserver').path;
  const script = `#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --data-dir) export ETCD_DIR="$2" ;; --listen-client-urls) export ETCD_URL="$2" ;; esac
  shift
done
exec '${binary}' etcd
`;
  writeFileSync(file, script);
  chmodSync(file, 0o755);
  return file;
}

const isOpen = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/livez`).then(
    () => true,
    () => false,
  );

const ORDERS = '/apis/shop.example/v1/namespaces/default/orders';

async function create(url: string, name: string, spec: object = { item: name }): Promise<number> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiVersion: 'shop.example/v1', kind: 'Order', metadata: { name }, spec }),
  };
  return (await fetch(url + ORDERS, init).catch(() => ({ status: 0 }))).status;
}

describe.skipIf(noEtcd || noProxy)('examples/replicas', () => {
  test(
    'three replicas behind HAProxy: one is killed, one drains, and an informer misses nothing; the script ends all it has started',
    async () => {
      const [port, etcdPort, peerPort, ...more] = (await freePorts(9)) as [number, number, number, ...number[]];
      const [replicas, metrics] = [more.slice(0, 3), more.slice(3)];
      const script = start('sh', ['examples/replicas/start.sh'], {
        PORT: `${port}`,
        ETCD_PORT: `${etcdPort}`,
        ETCD_PEER_PORT: `${peerPort}`,
        REPLICA_PORTS: replicas.join(' '),
        METRICS_PORTS: metrics.join(' '),
        ETCD: etcdCommand(),
        WATCHMUX: `${process.execPath} ${CLI}`,
        HAPROXY,
        DATA: mkdtempSync(join(folder, 'data-')),
      });
      const url = `http://127.0.0.1:${port}`;
      await until(async () => script.child.exitCode !== null || (await create(url, 'first')) === 201);
      expect([script.child.exitCode, script.out()]).toEqual([null, expect.stringContaining(`balancer: ${url}`)]);
      const pids = Array.from(script.out().matchAll(/replica \d: .* process (\d+)$/gm), ([, pid]) => Number(pid));
      expect(pids).toHaveLength(3);
      for (const each of replicas) await until(() => isOpen(each));
      const informer = new Informer<KubernetesObject>(createListWatcher(`${url}${ORDERS}`));
      const seen: string[] = [];
      informer.addHandler({ onAdd: ({ metadata }) => void seen.push(metadata?.name ?? '') });
      void informer.run();
      ends.push(() => informer.stop());
      await until(() => seen.includes('first'));
      process.kill(pids[0] as number, 'SIGKILL');
      await until(async () => [201, 409].includes(await create(url, 'second')));
      await until(() => seen.includes('second'));
      // The next one announces its shutdown first: clients of the balancer notice nothing.
      process.kill(pids[1] as number, 'SIGTERM');
      // Many at once, however busy the machine is, and some until it has gone.
      const codes = await Promise.all(Array.from({ length: 25 }, (_, at) => create(url, `during-${at}`)));
      while (await isOpen(metrics[1] as number)) {
        codes.push(await create(url, `during-${codes.length}`));
      }
      expect(codes.length).toBeGreaterThan(20);
      expect(codes.filter((code) => code !== 201)).toEqual([]);
      await until(() => seen.includes(`during-${codes.length - 1}`));
      expect(seen).toHaveLength(new Set(seen).size);
      expect(await (await fetch(`http://127.0.0.1:${metrics[2]}/metrics`)).text()).toContain(
        'watchmux_apiserver_cache_ready{resource="orders.shop.example"} 1',
      );
      script.child.kill('SIGTERM');
      expect([await script.exit, script.out()]).toEqual([0, expect.stringMatching(/^ending$/m)]);
      for (const each of [port, etcdPort, ...replicas, ...metrics]) expect(await isOpen(each)).toBe(false);
    },
    RUN_MS,
  );

  test('haproxy.cfg is one that HAProxy takes, by itself and as compose.yaml sets it', () => {
    const { services } = compose();
    const settings = [
      { BIND: '127.0.0.1', PORT: '8080', REPLICA_1: 'a:1', REPLICA_2: 'b:1', REPLICA_3: 'c:1' },
      services.balancer?.environment,
    ];
    for (const names of settings) {
      // Names are looked up, and those of containers exist nowhere else.
      const known = Object.entries(names ?? {}).map(([name, value]) => [name, value.replace(/^[a-z][\w-]*:/, '127.0.0.1:')]);
      const env = { ...process.env, ...Object.fromEntries(known) };
      execFileSync(HAPROXY, ['-c', '-f', join(root, 'examples/replicas/haproxy.cfg')], { env, stdio: 'pipe' });
    }
  });
});

test('the script of examples/replicas says which command is missing', async () => {
  const script = start('sh', ['examples/replicas/start.sh'], { ETCD: 'no-such-etcd --quiet', HAPROXY: 'true' });
  expect([await script.exit, script.out()]).toEqual([1, 'no-such-etcd --quiet: not found\n']);
});

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly stop_grace_period?: string;
}

const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const compose = (): { services: Readonly<Record<string, Service | undefined>> } => parse(read('examples/replicas/compose.yaml'));

describe('examples/replicas/compose.yaml', () => {
  test('has three servers whose options the command line takes, with the same limits of time as the script', () => {
    const { services } = compose();
    const servers = Object.entries(services).filter(([name]) => name.startsWith('replica-'));
    expect(servers).toHaveLength(3);
    const script = read('examples/replicas/start.sh');
    for (const [, server] of servers) {
      const parsed = parseCommand(server?.command ?? []);
      expect(parsed).toMatchObject({
        ...{ command: 'serve', host: '0.0.0.0', port: 8080, log: 'json', clientHeader: 'x-forwarded-for' },
        ...{ metrics: { host: '0.0.0.0', port: 9090 }, drainMs: 15_000, drainDelayMs: 3_000 },
      });
      expect(Number.parseInt(server?.stop_grace_period ?? '', 10)).toBeGreaterThan(15);
    }
    expect(script).toContain('--client-address x-forwarded-for --drain 15 --drain-delay 3 --log json');
    expect(Object.keys(services)).toEqual(['etcd', 'replica-1', 'replica-2', 'replica-3', 'balancer']);
  });

  test('names a version of everything, and etcd’s is the tested one', () => {
    const { services } = compose();
    const images = Object.values(services).map((service) => service?.image ?? '');
    expect(images.filter((image) => !/^[\w./-]+:v?\d+\.\d+\.\d+(?:-[a-z]+)*$/.test(image))).toEqual([]);
    const [, tested] = /go\.etcd\.io\/etcd\/server\/v3 (v\S+)/.exec(read('test/peers/kube-apiserver/go.mod')) ?? [];
    expect(services.etcd?.image).toBe(`gcr.io/etcd-development/etcd:${tested}`);
    expect(services['replica-1']?.entrypoint?.join(' ')).toContain(`npm install --global watchmux@${manifest.version} `);
  });

  test('keeps as many revisions as docs/operation.md recommends, and so does the script', () => {
    const [recommended = ''] = /--auto-compaction-mode \w+ --auto-compaction-retention \w+/.exec(read('docs/operation.md')) ?? [];
    expect(recommended).toContain('revision');
    const own = compose().services.etcd?.command?.filter((each) => each.startsWith('--auto-compaction'));
    expect(own?.map((each) => each.replace('=', ' ')).join(' ')).toBe(recommended);
    expect(read('examples/replicas/start.sh')).toContain(` ${recommended} `);
  });
});

describe.skipIf(noEtcd)('examples/order-board', () => {
  const PATCH = { 'content-type': 'application/merge-patch+json' };

  test(
    'orders written at one server are on a board at the other; a board without a server says so, and catches up',
    async () => {
      const etcd = await startEtcd();
      ends.push(() => etcd.stop());
      const serve = async (port: string = '0'): Promise<Running & { url: string }> => {
        const running = start(process.execPath, ['examples/order-board/server.mjs'], { PORT: port, ETCD: etcd.url });
        await until(() => running.out().includes('\n') || running.child.exitCode !== null);
        const url = /^order-board: (http:\/\/127\.0\.0\.1:\d+)\n/.exec(running.out())?.[1];
        if (url === undefined) throw new Error(running.out());
        return { ...running, url };
      };
      const [one, other] = [await serve(), await serve()];
      const board = start(process.execPath, ['examples/order-board/board.mjs', other.url]);
      expect(await create(one.url, 'tea', { item: 'tea', count: 2 })).toBe(201);
      await until(() => board.out().includes('placed: tea 2xtea | paid: - | shipped: -\n'));
      const state = async (to: string): Promise<number> => {
        const init = { method: 'PATCH', headers: PATCH, body: JSON.stringify({ status: { state: to } }) };
        return (await fetch(`${one.url}${ORDERS}/tea/status`, init)).status;
      };
      expect(await state('shipped')).toBe(200);
      await until(() => board.out().includes('placed: - | paid: - | shipped: tea 2xtea\n'));
      expect([await state('paid'), await state('lost'), await create(one.url, 'nothing', {})]).toEqual([422, 422, 422]);
      other.child.kill('SIGTERM');
      expect(await other.exit).toBe(0);
      await until(() => board.out().includes('shipped: tea 2xtea | (offline: as it was)\n'));
      expect(await create(one.url, 'milk', { item: 'milk' })).toBe(201);
      const again = await serve(new URL(other.url).port);
      await until(() => board.out().includes('placed: milk 1xmilk | paid: - | shipped: tea 2xtea\n'));
      for (const { child, exit } of [board, again, one]) {
        child.kill('SIGTERM');
        expect(await exit).toBe(0);
      }
    },
    RUN_MS,
  );
});
