// Objects of Kubernetes' own kinds in several states, and what `kubectl get` shows of each after its name: test/unit/kubernetes-columns.test.ts
// compares it with a server in memory, test/peers/kubernetes-columns.test.ts with a kube-apiserver.

/** One object: what is created, the status that it then gets, and whether it is deleted, which its finalizer holds up. */
export interface State {
  readonly name: string;
  readonly metadata?: object;
  readonly sent: object;
  readonly status?: object;
  readonly isDeleted?: boolean;
  /** Without its name. `age`: how old it is, whatever that is. */
  readonly cells: readonly unknown[];
}

const LABELS = { app: 'web' };
const SELECTOR = {
  matchLabels: LABELS,
  matchExpressions: [
    { key: 'tier', operator: 'In', values: ['b', 'a'] },
    { key: 'old', operator: 'DoesNotExist' },
  ],
};
const CONTAINERS = [
  { name: 'a', image: 'a:1' },
  { name: 'b', image: 'registry.io/b@sha256:01' },
];
const POD = { containers: CONTAINERS };
const TEMPLATE = { metadata: { labels: { ...LABELS, tier: 'a' } }, spec: POD };
const JOB_TEMPLATE = { ...TEMPLATE, spec: { ...POD, restartPolicy: 'Never' } };
const LONG_AGO = '2010-01-01T00:00:00Z';
const HELD = { finalizers: ['example.com/held'] };

const running = { running: { startedAt: LONG_AGO } };
const waiting = (reason: string): object => ({ waiting: { reason } });
const ended = (more: object): object => ({ terminated: { exitCode: 0, startedAt: LONG_AGO, finishedAt: LONG_AGO, ...more } });
const is = (type: string, status: string = 'True', more: object = {}): object => ({ type, status, ...more });
const container = (name: string, state: object, more: object = {}): object => ({
  ...{ name, state, ready: false, restartCount: 0, image: name, imageID: '' },
  ...more,
});
const INITS = {
  ...POD,
  initContainers: [
    { name: 'i', image: 'i' },
    { name: 's', image: 's', restartPolicy: 'Always' },
  ],
};
const NO_WIDE = ['<none>', '<none>', '<none>', '<none>'] as const;

