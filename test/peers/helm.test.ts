// Helm 3 and Helm 4 with `watchmux serve`, without a flag for it: a release from its installation to its end. Helm 4 applies on the
// server, Helm 3 sends patches. Each keeps its history in Secrets.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { component, isMissing } from '../components.ts';
import { killAll, type Serving, serve } from '../e2e/cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'watchmux-helm-'));
const CRD = new URL('crds/order.json', import.meta.url);
const LIMIT_MS = 120_000;

/** A chart with a kind of its own, an object of it, a ConfigMap and a Secret. */
function writeChart(): string {
  const chart = join(folder, 'shop');
  for (const each of ['crds', 'templates']) mkdirSync(join(chart, each), { recursive: true });
  cpSync(CRD, join(chart, 'crds', 'order.yaml'));
  writeFileSync(join(chart, 'Chart.yaml'), 'apiVersion: v2\nname: shop\nversion: 1.0.0\n');
  writeFileSync(join(chart, 'values.yaml'), 'item: tea\n');
  const metadata = 'metadata:\n  name: {{ .Release.Name }}';
  const templates = {
    map: `apiVersion: v1\nkind: ConfigMap\n${metadata}\ndata:\n  item: {{ .Values.item }}\n`,
    secret: `apiVersion: v1\nkind: Secret\n${metadata}\nstringData:\n  item: {{ .Values.item }}\n`,
    order: `apiVersion: example.com/v1\nkind: Order\n${metadata}\nspec:\n  item: {{ .Values.item }}\n`,
  };
  for (const [name, text] of Object.entries(templates)) writeFileSync(join(chart, 'templates', `${name}.yaml`), text);
  return chart;
}

afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(['helm-3', 'helm-4'] as const)('%s', (name) => {
  const helm = component(name);

  it.skipIf(isMissing(helm))(
    'installs, upgrades, rolls back and uninstalls a chart',
    async () => {
      const server = await serve();
      const run = async (...args: string[]): Promise<string> => {
        const env = { PATH: process.env.PATH, HOME: join(folder, name) };
        const { stdout } = await promisify(execFile)(helm.path, [...args, '--kube-apiserver', server.url], { env });
        return stdout;
      };
      const chart = writeChart();
      await run('install', 'one', chart);
      expect(await itemsOf(server)).toEqual(['tea', 'tea', 'tea']);
      await run('upgrade', 'one', chart, '--set', 'item=coffee');
      expect(await itemsOf(server)).toEqual(['coffee', 'coffee', 'coffee']);
      expect(await run('get', 'values', 'one')).toContain('item: coffee');
      await run('rollback', 'one', '1');
      expect(await itemsOf(server)).toEqual(['tea', 'tea', 'tea']);
      const history = JSON.parse(await run('history', 'one', '--output', 'json')) as { status: string }[];
      expect(history.map(({ status }) => status)).toEqual(['superseded', 'superseded', 'deployed']);
      expect(await run('list')).toMatch(/^one\s/m);
      await run('uninstall', 'one');
      expect(await itemsOf(server)).toEqual([undefined, undefined, undefined]);
    },
    LIMIT_MS,
  );
});

/** What the release has made of the value: in the ConfigMap, the Secret and the order. */
async function itemsOf({ url }: Serving): Promise<(string | undefined)[]> {
  const get = async (path: string): Promise<Record<string, Record<string, string> | undefined>> =>
    (await fetch(`${url}${path}/one`)).json() as Promise<Record<string, Record<string, string> | undefined>>;
  const [map, secret, order] = await Promise.all([
    get('/api/v1/namespaces/default/configmaps'),
    get('/api/v1/namespaces/default/secrets'),
    get('/apis/example.com/v1/namespaces/default/orders'),
  ]);
  return [map.data?.item, secret.data?.item === undefined ? undefined : atob(secret.data.item), order.spec?.item];
}
