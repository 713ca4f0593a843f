// What docs/operation has for those who run servers: alert rules, a dashboard and a unit of systemd. Prometheus' own tool reads every
// page of metrics, every rule and every query of the dashboard, and each of them names only what there is.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiServer, LEASES, NAMESPACES } from '../../src/apiserver/index.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { parseCommand } from '../../src/cli/args.ts';
import type { ServeCommand } from '../../src/cli/serve/serve-args.ts';
import { Operator } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { exposition } from '../exposition.ts';
import { FILES, ROOT, readText } from '../tracked.ts';
import { killAll, pipe, text } from './cli.ts';

const PROMTOOL = component('promtool');
const SYSTEMD = component('systemd-analyze');
const folder = mkdtempSync(join(tmpdir(), 'watchmux-monitoring-'));
afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});

const ALERTS = 'docs/operation/alerts.yaml';
const DASHBOARD = 'docs/operation/dashboard.json';
const UNIT = 'docs/operation/watchmux.service';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly refId: string; readonly legendFormat: string }[];
}
const { panels } = JSON.parse(readText(DASHBOARD)) as { panels: Panel[] };
const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** By who has them. */
const pages: Record<string, string> = {};
/** The names of all series, and the labels of each. */
const series = new Map<string, Set<string>>();

beforeAll(async () => {
  const server = new ApiServer({ storage: new MemoryStorage(), resources: [NAMESPACES] });
  await server.ready;
  const get = async (path: string): Promise<string> => (await server.fetch(new Request(`http://localhost${path}`))).text();
  await get('/api/v1/namespaces');
  pages['an API server'] = await get('/metrics');
  await server.shutdown();
  pages['a hub'] = new Hub().metrics();
  pages['an operator'] = await operated();
  const piped = await pipe();
  pages.pipe = await text(`${piped.url}/metrics`);
  piped.child.kill('SIGTERM');
  await piped.exit;
  for (const page of Object.values(pages)) {
    for (const [name, { type, samples }] of exposition(page)) {
      const names = type === 'histogram' ? ['_bucket', '_sum', '_count'].map((part) => name + part) : [name];
      for (const each of names) series.set(each, new Set(samples.flatMap(({ labels }) => Object.keys(labels))));
    }
  }
});

/** What an operator says that has done something. */
async function operated(): Promise<string> {
  const server = new ApiServer({ storage: new MemoryStorage(), resources: [NAMESPACES, LEASES] });
  const requests = { requestCounts: [{ code: '200', method: 'GET', host: 'localhost', count: 1 }] };
  const stop = new AbortController();
  const operator = new Operator({
    cluster: Object.assign(server, requests),
    name: 'metrics',
    leaderElection: true,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  }).controller({ for: 'namespaces', reconcile: () => {} });
  const ran = operator.run(stop.signal);
  await operator.idle();
  const text = operator.metrics;
  stop.abort();
  await ran;
  await server.shutdown();
  return text;
}

/** What promtool says, if it does not say that all is well. */
function promtool(args: readonly string[], input: string = ''): string {
  const { status, stdout, stderr } = spawnSync(PROMTOOL.path, args, { cwd: ROOT, encoding: 'utf8', input });
  return status === 0 ? stderr : `${status}: ${stdout}${stderr}`;
}

/** The names in a query that no page has. */
const unknownIn = (query: string): string[] =>
  (query.match(/\b(?:watchmux|process|nodejs|controller_runtime|workqueue|leader_election|rest_client)_\w+/g) ?? []).filter(
    (name) => !series.has(name),
  );

const ruleTexts = (): string[] => Array.from(readText(ALERTS).matchAll(/^ +expr: (.*)$/gm), ([, expr = '']) => expr);
const alertNames = (): string[] => Array.from(readText(ALERTS).matchAll(/- alert: (\w+)/g), ([, name = '']) => name);