const PODS: readonly State[] = [
  { name: 'new', sent: { spec: POD }, cells: ['0/2', 'Pending', '0', 'age', ...NO_WIDE] },
  {
    name: 'running',
    sent: { spec: { ...POD, nodeName: 'n', readinessGates: [{ conditionType: 'x.io/a' }, { conditionType: 'x.io/b' }] } },
    status: {
      ...{ phase: 'Running', podIP: '10.1.2.3', podIPs: [{ ip: '10.1.2.3' }, { ip: 'fd00::1' }] },
      conditions: [is('Ready'), is('x.io/a')],
      containerStatuses: [
        container('a', running, { ready: true }),
        container('b', running, { ready: true, restartCount: 3, lastState: ended({ exitCode: 1 }) }),
      ],
    },
    cells: ['2/2', 'Running', '3 (16y ago)', 'age', '10.1.2.3', 'n', '<none>', '1/2'],
  },
  {
    name: 'crashed',
    sent: { spec: POD },
    status: {
      phase: 'Running',
      containerStatuses: [
        container('a', waiting('CrashLoopBackOff'), { restartCount: 7 }),
        container('b', ended({ exitCode: 2, reason: 'Error' })),
      ],
    },
    cells: ['0/2', 'CrashLoopBackOff', '7', 'age', ...NO_WIDE],
  },
  {
    name: 'killed',
    sent: { spec: POD },
    status: {
      phase: 'Running',
      containerStatuses: [container('a', running, { ready: true }), container('b', ended({ exitCode: 137, signal: 9 }))],
    },
    cells: ['1/2', 'Signal:9', '0', 'age', ...NO_WIDE],
  },
  {
    name: 'exited',
    sent: { spec: POD },
    status: { phase: 'Running', containerStatuses: [container('a', ended({ exitCode: 3 })), container('b', running)] },
    cells: ['0/2', 'ExitCode:3', '0', 'age', ...NO_WIDE],
  },
  {
    name: 'completed',
    sent: { spec: POD },
    status: {
      phase: 'Succeeded',
      containerStatuses: [container('a', ended({ reason: 'Completed' })), container('b', ended({ reason: 'Completed' }))],
    },
    cells: ['0/2', 'Completed', '0', 'age', ...NO_WIDE],
  },
  {
    name: 'half-ready',
    sent: { spec: POD },
    status: {
      phase: 'Running',
      conditions: [is('Ready')],
      containerStatuses: [container('a', ended({ reason: 'Completed' })), container('b', running, { ready: true })],
    },
    cells: ['1/2', 'Running', '0', 'age', ...NO_WIDE],
  },
  {
    name: 'half-unready',
    sent: { spec: POD },
    status: {
      phase: 'Running',
      containerStatuses: [container('a', ended({ reason: 'Completed' })), container('b', running, { ready: true })],
    },
    cells: ['1/2', 'NotReady', '0', 'age', ...NO_WIDE],
  },
  {
    name: 'half-failed',
    sent: { spec: POD },
    status: {
      phase: 'Running',
      containerStatuses: [
        container('a', ended({ reason: 'Completed' })),
        container('b', ended({ exitCode: 1, reason: 'OOMKilled' })),
      ],
    },
    cells: ['0/2', 'OOMKilled', '0', 'age', ...NO_WIDE],
  },
  {
    name: 'evicted',
    sent: { spec: POD },
    status: { phase: 'Failed', reason: 'Evicted', nominatedNodeName: 'm' },
    cells: ['0/2', 'Evicted', '0', 'age', '<none>', '<none>', 'm', '<none>'],
  },
  {
    name: 'gated',
    sent: { spec: { ...POD, schedulingGates: [{ name: 'x.io/gate' }] } },
    status: { conditions: [is('PodScheduled', 'False', { reason: 'SchedulingGated' })] },
    cells: ['0/2', 'SchedulingGated', '0', 'age', ...NO_WIDE],
  },
  {
    name: 'init-waits',
    sent: { spec: INITS },
    status: { phase: 'Pending', initContainerStatuses: [container('i', running), container('s', waiting('PodInitializing'))] },
    cells: ['0/3', 'Init:0/2', '0', 'age', ...NO_WIDE],
  },
  {
    name: 'init-pulls',
    sent: { spec: INITS },
    status: { phase: 'Pending', initContainerStatuses: [container('i', waiting('ErrImagePull'), { restartCount: 1 })] },
    cells: ['0/3', 'Init:ErrImagePull', '1', 'age', ...NO_WIDE],
  },
  {
    name: 'init-failed',
    sent: { spec: INITS },
    status: {
      phase: 'Pending',
      initContainerStatuses: [container('i', ended({ exitCode: 1 }), { restartCount: 2, lastState: ended({ exitCode: 1 }) })],
      containerStatuses: [container('a', waiting('PodInitializing'), { restartCount: 5 })],
    },
    cells: ['0/3', 'Init:ExitCode:1', '2 (16y ago)', 'age', ...NO_WIDE],
  },
  {
    name: 'init-again',
    sent: { spec: INITS },
    status: {
      ...{ phase: 'Running', conditions: [is('Initialized')] },
      initContainerStatuses: [
        container('i', ended({}), { ready: true, restartCount: 4 }),
        container('s', running, { started: false, restartCount: 2 }),
      ],
      containerStatuses: [container('a', running, { ready: true, restartCount: 1 }), container('b', running, { ready: true })],
    },
    cells: ['2/3', 'Init:1/2', '3', 'age', ...NO_WIDE],
  },
  {
    name: 'sidecar',
    sent: { spec: INITS },
    status: {
      phase: 'Running',
      initContainerStatuses: [
        container('i', ended({}), { ready: true, restartCount: 4 }),
        container('s', running, { started: true, ready: true, restartCount: 2, lastState: ended({}) }),
      ],
      containerStatuses: [container('a', running, { ready: true }), container('b', running, { ready: true })],
    },
    cells: ['3/3', 'Running', '2 (16y ago)', 'age', ...NO_WIDE],
  },
  {
    ...{ name: 'terminating', metadata: HELD, isDeleted: true, sent: { spec: POD } },
    status: { phase: 'Running', containerStatuses: [container('a', running, { ready: true })] },
    cells: ['1/2', 'Terminating', '0', 'age', ...NO_WIDE],
  },
  {
    ...{ name: 'lost', metadata: HELD, isDeleted: true, sent: { spec: POD }, status: { phase: 'Running', reason: 'NodeLost' } },
    cells: ['0/2', 'Unknown', '0', 'age', ...NO_WIDE],
  },
  {
    ...{ name: 'ended', metadata: HELD, isDeleted: true, sent: { spec: POD }, status: { phase: 'Failed' } },
    cells: ['0/2', 'Failed', '0', 'age', ...NO_WIDE],
  },
];

const [NAMES, IMAGES] = ['a,b', 'a:1,registry.io/b@sha256:01'];
const SELECTED = 'app=web,!old,tier in (a,b)';
const REPLICAS = { replicas: 3, readyReplicas: 1, availableReplicas: 1, fullyLabeledReplicas: 2, observedGeneration: 1 };
const DEPLOYED = { replicas: 3, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1 };
const OWNED = { spec: { selector: SELECTOR, template: TEMPLATE } };

