/**
 * The fields of a CustomResourceDefinition, for its bodies alone: what is sent in protobuf, as the typed client of apiextensions does,
 * and what JSON may contain. Answers are JSON, which that client accepts, too. Upstream: `generated.proto` of `apiextensions/v1`.
 *
 * A schema contains schemas, and three of its members are one thing or another in JSON, for which protobuf has a message each.
 */
import { isRecord } from '../../watch/errors.ts';
import { OBJECT_META } from './object-meta.ts';
import { type Row, type Shape, shape } from './shape.ts';

type Rows = Readonly<Record<string, readonly [number: number, type: Row[1], form?: Row[2]]>>;

/** A table without descriptions. */
const message = (rows: Rows): Shape =>
  shape(
    '',
    Object.fromEntries(Object.entries(rows).map(([name, [number, type, form = '']]) => [name, [number, type, form, '']])),
  );

/** A message that stands for a member of one type or another. */
const either = (rows: Rows, fromMessage: Shape['fromMessage'], memberOf: Shape['memberOf']): Shape => ({
  ...message(rows),
  ...{ fromMessage, memberOf },
});

/** A schema, which its own rows name. */
const SCHEMA: Shape = { description: '', fields: [], byNumber: new Map() };
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
  message({
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
    ...{ definitions: [34, SCHEMA, '{}'], externalDocs: [35, message({ description: [1, 'string'], url: [2, 'string'] }), '?'] },
    ...{ example: [36, 'json', '?'], nullable: [37, 'bool'], 'x-kubernetes-preserve-unknown-fields': [38, 'bool', '?'] },
    ...{ 'x-kubernetes-embedded-resource': [39, 'bool'], 'x-kubernetes-int-or-string': [40, 'bool'] },
    ...{ 'x-kubernetes-list-map-keys': [41, 'string', '[]'], 'x-kubernetes-list-type': [42, 'string', '?'] },
    'x-kubernetes-map-type': [43, 'string', '?'],
    'x-kubernetes-validations': [
      44,
      message({
        ...{ rule: [1, 'string', '!'], message: [2, 'string'], messageExpression: [3, 'string'], reason: [4, 'string', '?'] },
        ...{ fieldPath: [5, 'string'], optionalOldSelf: [6, 'bool', '?'] },
      }),
      '[]',
    ],
  }),
);

const NAMES: Shape = message({
  ...{ plural: [1, 'string', '!'], singular: [2, 'string'], shortNames: [3, 'string', '[]'], kind: [4, 'string', '!'] },
  ...{ listKind: [5, 'string'], categories: [6, 'string', '[]'] },
});
const SCALE: Shape = message({
  ...{ specReplicasPath: [1, 'string', '!'], statusReplicasPath: [2, 'string', '!'], labelSelectorPath: [3, 'string', '?'] },
});
const VERSION: Shape = message({
  ...{ name: [1, 'string', '!'], served: [2, 'bool', '!'], storage: [3, 'bool', '!'] },
  ...{ deprecated: [7, 'bool'], deprecationWarning: [8, 'string', '?'] },
  schema: [4, message({ openAPIV3Schema: [1, SCHEMA, '?'] }), '?'],
  subresources: [5, message({ status: [1, message({}), '?'], scale: [2, SCALE, '?'] }), '?'],
  additionalPrinterColumns: [
    6,
    message({
      ...{ name: [1, 'string', '!'], type: [2, 'string', '!'], format: [3, 'string'], description: [4, 'string'] },
      ...{ priority: [5, 'int32'], jsonPath: [6, 'string', '!'] },
    }),
    '[]',
  ],
  selectableFields: [9, message({ jsonPath: [1, 'string', '!'] }), '[]'],
});
const SERVICE: Shape = message({
  namespace: [1, 'string', '!'],
  name: [2, 'string', '!'],
  path: [3, 'string', '?'],
  port: [4, 'int32', '?'],
});
const WEBHOOK: Shape = message({
  clientConfig: [2, message({ service: [1, SERVICE, '?'], caBundle: [2, 'bytes'], url: [3, 'string', '?'] }), '?'],
  conversionReviewVersions: [3, 'string', '[]'],
});
const CONDITION: Shape = message({
  ...{ type: [1, 'string', '!'], status: [2, 'string', '!'], lastTransitionTime: [3, 'time'], reason: [4, 'string'] },
  ...{ message: [5, 'string'], observedGeneration: [6, 'int64'] },
});

/** The whole definition. */
export const CRD_MESSAGE: Shape = message({
  metadata: [1, OBJECT_META],
  spec: [
    2,
    message({
      ...{ group: [1, 'string', '!'], names: [3, NAMES, '!'], scope: [4, 'string', '!'], versions: [7, VERSION, '[]'] },
      conversion: [9, message({ strategy: [1, 'string', '!'], webhook: [2, WEBHOOK, '?'] }), '?'],
      preserveUnknownFields: [10, 'bool'],
    }),
  ],
  status: [
    3,
    message({
      ...{ conditions: [1, CONDITION, '[]'], acceptedNames: [2, NAMES, '!'], storedVersions: [3, 'string', '[]'] },
      observedGeneration: [4, 'int64'],
    }),
  ],
});
