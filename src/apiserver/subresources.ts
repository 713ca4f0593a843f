/**
 * The parts of objects that have paths of their own. Each is a row of a table, which discovery, OpenAPI and all verbs use.
 *
 *     path                is read as    a write changes
 *     /orders/a           the object    all that no row owns         `main`
 *     /orders/a/status    the object    `status`, which it owns
 *     /orders/a/scale     a Scale       the replicas of the spec
 *
 *     stored ---> view ---> patch ---> sent ---> fault (400) ---> refused (422) ---> merge with what is stored ---> the checks of any write
 *
 * Upstream: `customresource/etcd.go`, with `StatusREST` and `ScaleREST`.
 */

import type { KubernetesObject } from '../cache/object.ts';
import { LabelSelector } from '../selectors/label-selector.ts';
import type { Labels } from '../selectors/syntax.ts';
import { isNullish, isRecord } from '../watch/errors.ts';
import type { Work } from '../watch/fair-queue.ts';
import { badRequest, internalFault } from './api-status.ts';
import type { FieldCause, ResourceDefinition, ScaleDefinition } from './definition.ts';
import { AGE, isReview, shown } from './kinds/common.ts';
import { part, shape } from './kinds/shape.ts';
import { OBJECT_META } from './kinds/tables.ts';
import type { Json } from './request/json.ts';
import { VERBS, type Verb } from './request/path.ts';

/** The kind of the objects that are read and written at a path. */
export type SeenKind = Pick<
  ResourceDefinition,
  'group' | 'version' | 'kind' | 'schema' | 'shape' | 'preserveUnknownFields' | 'columns'
> & {
  readonly apiVersion: string;
};

/** One row. */
export interface Subresource {
  /** Its name in paths; empty for the object itself. */
  readonly name: string;
  readonly verbs: readonly Verb[];
  /** The kind that is read and written here. Absent: that of the objects. */
  readonly kind?: SeenKind;
  /** The member of the objects that can be written only here. */
  readonly owns?: string;
  /** What its writes leave alone, so that no sender manages it there. Default: by the group. */
  readonly keeps?: readonly string[];
  /** Whether only a part of what is sent is written, of which the sender becomes the manager. */
  readonly isPart?: boolean;
  /** A POST deletes the object, with these options. Absent: it changes the object. */
  deletion?(sent: Json): unknown;
  /** An object as it is read here. `forWrite`: a patch will change it, and may fill in what is missing. */
  view<T extends KubernetesObject>(object: T, forWrite?: boolean): KubernetesObject;
  /** What is wrong with the form of a sent object. */
  fault?(sent: Json): string | undefined;
  /** Why `sent` cannot follow `old`. */
  refused?(sent: Json, old: Json): Work<FieldCause[]>;
  /** The object after a write of `sent`. */
  merge<T extends Json>(sent: T, old: T, now: () => number): T;
  /** The path, in an object, of the replicas that a Scale shows. */
  readonly replicas?: readonly string[] | undefined;
  /** What is wrong with an object that has this subresource, at whichever path it is written. */
  causes?(object: Json): FieldCause[];
}

/** The rows of a kind: the object itself, and its subresources. */
export interface Rows {
  readonly main: Subresource;
  readonly subresources: readonly Subresource[];
  /** The members that a write of the object itself leaves alone. */
  readonly apart: readonly string[];
}

export const PART_VERBS: readonly Verb[] = VERBS.filter((verb) => verb === 'get' || verb === 'patch' || verb === 'update');

const STATUS: Subresource = {
  name: 'status',
  verbs: PART_VERBS,
  owns: 'status',
  view: (object) => object,
  merge: (sent, old) => withMembers(old, sent, ['status']),
};

/** Of these of Kubernetes' own kinds, a write of the status leaves the metadata alone. Upstream: `ResetObjectMetaForStatus`. */
const STATUS_ALONE: readonly string[] = [
  'networking.k8s.io/servicecidrs',
  'storage.k8s.io/csinodes',
  'storage.k8s.io/volumeattachments',
];

/** Of these, it leaves a member of the metadata alone. */
const STATUS_AND_NOT: Readonly<Record<string, readonly string[]>> = {
  'apps/deployments': ['labels'],
  '/pods': ['ownerReferences'],
};

/** With the status, Kubernetes' own kinds write the metadata, as controllers expect: of Deployments, the revision is an annotation. */
function toStatus({ group, plural, shape: fields }: Pick<ResourceDefinition, 'group' | 'plural' | 'shape'>): Subresource {
  const name = `${group}/${plural}`;
  if (fields === undefined || STATUS_ALONE.includes(name)) return STATUS;
  const kept = STATUS_AND_NOT[name] ?? [];
  const merge: Subresource['merge'] = (sent, old) => ({
    ...withMembers(sent, old, ['spec']),
    metadata: withMembers(sent.metadata as Json, old.metadata as Json, kept),
  });
  return { ...STATUS, keeps: ['spec'], merge };
}