/** Without those in the namespace, all of these have the same template. */
const WORKLOADS: Readonly<Record<string, readonly State[]>> = {
  'replicationcontrollers/v1': [
    {
      name: 'new',
      sent: {
        spec: {
          selector: { app: 'web', 'a.io/b': 'x' },
          template: { ...TEMPLATE, metadata: { labels: { app: 'web', 'a.io/b': 'x' } } },
        },
      },
      cells: [1, 0, 0, 'age', NAMES, IMAGES, 'a.io/b=x,app=web'],
    },
    {
      name: 'some',
      sent: { spec: { replicas: 3, selector: LABELS, template: TEMPLATE } },
      status: REPLICAS,
      cells: [3, 3, 1, 'age', NAMES, IMAGES, 'app=web'],
    },
  ],
  'daemonsets.apps/v1': [
    { name: 'new', sent: OWNED, cells: [0, 0, 0, 0, 0, '<none>', 'age', NAMES, IMAGES, SELECTED] },
    {
      name: 'some',
      sent: {
        spec: { ...OWNED.spec, template: { ...TEMPLATE, spec: { ...POD, nodeSelector: { os: 'linux', arch: 'x' } } } },
      },
      status: {
        ...{ desiredNumberScheduled: 5, currentNumberScheduled: 4, numberReady: 3, updatedNumberScheduled: 2 },
        ...{ numberAvailable: 1, numberMisscheduled: 0 },
      },
      cells: [5, 4, 3, 2, 1, 'arch=x,os=linux', 'age', NAMES, IMAGES, SELECTED],
    },
  ],
  'deployments.apps/v1': [
    { name: 'new', sent: OWNED, cells: ['0/1', 0, 0, 'age', NAMES, IMAGES, SELECTED] },
    {
      name: 'some',
      sent: { spec: { ...OWNED.spec, replicas: 3 } },
      status: DEPLOYED,
      cells: ['1/3', 2, 1, 'age', NAMES, IMAGES, SELECTED],
    },
    { name: 'none', sent: { spec: { ...OWNED.spec, replicas: 0 } }, cells: ['0/0', 0, 0, 'age', NAMES, IMAGES, SELECTED] },
  ],
  'replicasets.apps/v1': [
    { name: 'new', sent: OWNED, cells: [1, 0, 0, 'age', NAMES, IMAGES, SELECTED] },
    {
      name: 'some',
      sent: { spec: { ...OWNED.spec, replicas: 3 } },
      status: REPLICAS,
      cells: [3, 3, 1, 'age', NAMES, IMAGES, SELECTED],
    },
  ],
  'statefulsets.apps/v1': [
    { name: 'new', sent: { spec: { ...OWNED.spec, serviceName: 'x' } }, cells: ['0/1', 'age', NAMES, IMAGES] },
    {
      name: 'some',
      sent: { spec: { ...OWNED.spec, serviceName: 'x', replicas: 3 } },
      status: { replicas: 3, readyReplicas: 2, availableReplicas: 2 },
      cells: ['2/3', 'age', NAMES, IMAGES],
    },
  ],
  'podtemplates/v1': [{ name: 'some', sent: { template: TEMPLATE }, cells: [NAMES, IMAGES, 'app=web,tier=a'] }],
};

const JOB = { manualSelector: true, selector: { matchLabels: LABELS }, template: JOB_TEMPLATE };
const STARTED = { startTime: LONG_AGO };
const END = [NAMES, IMAGES, 'app=web'] as const;

const JOBS: Readonly<Record<string, readonly State[]>> = {
  'jobs.batch/v1': [
    { name: 'new', sent: { spec: JOB }, cells: ['Running', '0/1', '', 'age', ...END] },
    {
      name: 'complete',
      sent: { spec: JOB },
      status: {
        ...{ ...STARTED, completionTime: '2010-01-01T00:05:07Z', succeeded: 1, uncountedTerminatedPods: {} },
        conditions: [is('SuccessCriteriaMet'), is('Complete')],
      },
      cells: ['Complete', '1/1', '5m7s', 'age', ...END],
    },
    {
      name: 'failed',
      sent: { spec: { ...JOB, completions: 3 } },
      status: { ...STARTED, failed: 1, conditions: [is('FailureTarget'), is('Failed')] },
      cells: ['Failed', '0/3', '16y', 'age', ...END],
    },
    {
      name: 'queue',
      sent: { spec: { ...JOB, parallelism: 4 } },
      status: { ...STARTED, active: 4 },
      cells: ['Running', '0/1 of 4', '16y', 'age', ...END],
    },
    {
      name: 'suspended',
      sent: { spec: { ...JOB, suspend: true, parallelism: 1 } },
      status: { conditions: [is('Suspended')] },
      cells: ['Suspended', '0/1', '', 'age', ...END],
    },
    {
      name: 'target',
      sent: { spec: JOB },
      status: { ...STARTED, conditions: [is('FailureTarget')] },
      cells: ['FailureTarget', '0/1', '16y', 'age', ...END],
    },
    {
      ...{ name: 'terminating', metadata: HELD, isDeleted: true, sent: { spec: JOB } },
      cells: ['Terminating', '0/1', '', 'age', ...END],
    },
  ],
  'cronjobs.batch/v1': [
    {
      name: 'new',
      sent: { spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: JOB_TEMPLATE } } } },
      cells: ['*/5 * * * *', '<none>', 'False', 0, '<none>', 'age', NAMES, IMAGES, '<none>'],
    },
    {
      name: 'some',
      sent: {
        spec: { schedule: '@daily', timeZone: 'Etc/UTC', suspend: true, jobTemplate: { spec: { template: JOB_TEMPLATE } } },
      },
      status: { active: [{ name: 'x' }, { name: 'y' }], lastScheduleTime: LONG_AGO },
      cells: ['@daily', 'Etc/UTC', 'True', 2, '16y', 'age', NAMES, IMAGES, '<none>'],
    },
  ],
};

