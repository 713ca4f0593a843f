/**
 * The fields of the built-in kinds. Upstream: `types.go` and `generated.proto` of `meta/v1`, `core/v1`, `events/v1`,
 * `coordination/v1`, `authorization/v1` and `authentication/v1`.
 */
import { put } from '../../storage/json.ts';
import { isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { JsonSchema } from '../definition.ts';
import { CRD_SCHEMA } from '../documents/crd-schema.ts';
import { toBase64 } from './base64.ts';
import { CRD_MESSAGE } from './crd-message.ts';
import { OBJECT_META } from './object-meta.ts';
import { byKey, REQUIRED, type Shape, shape, toSchema, typing } from './shape.ts';

const metadata = [1, OBJECT_META, '', "Standard object's metadata."] as const;

export const LIST_META: Shape = shape('Metadata of a list.', {
  selfLink: [1, 'string', '', 'Deprecated.'],
  resourceVersion: [2, 'string', '', 'The version of the list.'],
  continue: [3, 'string', '', 'Where the list continues.'],
  remainingItemCount: [4, 'int64', '?', 'How many objects come after this part.'],
});

/** The options of a deletion, of any kind. */
export const DELETE_OPTIONS: Shape = shape('Options of a deletion.', {
  gracePeriodSeconds: [1, 'int64', '?', 'How long it may take.'],
  preconditions: [
    2,
    shape('What must be.', { uid: [1, 'string', '?', 'The UID.'], resourceVersion: [2, 'string', '?', 'The version.'] }),
    '?',
    'What must be.',
  ],
  orphanDependents: [3, 'bool', '?', 'Whether dependents stay. Deprecated.'],
  propagationPolicy: [4, 'string', '?', 'What happens to dependents.'],
  dryRun: [5, 'string', '[]', 'Check everything, and change nothing.'],
});

const CONFIG_MAP: Shape = shape('ConfigMap holds configuration data.', {
  metadata,
  data: [2, 'string', '{}', 'Data contains the configuration data. Keys are letters, digits, -, _ and a dot.'],
  binaryData: [3, 'bytes', '{}', 'BinaryData contains binary data in base64. A key must not be in Data as well.'],
  immutable: [4, 'bool', '?', 'If true, the data cannot be updated.'],
});

const SECRET: Shape = shape(
  'Secret holds secret data of a certain type.',
  {
    metadata,
    data: [2, 'bytes', '{}', 'Data contains the secret data in base64. Keys are letters, digits, -, _ and a dot.'],
    type: [3, 'string', '', 'What the data are for. Opaque if it is not given. Cannot be updated.'],
    stringData: [4, 'string', '{}', 'The same as text. Write-only: it is merged into data.'],
    immutable: [5, 'bool', '?', 'If true, the data cannot be updated.'],
  },
  mergeStrings,
);

/** Upstream: `SetDefaults_Secret` and `Convert_v1_Secret_To_core_Secret`. */
function* mergeStrings({ stringData, type = 'Opaque', ...secret }: Record<string, unknown>): Work<Record<string, unknown>> {
  const data: Record<string, unknown> = { ...(secret.data as object | undefined) };
  const texts = (stringData ?? {}) as Readonly<Record<string, string>>;
  for (const [at, key] of Object.keys(texts).entries()) {
    if (at % STRIDE === STRIDE - 1) yield;
    put(data, key, yield* toBase64(utf8.encode(texts[key] as string)));
  }
  const { metadata: meta, immutable } = secret;
  return {
    metadata: meta,
    ...((secret.data !== undefined || stringData !== undefined) && { data }),
    type,
    ...(immutable !== undefined && { immutable }),
  };
}

const utf8 = new TextEncoder();

const OBJECT_REFERENCE: Shape = shape('ObjectReference says which object is meant.', {
  kind: [1, 'string', '', 'Kind of the referent.'],
  namespace: [2, 'string', '', 'Namespace of the referent.'],
  name: [3, 'string', '', 'Name of the referent.'],
  uid: [4, 'string', '', 'UID of the referent.'],
  apiVersion: [5, 'string', '', 'API version of the referent.'],
  resourceVersion: [6, 'string', '', 'Version of the referent.'],
  fieldPath: [7, 'string', '', 'A part of the referent, such as spec.containers{name}.'],
});

const SERVICE_ACCOUNT: Shape = shape('ServiceAccount is an identity for processes.', {
  metadata,
  secrets: [2, OBJECT_REFERENCE, '[]', 'Secrets that processes with this identity may use.', byKey('name')],
  imagePullSecrets: [
    3,
    shape('LocalObjectReference names an object of the same namespace.', { name: [1, 'string', '', 'Name of the referent.'] }),
    '[]',
    'Secrets for pulling images.',
  ],
  automountServiceAccountToken: [4, 'bool', '?', 'Whether processes with this identity get a token.'],
});

const CONDITION: Shape = shape('What is observed.', {
  type: [1, 'string', '!', 'What is observed.', REQUIRED],
  status: [2, 'string', '!', 'True, False or Unknown.', REQUIRED],
  lastTransitionTime: [4, 'time', '!', 'When the status changed.'],
  reason: [5, 'string', '', 'Why, in one word.'],
  message: [6, 'string', '', 'Why, in words.'],
});

const NAMESPACE: Shape = shape(
  'Namespace provides a scope for names.',
  {
    metadata,
    spec: [
      2,
      shape('The desired state.', { finalizers: [1, 'string', '[]', 'What must be done before it is removed.'] }),
      '',
      'The desired state.',
    ],
    status: [
      3,
      shape('The observed state.', {
        phase: [1, 'string', '', 'Active or Terminating.'],
        conditions: [2, CONDITION, '[]', 'What is observed while it is being removed.', byKey('type')],
      }),
      '',
      'The observed state.',
    ],
  },
  defaultNamespace,
);

/** Upstream: `SetDefaults_Namespace`, `SetDefaults_NamespaceStatus`. */
function defaultNamespace(namespace: Record<string, unknown>): Record<string, unknown> {
  const meta = namespace.metadata as { name?: string; labels?: object };
  const labels = meta.name && { labels: { ...meta.labels, [NAME_LABEL]: meta.name } };
  return { ...namespace, metadata: { ...meta, ...labels }, status: { phase: 'Active', ...(namespace.status as object) } };
}

/** The label by which selectors know the name of a namespace. */
export const NAME_LABEL = 'kubernetes.io/metadata.name';

const LEASE: Shape = shape('Lease says who holds a role, and until when others may rely on that.', {
  metadata,
  spec: [
    2,
    shape('Who holds it, and since when.', {
      holderIdentity: [1, 'string', '?', 'The current holder.'],
      leaseDurationSeconds: [2, 'int32', '?', 'How long others wait after the last renewal before they take it.'],
      acquireTime: [3, 'microTime', '?', 'When the current holder took it.'],
      renewTime: [4, 'microTime', '?', 'When the current holder last renewed it.'],
      leaseTransitions: [5, 'int32', '?', 'How often the holder has changed.'],
      strategy: [6, 'string', '?', 'How the holder is chosen, if another program coordinates that.'],
      preferredHolder: [7, 'string', '?', 'Who is to hold it next, if another program coordinates that.'],
    }),
    '',
    'Who holds it, and since when.',
  ],
});

const EVENT_SOURCE: Shape = shape('EventSource says who reports.', {
  component: [1, 'string', '', 'The component.'],
  host: [2, 'string', '', 'Its node.'],
});

const seriesOf = (form: '' | '!'): Shape =>
  shape('EventSeries says how often, and until when, an event has happened.', {
    count: [1, 'int32', form, 'How often.'],
    lastObservedTime: [2, 'microTime', '!', 'When the last time was.'],
  });

const CORE_EVENT: Shape = shape('Event is a report of something that has happened to an object. It is kept for a while.', {
  metadata,
  involvedObject: [2, OBJECT_REFERENCE, '', 'What it is about.', REQUIRED],
  reason: [3, 'string', '', 'Why, in one word.'],
  message: [4, 'string', '', 'Why, in words.'],
  source: [5, EVENT_SOURCE, '', 'Who reports it.'],
  firstTimestamp: [6, 'time', '!', 'When it happened first.'],
  lastTimestamp: [7, 'time', '!', 'When it happened last.'],
  count: [8, 'int32', '', 'How often it has happened.'],
  type: [9, 'string', '', 'Normal or Warning.'],
  eventTime: [10, 'microTime', '!', 'When it happened first, in new reports.'],
  series: [11, seriesOf(''), '?', 'How often it has happened, in new reports.'],
  action: [12, 'string', '', 'What was done.'],
  related: [13, OBJECT_REFERENCE, '?', 'Another object that it is about.'],
  reportingComponent: [14, 'string', '!', 'The controller that reports it.'],
  reportingInstance: [15, 'string', '!', 'Its instance.'],
});

const EVENT: Shape = shape('Event is a report of something that has happened to an object. It is kept for a while.', {
  metadata,
  eventTime: [2, 'microTime', '!', 'When it happened first.', REQUIRED],
  series: [3, seriesOf('!'), '?', 'How often it has happened.'],
  reportingController: [4, 'string', '', 'The controller that reports it.'],
  reportingInstance: [5, 'string', '', 'Its instance.'],
  action: [6, 'string', '', 'What was done.'],
  reason: [7, 'string', '', 'Why, in one word.'],
  regarding: [8, OBJECT_REFERENCE, '', 'What it is about.'],
  related: [9, OBJECT_REFERENCE, '?', 'Another object that it is about.'],
  note: [10, 'string', '', 'Why, in words.'],
  type: [11, 'string', '', 'Normal or Warning.'],
  deprecatedSource: [12, EVENT_SOURCE, '', 'Who reports it, in old reports.'],
  deprecatedFirstTimestamp: [13, 'time', '!', 'When it happened first, in old reports.'],
  deprecatedLastTimestamp: [14, 'time', '!', 'When it happened last, in old reports.'],
  deprecatedCount: [15, 'int32', '', 'How often it has happened, in old reports.'],
});

const ACCESS_REVIEW: Shape = shape('SelfSubjectAccessReview asks whether the asker may do something.', {
  metadata,
  spec: [
    2,
    shape('What is asked.', {
      resourceAttributes: [
        1,
        shape('A request for a resource.', {
          namespace: [1, 'string', '', 'Empty: all, or none.'],
          verb: [2, 'string', '', 'Such as get, list or create.'],
          group: [3, 'string', '', 'The group.'],
          version: [4, 'string', '', 'The version.'],
          resource: [5, 'string', '', 'The plural name.'],
          subresource: [6, 'string', '', 'Such as status.'],
          name: [7, 'string', '', 'Empty: all.'],
        }),
        '?',
        'A request for a resource.',
      ],
      nonResourceAttributes: [
        2,
        shape('Another request.', { path: [1, 'string', '', 'The path.'], verb: [2, 'string', '', 'The method.'] }),
        '?',
        'Another request.',
      ],
    }),
    '',
    'What is asked.',
    REQUIRED,
  ],
  status: [
    3,
    shape('The answer.', {
      allowed: [1, 'bool', '!', 'Whether it is allowed.', REQUIRED],
      denied: [4, 'bool', '', 'Whether it is denied.'],
      reason: [2, 'string', '', 'Why.'],
      evaluationError: [3, 'string', '', 'What went wrong.'],
    }),
    '',
    'The answer.',
  ],
});

const RULES_REVIEW: Shape = shape('SelfSubjectRulesReview asks what the asker may do in a namespace.', {
  metadata,
  spec: [2, shape('What is asked.', { namespace: [1, 'string', '', 'The namespace.'] }), '', 'What is asked.', REQUIRED],
  status: [
    3,
    shape('The answer.', {
      resourceRules: [
        1,
        shape('What is allowed with resources.', {
          verbs: [1, 'string', '[]', 'The verbs.'],
          apiGroups: [2, 'string', '[]', 'The groups.'],
          resources: [3, 'string', '[]', 'The resources.'],
          resourceNames: [4, 'string', '[]', 'The names; empty: all.'],
        }),
        '[]',
        'What is allowed with resources.',
      ],
      nonResourceRules: [
        2,
        shape('What is allowed with paths.', {
          verbs: [1, 'string', '[]', 'The verbs.'],
          nonResourceURLs: [2, 'string', '[]', 'The paths.'],
        }),
        '[]',
        'What is allowed with paths.',
      ],
      incomplete: [3, 'bool', '!', 'Whether there may be more.'],
      evaluationError: [4, 'string', '', 'What went wrong.'],
    }),
    '',
    'The answer.',
  ],
});

const SUBJECT_REVIEW: Shape = shape('SelfSubjectReview asks who the asker is.', {
  metadata,
  status: [
    2,
    shape('The answer.', {
      userInfo: [
        1,
        shape('Who asks.', {
          username: [1, 'string', '', 'The name.'],
          uid: [2, 'string', '', 'The unique value.'],
          groups: [3, 'string', '[]', 'The groups.'],
        }),
        '',
        'Who asks.',
      ],
    }),
    '',
    'The answer.',
  ],
});

const SHAPES: Readonly<Record<string, Shape>> = {
  'v1/ConfigMap': CONFIG_MAP,
  'v1/Event': CORE_EVENT,
  'v1/Namespace': NAMESPACE,
  'v1/Secret': SECRET,
  'v1/ServiceAccount': SERVICE_ACCOUNT,
  'coordination.k8s.io/v1/Lease': LEASE,
  'events.k8s.io/v1/Event': EVENT,
  'authentication.k8s.io/v1/SelfSubjectReview': SUBJECT_REVIEW,
  'authorization.k8s.io/v1/SelfSubjectAccessReview': ACCESS_REVIEW,
  'authorization.k8s.io/v1/SelfSubjectRulesReview': RULES_REVIEW,
};

/** A kind, as a definition names it. */
export interface NamedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The fields of a built-in kind; undefined for any other. */
export function shapeOf({ group, version, kind }: NamedKind): Shape | undefined {
  const name = `${group === '' ? '' : `${group}/`}${version}/${kind}`;
  return Object.hasOwn(SHAPES, name) ? SHAPES[name] : undefined;
}

const isCrd = ({ group, kind }: NamedKind): boolean => group === 'apiextensions.k8s.io' && kind === 'CustomResourceDefinition';

/** The fields of what is sent as an object of a built-in kind. */
export const messageOf = (kind: NamedKind): Shape | undefined => shapeOf(kind) ?? (isCrd(kind) ? CRD_MESSAGE : undefined);

const schemas: Map<Shape, JsonSchema> = new Map();

/** The schema of a built-in kind: for people, for the names of fields and for patches. The server checks these kinds without it. */
export function builtInSchema(kind: NamedKind): JsonSchema | undefined {
  const of = shapeOf(kind);
  if (of === undefined) return isCrd(kind) ? CRD_SCHEMA : undefined;
  const known = schemas.get(of) ?? toSchema(of);
  schemas.set(of, known);
  return known;
}

/** What was sent as an object of a built-in kind, as its table has it. Anything else is left as it is. Throws 400. */
export function* typed(of: NamedKind & { readonly apiVersion: string }, sent: unknown): Work<unknown> {
  const fields = messageOf(of);
  if (fields === undefined || !isRecord(sent)) return sent;
  const { apiVersion = of.apiVersion, kind = of.kind } = sent;
  return apiVersion === of.apiVersion && kind === of.kind ? yield* typing(of.kind, fields, sent) : sent;
}