/** Both also write the metadata. Upstream: `namespaceStatusStrategy`, `namespaceFinalizeStrategy`. */
const OF_NAMESPACES: readonly Subresource[] = [
  {
    ...{ name: 'finalize', verbs: ['update'], owns: 'spec', view: (object) => object },
    merge: (sent, old) => withMembers(sent, old, ['status']),
  },
  { ...STATUS, merge: (sent, old) => withMembers(sent, old, ['spec']) },
];

const CREATE: readonly Verb[] = ['create'];

export function toRows({
  group,
  plural,
  status,
  scale,
  shape: fields,
}: Pick<ResourceDefinition, 'group' | 'plural' | 'status' | 'scale' | 'shape'>): Rows {
  const isNamespaces = group === '' && plural === 'namespaces';
  const more = (fields as { readonly subresources?: readonly Subresource[] } | undefined)?.subresources ?? [];
  const own = [
    ...(status ? [toStatus({ group, plural, shape: fields })] : []),
    ...(scale ? [toScale(scale, fields !== undefined)] : []),
    ...more,
  ];
  const subresources = isNamespaces ? OF_NAMESPACES : own;
  const apart = subresources.flatMap(({ owns }) => (owns === undefined ? [] : [owns]));
  const merge: Subresource['merge'] = (sent, old) => (apart.length === 0 ? sent : withMembers(sent, old, apart));
  // Namespaces are deleted one by one.
  const verbs = isNamespaces ? VERBS.filter((verb) => verb !== 'deletecollection') : isReview(group, plural) ? CREATE : VERBS;
  return { main: { name: '', verbs, view: (object) => object, merge }, subresources, apart };
}

export function rowOf({ main, subresources }: Rows, name: string | undefined): Subresource | undefined {
  return name === undefined ? main : subresources.find((each) => each.name === name);
}

/** An object with some members replaced by those of another; members that the other lacks are removed. */
export function withMembers<T extends Json>(object: T, other: Json, members: readonly string[]): T {
  const result: Record<string, unknown> = { ...object };
  for (const member of members) {
    delete result[member];
    if (other[member] !== undefined) result[member] = other[member];
  }
  return result as T;
}

/** The actual and the desired number of instances, for any kind. Upstream: `autoscaling/v1` `Scale`. */
const SCALE: SeenKind = {
  ...{ group: 'autoscaling', version: 'v1', apiVersion: 'autoscaling/v1', kind: 'Scale' },
  schema: {
    description: 'Scale represents a scaling request for a resource.',
    type: 'object',
    properties: {
      spec: {
        description: 'The desired state.',
        type: 'object',
        properties: { replicas: { description: 'The desired number of instances.', type: 'integer', format: 'int32' } },
      },
      status: {
        description: 'The observed state. Read-only.',
        type: 'object',
        required: ['replicas'],
        properties: {
          replicas: { description: 'The number of instances that were observed.', type: 'integer', format: 'int32' },
          selector: { description: 'The label selector of the instances, as in queries.', type: 'string' },
        },
      },
    },
  },
  columns: [
    { name: 'Desired', type: 'integer', value: (scale) => (scale as Scaled).spec.replicas ?? 0 },
    { name: 'Available', type: 'integer', value: (scale) => (scale as Scaled).status.replicas },
    AGE,
  ],
};

/** The same for Kubernetes' own kinds: their clients send it as protobuf, and as a strategic merge patch. */
const TYPED_SCALE: SeenKind = {
  ...{ group: SCALE.group, version: SCALE.version, apiVersion: SCALE.apiVersion, kind: SCALE.kind, columns: SCALE.columns },
  shape: shape('Scale represents a scaling request for a resource.', {
    metadata: [1, OBJECT_META, '', 'The metadata of the resource.'],
    spec: part([2], 'The desired state.', { replicas: [1, 'int32', '', 'The desired number of instances.'] }),
    status: part([3], 'The observed state. Read-only.', {
      replicas: [1, 'int32', '!', 'The number of instances that were observed.'],
      selector: [2, 'string', '', 'The label selector of the instances, as in queries.'],
    }),
  }),
};

/** The same path in a Scale, as a path in a field set. */
export const SCALE_REPLICAS: readonly string[] = ['f:spec', 'f:replicas'];

interface Scaled extends KubernetesObject {
  readonly spec: { readonly replicas?: number };
  readonly status: { readonly replicas: number };
}

/** Stands for missing replicas while a patch is applied: no other number is lower. Upstream: `invalidSpecReplicas`. */
const UNSET = -(2 ** 31);
const MAX_REPLICAS = 2 ** 31 - 1;