const balanced = (...ingress: readonly object[]): object => ({ loadBalancer: { ingress } });
const port = (number: number, more: object = {}): object => ({ name: `p${number}`, port: number, ...more });
const addresses = (...ips: readonly string[]): object[] => ips.map((ip) => ({ ip }));
const [ONE, TWO, THREE, FOUR] = ['10.2.0.1', '10.2.0.2', '10.2.0.3', '10.2.0.4'] as const;
const http = { http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 's', port: { number: 80 } } } }] } };
const hosts = (...names: readonly (string | undefined)[]): object => ({
  rules: names.map((host) => ({ ...http, ...(host && { host }) })),
});
const slice = (...ips: readonly string[]): object => ({ addressType: 'IPv4', endpoints: ips.map((ip) => ({ addresses: [ip] })) });

const NETWORK: Readonly<Record<string, readonly State[]>> = {
  'services/v1': [
    {
      name: 'headless',
      sent: { spec: { clusterIP: 'None', ports: [port(80), port(53, { protocol: 'UDP' })] } },
      cells: ['ClusterIP', 'None', '<none>', '80/TCP,53/UDP', 'age', '<none>'],
    },
    {
      name: 'external',
      sent: { spec: { clusterIP: 'None', selector: { b: 'y', a: 'x' }, externalIPs: [ONE, TWO], ports: [port(80)] } },
      cells: ['ClusterIP', 'None', `${ONE},${TWO}`, '80/TCP', 'age', 'a=x,b=y'],
    },
    {
      name: 'named',
      sent: { spec: { type: 'ExternalName', externalName: 'x.example.com' } },
      cells: ['ExternalName', '<none>', 'x.example.com', '<none>', 'age', '<none>'],
    },
    {
      name: 'node-port',
      sent: {
        spec: { type: 'NodePort', clusterIP: '10.0.0.51', clusterIPs: ['10.0.0.51'], ports: [port(80, { nodePort: 30080 })] },
      },
      cells: ['NodePort', '10.0.0.51', '<none>', '80:30080/TCP', 'age', '<none>'],
    },
    {
      name: 'pending',
      sent: {
        spec: { type: 'LoadBalancer', clusterIP: '10.0.0.52', clusterIPs: ['10.0.0.52'], ports: [port(80, { nodePort: 30081 })] },
      },
      cells: ['LoadBalancer', '10.0.0.52', '<pending>', '80:30081/TCP', 'age', '<none>'],
    },
    {
      name: 'balanced',
      sent: {
        spec: {
          ...{ type: 'LoadBalancer', clusterIP: '10.0.0.53', clusterIPs: ['10.0.0.53'], externalIPs: [THREE] },
          ports: [port(80, { nodePort: 30082 })],
        },
      },
      status: balanced({ ip: TWO }, { hostname: 'b.example.com' }, { ip: ONE }),
      cells: ['LoadBalancer', '10.0.0.53', `${ONE},${TWO},b.example.com,${THREE}`, '80:30082/TCP', 'age', '<none>'],
    },
  ],
  'endpoints/v1': [
    { name: 'new', sent: {}, cells: ['<none>', 'age'] },
    { name: 'bare', sent: { subsets: [{ addresses: addresses(ONE, TWO) }] }, cells: [`${ONE},${TWO}`, 'age'] },
    {
      name: 'many',
      sent: { subsets: [{ addresses: addresses(ONE, TWO), ports: [port(80), port(81)] }] },
      cells: [`${ONE}:80,${TWO}:80,${ONE}:81 + 1 more...`, 'age'],
    },
    {
      name: 'unready',
      sent: { subsets: [{ notReadyAddresses: addresses(ONE), ports: [port(80)] }] },
      cells: ['', 'age'],
    },
    { name: 'six', sent: { subsets: [{ addresses: addresses('fd00::1'), ports: [port(80)] }] }, cells: ['[fd00::1]:80', 'age'] },
  ],
  'endpointslices.discovery.k8s.io/v1': [
    { name: 'new', sent: { ...slice(), ports: null }, cells: ['IPv4', '<unset>', '<unset>', 'age'] },
    {
      name: 'some',
      sent: { ...slice(ONE, TWO, THREE), ports: [port(80), { name: 'any' }] },
      cells: ['IPv4', '80,any', `${ONE},${TWO},${THREE}`, 'age'],
    },
    {
      name: 'many',
      sent: { ...slice(ONE, TWO, THREE, FOUR), ports: [port(80), port(81), port(82), port(83), port(84)] },
      cells: ['IPv4', '80,81,82 + 2 more...', `${ONE},${TWO},${THREE} + 1 more...`, 'age'],
    },
  ],
  'ingresses.networking.k8s.io/v1': [
    { name: 'any', sent: { spec: hosts(undefined) }, cells: ['<none>', '*', '', '80', 'age'] },
    {
      name: 'many',
      sent: { spec: { ...hosts('a.io', 'b.io', undefined, 'c.io', 'd.io'), ingressClassName: 'x', tls: [{ hosts: ['a.io'] }] } },
      status: balanced({ ip: TWO }, { hostname: 'a-rather-long-name.example.com' }),
      cells: ['x', 'a.io,b.io,c.io + 2 more...', `${TWO},a-rather-long-name.example.com`, '80, 443', 'age'],
    },
    {
      name: 'three',
      sent: { spec: hosts(undefined, 'a.io', 'b.io', 'c.io') },
      cells: ['<none>', 'a.io,b.io,c.io', '', '80', 'age'],
    },
  ],
  'ingressclasses.networking.k8s.io/v1': [
    { name: 'plain', sent: { spec: { controller: 'x.io/y' } }, cells: ['x.io/y', '<none>', 'age'] },
    {
      name: 'default',
      metadata: { annotations: { 'ingressclass.kubernetes.io/is-default-class': 'true' } },
      sent: { spec: { controller: 'x.io/y', parameters: { apiGroup: 'x.io', kind: 'Params', name: 'p' } } },
      cells: ['x.io/y', 'Params.x.io/p', 'age'],
    },
  ],
  'networkpolicies.networking.k8s.io/v1': [
    { name: 'all', sent: { spec: { podSelector: {} } }, cells: ['<none>', 'age'] },
    { name: 'some', sent: { spec: { podSelector: SELECTOR } }, cells: [SELECTED, 'age'] },
  ],
  'ipaddresses.networking.k8s.io/v1': [
    {
      name: '10.0.0.9',
      sent: { spec: { parentRef: { resource: 'services', name: 'x', namespace: 'default' } } },
      cells: ['services/default/x'],
    },
    {
      name: '10.0.0.10',
      sent: { spec: { parentRef: { group: 'gateway.io', resource: 'gateways', name: 'x' } } },
      cells: ['gateways.gateway.io/x'],
    },
  ],
  'servicecidrs.networking.k8s.io/v1': [
    { name: 'some', sent: { spec: { cidrs: ['10.9.0.0/24', 'fd01::/112'] } }, cells: ['10.9.0.0/24,fd01::/112', 'age'] },
  ],
};

