/**
 * The schemas of the built-in kinds, for `kubectl explain` and for the checks of old clients. The server itself checks these
 * kinds without a schema, so it needs no package for that.
 */
import type { JsonSchema, ResourceDefinition } from '../definition.ts';
import type { Rows } from '../subresources.ts';
import { CRD_SCHEMA } from './crd-schema.ts';
import { groupVersion } from './discovery.ts';

const texts = (description: string, more: JsonSchema = {}): JsonSchema => ({
  description,
  type: 'object',
  additionalProperties: { type: 'string', ...more },
});

const text = (description: string, more: JsonSchema = {}): JsonSchema => ({ description, type: 'string', ...more });
const count = (description: string): JsonSchema => ({ description, type: 'integer', format: 'int32' });

/** By group, version and kind. */
const BUILT_IN_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  'v1/ConfigMap': {
    description: 'ConfigMap holds configuration data.',
    type: 'object',
    properties: {
      data: texts('Data contains the configuration data. Keys are letters, digits, -, _ and a dot.'),
      binaryData: texts('BinaryData contains binary data in base64. A key must not be in Data as well.', { format: 'byte' }),
      immutable: { description: 'If true, the data cannot be updated.', type: 'boolean' },
    },
  },
  'v1/Namespace': {
    description: 'Namespace provides a scope for names.',
    type: 'object',
    properties: {
      spec: {
        description: 'The desired state.',
        type: 'object',
        properties: {
          finalizers: { description: 'What must be done before it is removed.', type: 'array', items: { type: 'string' } },
        },
      },
      status: {
        description: 'The observed state.',
        type: 'object',
        properties: {
          phase: { description: 'Active or Terminating.', type: 'string' },
          conditions: {
            description: 'What is observed while it is being removed.',
            type: 'array',
            items: {
              type: 'object',
              required: ['type', 'status'],
              properties: {
                type: text('What is observed.'),
                status: text('True, False or Unknown.'),
                lastTransitionTime: text('When the status changed.', { format: 'date-time' }),
                reason: text('Why, in one word.'),
                message: text('Why, in words.'),
              },
            },
          },
        },
      },
    },
  },
  'apiextensions.k8s.io/v1/CustomResourceDefinition': CRD_SCHEMA,
  'coordination.k8s.io/v1/Lease': {
    description: 'Lease says who holds a role, and until when others may rely on that.',
    type: 'object',
    properties: {
      spec: {
        description: 'Who holds it, and since when.',
        type: 'object',
        properties: {
          holderIdentity: text('The current holder.'),
          leaseDurationSeconds: count('How long others wait after the last renewal before they take it.'),
          acquireTime: text('When the current holder took it.', { format: 'date-time' }),
          renewTime: text('When the current holder last renewed it.', { format: 'date-time' }),
          leaseTransitions: count('How often the holder has changed.'),
          strategy: text('How the holder is chosen, if another program coordinates that.'),
          preferredHolder: text('Who is to hold it next, if another program coordinates that.'),
        },
      },
    },
  },
};

/** The schemas of objects, as both versions of OpenAPI name them. */

/** The part of a kind that appears in OpenAPI documents. */
export type DocumentedKind = Pick<ResourceDefinition, 'group' | 'version' | 'kind' | 'schema'>;

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
      creationTimestamp: time('The time on the server when this object was created. Read-only.'),
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

/** A kind's list, as a kind. */
export function ofList(definition: Documented): Documented {
  return { ...definition, kind: definition.listKind ?? `${definition.kind}List` };
}

/** The schema of a kind's list. */
export function listSchemaOf(definition: Documented): JsonSchema {
  const { group, version, kind } = ofList(definition);
  return {
    description: `${kind} is a list of ${definition.kind}.`,
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: text('The group and version of this representation of an object.'),
      items: { description: 'The objects.', type: 'array', items: { $ref: ref(componentName(definition)) } },
      kind: text('The REST resource that this object represents. Cannot be updated. In CamelCase.'),
      metadata: { description: 'Standard list metadata.', allOf: [{ $ref: ref(LIST_META) }] },
    },
    [KIND_EXTENSION]: [{ group, kind, version }],
  };
}

/** The schema of a kind, with the members that all kinds have. A kind without a schema may have any others. */
export function schemaOf(definition: DocumentedKind): JsonSchema {
  const { group, version, kind } = definition;
  const name = `${groupVersion(group, version)}/${kind}`;
  const schema = definition.schema ?? (Object.hasOwn(BUILT_IN_SCHEMAS, name) ? BUILT_IN_SCHEMAS[name] : undefined);
  const own = (schema?.properties ?? {}) as Readonly<Record<string, JsonSchema>>;
  const open = schema === undefined || (schema.properties === undefined && schema.additionalProperties === undefined);
  const { metadata: _, ...members } = own;
  return {
    description: `${kind} of ${groupVersion(group, version)}`,
    type: 'object',
    ...schema,
    properties: {
      apiVersion: text('The group and version of this representation of an object.'),
      kind: text('The REST resource that this object represents. Cannot be updated. In CamelCase.'),
      metadata: { description: "Standard object's metadata.", allOf: [{ $ref: ref(OBJECT_META) }] },
      ...members,
    },
    ...(open && { [OPEN]: true }),
    [KIND_EXTENSION]: [{ group, kind, version }],
  };
}
