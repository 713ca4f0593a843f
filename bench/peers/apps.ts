// What is written to both API servers: objects of a kind that both are told of, like those of a Deployment, with a schema.
import type { KubernetesObject } from '../../src/cache/object.ts';
import { WATCHED } from './objects.ts';

const GROUP = 'bench.example.com';
export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
export const APPS = `/apis/${GROUP}/v1/namespaces/${WATCHED}/apps`;

const text = { type: 'string' };
const number = { type: 'integer' };
const object = (properties: object, more: object = {}): object => ({ type: 'object', properties, ...more });
const map = { type: 'object', additionalProperties: text };
const listOf = (items: object, ...keys: string[]): object => ({
  ...{ type: 'array', items },
  ...(keys.length > 0 && { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys }),
});
const probe = object({ httpGet: object({ path: text, port: { 'x-kubernetes-int-or-string': true } }), periodSeconds: number });
const variable = object(
  { name: text, value: text, valueFrom: object({ secretKeyRef: object({ name: text, key: text }) }) },
  { required: ['name'] },
);
const port = object(
  { name: text, containerPort: number, protocol: { ...text, default: 'TCP' } },
  { required: ['containerPort'] },
);
const mount = object({ name: text, mountPath: text, readOnly: { type: 'boolean' } }, { required: ['mountPath'] });
const container = object(
  {
    ...{ name: text, image: text, args: listOf(text), env: listOf(variable, 'name') },
    ...{ ports: listOf(port, 'containerPort', 'protocol'), volumeMounts: listOf(mount, 'mountPath') },
    ...{ resources: object({ limits: map, requests: map }), livenessProbe: probe, readinessProbe: probe },
  },
  { required: ['name', 'image'] },
);
const pod = object({ serviceAccountName: text, nodeSelector: map, containers: listOf(container, 'name') });
const spec = object({
  ...{ replicas: { ...number, minimum: 0 }, turn: number, paused: { type: 'boolean', default: false } },
  template: object({ metadata: object({ labels: map, annotations: map }), spec: pod }),
});

/** The definition of the kind. */
export const DEFINITION = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `apps.${GROUP}` } },
  spec: {
    ...{ group: GROUP, scope: 'Namespaced', names: { plural: 'apps', singular: 'app', kind: 'App', listKind: 'AppList' } },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: object({ spec }) } }],
  },
};

export interface App extends KubernetesObject {
  readonly metadata: { name: string; resourceVersion?: string; managedFields?: readonly object[] };
  readonly spec: { readonly turn: number };
}

const CONTAINERS = 6;
const VARIABLES = 13;

function containerOf(at: number): object {
  const portOf = (name: string, containerPort: number): object => ({ name, containerPort, protocol: 'TCP' });
  const probeOf = (path: string): object => ({ httpGet: { path, port: 'http' }, periodSeconds: 10 });
  return {
    ...{ name: `container-${at}`, image: `registry.example.com/shop/backend-${at}:1.27.${at}`, args: ['--config=/etc/app.yaml'] },
    env: Array.from({ length: VARIABLES }, (_, n) =>
      n % 4 === 3
        ? { name: `SECRET_${n}`, valueFrom: { secretKeyRef: { name: 'shop-secrets', key: `secret-${n}` } } }
        : { name: `SETTING_${n}`, value: `value of setting ${n} in container ${at}, which is a sentence` },
    ),
    ports: [portOf('http', 8_080), portOf('metrics', 9_090)],
    volumeMounts: [{ name: 'tls', mountPath: '/etc/tls', readOnly: true }],
    resources: { limits: { cpu: '500m', memory: '512Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    ...{ livenessProbe: probeOf('/healthz'), readinessProbe: probeOf('/ready') },
  };
}

/** An object of about 10 KB of JSON, in which only the turn changes. */
export function appOf(name: string, turn: number): App {
  const labels = { 'app.kubernetes.io/name': name, tier: 'backend' };
  const containers = Array.from({ length: CONTAINERS }, (_, at) => containerOf(at));
  return {
    ...{ apiVersion: `${GROUP}/v1`, kind: 'App', metadata: { name, namespace: WATCHED, labels } },
    spec: {
      replicas: 3,
      turn,
      paused: false,
      template: { metadata: { labels }, spec: { serviceAccountName: 'shop', containers } },
    },
  } as App;
}