const CLAIM = { accessModes: ['ReadWriteMany', 'ReadWriteOnce'], resources: { requests: { storage: '1024Mi' } } };
const VOLUME = { capacity: { storage: '0.5Gi' }, accessModes: ['ReadOnlyMany', 'ReadWriteOncePod'], hostPath: { path: '/x' } };
const PROVISIONER = { provisioner: 'x.io/y' };
const DEFAULT = { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } };

const VOLUMES: Readonly<Record<string, readonly State[]>> = {
  'persistentvolumes/v1': [
    {
      name: 'new',
      sent: { spec: { ...VOLUME, accessModes: ['ReadOnlyMany', 'ReadWriteOnce'] } },
      cells: ['512Mi', 'RWO,ROX', 'Retain', 'Pending', '', '', '<unset>', '', 'age', 'Filesystem'],
    },
    {
      name: 'bound',
      sent: {
        spec: {
          ...{ ...VOLUME, accessModes: ['ReadWriteOncePod'], volumeMode: 'Block', storageClassName: 'fast' },
          ...{ persistentVolumeReclaimPolicy: 'Delete', claimRef: { namespace: 'default', name: 'bound' } },
        },
      },
      status: { phase: 'Bound', reason: 'why' },
      cells: ['512Mi', 'RWOP', 'Delete', 'Bound', 'default/bound', 'fast', '<unset>', 'why', 'age', 'Block'],
    },
    {
      ...{ name: 'terminating', isDeleted: true },
      metadata: { ...HELD, annotations: { 'volume.beta.kubernetes.io/storage-class': 'old' } },
      sent: { spec: { ...VOLUME, accessModes: ['ReadWriteMany'] } },
      cells: ['512Mi', 'RWX', 'Retain', 'Terminating', '', 'old', '<unset>', '', 'age', 'Filesystem'],
    },
  ],
  'persistentvolumeclaims/v1': [
    { name: 'new', sent: { spec: CLAIM }, cells: ['Pending', '', '', '', '', '<unset>', 'age', 'Filesystem'] },
    {
      name: 'bound',
      sent: { spec: { ...CLAIM, volumeName: 'bound', storageClassName: 'fast', volumeMode: 'Block' } },
      status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '2Gi' } },
      cells: ['Bound', 'bound', '2Gi', 'RWO', 'fast', '<unset>', 'age', 'Block'],
    },
    {
      ...{ name: 'terminating', metadata: HELD, isDeleted: true, sent: { spec: { ...CLAIM, volumeName: 'x' } } },
      cells: ['Terminating', 'x', '0', '', '', '<unset>', 'age', 'Filesystem'],
    },
  ],
  'storageclasses.storage.k8s.io/v1': [
    { name: 'plain', sent: PROVISIONER, cells: ['x.io/y', 'Delete', 'Immediate', false, 'age'] },
    {
      name: 'some',
      metadata: DEFAULT,
      sent: { ...PROVISIONER, reclaimPolicy: 'Retain', volumeBindingMode: 'WaitForFirstConsumer', allowVolumeExpansion: true },
      cells: ['x.io/y', 'Retain', 'WaitForFirstConsumer', true, 'age'],
    },
  ],
  'csidrivers.storage.k8s.io/v1': [
    { name: 'new', sent: { spec: {} }, cells: [true, false, false, '<unset>', false, 'Persistent', 'age'] },
    {
      name: 'some',
      sent: {
        spec: {
          ...{ attachRequired: false, podInfoOnMount: true, storageCapacity: true, requiresRepublish: true },
          ...{ tokenRequests: [{ audience: 'x' }, { audience: 'y' }], volumeLifecycleModes: ['Persistent', 'Ephemeral'] },
        },
      },
      cells: [false, true, true, 'x,y', true, 'Persistent,Ephemeral', 'age'],
    },
  ],
  'csinodes.storage.k8s.io/v1': [
    { name: 'none', sent: { spec: { drivers: [] } }, cells: [0, 'age'] },
    {
      name: 'some',
      sent: { spec: { drivers: ['x.io', 'y.io'].map((name) => ({ name, nodeID: 'n', topologyKeys: [] })) } },
      cells: [2, 'age'],
    },
  ],
  'csistoragecapacities.storage.k8s.io/v1': [
    { name: 'some', sent: { storageClassName: 'x', capacity: '1024Mi' }, cells: ['time'] },
  ],
  'volumeattachments.storage.k8s.io/v1': [
    {
      name: 'new',
      sent: { spec: { attacher: 'x.io', nodeName: 'n', source: { persistentVolumeName: 'v' } } },
      cells: ['x.io', 'v', 'n', false, 'age'],
    },
    {
      name: 'some',
      sent: { spec: { attacher: 'x.io', nodeName: 'n', source: { persistentVolumeName: 'v' } } },
      status: { attached: true },
      cells: ['x.io', 'v', 'n', true, 'age'],
    },
  ],
  'volumeattributesclasses.storage.k8s.io/v1': [
    { name: 'some', sent: { driverName: 'x.io', parameters: { a: 'b' } }, cells: ['x.io', 'age'] },
  ],
};

