/**
 * CustomResourceDefinition as a kind: what a stored definition looks like, and what is served by it.
 *
 *     sent ---> shaped: typed, defaults filled in ---> faults (422) ---> stored ---> toInfos: what the catalog serves
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { isRecord, tried } from '../../watch/errors.ts';
import { badRequest } from '../api-status.ts';
import type { Convert, JsonSchema, PrinterColumn, ScaleDefinition } from '../definition.ts';
import { compareApiVersions } from '../documents/discovery.ts';
import { CRD_SCHEMA } from '../kinds/tables.ts';
import { type ResourceInfo, timestamp } from '../resource-info.ts';
import { toRows } from '../subresources.ts';
import { childOf, goEscaped, goNumber } from '../validation/causes.ts';
import { type JsonPath, toJsonPath } from './json-path.ts';

/** Upstream: `apiextensions.k8s.io/v1` `CustomResourceDefinition`, as it is stored. */
export interface Crd extends KubernetesObject {
  readonly spec: CrdSpec;
  readonly status: CrdStatus;
}

/** The names that are single texts, not lists. */
export const SINGLE_NAMES = ['plural', 'singular', 'kind', 'listKind'] as const;

export interface CrdNames {
  readonly plural: string;
  readonly singular?: string;
  readonly kind: string;
  readonly listKind?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

export interface CrdSpec {
  readonly group: string;
  readonly scope: string;
  readonly names: CrdNames;
  readonly versions: readonly CrdVersion[];
  readonly conversion?: { readonly strategy: string; readonly webhook?: Webhook };
  readonly preserveUnknownFields?: boolean;
}

/** Upstream's conversion by a webhook, which is not called here. */
interface Webhook {
  readonly clientConfig?: object;
  readonly conversionReviewVersions?: readonly string[];
}

export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  readonly schema?: { readonly openAPIV3Schema?: JsonSchema };
  readonly subresources?: { readonly status?: object; readonly scale?: ScaleDefinition };
  readonly additionalPrinterColumns?: readonly CrdColumn[];
  readonly selectableFields?: readonly { readonly jsonPath: string }[];
}

export interface CrdColumn {
  readonly name: string;
  readonly type: PrinterColumn['type'];
  readonly jsonPath: string;
  readonly format?: string;
  readonly description?: string;
  readonly priority?: number;
}

interface CrdStatus {
  readonly conditions: readonly Condition[] | null;
  readonly acceptedNames: CrdNames;
  readonly storedVersions: readonly string[];
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime?: string;
  readonly reason?: string;
  readonly message?: string;
}

export const conditionOf = ({ status }: Crd, type: string): Condition | undefined =>
  status.conditions?.find((each) => each.type === type);

export const isTrue = (crd: Crd, type: string): boolean => conditionOf(crd, type)?.status === 'True';

/** Sets a condition. Its time changes only if its status does. Upstream: `SetCRDCondition`. */
export function withCondition(crd: Crd, condition: Omit<Condition, 'lastTransitionTime'>, nowMs: number): Crd {
  const old = conditionOf(crd, condition.type);
  const isSame = old?.status === condition.status && old.lastTransitionTime !== undefined;
  const { type, status, reason, message } = condition;
  const next = { lastTransitionTime: isSame ? old.lastTransitionTime : timestamp(nowMs), message, reason, status, type };
  const before = crd.status.conditions ?? [];
  const conditions = (old ? before.map((each) => (each === old ? next : each)) : [...before, next]) as Condition[];
  return { ...crd, status: { ...crd.status, conditions } };
}

/** Deletes the objects before the definition. Upstream: `CustomResourceCleanupFinalizer`. */
export const CLEANUP = 'customresourcecleanup.apiextensions.k8s.io';

/**
 * A definition as it is stored: with the members that it has in Kubernetes and no others, its defaults, and the status that only a
 * server writes. Throws 400 for what cannot be read as one.
 */
export function preparedCrd<T extends KubernetesObject>(sent: T): T {
  const crd = defaulted(shaped(CRD_SCHEMA, sent, '') as Crd);
  const status = { conditions: null, acceptedNames: { kind: '', plural: '' }, storedVersions: [] };
  return withStored({ ...crd, status }) as unknown as T;
}

/** The same for an update. One of the status may remove versions from `storedVersions`, once objects have been migrated. */
export function revisedCrd<T extends KubernetesObject>(sent: T, part: string): T {
  const crd = shapedCrd(sent);
  return (part === 'status' ? crd : withStored(crd)) as unknown as T;
}

