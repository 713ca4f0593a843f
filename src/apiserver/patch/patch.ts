/**
 * Applies a PATCH to an object, in Kubernetes' formats except the last one:
 *
 *     application/merge-patch+json              RFC 7386: in the form of the object
 *     application/json-patch+json               RFC 6902: a list of operations
 *     application/strategic-merge-patch+json    a merge patch that also merges lists; kinds without such lists refuse it
 *     application/apply-patch+yaml              server-side apply: see `verbs/apply.ts`
 *
 * No input is changed. Refusals are those of a kube-apiserver: 400 for an invalid patch, 422 for one that cannot be applied, 413
 * for too many operations, 415 for an unknown format.
 */

import { PATCH_MEDIA_TYPES, type PatchType } from '../../cache/resource-client.ts';
import { badRequest, refused } from '../../storage/statuses.ts';
import { isRecord } from '../../watch/errors.ts';
import type { Work } from '../../watch/fair-queue.ts';
import type { JsonSchema } from '../definition.ts';
import { builtInSchema, type NamedKind } from '../kinds/tables.ts';
import { childOf } from '../validation/causes.ts';
import { jsonPatch, type Operation, PatchFailure, PatchUnreadable, toOperations } from './json-patch.ts';
import { checkingDepth, type JsonObject, mergePatch } from './merge-patch.ts';
import { METADATA_LISTS, type MergeStrategies, strategicMerge } from './strategic-merge.ts';

/** A kind. Built-in kinds, and those whose schema says how lists are merged, accept strategic merge patches. */
interface PatchedKind extends NamedKind {
  readonly schema?: JsonSchema | undefined;
}

interface PatchTerms {
  readonly type: Exclude<PatchType, 'apply'>;
  readonly kind: PatchedKind;
}

/** The most operations of a JSON patch, as upstream. */
const MAX_OPERATIONS = 10_000;
/** The most characters of JSON that the `copy` operations of a JSON patch may add together. */
const MAX_COPIED = 3 * 2 ** 20;

/** Undefined for a kind that accepts no strategic merge patch: one whose schema does not say how its lists are merged. */
function strategiesOf(kind: PatchedKind): MergeStrategies | undefined {
  const builtIn = builtInSchema(kind);
  const schema = kind.schema ?? builtIn;
  if (schema === undefined) return undefined;
  let known = strategies.get(schema);
  if (known === undefined) {
    known = { ...METADATA_LISTS };
    // Built-in kinds always accept them.
    if (collect(schema, '', known) === 0 && builtIn === undefined) known = undefined;
    strategies.set(schema, known ?? NONE);
  }
  return known === NONE ? undefined : known;
}

const NONE: MergeStrategies = {};
const strategies: WeakMap<JsonSchema, MergeStrategies> = new WeakMap();

/** Adds a schema's merged lists, by their paths. Returns how many there are. */
function collect(schema: JsonSchema, path: string, into: Record<string, MergeStrategies[string]>): number {
  let count = 0;
  const { properties, items } = schema as { properties?: Readonly<Record<string, JsonSchema>>; items?: JsonSchema };
  for (const [name, each] of Object.entries(isRecord(properties) ? properties : {})) {
    if (!isRecord(each)) continue;
    const at = childOf(path, name);
    const { 'x-kubernetes-patch-strategy': strategy, 'x-kubernetes-patch-merge-key': key } = each;
    const merges = typeof strategy === 'string' ? strategy.split(',').includes('merge') : key !== undefined;
    if (merges && (each.type === 'array' || isRecord(each.items))) {
      into[at] = typeof key === 'string' ? { key } : 'set';
      count++;
    }
    count += collect(each, at, into);
  }
  return count + (isRecord(items) ? collect(items, path, into) : 0);
}

/**
 * The patch format that a media type names, if the kind accepts it.
 *
 * @throws {WatchError} REFUSED with 415.
 */
export function toPatchType(mediaType: string, kind: PatchedKind): PatchType {
  const type = typesOf(kind).find((each) => PATCH_MEDIA_TYPES[each] === mediaType);
  if (type === undefined) throw unsupported(kind);
  return type;
}

export function patchMediaTypes(kind: PatchedKind): string[] {
  return typesOf(kind).map((type) => PATCH_MEDIA_TYPES[type]);
}

function typesOf(kind: PatchedKind): readonly PatchType[] {
  const all = Object.keys(PATCH_MEDIA_TYPES) as PatchType[];
  return all.filter((type) => type !== 'strategic' || strategiesOf(kind) !== undefined);
}

function unsupported(kind: PatchedKind): Error {
  const taken = patchMediaTypes(kind).join(', ');
  const message = `the body of the request was in an unknown format - accepted media types include: ${taken}`;
  return refused(415, 'UnsupportedMediaType', message);
}

/**
 * Reads a parsed patch once; the result can be applied again whenever a write is retried.
 *
 * @throws {WatchError} REFUSED with 400, 413, 415 or 422.
 */
export function* toPatch(patch: unknown, { type, kind }: PatchTerms): Work<(current: object) => Work<JsonObject>> {
  const lists = strategiesOf(kind);
  if (type === 'strategic' && lists === undefined) throw unsupported(kind);
  yield* checkingDepth(patch);
  if (type === 'json') {
    const operations = yield* read(patch);
    return (current) => applied(current, operations);
  }
  const form: 'merge' | 'strategic' = type; // the compiler tells a new type, which would be merged
  if (!isRecord(patch)) throw badRequest(`error decoding patch: a ${form} patch must be an object`);
  if (lists !== undefined && form === 'strategic') {
    const terms = { strategies: lists, isTyped: builtInSchema(kind) !== undefined };
    return (current) => strategicMerge(current as JsonObject, patch, terms);
  }
  return (current) => mergePatch(current, patch) as Work<JsonObject>;
}

function* read(patch: unknown): Work<Operation[]> {
  if (!Array.isArray(patch)) throw badRequest('error decoding patch: a JSON patch must be a list of operations');
  if (patch.length > MAX_OPERATIONS) {
    const message = `The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`;
    throw refused(413, 'RequestEntityTooLarge', message);
  }
  return yield* told(toOperations(patch));
}

function* applied(current: object, operations: readonly Operation[]): Work<JsonObject> {
  const result = yield* told(jsonPatch(current, operations, MAX_COPIED));
  if (!isRecord(result)) throw refused(422, 'Invalid', 'the result of the patch is not an object');
  // A patch that is not deep itself can make a deep object, with a hundred operations that each add a level.
  yield* checkingDepth(result);
  return result;
}

/** A failure of a JSON patch is a 422: the patch was understood, but does not fit the object. */
function* told<T>(work: Work<T>): Work<T> {
  try {
    return yield* work;
  } catch (error) {
    if (!(error instanceof PatchFailure)) throw error;
    if (error instanceof PatchUnreadable) throw badRequest(`error decoding patch: ${error.message}`);
    throw refused(422, 'Invalid', `the server rejected our request due to an error in our request: ${error.message}`);
  }
}