const TARGET = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, maxReplicas: 9 };
const resource = (name: string, target: object): object => ({ type: 'Resource', resource: { name, target } });
const SHARE = { type: 'Utilization', averageUtilization: 50 };
const external = (target: object): object => ({ type: 'External', external: { metric: { name: 'x' }, target } });
const inPods = { metric: { name: 'p' }, target: { type: 'AverageValue', averageValue: '1500m' } };
const inObject = { metric: { name: 'o' }, describedObject: { apiVersion: 'v1', kind: 'Service', name: 's' } };
const inContainer = { name: 'cpu', container: 'a', target: SHARE };
const scaled = (...currentMetrics: readonly object[]): object => ({ currentReplicas: 2, desiredReplicas: 2, currentMetrics });
const REFERENCE = 'Deployment/web';

const SCALERS: Readonly<Record<string, readonly State[]>> = {
  'horizontalpodautoscalers.autoscaling/v1': [
    {
      name: 'older',
      sent: { spec: { ...TARGET, minReplicas: 2, targetCPUUtilizationPercentage: 60 } },
      status: { currentReplicas: 3, desiredReplicas: 3, currentCPUUtilizationPercentage: 70 },
      cells: [REFERENCE, 'cpu: 70%/60%', '2', 9, 3, 'age'],
    },
    { name: 'older-new', sent: { spec: TARGET }, cells: [REFERENCE, 'cpu: <unknown>/80%', '1', 9, 0, 'age'] },
  ],
  'horizontalpodautoscalers.autoscaling/v2': [
    { name: 'new', sent: { spec: TARGET }, cells: [REFERENCE, 'cpu: <unknown>/80%', '1', 9, 0, 'age'] },
    {
      name: 'resources',
      sent: {
        spec: { ...TARGET, metrics: [resource('cpu', SHARE), resource('memory', { type: 'AverageValue', averageValue: '1Gi' })] },
      },
      status: scaled(
        { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 33, averageValue: '1' } } },
        { type: 'Resource', resource: { name: 'memory', current: { averageValue: '512Mi' } } },
      ),
      cells: [REFERENCE, 'cpu: 33%/50%, memory: 512Mi/1Gi', '1', 9, 2, 'age'],
    },
    {
      name: 'external',
      sent: {
        spec: {
          ...TARGET,
          metrics: [
            external({ type: 'Value', value: '5' }),
            external({ type: 'AverageValue', averageValue: '7' }),
            { type: 'Pods', pods: inPods },
          ],
        },
      },
      status: scaled({ type: 'External', external: { metric: { name: 'x' }, current: { value: '4' } } }),
      cells: [REFERENCE, '4/5, <unknown>/7 (avg) + 1 more...', '1', 9, 2, 'age'],
    },
    {
      name: 'others',
      sent: {
        spec: {
          ...TARGET,
          metrics: [
            { type: 'Pods', pods: inPods },
            { type: 'ContainerResource', containerResource: inContainer },
          ],
        },
      },
      status: scaled({ type: 'Pods', pods: { metric: { name: 'p' }, current: { averageValue: '2' } } }),
      cells: [REFERENCE, '2/1500m, cpu: <unknown>/50%', '1', 9, 2, 'age'],
    },
    {
      name: 'objects',
      sent: {
        spec: {
          ...TARGET,
          metrics: [
            { type: 'Object', object: { ...inObject, target: { type: 'Value', value: '5k' } } },
            { type: 'Object', object: { ...inObject, target: { type: 'AverageValue', averageValue: '1' } } },
          ],
        },
      },
      status: scaled(
        { type: 'Object', object: { ...inObject, current: { value: '3k' } } },
        { type: 'Object', object: { ...inObject, current: { value: '1', averageValue: '2' } } },
      ),
      cells: [REFERENCE, '3k/5k, 2/1 (avg)', '1', 9, 2, 'age'],
    },
  ],
};