/** A definition as it is stored. Throws 400 for what cannot be read as one. Upstream: `SetDefaults_CustomResourceDefinition`. */
export function shapedCrd(sent: KubernetesObject): Crd {
  const crd = defaulted(shaped(CRD_SCHEMA, sent, '') as Crd);
  const { conditions = null, acceptedNames = { kind: '', plural: '' }, storedVersions = [] } = crd.status ?? {};
  const filled = { ...crd, status: { conditions, acceptedNames, storedVersions } };
  return storedVersions.length === 0 ? withStored(filled) : filled;
}

/**
 * A definition as it was stored, perhaps by something other than this server: parts that cannot be read are empty, so that it can
 * still be replaced or deleted.
 */
export function readCrd(stored: KubernetesObject): Crd {
  try {
    return shapedCrd(stored);
  } catch {
    const { apiVersion, kind, metadata } = stored;
    return shapedCrd({ apiVersion, kind, metadata } as KubernetesObject);
  }
}

/** Upstream: `SetDefaults_CustomResourceDefinitionSpec`. */
function defaulted(crd: Crd): Crd {
  const { spec = {} as CrdSpec } = crd;
  const { names = {} as CrdNames, versions = [], conversion = { strategy: 'None' } } = spec;
  const { kind = '', plural = '' } = names;
  const singular = names.singular || kind.toLowerCase();
  const listKind = names.listKind || (kind === '' ? '' : `${kind}List`);
  const filled = { ...names, plural, ...(singular && { singular }), kind, ...(listKind && { listKind }) };
  const { group = '', scope = '' } = spec;
  // Go writes these even if they are empty.
  const all = versions.map((each) => ({
    ...each,
    name: each.name ?? '',
    served: each.served ?? false,
    storage: each.storage ?? false,
  }));
  return { ...crd, spec: { ...spec, group, scope, names: filled, versions: all, conversion } };
}

/** Adds the storage version to `storedVersions`: from now on, objects may be stored in it. */
function withStored(crd: Crd): Crd {
  const { storedVersions } = crd.status;
  const storage = crd.spec.versions.find((each) => each.storage)?.name;
  if (storage === undefined || storedVersions.includes(storage)) return crd;
  return { ...crd, status: { ...crd.status, storedVersions: [...storedVersions, storage] } };
}

/** What null in a list becomes, as in Go. */
function emptyOf({ type }: JsonSchema): unknown {
  return type === 'string' ? '' : type === 'array' ? [] : {};
}

/** The part of a value that a schema names; throws 400 if it does not have the schema's type. Nulls are left out, as in Go. */
function shaped(schema: JsonSchema, value: unknown, path: string): unknown {
  const { type, properties, items } = schema as { type?: string; properties?: Record<string, JsonSchema>; items?: JsonSchema };
  const kind = Array.isArray(value) ? 'array' : Number.isInteger(value) && type === 'integer' ? 'integer' : typeof value;
  if (type !== undefined && kind !== type) {
    const why = `${path}: cannot read ${kind === 'array' ? 'an array' : kind} as ${type}`;
    throw badRequest(`CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: ${why}`);
  }
  if (items !== undefined)
    return (value as readonly unknown[]).map((each, at) => shaped(items, each ?? emptyOf(items), `${path}[${at}]`));
  if (properties === undefined) return value;
  const result: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(value as object)) {
    const below = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (below !== undefined && each !== null) result[name] = shaped(below, each, childOf(path, name));
  }
  return result;
}

/** The plural that a definition is about, whatever its status says: its name is `PLURAL.GROUP`. */
const pluralOf = ({ metadata }: Crd): string => metadata?.name?.split('.', 1)[0] ?? '';

/** Whether its accepted names fit its own name: another server, or a client, may have written anything into its status. */
export const isItself = ({ metadata, spec, status }: Crd): boolean =>
  metadata?.name === `${status.acceptedNames.plural}.${spec.group}`;

