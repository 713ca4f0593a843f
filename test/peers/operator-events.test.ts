// Events of a recorder as people see them: kubectl at a real kube-apiserver and at a server of ours, in either API.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ApiServer,
  CONFIG_MAPS,
  type CoreEvent,
  EVENTS,
  NAMESPACES,
  type ResourceDefinition,
} from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { Cluster } from '../../src/kubernetes/index.ts';
import { EventRecorder, type EventRecorderOptions } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { until } from '../eventually.ts';
import { type Listening, listening } from '../listening.ts';
import { countOf, turn } from '../unit/event-recorder-rig.ts';
import { type ApiServer as KubeApiServer, startApiServer } from './apiserver.ts';

const START_MS = 90_000;
const folder = mkdtempSync(join(tmpdir(), 'watchmux-events-'));
const run = promisify(execFile);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A server, and how to reach it. */
interface Subject {
  readonly cluster: Cluster;
  readonly config: string;
}

function subjectAt(name: string, url: string, { ca, token }: { ca?: string; token?: string } = {}): Subject {
  const config = join(folder, `${name}.json`);
  const cluster = { server: url, ...(ca && { 'certificate-authority-data': btoa(ca) }) };
  const kubeconfig = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x' },
    clusters: [{ name: 'c', cluster }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: token ? { token } : {} }],
  };
  writeFileSync(config, JSON.stringify(kubeconfig));
  return {
    config,
    cluster: new Cluster({
      getCurrentCluster: () => ({ server: url }),
      getCurrentContext: () => 'x',
      getContextObject: () => ({ namespace: 'default' }),
      getCurrentUser: () => ({}),
      applyToHTTPSOptions: async (options) =>
        void Object.assign(options, token ? { ca, headers: { Authorization: `Bearer ${token}` } } : {}),
    }),
  };
}

async function kubectl({ config }: Subject, line: string): Promise<string> {
  const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: config };
  const { stdout } = await run(component('kubectl').path, [...line.split(' '), '--cache-dir', `${config}.cache`], { env });
  return stdout;
}

/** The lines of a table, with one space between its cells. */
const rows = (table: string): readonly string[] =>
  table
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().replace(/ {2,}/g, ' '));

const EVENT_COLUMNS =
  '-o custom-columns=T:.type,R:.reason,M:.message,C:.count,S:.series.count,F:.reportingComponent --no-headers';