const ROLE_REF = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' };
const RULES = { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] };
const apiGroup = 'rbac.authorization.k8s.io';
const SUBJECTS = [
  { apiGroup, kind: 'User', name: 'ann' },
  { apiGroup, kind: 'Group', name: 'ops' },
  { kind: 'ServiceAccount', namespace: 'default', name: 'x' },
  { apiGroup, kind: 'User', name: 'bob' },
];
const BINDINGS: readonly State[] = [
  { name: 'none', sent: { roleRef: ROLE_REF }, cells: ['ClusterRole/admin', 'age', '', '', ''] },
  {
    name: 'some',
    sent: { roleRef: ROLE_REF, subjects: SUBJECTS },
    cells: ['ClusterRole/admin', 'age', 'ann, bob', 'ops', 'default/x'],
  },
];
// Garbage collectors ask nobody about it.
const CONTROLLED = { apiVersion: 'x.io/v1', kind: 'StatefulSet', name: 'web', uid: 'u' };
const SYSTEM = {
  ...{ machineID: '', systemUUID: '', bootID: '', kubeProxyVersion: '', operatingSystem: 'linux', architecture: 'arm64' },
  ...{ kubeletVersion: 'v1.37.2', osImage: 'Linux 1', kernelVersion: '6.1', containerRuntimeVersion: 'containerd://2' },
};
const QUOTA = { hard: { pods: '4', 'limits.cpu': '2', 'requests.cpu': '1000m' } };

