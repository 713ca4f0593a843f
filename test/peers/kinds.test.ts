// Kubernetes' own kinds as its own clients use them: kubectl, and client-go's recorders and typed clients, in protobuf. And a kind that a
// program defines with the keys by which its lists are merged: a Deployment, applied twice, scaled and restarted by kubectl.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiServer, BUILT_IN_KINDS, type ResourceDefinition, type UserInfo } from 'watchmux/apiserver';
import { MemoryStorage } from 'watchmux/storage';
import { component, isMissing } from '../components.ts';
import { until } from '../eventually.ts';
import { type Listening, listening } from '../listening.ts';
import { ClientProgram } from './client-program.ts';

const kubectlPeer = component('kubectl');
const clientGo = component('client-go');
const folder = mkdtempSync(join(tmpdir(), 'watchmux-kinds-'));
const START_MS = 60_000;

const byKey = (key: string): object => ({ 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': key });
const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
/** The part of a Deployment that these commands write. */
const DEPLOYMENTS: ResourceDefinition = {
  ...{ group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', shortNames: ['deploy'], status: true },
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
  schema: {
    type: 'object',
    properties: {
      spec: {
        ...open,
        properties: {
          replicas: { type: 'integer' },
          template: {
            ...open,
            properties: {
              metadata: open,
              spec: {
                ...open,
                properties: {
                  containers: {
                    ...{ type: 'array', ...byKey('name') },
                    items: { ...open, properties: { env: { type: 'array', ...byKey('name'), items: open } } },
                  },
                },
              },
            },
          },
        },
      },
      status: open,
    },
  },
};

let at: Listening | undefined;

beforeAll(async () => {
  const resources = [...BUILT_IN_KINDS, DEPLOYMENTS];
  const api = new ApiServer({
    ...{ storage: new MemoryStorage(), resources },
    authenticate: (): string | UserInfo => 'ada',
    authorize: (verb, resource, _namespace, name, identity) =>
      verb === 'impersonate'
        ? name !== 'root'
        : resource !== 'leases.coordination.k8s.io' || verb === 'list' || identity !== 'ada',
    identityOf: (user) => user,
  });
  await api.ready;
  at = await listening(api);
}, START_MS);

afterAll(async () => {
  await at?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(isMissing(kubectlPeer))('kubectl', () => {
  /** What a command prints, and its exit code. */
  async function run(args: readonly string[], stdin: string = ''): Promise<{ code: number | null; out: string; err: string }> {
    const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'none') };
    const child = spawn(kubectlPeer.path, ['--server', at?.url ?? '', '--cache-dir', join(folder, 'cache'), ...args], { env });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (err += text));
    child.stdin.end(stdin);
    const code = await new Promise<number | null>((resolve, reject) => void child.on('error', reject).on('close', resolve));
    return { code, out, err };
  }

  async function kubectl(line: string, stdin?: string): Promise<string> {
    const { code, out, err } = await run(line.split(' '), stdin);
    expect([line, code, err]).toEqual([line, 0, '']);
    return out;
  }

  it('creates secrets and service accounts, and shows them', async () => {
    expect(await kubectl('create secret generic s --from-literal=a=b')).toBe('secret/s created\n');
    expect(await kubectl('create secret docker-registry d --docker-server=r --docker-username=u --docker-password=p')).toBe(
      'secret/d created\n',
    );
    expect(await kubectl('get secret s -o jsonpath={.data.a}')).toBe('Yg==');
    expect((await kubectl('get secret s')).split('\n').map((each) => each.split(/ +/).slice(0, 3).join(' '))).toEqual([
      ...['NAME TYPE DATA', 's Opaque 1', ''],
    ]);
    expect(await kubectl('describe secret s')).toMatch(/a: +1 bytes/);
    expect(await kubectl('create sa robot')).toBe('serviceaccount/robot created\n');
    expect(await kubectl('describe sa robot')).toContain('robot');
    expect(await kubectl('patch secret s -p {"stringData":{"c":"d"}}')).toBe('secret/s patched\n');
    expect(await kubectl('delete sa,secret --all')).toContain('serviceaccount "robot" deleted');
    expect(await kubectl('explain event.involvedObject')).toContain('fieldPath');
  });

  it('shows events, and those of an object that it describes', async () => {
    const event = { apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, involvedObject: { kind: 'ConfigMap', name: 'm' } };
    await kubectl('create cm m');
    const uid = await kubectl('get cm m -o jsonpath={.metadata.uid}');
    const told = {
      ...event,
      reason: 'Done',
      message: 'all of it',
      type: 'Normal',
      count: 2,
      lastTimestamp: new Date().toISOString(),
    };
    const whole = { ...told, involvedObject: { ...event.involvedObject, apiVersion: 'v1', namespace: 'default', uid } };
    expect(await kubectl('create -f -', JSON.stringify(whole))).toBe('event/e created\n');
    expect((await kubectl('get events')).split('\n')[1]?.split(/ {2,}/).slice(1)).toEqual([
      'Normal',
      'Done',
      'configmap/m',
      'all of it',
    ]);
    expect(await kubectl('get events.events.k8s.io -o jsonpath={.items[0].note}')).toBe('all of it');
    expect(await kubectl('events --for cm/m')).toContain('all of it');
    expect(await kubectl('describe cm m')).toContain('all of it');
  });

  it('asks who it is and what it may do', async () => {
    expect(await kubectl('auth can-i create secrets')).toBe('yes\n');
    const no = await run(['auth', 'can-i', 'create', 'leases.coordination.k8s.io']);
    expect([no.code, no.out.split(' ')[0]?.trim()]).toEqual([1, 'no']);
    expect(await kubectl('auth can-i list leases.coordination.k8s.io -n default')).toBe('yes\n');
    expect(await kubectl('auth whoami -o jsonpath={.status.userInfo.username}')).toBe('ada');
    expect(await kubectl('auth can-i --list')).toMatch(/^secrets +\[\] +\[\] +\[create delete/m);
  });

  it('acts as another, and asks what they may do', async () => {
    const whoami = 'auth whoami -o jsonpath={.status.userInfo}';
    expect(JSON.parse(await kubectl(`${whoami} --as=jo --as-group=dev --as-group=ops --as-uid=7 --as-user-extra=k=v`))).toEqual({
      ...{ username: 'jo', uid: '7', groups: ['dev', 'ops', 'system:authenticated'], extra: { k: ['v'] } },
    });
    expect(await kubectl('auth can-i create leases.coordination.k8s.io --as=jo')).toBe('yes\n');
    expect(await kubectl('create cm as --as=system:serviceaccount:default:robot')).toBe('configmap/as created\n');
    expect((await run(['get', 'cm', '--as=root'])).err).toContain(
      'users "root" is forbidden: this identity cannot impersonate it',
    );
  });

  it('applies a Deployment twice, sets its image, scales and restarts it', async () => {
    const manifest = (image: string, env: object[]): string =>
      JSON.stringify({
        ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
        spec: {
          ...{ replicas: 1, selector: { matchLabels: { app: 'web' } } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: {
              containers: [
                { name: 'a', image, env },
                { name: 'b', image: 'b:1' },
              ],
            },
          },
        },
      });
    const images = (): Promise<string> => kubectl('get deploy web -o jsonpath={.spec.template.spec.containers[*].image}');
    expect(await kubectl('apply -f -', manifest('a:1', [{ name: 'X', value: '1' }]))).toBe('deployment.apps/web created\n');
    expect(await kubectl('apply -f -', manifest('a:2', [{ name: 'Y', value: '2' }]))).toBe('deployment.apps/web configured\n');
    expect(await images()).toBe('a:2 b:1');
    expect(await kubectl('get deploy web -o jsonpath={.spec.template.spec.containers[0].env[*].name}')).toBe('Y');
    expect(await kubectl('set image deploy/web b=b:2')).toContain('image updated');
    expect(await images()).toBe('a:2 b:2');
    expect(await kubectl('set env deploy/web -c a Z=3')).toContain('env updated');
    expect(await kubectl('get deploy web -o jsonpath={.spec.template.spec.containers[0].env[*].name}')).toBe('Y Z');
    expect(await kubectl('scale deploy/web --replicas=3')).toBe('deployment.apps/web scaled\n');
    expect(await kubectl('get deploy web -o jsonpath={.spec.replicas}')).toBe('3');
    expect(await kubectl('rollout restart deploy/web')).toBe('deployment.apps/web restarted\n');
    expect(await kubectl('get deploy web -o jsonpath={.spec.template.metadata.annotations}')).toContain('restartedAt');
  });
});

describe.skipIf(isMissing(clientGo))('client-go', () => {
  it('records an event that is repeated, in both APIs, and works with typed clients in protobuf', async () => {
    const program = new ClientProgram(clientGo.path, ['record', '--server', at?.url ?? '', '--name', 'recorded']);
    await until(() => program.of('ended').length > 0);
    const wrote = program.lines.filter(({ type }) => type === 'wrote').map(({ verb, replicas }) => [verb, replicas ?? 0]);
    expect(wrote).toEqual([...[1, 2, 3].map((count) => ['Repeated', count]), ['Again', 1], ['Again', 2], ['kinds', 0]]);
    expect(await program.end()).toBe(0);
  });
});
