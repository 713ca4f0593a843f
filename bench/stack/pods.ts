// Pods as a cluster has them, about 4 KB of JSON each: a Deployment's Pod with one container, its volumes, its status, and the
// managed fields that make up much of what a server sends. The same numbers always give the same Pods.

/** Where the version of a Pod is put in. It occurs once in the text of a Pod. */
export const VERSION_MARK = '@@VERSION@@';

const NAMESPACES = 20;
const NODES = 200;
const APPS = ['api', 'web', 'worker', 'cart', 'search', 'payments', 'mailer', 'metrics', 'gateway', 'thumbnails'];
const LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
/** The day on which all Pods were made, in milliseconds. */
const DAY = Date.UTC(2026, 10, 1);

/** Pseudo-random numbers that depend on the seed only: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** What distinguishes a Pod from others. */
interface Seed {
  readonly name: string;
  readonly app: string;
  readonly replicaSet: string;
  readonly namespace: string;
  readonly node: string;
  readonly uid: string;
  readonly ownerUid: string;
  readonly ip: string;
  readonly hostIp: string;
  readonly digest: string;
  readonly container: string;
  readonly tag: string;
  readonly times: readonly string[];
}

function seedOf(number: number): Seed {
  const random = randomOf(number + 1);
  const whole = (below: number): number => Math.floor(random() * below);
  const text = (length: number, letters: string): string => {
    let made = '';
    while (made.length < length) made += letters[whole(letters.length)];
    return made;
  };
  const hex = (length: number): string => text(length, '0123456789abcdef');
  const uid = (): string => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`;
  const app = APPS[number % APPS.length] as string;
  const replicaSet = `${app}-${text(10, LETTERS)}`;
  const began = DAY + whole(86_000) * 1_000;
  return {
    name: `${replicaSet}-${text(5, LETTERS)}`,
    app,
    replicaSet,
    namespace: `team-${number % NAMESPACES}`,
    node: `node-${whole(NODES)}`,
    uid: uid(),
    ownerUid: uid(),
    ip: `10.${whole(256)}.${whole(256)}.${whole(256)}`,
    hostIp: `192.168.${whole(256)}.${whole(256)}`,
    digest: hex(64),
    container: hex(64),
    tag: `1.${whole(40)}.${whole(20)}`,
    times: [0, 1, 4, 9].map((seconds) => new Date(began + seconds * 1_000).toISOString().replace('.000', '')),
  };
}

/** The text of a Pod, without `kind` and `apiVersion`, as it stands in a list. Its version is {@link VERSION_MARK}. */
export function podText(number: number): string {
  const seed = seedOf(number);
  return JSON.stringify({ metadata: metadataOf(seed), spec: specOf(seed), status: statusOf(seed) });
}

function metadataOf({ name, app, replicaSet, namespace, uid, ownerUid, times }: Seed): object {
  return {
    name,
    generateName: `${replicaSet}-`,
    namespace,
    uid,
    resourceVersion: VERSION_MARK,
    creationTimestamp: times[0],
    labels: {
      app,
      'app.kubernetes.io/managed-by': 'Helm',
      'pod-template-hash': replicaSet.slice(app.length + 1),
      tier: 'backend',
    },
    annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '9090', 'kubernetes.io/config.seen': times[0] },
    ownerReferences: [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: replicaSet, uid: ownerUid, controller: true, blockOwnerDeletion: true },
    ],
    managedFields: managedFieldsOf(ownerUid, times),
  };
}

function managedFieldsOf(ownerUid: string, times: readonly string[]): readonly object[] {
  const [dot, none] = [{ '.': {} }, {}];
  const conditions = Object.fromEntries(
    ['ContainersReady', 'Ready'].map((type) => [
      `k:{"type":"${type}"}`,
      { ...dot, 'f:lastProbeTime': none, 'f:lastTransitionTime': none, 'f:status': none, 'f:type': none },
    ]),
  );
  const container = {
    ...dot,
    'f:env': { ...dot, 'k:{"name":"LOG_LEVEL"}': { ...dot, 'f:name': none, 'f:value': none } },
    'f:image': none,
    'f:imagePullPolicy': none,
    'f:name': none,
    'f:ports': { ...dot, 'k:{"containerPort":8080,"protocol":"TCP"}': { ...dot, 'f:containerPort': none, 'f:protocol': none } },
    'f:resources': { ...dot, 'f:limits': { ...dot, 'f:memory': none }, 'f:requests': { ...dot, 'f:cpu': none } },
  };
  const spec = { 'f:containers': { 'k:{"name":"main"}': container }, 'f:dnsPolicy': none, 'f:restartPolicy': none };
  const owners = { ...dot, [`k:{"uid":"${ownerUid}"}`]: none };
  const labels = { ...dot, 'f:app': none, 'f:pod-template-hash': none, 'f:tier': none };
  return [
    {
      manager: 'kube-controller-manager',
      operation: 'Update',
      apiVersion: 'v1',
      time: times[0],
      fieldsType: 'FieldsV1',
      fieldsV1: {
        'f:metadata': { 'f:generateName': none, 'f:labels': labels, 'f:ownerReferences': owners },
        'f:spec': spec,
      },
    },
    {
      manager: 'kubelet',
      operation: 'Update',
      apiVersion: 'v1',
      time: times[3],
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:status': { 'f:conditions': conditions, 'f:containerStatuses': none, 'f:phase': none, 'f:podIP': none } },
      subresource: 'status',
    },
  ];
}

function specOf({ app, node, tag }: Seed): object {
  const access = 'kube-api-access';
  const toleration = (key: string): object => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 });
  return {
    volumes: [
      { name: 'config', configMap: { name: `${app}-config`, defaultMode: 420 } },
      {
        name: access,
        projected: {
          sources: [
            { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
            { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
          ],
          defaultMode: 420,
        },
      },
    ],
    containers: [
      {
        name: 'main',
        image: `registry.example.com/shop/${app}:${tag}`,
        ports: [{ containerPort: 8080, protocol: 'TCP' }],
        env: [{ name: 'LOG_LEVEL', value: 'info' }],
        resources: { limits: { memory: '512Mi' }, requests: { cpu: '100m', memory: '256Mi' } },
        volumeMounts: [
          { name: 'config', mountPath: '/etc/app' },
          { name: access, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
        ],
        livenessProbe: { httpGet: { path: '/healthz', port: 8080, scheme: 'HTTP' }, timeoutSeconds: 1, periodSeconds: 10 },
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        imagePullPolicy: 'IfNotPresent',
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    serviceAccountName: app,
    nodeName: node,
    securityContext: {},
    schedulerName: 'default-scheduler',
    tolerations: [toleration('node.kubernetes.io/not-ready'), toleration('node.kubernetes.io/unreachable')],
    priority: 0,
    enableServiceLinks: true,
    preemptionPolicy: 'PreemptLowerPriority',
  };
}

function statusOf({ app, tag, ip, hostIp, digest, container, times }: Seed): object {
  const condition = (type: string, at: number): object => ({
    type,
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: times[at],
  });
  return {
    phase: 'Running',
    conditions: [
      condition('Initialized', 1),
      condition('Ready', 3),
      condition('ContainersReady', 3),
      condition('PodScheduled', 0),
    ],
    hostIP: hostIp,
    podIP: ip,
    podIPs: [{ ip }],
    startTime: times[0],
    containerStatuses: [
      {
        name: 'main',
        state: { running: { startedAt: times[2] } },
        lastState: {},
        ready: true,
        restartCount: 0,
        image: `registry.example.com/shop/${app}:${tag}`,
        imageID: `registry.example.com/shop/${app}@sha256:${digest}`,
        containerID: `containerd://${container}`,
        started: true,
      },
    ],
    qosClass: 'Burstable',
  };
}
