// A new operator with the rights of its manifests alone, on a kube-apiserver that checks them: the audit log says what it asks for.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFailed, test, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { component, isMissing } from '../components.ts';
import { until } from '../e2e/cli.ts';
import { newProject } from '../e2e/new-project.ts';
import { compareRights } from '../e2e/rights.ts';
import { endAll, NODE, RUNTIMES } from '../e2e/runtimes.ts';
import { eventually } from '../eventually.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

const LIMIT_MS = 60_000;
const NAME = 'website-operator';
const USER = `system:serviceaccount:${NAME}:${NAME}`;
const WEBSITES = '/apis/example.com/v1/namespaces/default/websites';
const ROLE = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${NAME}`;
const PATHS: Readonly<Record<string, string>> = {
  CustomResourceDefinition: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  Namespace: '/api/v1/namespaces',
  ServiceAccount: `/api/v1/namespaces/${NAME}/serviceaccounts`,
  Deployment: `/apis/apps/v1/namespaces/${NAME}/deployments`,
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAME}/roles`,
  RoleBinding: `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAME}/rolebindings`,
};

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

interface Audited {
  readonly verb: string;
  readonly objectRef?: {
    readonly resource: string;
    readonly apiGroup?: string;
    readonly subresource?: string;
    readonly namespace?: string;
  };
  readonly responseStatus?: { readonly code: number };
}

describe.skipIf(isMissing(component('kube-apiserver')))('a new operator on a kube-apiserver with RBAC', () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-rbac-'));
  const log = join(folder, 'audit.log');
  let made: ReturnType<typeof newProject> | undefined;
  let server: ApiServer | undefined;

  beforeAll(async () => {
    made = newProject();
    const built = spawnSync('npm', ['run', 'build'], { cwd: made.project, encoding: 'utf8' });
    expect([built.status, built.stderr]).toEqual([0, '']);
    const policy = join(folder, 'policy.json');
    const rules = [{ level: 'Metadata', users: [USER] }];
    writeFileSync(
      policy,
      JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules }),
    );
    const api = await startApiServer({
      flags: ['--authorization-mode=RBAC', `--audit-policy-file=${policy}`, `--audit-log-path=${log}`],
    });
    server = api;
    for (const name of ['deployment', 'rbac', 'crd'])
      for (const document of parseAllDocuments(readFileSync(join(made.project, `manifests/${name}.yaml`), 'utf8'))) {
        const object = document.toJS();
        await api.create(PATHS[object.kind] as string, object);
      }
    const token = await api.create(`${PATHS.ServiceAccount}/${NAME}/token`, {});
    const config = {
      clusters: [{ name: 'c', cluster: { server: api.url, 'certificate-authority-data': btoa(api.ca) } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: NAME } }],
      users: [{ name: 'u', user: { token: token.status.token } }],
      'current-context': 'x',
    };
    writeFileSync(join(folder, 'config'), JSON.stringify(config));
    vi.stubEnv('KUBECONFIG', join(folder, 'config'));
    vi.stubEnv('PORT', '0');
    await eventually(() => api.get(WEBSITES));
  }, LIMIT_MS);
  afterAll(async () => {
    vi.unstubAllEnvs();
    endAll();
    made?.remove();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const audited = (): readonly Audited[] =>
    (existsSync(log) ? readFileSync(log, 'utf8') : '')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const askedOf = (audits: readonly Audited[]): Map<string, Set<string | undefined>> => {
    const rights = new Map<string, Set<string | undefined>>();
    for (const { verb, objectRef } of audits) {
      if (!objectRef) continue; // discovery, which everybody may ask for
      const { resource, apiGroup, subresource, namespace } = objectRef;
      const right = `${verb} ${[resource, apiGroup].filter(Boolean).join('.')}${subresource ? `/${subresource}` : ''}`;
      rights.set(right, (rights.get(right) ?? new Set()).add(namespace));
    }
    return rights;
  };

  describe.each([NODE, ...RUNTIMES])('and on $name', ({ name, missing, start }) => {
    test.skipIf(missing)(
      'works with exactly what its manifests grant',
      async () => {
        const [api, project] = [server as ApiServer, made?.project as string];
        const createSite = (site: string): Promise<unknown> =>
          api.create(WEBSITES, {
            apiVersion: 'example.com/v1',
            kind: 'Website',
            metadata: { name: site },
            spec: { message: 'first' },
          });
        const mayCreate = async (): Promise<boolean> => {
          const spec = { user: USER, resourceAttributes: { verb: 'create', resource: 'configmaps', namespace: 'default' } };
          return (await api.create('/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec })).status.allowed;
        };
        const before = audited().length;
        const asked = () => askedOf(audited().slice(before));
        const site = name.toLowerCase();
        const { child, err, ended } = start(join(project, 'dist/src/main.js'));
        onTestFailed(() => console.log(err()));
        await createSite(site);
        // Others write at the same time, until a write of the operator's was too late.
        for (let at = 1; !asked().has('get websites.example.com'); at++) {
          await api.patch(`${WEBSITES}/${site}`, { spec: { message: String(at) } });
          await api.patch(`${WEBSITES}/${site}`, { metadata: { labels: { at: String(at) } } });
        }
        const { generation } = (await api.patch(`${WEBSITES}/${site}`, { spec: { message: 'last' } })).metadata;
        await until(
          async () => (await api.get(`${WEBSITES}/${site}`)).status?.conditions?.[0]?.observedGeneration === generation,
        );
        expect((await api.get(`/api/v1/namespaces/default/configmaps/${site}`)).data).toEqual({ message: 'last' });
        expect(
          audited()
            .slice(before)
            .filter(({ responseStatus }) => responseStatus?.code === 403),
        ).toEqual([]);
        // Whether an apply may create is asked within that request: what is missing is refused.
        const role = await api.get(ROLE);
        const without = role.rules.map(({ verbs, ...of }: Rule) => ({
          ...of,
          verbs: verbs.filter((verb) => verb !== 'create' || !of.resources.includes('configmaps')),
        }));
        await api.patch(ROLE, { rules: without });
        await until(async () => !(await mayCreate()));
        await createSite(`${site}-refused`);
        await until(() => err().includes('cannot create resource "configmaps"'));
        await api.patch(ROLE, { rules: role.rules });
        await until(mayCreate);
        child.kill('SIGTERM');
        expect((await ended)[0]).toBe(0);
        await api.delete(`/apis/coordination.k8s.io/v1/namespaces/${NAME}/leases/${NAME}`);
        expect(compareRights(asked(), join(project, 'manifests/rbac.yaml'))).toEqual({
          missing: [],
          unused: ['create configmaps'],
        });
      },
      LIMIT_MS,
    );
  });
});
