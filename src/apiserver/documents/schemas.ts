/** The schemas of objects, as both versions of OpenAPI name them. */
import type { JsonSchema, ResourceDefinition } from '../definition.ts';
import { type Shape, toSchema } from '../kinds/shape.ts';
import {
  builtInSchema,
  LIST_META as LIST_META_TABLE,
  MANAGED_FIELDS_ENTRY as MANAGED_FIELDS_ENTRY_TABLE,
  OBJECT_META as OBJECT_META_TABLE,
  OWNER_REFERENCE as OWNER_REFERENCE_TABLE,
} from '../kinds/tables.ts';
import type { Rows } from '../subresources.ts';

export const text = (description: string): JsonSchema => ({ description, type: 'string' });

/** The part of a kind that appears in OpenAPI documents. */
export type DocumentedKind = Pick<
  ResourceDefinition,
  'group' | 'version' | 'kind' | 'schema' | 'shape' | 'preserveUnknownFields'
>;

/** The same for a resource. */
export type Documented = DocumentedKind &
  Pick<ResourceDefinition, 'plural' | 'listKind' | 'namespaced'> &
  Pick<Rows, 'subresources'> & {
    /** Changes whenever anything else here does. Default: a digest of it. */
    readonly stamp?: string | undefined;
  };

/** The name of a component: the group in reverse order, as upstream. Groups without a domain are treated as Kubernetes' own. */
export function componentName({ group, version, kind }: { group: string; version: string; kind: string }): string {
  const path = group.includes('.') ? group.split('.').reverse().join('.') : `io.k8s.api.${group || 'core'}`;
  return `${path}.${version}.${kind}`;
}

/** The extension by which kubectl finds the schema of a kind. */
export const KIND_EXTENSION = 'x-kubernetes-group-version-kind';
/** The extension for an object that may have any other members. */
export const OPEN = 'x-kubernetes-preserve-unknown-fields';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
export const OBJECT_META: string = `${META}.ObjectMeta`;
const MANAGED_FIELDS_ENTRY = `${META}.ManagedFieldsEntry`;
const OWNER_REFERENCE = `${META}.OwnerReference`;
const LIST_META = `${META}.ListMeta`;

const ref = (name: string): string => `#/components/schemas/${name}`;

/** The schema of a table, its members in the order of their names. */
function sharedOf(table: Shape, more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  const { properties, ...schema } = toSchema(table) as { properties: Readonly<Record<string, JsonSchema>> };
  const names = Object.keys(properties).sort();
  return { ...schema, properties: Object.fromEntries(names.map((name) => [name, { ...properties[name], ...more[name] }])) };
}

/** The schemas that every document has. */
export const SHARED: Readonly<Record<string, JsonSchema>> = {
  [OBJECT_META]: sharedOf(OBJECT_META_TABLE, {
    managedFields: { items: { $ref: ref(MANAGED_FIELDS_ENTRY) } },
    ownerReferences: { items: { $ref: ref(OWNER_REFERENCE) } },
  }),
  [LIST_META]: sharedOf(LIST_META_TABLE),
  [MANAGED_FIELDS_ENTRY]: sharedOf(MANAGED_FIELDS_ENTRY_TABLE),
  [OWNER_REFERENCE]: sharedOf(OWNER_REFERENCE_TABLE),
};

const TYPE_META: Readonly<Record<string, JsonSchema>> = {
  apiVersion: text('APIVersion defines the group and version of this representation of an object.'),
  kind: text('The REST resource that this object represents. Cannot be updated. In CamelCase.'),
};

/** The members of every object. */
export const OBJECT_MEMBERS: Readonly<Record<string, JsonSchema>> = {
  ...TYPE_META,
  metadata: { description: "Standard object's metadata.", allOf: [{ $ref: ref(OBJECT_META) }] },
};

/** A kind's list, as a kind. */
export function ofList(definition: Documented): Documented {
  return { ...definition, kind: definition.listKind ?? `${definition.kind}List` };
}

/** The schema of a kind's list. */
export function listSchemaOf(definition: Documented): JsonSchema {
  const { group, version, kind } = ofList(definition);
  return {
    description: `${kind} is a list of ${definition.kind}`,
    type: 'object',
    required: ['items'],
    properties: {
      ...TYPE_META,
      items: { description: 'The objects.', type: 'array', items: { $ref: ref(componentName(definition)) } },
      metadata: { description: 'Standard list metadata.', allOf: [{ $ref: ref(LIST_META) }] },
    },
    [KIND_EXTENSION]: [{ group, kind, version }],
  };
}

/** The schema of a kind, with the members that all kinds have. A kind without a schema may have any others. */
export function schemaOf(definition: DocumentedKind): JsonSchema {
  const { group, version, kind } = definition;
  const schema = definition.schema ?? builtInSchema(definition);
  const own = (schema?.properties ?? {}) as Readonly<Record<string, JsonSchema>>;
  const closed = definition.preserveUnknownFields === false;
  const open = schema === undefined || (!closed && schema.properties === undefined && schema.additionalProperties === undefined);
  const { metadata: _, ...members } = own;
  return {
    type: 'object',
    ...schema,
    properties: { ...OBJECT_MEMBERS, ...members },
    ...(open && { [OPEN]: true }),
    [KIND_EXTENSION]: [{ group, kind, version }],
  };
}