/** What a definition serves: nothing before its names are accepted. Objects of all versions are stored under one prefix. */
export function toInfos(crd: Crd, convert: Convert | undefined): readonly ResourceInfo[] {
  const { metadata, spec, status } = crd;
  const { group, versions } = spec;
  const { plural, kind, singular = '', listKind = '', shortNames = [], categories = [] } = status.acceptedNames;
  const storage = versions.find((each) => each.storage)?.name;
  const { uid = '', name = '', generation, deletionTimestamp } = metadata ?? {};
  const terminating = deletionTimestamp !== undefined || isTrue(crd, 'Terminating');
  const all = new Map<string, ResourceInfo>();
  const shared = {
    ...{ group, plural, singular, kind, listKind, shortNames, categories, namespaced: spec.scope === 'Namespaced' },
    ...{ prefix: `${group}/${pluralOf(crd)}/`, shared: versions.length > 1, storedAs: `${group}/${storage}`, convert },
    ...{ resourceName: `${plural}.${group}`, kindName: `${kind}.${group}`, validate: undefined },
    versions: all,
    definition: { name, uid, terminating },
  };
  const infos = versions.map((version): ResourceInfo => {
    const { subresources, schema, additionalPrinterColumns: columns } = version;
    return {
      ...shared,
      ...{ version: version.name, apiVersion: `${group}/${version.name}` },
      schema: schema?.openAPIV3Schema,
      preserveUnknownFields: false,
      fields: Object.fromEntries(fieldsOf(version)),
      warning: warningOf(version, { group, kind, versions }),
      columns: columns?.map(toColumn),
      ...toRows({ group, plural, status: subresources?.status !== undefined, scale: subresources?.scale }),
      stamp: `${uid}/${generation}/${version.name}`,
    };
  });
  for (const info of infos) all.set(info.apiVersion, info);
  return infos.filter((_, at) => versions[at]?.served);
}

/** Upstream: `getOrCreateServingInfoFor` and `defaultDeprecationWarning`. */
function warningOf(
  { name, deprecated, deprecationWarning }: CrdVersion,
  { group, kind, versions }: Pick<CrdSpec, 'group' | 'versions'> & { readonly kind: string },
): string | undefined {
  if (!deprecated) return undefined;
  const better = versions.find((each) => each.served && !each.deprecated && compareApiVersions(each.name, name) < 0);
  const use = better ? `; use ${group}/${better.name} ${kind}` : '';
  return deprecationWarning ?? `${group}/${name} ${kind} is deprecated${use}`;
}

function toColumn({ name, type, jsonPath, format, priority, description }: CrdColumn): PrinterColumn {
  const path = pathOrNothing(jsonPath);
  return {
    ...{ name, type, priority, format, value: (object) => toCell(type, path, object) },
    description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
  };
}

function fieldsOf({ selectableFields = [] }: CrdVersion): [string, (object: KubernetesObject) => string][] {
  return selectableFields.map(({ jsonPath }) => {
    const path = pathOrNothing(jsonPath);
    return [jsonPath.replace(/^\./, ''), (object) => String(firstOf(path, object) ?? '')];
  });
}

/** A path that cannot be read finds nothing: the definition is already stored, and the rest of it is served. */
const pathOrNothing = (text: string): JsonPath => tried(() => toJsonPath(text)) ?? (() => []);

function firstOf(path: JsonPath, object: unknown): unknown {
  const [value] = path(object);
  return isRecord(value) || Array.isArray(value) ? undefined : value;
}

/** The cells of printer columns. Upstream: `tableconvertor.go` of custom resources. */

type Cell = ReturnType<PrinterColumn['value']>;

/** What a path finds, as its column shows it; null: nothing. */
function toCell(type: PrinterColumn['type'], path: JsonPath, object: unknown): Cell {
  const value = found(path, object);
  if (value === undefined) return null;
  if (type === 'string') return toText(value);
  if (type === 'integer' && typeof value === 'number') return Math.trunc(value);
  return OF_COLUMN[type].includes(typeof value) ? (value as Cell) : null;
}

/** The types of the values that columns show as they are. */
const OF_COLUMN: Readonly<Record<Exclude<PrinterColumn['type'], 'string'>, readonly string[]>> = {
  ...{ integer: ['number', 'bigint'], number: ['number', 'bigint'], boolean: ['boolean'], date: ['string'] },
};

/** The first value. An object that the path does not fit has none. */
const found = (path: JsonPath, object: unknown): unknown => tried(() => path(object)[0]);

/** A value as Go prints it. */
function toText(value: unknown): string {
  if (value === null) return '<nil>';
  if (typeof value === 'object') return goJson(value);
  return typeof value === 'number' ? goNumber(value) : String(value);
}

/** Members are in the order of their names, and HTML's characters are escaped. */
function goJson(value: unknown): string {
  const sorted = JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
  return goEscaped(sorted);
}
