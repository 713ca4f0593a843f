// The operator of operators.test.ts: the same as controller-runtime/website.go and python-clients/website.py.

import type { V1ConfigMap, V1Deployment, V1Service } from '@kubernetes/client-node';
import type { KubernetesObject } from 'watchmux/cache';
import {
  type ApplyConfiguration,
  anyOf,
  apply,
  type Condition,
  equals,
  findCondition,
  generationChanged,
  isNotFound,
  type KindName,
  kind,
  labelsChanged,
  type OperatorControllerOptions,
  type ReconcileRequest,
  setCondition,
} from 'watchmux/operator';

export interface Website extends KubernetesObject {
  readonly spec: { readonly html: string; readonly replicas: number; readonly paused?: boolean };
  status?: { observedGeneration?: number; replicas?: number; conditions?: Condition[] };
}

type Owned = KubernetesObject & { readonly spec?: unknown; readonly data?: unknown };

export const WEBSITES = kind<Website>('websites.example.com/v1');
const CONFIG_MAPS = kind<V1ConfigMap & Owned>('configmaps');
const DEPLOYMENTS = kind<V1Deployment & Owned>('deployments.apps/v1');
const SERVICES = kind<V1Service & Owned>('services');

/** Publishes websites, and lists them in another namespace. */
export function websiteController(registry: string): OperatorControllerOptions<Website> {
  return {
    for: { kind: WEBSITES, when: anyOf(generationChanged, labelsChanged) },
    owns: [CONFIG_MAPS, DEPLOYMENTS, SERVICES],
    finalizer: {
      name: 'example.com/registry',
      async finalize({ name, resource, events }) {
        try {
          await resource(CONFIG_MAPS).in(registry).delete(name);
        } catch (error) {
          if (isNotFound(error)) return undefined;
          throw error;
        }
        events.normal('Unregistered', `Removed ${name} from the registry`);
        return undefined;
      },
    },
    async reconcile(request) {
      const { object: site, name, resource } = request;
      if (!site) return;
      const { html, paused, replicas: wanted } = site.spec;
      const { uid, labels: { team } = {} } = site.metadata ?? {};
      const app = { app: name };
      const metadata = { labels: { ...app, ...(team !== undefined && { team }) } };
      const replicas = paused ? 0 : wanted;
      const entry = { metadata: { name }, data: { host: `${name}.example.com`, uid } };
      await apply(resource(CONFIG_MAPS).in(registry), entry, { fieldManager: 'website' });
      await applyOwned(request, CONFIG_MAPS, { metadata, data: { 'index.html': html } });
      const mount = { name: 'page', mountPath: '/usr/share/nginx/html' };
      const pod = {
        containers: [{ name: 'web', image: 'nginx:1.29', volumeMounts: [mount] }],
        volumes: [{ name: 'page', configMap: { name } }],
      };
      const template = { metadata: { labels: app }, spec: pod };
      const spec = { replicas, selector: { matchLabels: app }, template };
      const deployment = await applyOwned(request, DEPLOYMENTS, { metadata, spec });
      await applyOwned(request, SERVICES, { metadata, spec: { selector: app, ports: [{ name: 'http', port: 80 }] } });
      await report(request, deployment, replicas);
    },
  };
}

/** Says in an event what it has done, as far as the cache knows what was there. */
async function applyOwned<T extends Owned>(
  { name, owned, apply: applyAs, events }: ReconcileRequest<Website>,
  of: KindName<T>,
  object: ApplyConfiguration<T & KubernetesObject>,
): Promise<T> {
  const before = owned(of).find(({ metadata }) => metadata?.name === name);
  const after = await applyAs(of, object);
  if (!before) events.normal('Created', `Created ${after.kind} ${name}`);
  else if (!equals(contentOf(before), contentOf(after))) events.normal('Updated', `Updated ${after.kind} ${name}`);
  return after;
}

const contentOf = ({ metadata, spec, data }: Owned): unknown[] => [metadata?.labels, spec, data];

async function report(
  { object: site, updateStatus, events }: ReconcileRequest<Website>,
  { metadata, status: { readyReplicas: ready = 0, observedGeneration } = {} }: V1Deployment,
  replicas: number,
): Promise<void> {
  if (!site) return;
  const isReady = observedGeneration === metadata?.generation && ready === replicas;
  const paused = site.spec.paused === true;
  const reason = paused ? 'Paused' : isReady ? 'AllReady' : 'Progressing';
  const message = paused ? 'The website is paused' : `${ready} of ${replicas} replicas are ready`;
  const { generation } = site.metadata ?? {};
  let before: string | undefined;
  await updateStatus((draft) => {
    before = findCondition(draft, 'Ready')?.reason;
    const status = isReady && !paused ? 'True' : 'False';
    setCondition(draft, { type: 'Ready', status, reason, message, observedGeneration: generation });
    Object.assign(draft.status ?? {}, { observedGeneration: generation, replicas: ready });
  });
  if (before !== reason) events[reason === 'Progressing' ? 'warning' : 'normal'](reason, message);
}
