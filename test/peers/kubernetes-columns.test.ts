// What `kubectl get` shows of Kubernetes' own kinds in several states, beside a kube-apiserver: columns and cells. And the paths of Pods that
// need no kubelet, beside it.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { kubernetesKinds } from '../../src/apiserver/kinds/kubernetes.ts';
import { component, isMissing } from '../components.ts';
import { killAll, serve } from '../e2e/cli.ts';
import { bring, NAMES_SHOWN, pathOf, readTable, STATES } from '../kubernetes-states.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

const START_MS = 90_000;
const NAMES = Object.keys(STATES);
const AS_TABLE = { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' };

// biome-ignore lint/suspicious/noExplicitAny: answers of a server, which tests read without ceremony
type Json = any;
interface Answer {
  readonly code: number;
  readonly body: Json;
}

describe.skipIf(isMissing(component('kube-apiserver')))("the columns of Kubernetes' own kinds, beside a kube-apiserver", () => {
  let theirs: ApiServer;
  let url: string;
  let kinds: readonly ResourceDefinition[];
  beforeAll(async () => {
    kinds = await kubernetesKinds(...NAMES);
    theirs = await startApiServer();
    const options = kinds.map(({ group, version, plural, kind }) => `${plural}${group && `.${group}`}/${version}=${kind}`);
    ({ url } = await serve(...options.flatMap((option) => ['--resource', option])));
  }, START_MS);
  afterAll(async () => await theirs.stop());
  afterAll(killAll);

  /** Sends the same to both, the kube-apiserver first. */
  const both = async (method: string, path: string, body?: object, more: object = {}): Promise<[Answer, Answer]> => {
    const headers = { ...(body && { 'content-type': 'application/json' }), ...more };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const answers = [await theirs.fetch(`${theirs.url}${path}`, init as never), await fetch(`${url}${path}`, init)];
    const read = answers.map(async (each) => ({ code: each.status, body: JSON.parse(await each.text()) as Json }));
    return (await Promise.all(read)) as [Answer, Answer];
  };
  const must = async (...asked: Parameters<typeof both>): Promise<[Json, Json]> => {
    const answers = await both(...asked);
    for (const { code, body } of answers) if (code >= 300) throw new Error(`${asked[0]} ${asked[1]}: ${JSON.stringify(body)}`);
    return answers.map(({ body }) => body) as [Json, Json];
  };

  it.each(NAMES)('of %s are the same, and so are the cells', async (name) => {
    const kind = kinds[NAMES.indexOf(name)] as ResourceDefinition;
    const states = STATES[name] ?? [];
    for (const state of states) {
      await bring(kind, state, (method, path, body, type) => must(method, path, body, type ? { 'content-type': type } : {}));
    }
    const [expected, own] = (await must('GET', pathOf(kind), undefined, AS_TABLE)).map(readTable);
    // Upstream's type of these is `date`, although they are no ages.
    const columns = expected?.columns.map((each: Json) => (each.name === 'Created At' ? { ...each, type: 'string' } : each));
    expect(own?.columns).toEqual(columns);
    for (const { name: object, cells } of states) {
      expect([object, own?.rows.get(object)]).toEqual([object, expected?.rows.get(object)]);
      expect(own?.rows.get(object)).toEqual([NAMES_SHOWN[`${name}/${object}`] ?? object, ...cells]);
    }
  });

  describe('the paths of a Pod', () => {
    const PODS = '/api/v1/namespaces/paths/pods';
    beforeAll(async () => void (await must('POST', '/api/v1/namespaces', { metadata: { name: 'paths' } })));
    const create = async (name: string, more: object = {}): Promise<string> => {
      const containers = [{ name: 'a', image: 'a', resources: { requests: { cpu: '100m' } } }];
      await must('POST', PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, labels: { a: 'x' } },
        spec: { containers, ...more },
      });
      return `${PODS}/${name}`;
    };
    const reviewed = ({ code, body }: Answer): object => {
      // That of a Pod has defaults.
      const status = typeof body.status === 'string' ? body.status : undefined;
      return { code, reason: body.reason, status, kind: body.kind };
    };
    const alike = async (...asked: Parameters<typeof both>): Promise<number> => {
      const [expected, own] = (await both(...asked)) as [Answer, Answer];
      expect([asked[1], reviewed(own)]).toEqual([asked[1], reviewed(expected)]);
      if (expected.code === 500 || (expected.code === 409 && expected.body.message.includes('pods/binding')))
        expect(own.body.message).toBe(expected.body.message);
      return own.code;
    };
    const binding = (name: string, more: object = {}): object => ({
      ...{ apiVersion: 'v1', kind: 'Binding', metadata: { name, ...more }, target: { kind: 'Node', name: 'node-1' } },
    });
    const eviction = (name: string, deleteOptions?: object): object => ({
      ...{ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, ...(deleteOptions && { deleteOptions }) },
    });

    it('are in discovery as upstream', async () => {
      const named = ['binding', 'ephemeralcontainers', 'eviction', 'resize', 'status'].map((each) => `pods/${each}`);
      const [expected, own] = await must('GET', '/api/v1');
      const ours = own.resources.filter(({ name }: Json) => name.startsWith('pods/'));
      expect(ours.map(({ name }: Json) => name).sort()).toEqual(named);
      for (const each of ours) expect(each).toEqual(expected.resources.find(({ name }: Json) => name === each.name));
    });

    it('bind it as upstream', async () => {
      const path = await create('bound');
      const before = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable' };
      const conditions = [before, { type: 'Ready', status: 'False' }];
      const patch = { 'content-type': 'application/merge-patch+json' };
      await must('PATCH', `${path}/status`, { status: { conditions, nominatedNodeName: 'node-2' } }, patch);
      expect(await alike('POST', `${path}/binding`, binding('other'))).toBe(400);
      expect(await alike('POST', `${path}/binding?dryRun=All`, binding('bound'))).toBe(201);
      expect(await alike('POST', `${path}/binding`, binding('bound', { uid: 'x' }))).toBe(409);
      expect(await alike('POST', `${path}/binding`, binding('bound', { annotations: { b: 'y' }, labels: { c: 'z' } }))).toBe(201);
      expect(await alike('POST', `${path}/binding`, binding('bound'))).toBe(409);
      const shown = (await must('GET', path)).map(({ metadata, spec, status }) => {
        const states = status.conditions.map(({ lastTransitionTime, ...others }: Json) => [others, !lastTransitionTime]);
        return [spec.nodeName, metadata.annotations, metadata.labels, metadata.generation, states, status.nominatedNodeName];
      });
      expect(shown[1]).toEqual(shown[0]);
      const gated = await create('gated-2', { schedulingGates: [{ name: 'x.io/gate' }] });
      expect(await alike('POST', `${gated}/binding`, binding('gated-2'))).toBe(409);
      expect(await alike('POST', `${PODS}/nothing/binding`, binding('nothing'))).toBe(404);
      for (const target of [{}, { kind: 'Pod', name: 'n' }, { kind: 'Pod' }, { name: 'a b' }])
        expect(await alike('POST', `${PODS}/nothing/binding`, { ...binding('nothing'), target })).toBe(500);
    });

    it('evict it as upstream', async () => {
      const path = await create('evicted-2');
      expect(await alike('POST', `${path}/eviction`, eviction('other'))).toBe(400);
      expect(await alike('POST', `${path}/eviction?dryRun=All`, eviction('evicted-2'))).toBe(201);
      expect(await alike('POST', `${path}/eviction`, eviction('evicted-2', { preconditions: { uid: 'x' } }))).toBe(409);
      expect(await alike('POST', `${path}/eviction`, eviction('evicted-2', { gracePeriodSeconds: 0 }))).toBe(201);
      expect(await alike('GET', path)).toBe(404);
    });

    /** When a Pod of an answer ends, with how much grace, in which generation and with which finalizers. */
    const ending = ({ code, body: { kind, metadata = {} } }: Answer): unknown => {
      const { deletionTimestamp, deletionGracePeriodSeconds: grace, generation, finalizers } = metadata;
      return { code, kind, isMarked: deletionTimestamp !== undefined, grace, generation, finalizers };
    };
    const end = async (...asked: Parameters<typeof both>): Promise<unknown> => {
      const [expected, own] = (await both(...asked)).map(ending);
      expect([asked, own]).toEqual([asked, expected]);
      return own;
    };
    const merge = { 'content-type': 'application/merge-patch+json' };
    const gone = { code: 404 };

    it('delete it with grace as upstream', async () => {
      const path = await create('graceful', { nodeName: 'n' });
      const told = { code: 200, kind: 'Pod', isMarked: true, grace: 30, generation: 2 };
      expect(await end('DELETE', `${path}?dryRun=All`)).toMatchObject(told);
      expect(await end('GET', path)).toMatchObject({ isMarked: false });
      for (const options of [{}, {}, { gracePeriodSeconds: 60 }, { gracePeriodSeconds: 30 }])
        expect(await end('DELETE', path, options)).toMatchObject(told);
      expect(
        await alike('POST', PODS, { metadata: { name: 'graceful' }, spec: { containers: [{ name: 'a', image: 'a' }] } }),
      ).toBe(409);
      expect(await end('DELETE', `${path}?gracePeriodSeconds=10`)).toMatchObject({ ...told, grace: 10 });
      expect(await end('DELETE', path, { orphanDependents: false })).toMatchObject({ ...told, code: 202, grace: 10 });
      expect(await end('DELETE', path, { gracePeriodSeconds: 0, preconditions: { uid: 'x' } })).toMatchObject({ code: 409 });
      expect(await end('DELETE', path, { gracePeriodSeconds: 0, dryRun: ['All'] })).toMatchObject({ ...told, grace: 0 });
      expect(await end('GET', path)).toMatchObject({ ...told, grace: 10 });
      expect(await end('DELETE', path, { gracePeriodSeconds: 0 })).toMatchObject({ ...told, grace: 0 });
      expect(await end('GET', path)).toMatchObject(gone);
      const other = await create('less-than-nothing', { nodeName: 'n' });
      expect(await end('DELETE', other, { gracePeriodSeconds: -5 })).toMatchObject({ ...told, grace: 1 });
    });

    it.each<[string, object, object?, string?]>([
      ['at-once', { nodeName: 'n' }, { gracePeriodSeconds: 0 }],
      ['its-own', { nodeName: 'n', terminationGracePeriodSeconds: 0 }],
      ['succeeded', { nodeName: 'n' }, {}, 'Succeeded'],
      ['failed', { nodeName: 'n' }, { gracePeriodSeconds: 30 }, 'Failed'],
      ['unbound', {}, { gracePeriodSeconds: 30 }],
    ])('delete it at once as upstream: %s', async (name, spec, options = {}, phase = '') => {
      const path = await create(name, spec);
      if (phase) await must('PATCH', `${path}/status`, { status: { phase } }, merge);
      const told = { code: 200, kind: 'Pod', isMarked: true, grace: 0, generation: 2 };
      expect(await end('DELETE', path, { ...options, dryRun: ['All'] })).toMatchObject(told);
      expect(await end('DELETE', path, options)).toMatchObject(told);
      expect(await end('GET', path)).toMatchObject(gone);
    });

    it('keep it until it has ended and has no finalizer, in any order, as upstream', async () => {
      const held = async (name: string): Promise<string> => {
        const path = await create(name, { nodeName: 'n' });
        await must('PATCH', path, { metadata: { finalizers: ['x.io/held'] } }, merge);
        await end('DELETE', path, {});
        return path;
      };
      const [one, other] = [await held('held-1'), await held('held-2')];
      const free = (path: string): Promise<unknown> => end('PATCH', path, { metadata: { finalizers: null } }, merge);
      expect(await end('DELETE', one, { gracePeriodSeconds: 0 })).toMatchObject({ grace: 0, finalizers: ['x.io/held'] });
      await end('DELETE', one, {});
      expect(await free(one)).toMatchObject({ grace: 0 });
      expect(await end('GET', one)).toMatchObject(gone);
      expect(await free(other)).toMatchObject({ grace: 30 });
      expect(await end('GET', other)).toMatchObject({ grace: 30, isMarked: true });
      await end('DELETE', other, { gracePeriodSeconds: 0 });
      expect(await end('GET', other)).toMatchObject(gone);
    });

    it('evict it with grace, and delete all with grace, as upstream', async () => {
      const paths = await Promise.all(['evicted-3', 'one-of-all'].map((name) => create(name, { nodeName: 'n' })));
      const [path, another] = paths as [string, string];
      expect(await alike('POST', `${path}/eviction`, eviction('evicted-3', { gracePeriodSeconds: 20 }))).toBe(201);
      expect(await end('GET', path)).toMatchObject({ isMarked: true, grace: 20, generation: 2 });
      expect(await alike('POST', `${path}/eviction`, eviction('evicted-3', { gracePeriodSeconds: 0 }))).toBe(201);
      expect(await end('GET', path)).toMatchObject(gone);
      await create('unbound-of-all');
      expect(await alike('DELETE', `${PODS}?labelSelector=a=x`)).toBe(200);
      expect(await end('GET', another)).toMatchObject({ isMarked: true, grace: 30 });
      expect(await end('GET', `${PODS}/unbound-of-all`)).toMatchObject(gone);
      await must('DELETE', `${PODS}?gracePeriodSeconds=0`);
    });

    it('tell watches of its end as upstream', async () => {
      const before = await must('GET', PODS);
      for (const [name, spec, options] of [
        ['told-1', { nodeName: 'n' }, {}],
        ['told-1', { nodeName: 'n' }, { gracePeriodSeconds: 0 }],
        ['told-2', {}, {}],
      ] as const) {
        if ((await both('GET', `${PODS}/${name}`))[0].code === 404) await create(name, spec);
        await must('DELETE', `${PODS}/${name}`, options);
      }
      const urls = [theirs.url, url].map((from, at) => {
        const query = `watch=1&timeoutSeconds=1&resourceVersion=${before[at].metadata.resourceVersion}`;
        return `${from}${PODS}?${query}`;
      });
      const texts = [await theirs.fetch(urls[0] as string), await fetch(urls[1] as string)].map((each) => each.text());
      const [expected, own] = (await Promise.all(texts)).map((text) =>
        text.split('\n').flatMap((line) => {
          if (line === '') return [];
          const { type, object } = JSON.parse(line);
          const { name, generation, deletionGracePeriodSeconds: grace } = object.metadata;
          return [[type, name, generation, grace]];
        }),
      );
      expect(own).toEqual(expected);
      const told = [1, 1, 2].map((at) => `told-${at}`);
      expect(own?.filter(([type]) => type === 'MODIFIED').map(([, name]) => name)).toEqual(told);
    });

    it('write ephemeral containers as upstream', async () => {
      const path = await create('debugged');
      const patch = {
        spec: { ephemeralContainers: [{ name: 'debugger', image: 'busybox' }] },
        metadata: { labels: { a: 'no' } },
      };
      const type = { 'content-type': 'application/strategic-merge-patch+json' };
      const answers = await must('PATCH', `${path}/ephemeralcontainers?fieldManager=dbg`, patch, type);
      const [expected, own] = answers.map(({ metadata, spec }) => {
        const entry = metadata.managedFields?.find(({ manager }: Json) => manager === 'dbg');
        const names = [spec.containers, spec.ephemeralContainers].map((all) => all.map(({ name }: Json) => name));
        return [metadata.labels, metadata.generation, names, entry && Object.keys(entry.fieldsV1['f:spec'])];
      });
      // Ours tracks only objects of which a manager was named.
      expect(own?.slice(0, 3)).toEqual(expected?.slice(0, 3));
      expect(expected?.[3]).toEqual(['f:ephemeralContainers']);
      const send = (ephemeralContainers: unknown): Promise<number> =>
        alike('PATCH', `${path}/ephemeralcontainers`, { spec: { ephemeralContainers } }, merge);
      const debuggers = [
        { name: 'more', image: 'busybox' },
        { name: 'debugger', image: 'busybox' },
      ];
      expect(await send([{ ...debuggers[1], image: 'other' }])).toBe(422);
      expect(await send(null)).toBe(422);
      expect(await send(debuggers)).toBe(200);
    });

    it('are resized as upstream', async () => {
      const path = `${await create('resized', { initContainers: [{ name: 'i', image: 'i' }] })}/resize`;
      const send = (spec: object): Promise<number> => alike('PATCH', path, { spec }, merge);
      const [container] = (await must('GET', path))[1].spec.containers;
      expect(await send({ containers: [] })).toBe(422);
      expect(await send({ containers: [container, { ...container, name: 'other' }] })).toBe(422);
      expect(await send({ containers: [{ ...container, name: 'other' }] })).toBe(422);
      expect(await send({ initContainers: null })).toBe(422);
      expect(await send({ containers: [{ ...container, image: 'no' }] })).toBe(200);
    });
  });
});