const OTHERS: Readonly<Record<string, readonly State[]>> = {
  'nodes/v1': [
    {
      name: 'new',
      sent: { spec: {} },
      cells: ['Unknown', '<none>', 'age', '', '<none>', '<none>', '<unknown>', '<unknown>', '<unknown>'],
    },
    {
      name: 'ready',
      metadata: {
        labels: { 'node-role.kubernetes.io/worker': '', 'node-role.kubernetes.io/control-plane': '', 'kubernetes.io/role': 'x' },
      },
      sent: { spec: {} },
      status: {
        ...{ conditions: [is('Ready')], nodeInfo: SYSTEM },
        addresses: [
          { type: 'Hostname', address: 'h' },
          { type: 'ExternalIP', address: FOUR },
          { type: 'InternalIP', address: ONE },
        ],
      },
      cells: ['Ready', 'control-plane,worker,x', 'age', 'v1.37.2', ONE, FOUR, 'Linux 1', '6.1 (arm64)', 'containerd://2'],
    },
    {
      name: 'unready',
      sent: { spec: { unschedulable: true } },
      status: { conditions: [is('Ready', 'False')] },
      cells: ['NotReady,SchedulingDisabled', '<none>', 'age', '', '<none>', '<none>', '<unknown>', '<unknown>', '<unknown>'],
    },
  ],
  'resourcequotas/v1': [
    { name: 'new', sent: { spec: QUOTA }, cells: ['', '', 'age'] },
    {
      name: 'some',
      sent: { spec: QUOTA },
      status: { ...QUOTA, used: { pods: '1' } },
      cells: ['pods: 1/4, requests.cpu: 0/1', 'limits.cpu: 0/2', 'age'],
    },
  ],
  'controllerrevisions.apps/v1': [
    { name: 'none', sent: { revision: 1, data: {} }, cells: ['<none>', 1, 'age'] },
    {
      name: 'some',
      metadata: { ownerReferences: [{ ...CONTROLLED, controller: true }] },
      sent: { revision: 7, data: {} },
      cells: ['statefulset.x.io/web', 7, 'age'],
    },
  ],
  'poddisruptionbudgets.policy/v1': [
    { name: 'none', sent: { spec: { selector: SELECTOR } }, cells: ['N/A', 'N/A', 0, 'age'] },
    {
      name: 'least',
      sent: { spec: { selector: SELECTOR, minAvailable: '50%' } },
      status: { disruptionsAllowed: 2, currentHealthy: 4, desiredHealthy: 2, expectedPods: 4 },
      cells: ['50%', 'N/A', 2, 'age'],
    },
    { name: 'most', sent: { spec: { selector: SELECTOR, maxUnavailable: 1 } }, cells: ['N/A', '1', 0, 'age'] },
  ],
  'priorityclasses.scheduling.k8s.io/v1': [
    { name: 'some', sent: { value: 5 }, cells: [5, false, 'age', 'PreemptLowerPriority'] },
    { name: 'none', sent: { value: 0, preemptionPolicy: 'Never' }, cells: [0, false, 'age', 'Never'] },
  ],
  'runtimeclasses.node.k8s.io/v1': [{ name: 'some', sent: { handler: 'runc' }, cells: ['runc', 'age'] }],
  'limitranges/v1': [{ name: 'some', sent: { spec: { limits: [] } }, cells: ['time'] }],
  'roles.rbac.authorization.k8s.io/v1': [{ name: 'some', sent: RULES, cells: ['time'] }],
  'clusterroles.rbac.authorization.k8s.io/v1': [{ name: 'some', sent: RULES, cells: ['time'] }],
  'rolebindings.rbac.authorization.k8s.io/v1': BINDINGS,
  'clusterrolebindings.rbac.authorization.k8s.io/v1': BINDINGS,
};

/** The states, by names such as `pods/v1`. */
export const STATES: Readonly<Record<string, readonly State[]>> = {
  'pods/v1': PODS,
  ...{ ...WORKLOADS, ...JOBS, ...NETWORK, ...VOLUMES, ...SCALERS, ...OTHERS },
};

/** The name of an object as its own column shows it. */
export const NAMES_SHOWN: Readonly<Record<string, string>> = {
  'ingressclasses.networking.k8s.io/v1/default': 'default (default)',
  'storageclasses.storage.k8s.io/v1/some': 'some (default)',
};

type Json = Readonly<Record<string, unknown>>;
type Send = (method: string, path: string, body?: object, type?: string) => Promise<unknown>;
interface Kind {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced?: boolean | undefined;
}

/** The path of the objects of a kind. */
export function pathOf({ group, version, plural, namespaced }: Kind): string {
  return `${group ? `/apis/${group}` : '/api'}/${version}${namespaced ? '/namespaces/default' : ''}/${plural}`;
}

/** Brings an object into a state. */
export async function bring(kind: Kind, { name, metadata, sent, status, isDeleted }: State, send: Send): Promise<void> {
  const path = pathOf(kind);
  const apiVersion = `${kind.group ? `${kind.group}/` : ''}${kind.version}`;
  await send('POST', path, { apiVersion, kind: kind.kind, metadata: { name, ...metadata }, ...sent });
  if (status) await send('PATCH', `${path}/${name}/status`, { status }, 'application/merge-patch+json');
  if (isDeleted) await send('DELETE', `${path}/${name}?gracePeriodSeconds=0`);
}

/** A table's columns and rows, without what depends on the time and on who describes it. */
export function readTable(table: Json): { columns: readonly object[]; rows: ReadonlyMap<unknown, readonly unknown[]> } {
  const definitions = table.columnDefinitions as readonly (Json & { readonly name: string })[];
  const rows = (table.rows as readonly { cells: readonly unknown[]; object: { metadata: Json } }[]).map(({ cells, object }) => {
    // Of IP addresses, upstream has a cell more than columns.
    const shown = cells.slice(0, definitions.length).map((cell, at) => timeless(definitions[at]?.name, cell));
    return [object.metadata.name, shown] as const;
  });
  const columns = definitions.map(({ name, type, format, priority }) => ({ name, type, format, priority }));
  return { columns, rows: new Map(rows) };
}

function timeless(column: string | undefined, cell: unknown): unknown {
  if (column === 'Age') return /^\d+[sm](\d+s)?$/.test(String(cell)) ? 'age' : cell;
  return column === 'Created At' && /^20\d\d-.*Z$/.test(String(cell)) ? 'time' : cell;
}