describe('metrics that the rules and the dashboard name', () => {
  test('exist, and what does not is found', () => {
    expect(unknownIn('rate(watchmux_events_total[5m]) + process_cpu_seconds_total')).toEqual(['watchmux_events_total']);
    expect(ruleTexts().length).toBeGreaterThan(10);
    expect(queries.length).toBeGreaterThan(25);
    expect([...ruleTexts(), ...queries].flatMap(unknownIn)).toEqual([]);
  });

  test('the dashboard shows everything that changes, but for what is a part of something else', () => {
    const shown = queries.join(' ');
    const left = [...series.keys()].filter((name) => !new RegExp(`\\b${name}\\b`).test(shown));
    expect(left.sort()).toEqual([
      'controller_runtime_reconcile_errors_total',
      'controller_runtime_reconcile_time_seconds_count',
      'controller_runtime_reconcile_time_seconds_sum',
      'nodejs_version_info',
      'watchmux_apiserver_cache_window_bytes',
      'watchmux_apiserver_cache_window_events',
      'watchmux_apiserver_request_duration_seconds_count',
      'watchmux_apiserver_request_duration_seconds_sum',
      'watchmux_buffered_bytes',
      'watchmux_clients_opened_total',
      'watchmux_clients_resumed_total',
      'watchmux_events_recovered_total',
      'watchmux_lines_skipped_total',
      'watchmux_sent_bytes_total',
      'workqueue_adds_total',
      'workqueue_queue_duration_seconds_count',
      'workqueue_queue_duration_seconds_sum',
      'workqueue_retries_total',
      'workqueue_unfinished_work_seconds',
      'workqueue_work_duration_seconds_bucket',
      'workqueue_work_duration_seconds_count',
      'workqueue_work_duration_seconds_sum',
    ]);
  });

  test('its panels have titles and places of their own', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    for (const { targets = [] } of panels) expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
  });

  test('the documents name these files, and the package has them', () => {
    for (const path of [ALERTS, DASHBOARD, UNIT]) {
      expect(FILES).toContain(path);
      expect(readText('docs/operation.md') + readText('docs/monitoring.md')).toContain(path.replace('docs/', ''));
    }
  });
});

describe.skipIf(isMissing(PROMTOOL))('promtool', () => {
  test('reads every page of metrics, and has nothing to say about them', () => {
    expect(promtool(['check', 'metrics'], 'a_total{b="c"} 1\n')).not.toBe('');
    for (const [name, page] of Object.entries(pages)) expect([name, promtool(['check', 'metrics'], page)]).toEqual([name, '']);
  });

  test('reads the rules, and each of them fires when it should, and only then', () => {
    expect(promtool(['check', 'rules', ALERTS])).toBe('');
    expect(promtool(['test', 'rules', 'test/e2e/alerts.yaml'])).toBe('');
    const tested = new Set(Array.from(readText('test/e2e/alerts.yaml').matchAll(/- name: (\w+)/g), ([, name]) => name));
    expect([...tested]).toEqual(alertNames());
  });

  test('reads every query of the dashboard', () => {
    const rules = queries.map((query, at) => {
      const expr = query.replaceAll('$__rate_interval', '5m').replaceAll(/\$(?:job|instance)/g, '.*');
      return `  - record: query_${at}\n    expr: ${JSON.stringify(expr)}\n`;
    });
    const file = join(folder, 'queries.yaml');
    const check = (lines: readonly string[]): string => {
      writeFileSync(file, `groups:\n- name: dashboard\n  rules:\n${lines.join('')}`);
      return promtool(['check', 'rules', file]);
    };
    expect(check(rules)).toBe('');
    expect(check([...rules, '  - record: wrong\n    expr: "sum(("\n'])).not.toBe('');
  });
});

describe('the unit of systemd', () => {
  const unit = readText(UNIT).replaceAll('\\\n', ' ');
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

  test('starts the server with options that it takes, and gives it time to end', () => {
    const [program, ...args] = value('ExecStart').split(/\s+/);
    expect(program).toBe('/usr/local/bin/watchmux');
    const { drainMs, tokenFile } = parseCommand(args) as ServeCommand;
    expect(tokenFile).toBe('/etc/watchmux/tokens');
    expect(Number(value('TimeoutStopSec')) * 1_000).toBeGreaterThan(drainMs);
    expect(value('ExecReload')).toBe('/bin/kill -HUP $MAINPID');
    expect(unit).not.toContain('KillSignal'); // SIGTERM
    // 2 is also the exit code for an etcd that is away when the server starts.
    expect(unit).not.toContain('RestartPreventExitStatus');
    expect([value('Restart'), value('StartLimitIntervalSec')]).toEqual(['always', '0']);
  });

  test.skipIf(isMissing(SYSTEMD))('is one: systemd has nothing to say about it', () => {
    const verify = (text: string): string => {
      const file = join(folder, 'watchmux.service');
      // The package is not installed here.
      writeFileSync(file, text.replace('/usr/local/bin/watchmux', process.execPath));
      const { stdout, stderr } = spawnSync(SYSTEMD.path, ['verify', file], { encoding: 'utf8' });
      return stdout + stderr;
    };
    expect(verify(readText(UNIT))).toBe('');
    expect(verify(readText(UNIT).replace('ProtectClock', 'ProtectClocks'))).toContain('ProtectClocks');
  });
});