/** `isTyped`: of one of Kubernetes' own kinds, whose selector is an object. */
function toScale({ specReplicasPath, statusReplicasPath, labelSelectorPath }: ScaleDefinition, isTyped: boolean): Subresource {
  const [specPath, statusPath, selectorPath] = [specReplicasPath, statusReplicasPath, labelSelectorPath].map(toSteps);
  return {
    name: 'scale',
    verbs: PART_VERBS,
    kind: isTyped ? TYPED_SCALE : SCALE,
    replicas: specPath,
    view: (object, forWrite = false) => {
      const replicas = valueAt(object, specPath) ?? (forWrite ? UNSET : undefined);
      if (!Number.isInteger(replicas)) {
        const why = replicas === undefined ? 'does not exist' : 'is not a whole number';
        throw internalFault(`the spec replicas field "${specReplicasPath}" ${why}`);
      }
      const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata ?? {};
      const own = valueAt(object, selectorPath);
      const selector = isTyped && isRecord(own) ? selectorText(own) : own;
      return {
        ...{ kind: SCALE.kind, apiVersion: SCALE.apiVersion },
        metadata: { name, ...(namespace && { namespace }), uid, resourceVersion, creationTimestamp },
        // Zero is left out, as Go does it.
        spec: replicas === 0 ? {} : { replicas },
        status: { replicas: valueAt(object, statusPath) ?? 0, ...(selector ? { selector } : {}) },
      } as KubernetesObject;
    },
    fault: faultOfScale,
    merge: (sent, old) => {
      const { replicas } = (sent as { spec?: { replicas?: number | null } | null }).spec ?? {};
      if (replicas === UNSET) throw badRequest(`the spec replicas field "${specReplicasPath}" cannot be empty`);
      return withValue(old, specPath as Steps, replicas ?? 0);
    },
    causes: (object) => [
      ...countCauses(specReplicasPath, valueAt(object, specPath)),
      ...countCauses(statusReplicasPath, valueAt(object, statusPath)),
      ...(isTyped ? [] : textCauses(labelSelectorPath, valueAt(object, selectorPath))),
    ],
  };
}

/** A selector as in queries. The oldest kind has only the labels. */
function selectorText(selector: Readonly<Record<string, unknown>>): string {
  const isWhole = isRecord(selector.matchLabels) || Array.isArray(selector.matchExpressions);
  try {
    return String(isWhole ? LabelSelector.fromObject(selector) : LabelSelector.fromLabels(selector as Labels));
  } catch (error) {
    throw internalFault(`the selector is invalid: ${(error as Error).message}`);
  }
}

/** Why something cannot be read as a Scale. */
function faultOfScale({ spec, status }: Json): string | undefined {
  for (const [name, part] of Object.entries({ spec, status })) {
    if (isNullish(part)) continue;
    if (!isRecord(part)) return `${name}: expected an object`;
    const { replicas, selector } = part;
    const fits = Number.isInteger(replicas) && Math.abs(replicas as number) <= -UNSET && replicas !== -UNSET;
    if (!isNullish(replicas) && !fits) return `${name}.replicas: expected a whole number of 32 bits`;
    if (name === 'status' && !isNullish(selector) && typeof selector !== 'string') return 'status.selector: expected a string';
  }
  return undefined;
}

function countCauses(field: string, value: unknown): FieldCause[] {
  const expected =
    typeof value !== 'number' || !Number.isInteger(value)
      ? 'should be a whole number'
      : value < 0
        ? 'should be a non-negative integer'
        : value > MAX_REPLICAS && `should be less than or equal to ${MAX_REPLICAS}`;
  return isNullish(value) || !expected ? [] : [{ field, message: `Invalid value: ${shown(value)}: ${expected}` }];
}

function textCauses(field: string | undefined, value: unknown): FieldCause[] {
  if (field === undefined || isNullish(value) || typeof value === 'string') return [];
  return [{ field, message: `Invalid value: ${shown(value)}: should be a string` }];
}

type Steps = readonly string[];

/** The steps of a path such as `.spec.replicas`. */
const toSteps = (path: string | undefined): Steps | undefined => path?.split('.').slice(1);

/** The value at a path. If a part of the path is not an object, that part in a list, which is never valid. */
function valueAt(object: object, steps: Steps | undefined): unknown {
  if (steps === undefined) return undefined;
  let value: unknown = object;
  for (const step of steps) {
    if (isNullish(value)) return undefined;
    if (!isRecord(value)) return [value];
    value = Object.hasOwn(value, step) ? value[step] : undefined;
  }
  return value ?? undefined;
}

/** Whether a row is only for a POST: the object has no manager more then, and its generation stays. */
export const isAction = ({ kind, verbs }: Subresource): boolean => kind !== undefined && !verbs.includes('patch');

/** A copy with another value at a path. */
function withValue<T extends Json>(object: T, [step = '', ...rest]: Steps, value: unknown): T {
  const inner = Object.hasOwn(object, step) && isRecord(object[step]) ? object[step] : {};
  return { ...object, [step]: rest.length === 0 ? value : withValue(inner as Json, rest, value) };
}
