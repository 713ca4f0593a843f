// What is filled in of objects of Kubernetes' own kinds. test/peers/kubernetes-defaults.test.ts compares all of it with a kube-apiserver.
import { expect, it } from 'vitest';
import { kubernetesKinds } from '../../src/apiserver/index.ts';
import { rig } from './apiserver-rig.ts';

const selector = { matchLabels: { a: 'x' } };
const template = { metadata: { labels: { a: 'x' } }, spec: { containers: [{ name: 'a', image: 'a' }] } };
const CLAIM = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'v' }, spec: {} };
const rolling = (rollingUpdate: object): object => ({ type: 'RollingUpdate', rollingUpdate });
const UID = { 'batch.kubernetes.io/controller-uid': 'uid-1' };
const OF_JOB = { ...UID, 'batch.kubernetes.io/job-name': 'x', 'controller-uid': 'uid-1', 'job-name': 'x' };

it.each<[string, object, object]>([
  [
    'deployments.apps/v1',
    { spec: { selector, template } },
    { spec: { replicas: 1, revisionHistoryLimit: 10, strategy: rolling({ maxSurge: '25%', maxUnavailable: '25%' }) } },
  ],
  ['deployments.apps/v1', { spec: { selector, template, replicas: 0 } }, { spec: { replicas: 0 } }],
  [
    'daemonsets.apps/v1',
    { spec: { selector, template } },
    { spec: { updateStrategy: rolling({ maxSurge: 0, maxUnavailable: 1 }) } },
  ],
  [
    'statefulsets.apps/v1',
    { spec: { selector, template, volumeClaimTemplates: [CLAIM] } },
    {
      spec: {
        podManagementPolicy: 'OrderedReady',
        volumeClaimTemplates: [{ ...CLAIM, spec: { volumeMode: 'Filesystem' }, status: { phase: 'Pending' } }],
      },
    },
  ],
  [
    'jobs.batch/v1',
    { spec: { template } },
    {
      metadata: { labels: { a: 'x', ...OF_JOB } },
      spec: { completions: 1, backoffLimit: 6, selector: { matchLabels: UID }, template: { metadata: { labels: OF_JOB } } },
    },
  ],
  [
    'services/v1',
    { spec: { ports: [{ port: 80 }] } },
    { spec: { type: 'ClusterIP', ports: [{ targetPort: 80, protocol: 'TCP' }] } },
  ],
  ['nodes/v1', { status: { capacity: { cpu: '4' } } }, { status: { allocatable: { cpu: '4' } } }],
  ['persistentvolumeclaims/v1', { spec: {} }, { spec: { volumeMode: 'Filesystem' }, status: { phase: 'Pending' } }],
])('%s: %j has %j', async (name, sent, expected) => {
  const [kind] = await kubernetesKinds(name);
  const { server, call } = rig({ resources: [kind] });
  const { group, version, plural, namespaced } = kind;
  const path = `${group ? `/apis/${group}/${version}` : `/api/${version}`}${namespaced ? '/namespaces/default' : ''}/${plural}`;
  const { code, body } = await call('POST', `${path}?fieldValidation=Strict`, { metadata: { name: 'x' }, ...sent });
  expect([code, body]).toMatchObject([201, expected]);
  // A client that sends them changes nothing.
  const again = await call('PUT', `${path}/x`, body);
  expect(again.body.metadata.resourceVersion).toBe(body.metadata.resourceVersion);
  await server.shutdown();
});