/** What recorders promise, and what kubectl shows of it. */
function behaviour(get: () => Subject): void {
  const recorderOf = (more: Partial<EventRecorderOptions> = {}): EventRecorder =>
    new EventRecorder({ cluster: get().cluster, name: 'example.com/copier', instance: 'copier-0', ...more });

  async function map(namespace: string): Promise<KubernetesObject> {
    const { cluster } = get();
    await cluster.resource('namespaces/v1').create({ metadata: { name: namespace } });
    const made = await cluster
      .resource('configmaps/v1')
      .in(namespace)
      .create({ metadata: { name: 'settings' } });
    return { ...made, apiVersion: 'v1', kind: 'ConfigMap' };
  }

  it.each([
    { api: 'v1', counts: '3 <none>' },
    { api: 'events.k8s.io/v1', counts: '<none> 3' },
  ] as const)('$api: counted, and described with its object', async ({ api, counts }) => {
    const namespace = api === 'v1' ? 'of-v1' : 'of-events';
    const object = await map(namespace);
    const recorder = recorderOf({ api });
    for (let at = 0; at < 3; at++) {
      recorder.normal(object, 'Copied', 'to 12 namespaces', { action: 'Copying' });
      await turn();
    }
    recorder.warning(object, 'NotCopied', `namespace "old" is ${'very '.repeat(300)}old`);
    await recorder.shutdown();
    expect(recorder.stats).toMatchObject({ emitted: 4, written: 4, pending: 0 });
    const listed = rows(await kubectl(get(), `get events -n ${namespace} ${EVENT_COLUMNS}`)).toSorted();
    expect(listed[0]).toBe(`Normal Copied to 12 namespaces ${counts} example.com/copier`);
    expect(listed[1]).toMatch(/^Warning NotCopied namespace "old" is very .*…/);
    const shown = rows(await kubectl(get(), `get events -n ${namespace} --field-selector reason=Copied`));
    expect(shown[1]).toMatch(/^\S+ Normal Copied configmap\/settings to 12 namespaces$/);
    const described = rows(await kubectl(get(), `describe configmap settings -n ${namespace}`));
    expect(described.at(-2)).toMatch(/^(Normal Copied \S+ \(x3 over \S+\)|Warning NotCopied \S+) example\.com\/copier/);
    expect(described.join('\n')).toMatch(/Normal Copied .*x3 over .*example\.com\/copier.* to 12 namespaces/);
  });

  it('about what is in no namespace, in default; nothing about what is gone with its namespace', async () => {
    const told: unknown[] = [];
    const recorder = recorderOf({ onError: (error) => void told.push(error) });
    const { cluster } = get();
    const namespace = await cluster.resource('namespaces/v1').get('default');
    recorder.normal({ ...namespace, apiVersion: 'v1', kind: 'Namespace' }, 'Seen', 'is there');
    recorder.normal({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'nowhere' } }, 'Seen', 'was there');
    await recorder.shutdown();
    expect(recorder.stats).toMatchObject({ written: 1, dropped: { refused: 1 } });
    expect(told).toEqual([]);
    const listed = rows(await kubectl(get(), `get events -n default --field-selector reason=Seen ${EVENT_COLUMNS}`));
    expect(listed).toEqual(['Normal Seen is there <none> <none> example.com/copier']);
  });

  it('a thousand occurrences of five kinds, with all counts', async () => {
    const object = await map('many');
    const recorder = recorderOf({ api: 'v1' });
    for (let at = 0; at < 1_000; at++) {
      recorder.normal(object, `Kind${at % 5}`, 'again');
      if (at % 50 === 0) await turn();
    }
    await recorder.shutdown();
    const { items } = await get().cluster.resource<CoreEvent>('events/v1').in('many').list();
    expect(items.map(countOf)).toEqual([200, 200, 200, 200, 200]);
  });
}

describe.skipIf(isMissing(component('kubectl')))('events at a server of ours', () => {
  const resources = [CONFIG_MAPS, ...EVENTS, NAMESPACES] as readonly ResourceDefinition[];
  const api = new ApiServer({ storage: new MemoryStorage(), resources });
  let at: Listening;
  let subject: Subject;
  beforeAll(async () => {
    at = await listening(api);
    subject = subjectAt('ours', at.url);
  });
  afterAll(async () => {
    subject.cluster.close();
    await at.close();
  });
  behaviour(() => subject);
});

describe.skipIf(isMissing(component('kube-apiserver')) || isMissing(component('kubectl')))('events at a kube-apiserver', () => {
  let server: KubeApiServer;
  let subject: Subject;
  beforeAll(async () => {
    server = await startApiServer();
    subject = subjectAt('theirs', server.url, server);
  }, START_MS);
  afterAll(async () => {
    subject?.cluster.close();
    await server?.stop();
  }, START_MS);
  behaviour(() => subject);

  it(
    'what is emitted while the server is away is written when it is back',
    async () => {
      const failures: unknown[] = [];
      const object = { ...(await subject.cluster.resource('namespaces/v1').get('default')), apiVersion: 'v1', kind: 'Namespace' };
      const recorder = new EventRecorder({
        cluster: subject.cluster,
        name: 'patient',
        onError: (error) => void failures.push(error),
      });
      await server.kill();
      for (let at = 0; at < 5; at++) recorder.warning(object, 'Away', 'for a while');
      await until(() => failures.length > 0);
      expect(recorder.stats).toMatchObject({ emitted: 5, pending: 5 });
      await server.start();
      await recorder.flush();
      const listed = rows(await kubectl(subject, `get events -n default --field-selector reason=Away ${EVENT_COLUMNS}`));
      expect(listed).toEqual(['Warning Away for a while <none> 5 patient']);
      await recorder.shutdown();
    },
    START_MS,
  );
});