describe.skipIf(isMissing(component('kubectl')))('kubectl with Pods', () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-pods-'));
  let url: string;
  beforeAll(async () => {
    const kinds = ['pods/v1=Pod', 'nodes/v1=Node:cluster', 'daemonsets.apps/v1=DaemonSet', 'deployments.apps/v1=Deployment'];
    ({ url } = await serve(...kinds.flatMap((kind) => ['--resource', kind])));
  }, START_MS);
  afterAll(() => {
    killAll();
    rmSync(folder, { recursive: true, force: true });
  });

  async function kubectl(line: string, stdin: string = ''): Promise<string> {
    const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'none') };
    const done = promisify(execFile)(component('kubectl').path, ['--server', url, ...line.split(' ')], { env });
    done.child.stdin?.end(stdin);
    return (await done).stdout;
  }

  it('gets, debugs, resizes and drains them', async () => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } };
    const spec = { nodeName: 'node-1', containers: [{ name: 'a', image: 'a:1' }] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec };
    for (const each of [node, pod]) await kubectl('create -f -', JSON.stringify(each));
    await kubectl('create deployment shop --image=shop:1');
    expect((await kubectl('get pods,deployments -o wide')).replace(/ +/g, ' ').replace(/ \d+s /g, ' AGE ')).toBe(
      [
        'NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES',
        'pod/web 0/1 Pending 0 AGE <none> node-1 <none> <none>',
        '',
        'NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR',
        'deployment.apps/shop 0/1 0 0 AGE shop shop:1 app=shop',
        '',
      ].join('\n'),
    );
    await kubectl('debug web --image=busybox --attach=false -c debugger');
    expect(await kubectl('get pod web -o jsonpath={.spec.ephemeralContainers[*].name}')).toBe('debugger');
    await kubectl(
      'patch pod web --subresource resize -p {"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"300m"}}}]}}',
    );
    expect(await kubectl('get pod web -o jsonpath={.spec.containers[0].resources.limits.cpu}')).toBe('300m');
    // Its kubelet would do so.
    const removed = kubectl('wait pod/web --for=jsonpath={.metadata.deletionGracePeriodSeconds}=30 --timeout=60s').then(() =>
      kubectl('delete pod web --grace-period=0 --force'),
    );
    expect(await kubectl('drain node-1 --force')).toContain('pod/web evicted');
    await removed;
    expect(await kubectl('get nodes')).toContain('Unknown,SchedulingDisabled');
  });

  it('is told that there are no tokens of service accounts', async () => {
    const why = 'failed to create token: this server makes no tokens of service accounts';
    await expect(kubectl('create token default')).rejects.toThrow(why);
  });
});
