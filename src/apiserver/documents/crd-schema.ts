/** The schema of CustomResourceDefinition: for `kubectl explain`, for unknown fields, and for what of a definition is stored. */
import type { JsonSchema } from '../definition.ts';

const OPEN = 'x-kubernetes-preserve-unknown-fields';
const text = (description: string): JsonSchema => ({ description, type: 'string' });
const flag = (description: string): JsonSchema => ({ description, type: 'boolean' });
const texts = (description: string): JsonSchema => ({ description, type: 'array', items: { type: 'string' } });
const object = (
  description: string,
  properties: Readonly<Record<string, JsonSchema>>,
  required?: readonly string[],
): JsonSchema => ({
  ...{ description, type: 'object', properties },
  ...(required && { required }),
});
const list = (description: string, items: JsonSchema): JsonSchema => ({ description, type: 'array', items });

const names = (description: string): JsonSchema =>
  object(
    description,
    {
      plural: text('The name in URLs: that of the definition is PLURAL.GROUP.'),
      singular: text('Default: the kind in lower case.'),
      shortNames: texts('What people type instead of the plural.'),
      kind: text('The kind of an object, in CamelCase.'),
      listKind: text('The kind of a list. Default: the kind followed by List.'),
      categories: texts('Groups of resources that people ask for at once, such as all.'),
    },
    ['plural', 'kind'],
  );

const COLUMN = object(
  'A column of tables.',
  {
    name: text('Its heading.'),
    type: text('string, integer, number, boolean or date.'),
    format: text('A hint for clients.'),
    description: text('What it shows.'),
    priority: { description: 'Columns above 0 are shown only with -o wide.', type: 'integer', format: 'int32' },
    jsonPath: text('Where in an object its value is.'),
  },
  ['name', 'type', 'jsonPath'],
);

const SUBRESOURCES = object('The parts of an object that have paths of their own.', {
  status: { description: 'Makes status a subresource.', type: 'object', [OPEN]: true },
  scale: object(
    'Makes scale a subresource.',
    {
      specReplicasPath: text('The path of the number that is wanted, below .spec.'),
      statusReplicasPath: text('The path of the number that there is, below .status.'),
      labelSelectorPath: text('The path of the label selector of the instances.'),
    },
    ['specReplicasPath', 'statusReplicasPath'],
  ),
});

const VERSION = object(
  'A version of the kind.',
  {
    name: text('Such as v1 or v1beta1.'),
    served: flag('Whether it is served.'),
    storage: flag('Whether objects are stored in it: exactly one is.'),
    deprecated: flag('Whether its clients are warned.'),
    deprecationWarning: text('The warning, instead of the usual one.'),
    schema: object('What objects look like.', {
      openAPIV3Schema: { description: 'A structural schema.', type: 'object', [OPEN]: true },
    }),
    subresources: SUBRESOURCES,
    additionalPrinterColumns: list('The columns after the name. Default: the age.', COLUMN),
    selectableFields: list(
      'The fields that field selectors may use.',
      object('A field.', { jsonPath: text('Where it is.') }, ['jsonPath']),
    ),
  },
  ['name', 'served', 'storage'],
);

const CONDITION = object(
  'What is observed.',
  {
    type: text('NamesAccepted, Established, Terminating and others.'),
    status: text('True, False or Unknown.'),
    lastTransitionTime: text('When the status changed.'),
    reason: text('Why, in one word.'),
    message: text('Why, in words.'),
    observedGeneration: { description: 'Of which generation.', type: 'integer', format: 'int64' },
  },
  ['type', 'status'],
);

/** Upstream: `apiextensions.k8s.io/v1`. */
export const CRD_SCHEMA: JsonSchema = object(
  'CustomResourceDefinition defines a kind of objects that the server serves from then on.',
  {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: object(
      'The kind, and how it is served.',
      {
        group: text('Its API group, such as example.com.'),
        names: names('What it is called.'),
        scope: text('Namespaced or Cluster.'),
        versions: list('Its versions.', VERSION),
        conversion: object(
          'How an object of one version becomes one of another.',
          {
            strategy: text('None: only apiVersion changes.'),
            webhook: { description: 'For the strategy Webhook.', type: 'object', [OPEN]: true },
          },
          ['strategy'],
        ),
        preserveUnknownFields: flag('Must be false.'),
      },
      ['group', 'names', 'scope', 'versions'],
    ),
    status: object('What the server has made of it.', {
      conditions: list('What is observed.', CONDITION),
      acceptedNames: names('The names that are served: no other definition of the group has them.'),
      storedVersions: texts('The versions in which objects may be stored.'),
    }),
  },
  ['spec'],
);
