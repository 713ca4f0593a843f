/**
 * The fields of the built-in kinds. Upstream: `types.go` and `generated.proto` of `meta/v1`, `core/v1`, `events/v1`,
 * `coordination/v1`, `authorization/v1`, `authentication/v1` and `apiextensions/v1`.
 */
import { apiVersionOf } from '../../cache/resource-client.ts';
import { put } from '../../storage/json.ts';
import { getOrMake, isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { JsonSchema } from '../definition.ts';
import { toBase64 } from './base64.ts';
import { byKey, either, OPEN_OBJECT, part, REQUIRED, type Row, SET, type Shape, shape, toSchema, typing } from './shape.ts';

export const OWNER_REFERENCE: Shape = shape('OwnerReference contains enough information to let you identify an owning object.', {
  apiVersion: [5, 'string', '!', 'API version of the referent.', REQUIRED],
  kind: [1, 'string', '!', 'Kind of the referent.', REQUIRED],
  name: [3, 'string', '!', 'Name of the referent.', REQUIRED],
  uid: [4, 'string', '!', 'UID of the referent.', REQUIRED],
  controller: [6, 'bool', '?', 'Whether the owner is the managing controller.'],
  blockOwnerDeletion: [7, 'bool', '?', 'Whether the owner cannot be deleted before this reference is removed.'],
});

export const MANAGED_FIELDS_ENTRY: Shape = shape('ManagedFieldsEntry says which fields one manager manages.', {
  manager: [1, 'string', '', 'Who.'],
  operation: [2, 'string', '', 'Apply or Update.'],
  apiVersion: [3, 'string', '', 'The version in which the fields are written.'],
  time: [4, 'time', '?', 'When.'],
  fieldsType: [6, 'string', '', 'The format of the fields.'],
  fieldsV1: [7, 'json', '?', 'The fields.'],
  subresource: [8, 'string', '', 'The subresource through which they were written.'],
});

export const OBJECT_META: Shape = shape(
  'ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.',
  {
    name: [1, 'string', '', 'Name must be unique within a namespace. Cannot be updated.'],
    generateName: [2, 'string', '', 'A prefix by which the server makes a unique name if name is not given.'],
    namespace: [3, 'string', '', 'Namespace defines the space within which each name must be unique. Cannot be updated.'],
    selfLink: [4, 'string', '', 'Deprecated: no longer populated.'],
    uid: [5, 'string', '', 'The unique value in time and space for this object. Read-only.'],
    resourceVersion: [6, 'string', '', 'The version of this object. Opaque: pass it back unmodified. Read-only.'],
    generation: [7, 'int64', '', 'A number that grows with the desired state. Read-only.'],
    creationTimestamp: [
      ...([8, 'time', ''] as const),
      'CreationTimestamp is a timestamp: when this object was created, by the clock of the server. Read-only.',
    ],
    deletionTimestamp: [9, 'time', '?', 'The time at which this object was asked to be deleted. Read-only.'],
    deletionGracePeriodSeconds: [10, 'int64', '?', 'Read-only.'],
    labels: [11, 'string', '{}', 'Map of string keys and values that can be used to organize and select objects.'],
    annotations: [
      ...([12, 'string', '{}'] as const),
      'Annotations is an unstructured key value map for metadata of any kind. They are not queryable.',
    ],
    ownerReferences: [
      ...([13, OWNER_REFERENCE, '[]', 'List of objects depended by this object.'] as const),
      { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['uid'], ...byKey('uid') },
    ],
    finalizers: [
      ...([14, 'string', '[]', 'Must be empty before the object is deleted from the registry.'] as const),
      { 'x-kubernetes-list-type': 'set', ...SET },
    ],
    managedFields: [17, MANAGED_FIELDS_ENTRY, '[]', 'Who manages which fields.'],
  },
);

const metadata = [1, OBJECT_META, '', "Standard object's metadata."] as const;

export const LIST_META: Shape = shape('ListMeta describes metadata that lists have.', {
  selfLink: [1, 'string', '', 'Deprecated.'],
  resourceVersion: [2, 'string', '', 'The version at which the list was made. Opaque.'],
  continue: [3, 'string', '', 'Set if there is more: pass it back for the next part of the list.'],
  remainingItemCount: [4, 'int64', '?', 'How many objects come after this part.'],
});

/** The options of a deletion, of any kind. */
export const DELETE_OPTIONS: Shape = shape('Options of a deletion.', {
  gracePeriodSeconds: [1, 'int64', '?', 'How long the deletion may take, in seconds.'],
  preconditions: part([2, '?'], 'What must be true of the object.', {
    uid: [1, 'string', '?', 'The UID.'],
    resourceVersion: [2, 'string', '?', 'The version.'],
  }),
  orphanDependents: [3, 'bool', '?', 'Whether to keep dependents. Deprecated.'],
  propagationPolicy: [4, 'string', '?', 'What happens to dependents.'],
  dryRun: [5, 'string', '[]', 'Check everything, but change nothing.'],
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

export const OBJECT_REFERENCE: Shape = {
  ...shape('ObjectReference says which object is meant.', {
    kind: [1, 'string', '', 'Kind of the referent.'],
    namespace: [2, 'string', '', 'Namespace of the referent.'],
    name: [3, 'string', '', 'Name of the referent.'],
    uid: [4, 'string', '', 'UID of the referent.'],
    apiVersion: [5, 'string', '', 'API version of the referent.'],
    resourceVersion: [6, 'string', '', 'Version of the referent.'],
    fieldPath: [7, 'string', '', 'A part of the referent, such as spec.containers{name}.'],
  }),
  isAtomic: true,
};

const SERVICE_ACCOUNT: Shape = shape('ServiceAccount is an identity for processes.', {
  metadata,
  secrets: [2, OBJECT_REFERENCE, '[]', 'Secrets that processes with this identity may use.', byKey('name')],
  imagePullSecrets: part([3, '[]'], 'Secrets for pulling images.', { name: [1, 'string', '', 'Name of the referent.'] }),
  automountServiceAccountToken: [4, 'bool', '?', 'Whether processes with this identity get a token.'],
});

const CONDITION: Shape = shape('An observed condition.', {
  type: [1, 'string', '!', 'The type of the condition.', REQUIRED],
  status: [2, 'string', '!', 'True, False or Unknown.', REQUIRED],
  lastTransitionTime: [4, 'time', '!', 'When the status changed.'],
  reason: [5, 'string', '', 'Why, in one word.'],
  message: [6, 'string', '', 'Why, in words.'],
});

const NAMESPACE: Shape = shape(
  'Namespace provides a scope for names.',
  {
    metadata,
    spec: part([2], 'The desired state.', { finalizers: [1, 'string', '[]', 'What must be done before it is removed.'] }),
    status: part([3], 'The observed state.', {
      phase: [1, 'string', '', 'Active or Terminating.'],
      conditions: [2, CONDITION, '[]', 'Conditions that are observed while it is being removed.', byKey('type')],
    }),
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
  spec: part([2], 'Who holds it, and since when.', {
    holderIdentity: [1, 'string', '?', 'The current holder.'],
    leaseDurationSeconds: [2, 'int32', '?', 'How long others wait after the last renewal before they take it.'],
    acquireTime: [3, 'microTime', '?', 'When the current holder took it.'],
    renewTime: [4, 'microTime', '?', 'When the current holder last renewed it.'],
    leaseTransitions: [5, 'int32', '?', 'How often the holder has changed.'],
    strategy: [6, 'string', '?', 'How the holder is chosen, if another program coordinates that.'],
    preferredHolder: [7, 'string', '?', 'Who should hold it next, if another program coordinates that.'],
  }),
});

const EVENT_SOURCE: Shape = shape('EventSource says who reports.', {
  component: [1, 'string', '', 'The component.'],
  host: [2, 'string', '', 'Its node.'],
});

const seriesOf = (form: '' | '!'): Shape =>
  shape('EventSeries says how often, and until when, an event has happened.', {
    count: [1, 'int32', form, 'How often.'],
    lastObservedTime: [2, 'microTime', '!', 'When it happened last.'],
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

/** The selector of a list or watch. `authorize` is asked about the whole list or watch. */
const selected = (number: number, description: string): Row =>
  part([number, '?'], description, {
    rawSelector: [1, 'string', '', 'As in the URL.'],
    requirements: part([2, '[]'], 'All of these.', {
      key: [1, 'string', '!', 'The field, or the label.', REQUIRED],
      operator: [2, 'string', '!', 'In, NotIn, Exists or DoesNotExist.', REQUIRED],
      values: [3, 'string', '[]', 'Its values.'],
    }),
  });

/** Members of the `extra` of a user: lists of texts, which are null in JSON if they are empty. */
const EXTRA_VALUE: Shape = {
  ...either(
    { items: [1, 'string', '[]!'] },
    ({ items = [] }) => items,
    () => 'items',
  ),
  schema: { type: 'array', items: { type: 'string' } },
};

const USER_INFO: Shape = shape('A user.', {
  username: [1, 'string', '', 'The name.'],
  uid: [2, 'string', '', 'The unique value.'],
  groups: [3, 'string', '[]', 'The groups.'],
  extra: [4, EXTRA_VALUE, '{}', 'What else is known.'],
});

/** The three reviews of what somebody may do. */
const accessReview = (description: string, who: Readonly<Record<string, Row>> = {}): Shape =>
  shape(description, {
    metadata,
    spec: part([2, '', REQUIRED], 'What is asked.', {
      resourceAttributes: part([1, '?'], 'A request for a resource.', {
        namespace: [1, 'string', '', 'Empty: all, or none.'],
        verb: [2, 'string', '', 'Such as get, list or create.'],
        group: [3, 'string', '', 'The group.'],
        version: [4, 'string', '', 'The version.'],
        resource: [5, 'string', '', 'The plural name.'],
        subresource: [6, 'string', '', 'Such as status.'],
        name: [7, 'string', '', 'Empty: all.'],
        fieldSelector: selected(8, 'The field selector.'),
        labelSelector: selected(9, 'The label selector.'),
      }),
      nonResourceAttributes: part([2, '?'], 'Another request.', {
        path: [1, 'string', '', 'The path.'],
        verb: [2, 'string', '', 'The method.'],
      }),
      ...who,
    }),
    status: part([3], 'The answer.', {
      allowed: [1, 'bool', '!', 'Whether it is allowed.', REQUIRED],
      denied: [4, 'bool', '', 'Whether it is denied.'],
      reason: [2, 'string', '', 'Why.'],
      evaluationError: [3, 'string', '', 'What went wrong.'],
    }),
  });

const RULES_REVIEW: Shape = shape('SelfSubjectRulesReview asks what the asker may do in a namespace.', {
  metadata,
  spec: part([2, '', REQUIRED], 'What is asked.', { namespace: [1, 'string', '', 'The namespace.'] }),
  status: part([3], 'The answer.', {
    resourceRules: part([1, '[]!'], 'What is allowed with resources.', {
      verbs: [1, 'string', '[]!', 'The verbs.'],
      apiGroups: [2, 'string', '[]', 'The groups.'],
      resources: [3, 'string', '[]', 'The resources.'],
      resourceNames: [4, 'string', '[]', 'The names; empty: all.'],
    }),
    nonResourceRules: part([2, '[]!'], 'What is allowed with paths.', {
      verbs: [1, 'string', '[]!', 'The verbs.'],
      nonResourceURLs: [2, 'string', '[]', 'The paths.'],
    }),
    incomplete: [3, 'bool', '!', 'Whether there may be more.'],
    evaluationError: [4, 'string', '', 'What went wrong.'],
  }),
});

const SUBJECT_REVIEW: Shape = shape('SelfSubjectReview asks who the asker is.', {
  metadata,
  status: part([2], 'The answer.', { userInfo: [1, USER_INFO, '', 'Who asks.'] }),
});

const TOKEN_REVIEW: Shape = shape('TokenReview asks who has a token.', {
  metadata,
  spec: part([2, '', REQUIRED], 'What is asked.', {
    token: [1, 'string', '', 'The token.'],
    audiences: [2, 'string', '[]', 'For whom it must be meant.'],
  }),
  status: part([3], 'The answer.', {
    authenticated: [1, 'bool', '', 'Whether somebody has it.'],
    user: [2, USER_INFO, '', 'Who has it.'],
    audiences: [4, 'string', '[]', 'For whom it is meant, of those that were asked for.'],
    error: [3, 'string', '', 'Why nobody is known to have it.'],
  }),
});

/** Who is asked about. */
const SUBJECT: Readonly<Record<string, Row>> = {
  user: [3, 'string', '', 'Their name.'],
  groups: [4, 'string', '[]', 'Their groups.'],
  extra: [5, EXTRA_VALUE, '{}', 'What else is known of them.'],
  uid: [6, 'string', '', 'Their unique value.'],
};

/**
 * The fields of a CustomResourceDefinition: what is sent in protobuf, as by the typed client of apiextensions, what JSON may
 * contain, and what is stored of a definition. Answers are JSON, which that client accepts, too.
 *
 * A schema contains schemas, so its rows refer to itself, and three of its members may have different types in JSON, for each of
 * which protobuf has a message.
 */
const SCHEMA: Shape = { ...shape('A structural schema.', {}), schema: OPEN_OBJECT };
const SCHEMA_OR_LIST: Shape = either(
  { schema: [1, SCHEMA, '?'], list: [2, SCHEMA, '[]'] },
  ({ schema, list = [] }) => schema ?? list,
  (value) => (isRecord(value) ? 'schema' : Array.isArray(value) ? 'list' : undefined),
);
const SCHEMA_OR_BOOL: Shape = either(
  { allows: [1, 'bool', '!'], schema: [2, SCHEMA, '?'] },
  ({ schema, allows }) => schema ?? allows,
  (value) => (isRecord(value) ? 'schema' : 'allows'),
);
const SCHEMA_OR_NAMES: Shape = either(
  { schema: [1, SCHEMA, '?'], names: [2, 'string', '[]'] },
  ({ schema, names = [] }) => schema ?? names,
  (value) => (isRecord(value) ? 'schema' : Array.isArray(value) ? 'names' : undefined),
);
Object.assign(
  SCHEMA,
  shape('A structural schema.', {
    ...{ id: [1, 'string'], $schema: [2, 'string'], $ref: [3, 'string', '?'], description: [4, 'string'] },
    ...{ type: [5, 'string'], format: [6, 'string'], title: [7, 'string'], default: [8, 'json', '?'] },
    ...{
      maximum: [9, 'double', '?'],
      exclusiveMaximum: [10, 'bool'],
      minimum: [11, 'double', '?'],
      exclusiveMinimum: [12, 'bool'],
    },
    ...{ maxLength: [13, 'int64', '?'], minLength: [14, 'int64', '?'], pattern: [15, 'string'], maxItems: [16, 'int64', '?'] },
    ...{ minItems: [17, 'int64', '?'], uniqueItems: [18, 'bool'], multipleOf: [19, 'double', '?'], enum: [20, 'json', '[]'] },
    ...{ maxProperties: [21, 'int64', '?'], minProperties: [22, 'int64', '?'], required: [23, 'string', '[]'] },
    ...{ items: [24, SCHEMA_OR_LIST, '?'], allOf: [25, SCHEMA, '[]'], oneOf: [26, SCHEMA, '[]'], anyOf: [27, SCHEMA, '[]'] },
    ...{ not: [28, SCHEMA, '?'], properties: [29, SCHEMA, '{}'], additionalProperties: [30, SCHEMA_OR_BOOL, '?'] },
    ...{
      patternProperties: [31, SCHEMA, '{}'],
      dependencies: [32, SCHEMA_OR_NAMES, '{}'],
      additionalItems: [33, SCHEMA_OR_BOOL, '?'],
    },
    ...{ definitions: [34, SCHEMA, '{}'], externalDocs: part([35, '?'], '', { description: [1, 'string'], url: [2, 'string'] }) },
    ...{ example: [36, 'json', '?'], nullable: [37, 'bool'], 'x-kubernetes-preserve-unknown-fields': [38, 'bool', '?'] },
    ...{ 'x-kubernetes-embedded-resource': [39, 'bool'], 'x-kubernetes-int-or-string': [40, 'bool'] },
    ...{ 'x-kubernetes-list-map-keys': [41, 'string', '[]'], 'x-kubernetes-list-type': [42, 'string', '?'] },
    'x-kubernetes-map-type': [43, 'string', '?'],
    'x-kubernetes-validations': part([44, '[]'], '', {
      ...{ rule: [1, 'string', '!'], message: [2, 'string'], messageExpression: [3, 'string'], reason: [4, 'string', '?'] },
      ...{ fieldPath: [5, 'string'], optionalOldSelf: [6, 'bool', '?'] },
    }),
  }),
);

const names = (number: number, form: '!', description: string): Row =>
  part([number, form], description, {
    plural: [1, 'string', '!', 'The name in URLs: that of the definition is PLURAL.GROUP.', REQUIRED],
    singular: [2, 'string', '', 'Default: the kind in lower case.'],
    shortNames: [3, 'string', '[]', 'What people type instead of the plural.'],
    kind: [4, 'string', '!', 'The kind of an object, in CamelCase.', REQUIRED],
    listKind: [5, 'string', '', 'The kind of a list. Default: the kind followed by List.'],
    categories: [6, 'string', '[]', 'Groups of resources that people ask for together, such as all.'],
  });

const COLUMNS: Row = part([6, '[]'], 'The columns after the name. Default: the age.', {
  name: [1, 'string', '!', 'Its heading.', REQUIRED],
  type: [2, 'string', '!', 'string, integer, number, boolean or date.', REQUIRED],
  format: [3, 'string', '', 'A hint for clients.'],
  description: [4, 'string', '', 'What it shows.'],
  priority: [5, 'int32', '', 'Columns above 0 are shown only with -o wide.'],
  jsonPath: [6, 'string', '!', 'Where in an object its value is.', REQUIRED],
});

const SUBRESOURCES: Row = part([5, '?'], 'The parts of an object that have paths of their own.', {
  status: part([1, '?'], 'Makes status a subresource.', {}),
  scale: part([2, '?'], 'Makes scale a subresource.', {
    specReplicasPath: [1, 'string', '!', 'The path of the desired number, below .spec.', REQUIRED],
    statusReplicasPath: [2, 'string', '!', 'The path of the actual number, below .status.', REQUIRED],
    labelSelectorPath: [3, 'string', '?', 'The path of the label selector of the instances.'],
  }),
});

const VERSIONS: Row = part([7, '[]', REQUIRED], 'Its versions.', {
  name: [1, 'string', '!', 'Such as v1 or v1beta1.', REQUIRED],
  served: [2, 'bool', '!', 'Whether it is served.', REQUIRED],
  storage: [3, 'bool', '!', 'Whether objects are stored in it: exactly one is.', REQUIRED],
  schema: part([4, '?'], 'What objects look like.', { openAPIV3Schema: [1, SCHEMA, '?', 'A structural schema.'] }),
  subresources: SUBRESOURCES,
  additionalPrinterColumns: COLUMNS,
  deprecated: [7, 'bool', '', 'Whether its clients are warned.'],
  deprecationWarning: [8, 'string', '?', 'The warning, instead of the usual one.'],
  selectableFields: part([9, '[]'], 'The fields that field selectors may use.', {
    jsonPath: [1, 'string', '!', 'Where it is.', REQUIRED],
  }),
});

/** Where a webhook is. */
export const CLIENT_CONFIG: Shape = shape('How to reach a webhook.', {
  service: part([1, '?'], 'A service.', {
    namespace: [1, 'string', '!', 'Its namespace.'],
    name: [2, 'string', '!', 'Its name.'],
    path: [3, 'string', '?', 'Its path.'],
    port: [4, 'int32', '?', 'Its port.'],
  }),
  caBundle: [2, 'bytes', '', 'The certificates that sign its certificate.'],
  url: [3, 'string', '?', 'A URL.'],
});

const CONVERSION: Row = part([9, '?'], 'How objects are converted between versions.', {
  strategy: [1, 'string', '!', 'None: only apiVersion changes.', REQUIRED],
  webhook: part([2, '?'], 'For the strategy Webhook.', {
    clientConfig: [2, CLIENT_CONFIG, '?', 'Where it is.'],
    conversionReviewVersions: [3, 'string', '[]', 'The versions of reviews that it supports.'],
  }),
});

const CRD: Shape = shape('CustomResourceDefinition defines a kind of objects that the server serves from then on.', {
  metadata,
  spec: part([2, '', REQUIRED], 'The kind, and how it is served.', {
    group: [1, 'string', '!', 'Its API group, such as example.com.', REQUIRED],
    names: names(3, '!', 'What it is called.'),
    scope: [4, 'string', '!', 'Namespaced or Cluster.', REQUIRED],
    versions: VERSIONS,
    conversion: CONVERSION,
    preserveUnknownFields: [10, 'bool', '', 'Must be false.'],
  }),
  status: part([3], 'The state in which it is served.', {
    conditions: part([1, '[]'], 'The observed conditions.', {
      type: [1, 'string', '!', 'NamesAccepted, Established, Terminating and others.', REQUIRED],
      status: [2, 'string', '!', 'True, False or Unknown.', REQUIRED],
      lastTransitionTime: [3, 'time', '', 'When the status changed.'],
      reason: [4, 'string', '', 'Why, in one word.'],
      message: [5, 'string', '', 'Why, in words.'],
      observedGeneration: [6, 'int64', '', 'The generation that was observed.'],
    }),
    acceptedNames: names(2, '!', 'The names that are served: no other definition of the group has them.'),
    storedVersions: [3, 'string', '[]', 'The versions in which objects may be stored.'],
    observedGeneration: [4, 'int64', '', 'The generation that was observed.'],
  }),
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
  'authentication.k8s.io/v1/TokenReview': TOKEN_REVIEW,
  'authorization.k8s.io/v1/LocalSubjectAccessReview': accessReview(
    'LocalSubjectAccessReview asks what somebody may do in a namespace.',
    SUBJECT,
  ),
  'authorization.k8s.io/v1/SelfSubjectAccessReview': accessReview(
    'SelfSubjectAccessReview asks whether the asker may do something.',
  ),
  'authorization.k8s.io/v1/SubjectAccessReview': accessReview(
    'SubjectAccessReview asks whether somebody may do something.',
    SUBJECT,
  ),
  'authorization.k8s.io/v1/SelfSubjectRulesReview': RULES_REVIEW,
};

/** A kind, as a definition names it. */
export interface NamedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly shape?: object | undefined;
}

/** The fields of a built-in kind, or those that its definition has; undefined for any other. */
export function shapeOf({ group, version, kind, shape }: NamedKind): Shape | undefined {
  if (shape !== undefined) return shape as Shape;
  const name = `${apiVersionOf({ group, version })}/${kind}`;
  return Object.hasOwn(SHAPES, name) ? SHAPES[name] : undefined;
}

const isCrd = ({ group, kind }: NamedKind): boolean => group === 'apiextensions.k8s.io' && kind === 'CustomResourceDefinition';

/** The fields of what is sent as an object of a built-in kind. */
export function messageOf(kind: NamedKind): Shape | undefined {
  const message = getOrMake(messages, kind, () => shapeOf(kind) ?? (isCrd(kind) ? CRD : 'none'));
  return message === 'none' ? undefined : message;
}

const messages: WeakMap<NamedKind, Shape | 'none'> = new WeakMap();

/** The schema of a definition, by which it is stored. */
export const CRD_SCHEMA: JsonSchema = schemaOfCrd();

function schemaOfCrd(): JsonSchema {
  const { properties, ...schema } = toSchema(CRD);
  const text = { type: 'string' };
  return { ...schema, properties: { apiVersion: text, kind: text, ...(properties as object), metadata: { type: 'object' } } };
}

/** The schema of a built-in kind: for people, for the names of fields and for patches. The server checks these kinds without it. */
export function builtInSchema(kind: NamedKind): JsonSchema | undefined {
  const of = shapeOf(kind);
  return of === undefined ? (isCrd(kind) ? CRD_SCHEMA : undefined) : toSchema(of);
}

/** Reads a sent object of a built-in kind according to its table. Objects of other kinds are left as they are. Throws 400. */
export function* typed(of: NamedKind & { readonly apiVersion: string }, sent: unknown): Work<unknown> {
  const fields = messageOf(of);
  if (fields === undefined || !isRecord(sent)) return sent;
  const { apiVersion = of.apiVersion, kind = of.kind } = sent;
  return apiVersion === of.apiVersion && kind === of.kind ? yield* typing([of.kind, of.version], fields, sent) : sent;
}
