/** The schemas of objects, as both versions of OpenAPI name them. */
import type { JsonSchema, ResourceDefinition } from '../definition.ts';
import { builtInSchema } from '../kinds/tables.ts';
import type { Rows } from '../subresources.ts';

const texts = (description: string, more: JsonSchema = {}): JsonSchema => ({
  description,
  type: 'object',
  additionalProperties: { type: 'string', ...more },
});

const text = (description: string, more: JsonSchema = {}): JsonSchema => ({ description, type: 'string', ...more });

/** The part of a kind that appears in OpenAPI documents. */
export type DocumentedKind = Pick<ResourceDefinition, 'group' | 'version' | 'kind' | 'schema' | 'preserveUnknownFields'>;

/** The same of a resource. */
export type Documented = DocumentedKind &
  Pick<ResourceDefinition, 'plural' | 'listKind' | 'namespaced'> &
  Pick<Rows, 'subresources'> & {
    /** Changes with everything else. Default: a digest of it. */
    readonly stamp?: string | undefined;
  };

/** The name of a component: the group in reverse order, as upstream. Groups without a domain are Kubernetes' own. */
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
const OWNER_REFERENCE = `${META}.OwnerReference`;
const LIST_META = `${META}.ListMeta`;

const time = (description: string): JsonSchema => ({ description, type: 'string', format: 'date-time' });
const ref = (name: string): string => `#/components/schemas/${name}`;

/** The schemas that every document has. */
export const SHARED: Readonly<Record<string, JsonSchema>> = {
  [OBJECT_META]: {
    description: 'ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.',
    type: 'object',
    properties: {
      annotations: texts('Annotations is an unstructured key value map for metadata of any kind. They are not queryable.'),
      creationTimestamp: time(
        'CreationTimestamp is a timestamp: when this object was created, by the clock of the server. Read-only.',
      ),
      deletionGracePeriodSeconds: { description: 'Read-only.', type: 'integer', format: 'int64' },
      deletionTimestamp: time('The time at which this object was asked to be deleted. Read-only.'),
      finalizers: {
        description: 'Must be empty before the object is deleted from the registry.',
        type: 'array',
        items: { type: 'string' },
        'x-kubernetes-list-type': 'set',
        'x-kubernetes-patch-strategy': 'merge',
      },
      generateName: text('A prefix by which the server makes a unique name if name is not given.'),
      generation: { description: 'A number that grows with the desired state. Read-only.', type: 'integer', format: 'int64' },
      labels: texts('Map of string keys and values that can be used to organize and select objects.'),
      managedFields: { description: 'Who manages which fields.', type: 'array', items: { type: 'object', [OPEN]: true } },
      name: text('Name must be unique within a namespace. Cannot be updated.'),
      namespace: text('Namespace defines the space within which each name must be unique. Cannot be updated.'),
      ownerReferences: {
        description: 'List of objects depended by this object.',
        type: 'array',
        items: { $ref: ref(OWNER_REFERENCE) },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['uid'],
        'x-kubernetes-patch-merge-key': 'uid',
        'x-kubernetes-patch-strategy': 'merge',
      },
      resourceVersion: text('The version of this object. Opaque: pass it back unmodified. Read-only.'),
      selfLink: text('Deprecated: no longer populated.'),
      uid: text('The unique value in time and space for this object. Read-only.'),
    },
  },
  [LIST_META]: {
    description: 'ListMeta describes metadata that lists have.',
    type: 'object',
    properties: {
      continue: text('Set if there is more: pass it back for the next part of the list.'),
      remainingItemCount: { description: 'How many objects come after this part.', type: 'integer', format: 'int64' },
      resourceVersion: text('The version at which the list was made. Opaque.'),
    },
  },
  [OWNER_REFERENCE]: {
    description: 'OwnerReference contains enough information to let you identify an owning object.',
    type: 'object',
    required: ['apiVersion', 'kind', 'name', 'uid'],
    properties: {
      apiVersion: text('API version of the referent.'),
      blockOwnerDeletion: {
        description: 'Whether the owner cannot be deleted before this reference is removed.',
        type: 'boolean',
      },
      controller: { description: 'Whether the owner is the managing controller.', type: 'boolean' },
      kind: text('Kind of the referent.'),
      name: text('Name of the referent.'),
      uid: text('UID of the referent.'),
    },
  },
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
