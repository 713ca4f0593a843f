// The options of requests for one object, and how they are written in a URL.
import { checkOptions, invalid, oneOf, wholeNumber } from '../watch/errors.ts';

/** Options of all requests for one object. */
export interface ObjectOptions {
  /** A part of the object with a path of its own, such as `status` or `scale`. */
  readonly subresource?: string | undefined;
  /** Aborts the request. The server may have carried it out all the same. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `get`. */
export interface GetOptions extends ObjectOptions {
  /** Absent: the newest state. `0`: any state that the server has available. Others: a state not older than that. */
  readonly resourceVersion?: string | undefined;
}

/** Options of `create` and `update`. */
export interface WriteOptions extends ObjectOptions {
  /** Check everything, and change nothing. Default false. */
  readonly dryRun?: boolean | undefined;
  /** The name of the writer in the list of managed fields. Default: the server's, which it derives from the program's name. */
  readonly fieldManager?: string | undefined;
  /** What the server does with unknown and duplicate fields. Default: the server's, `Warn`. */
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict' | undefined;
}

/**
 * `merge`: members to set, null to remove (RFC 7386). `json`: a list of operations (RFC 6902). `strategic`: like `merge`, but
 * lists are merged by their keys; for built-in kinds only. `apply`: all fields that you manage; see Kubernetes' server-side
 * apply.
 */
export type PatchType = 'merge' | 'json' | 'strategic' | 'apply';

/** Options of `patch`. */
export interface PatchOptions extends WriteOptions {
  /** Default `merge`. */
  readonly type?: PatchType | undefined;
  /** For `apply`: take over fields that other managers own. Default false: such fields are a conflict. */
  readonly force?: boolean | undefined;
}

/** Options of `delete`. */
export interface DeleteOptions extends Omit<WriteOptions, 'fieldManager' | 'fieldValidation'> {
  /** Delete only this object, or only this version of it; otherwise the server refuses with 409. */
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined;
  /** What happens to the objects that it owns. Default: the server's. */
  readonly propagation?: 'Foreground' | 'Background' | 'Orphan' | undefined;
  /** How long a pod has to terminate; a whole number. */
  readonly gracePeriodSeconds?: number | undefined;
}

export const OBJECT_NAMES = ['subresource', 'signal'] as const;
export const WRITE_NAMES = ['subresource', 'signal', 'dryRun', 'fieldManager', 'fieldValidation'] as const;
const DELETE_NAMES = ['subresource', 'signal', 'dryRun', 'preconditions', 'propagation', 'gracePeriodSeconds'] as const;

/** The parameters of a write. */
export function toParameters({ dryRun, fieldManager, fieldValidation, force }: PatchOptions): Record<string, string> {
  if (fieldValidation) oneOf('fieldValidation', fieldValidation, ['Ignore', 'Warn', 'Strict']);
  return {
    ...(dryRun && { dryRun: 'All' }),
    ...(fieldManager && { fieldManager }),
    ...(fieldValidation && { fieldValidation }),
    ...(force && { force: 'true' }),
  };
}

const CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml', // of which JSON is a subset
};

/** The content type of a patch. Throws for one that cannot be of its type. */
export function toContentType(patch: object, { type = 'merge', fieldManager, force }: PatchOptions): string {
  const content = CONTENT_TYPES[oneOf('type', type, ['merge', 'json', 'strategic', 'apply'])];
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch) !== (type === 'json')) {
    throw invalid('patch', patch, type === 'json' ? 'an array of operations' : 'an object');
  }
  if (type === 'apply' && !fieldManager) throw invalid('fieldManager', fieldManager, 'a name, because apply needs one');
  if (type !== 'apply' && force) throw invalid('force', force, 'true only together with type "apply"');
  return content;
}

/** The body of a deletion. */
export function toDeleteBody(options: DeleteOptions): string {
  const { dryRun, preconditions, propagation, gracePeriodSeconds } = checkOptions(options, DELETE_NAMES);
  if (propagation) oneOf('propagation', propagation, ['Foreground', 'Background', 'Orphan']);
  if (gracePeriodSeconds !== undefined) wholeNumber('gracePeriodSeconds', gracePeriodSeconds);
  if (preconditions) checkOptions(preconditions, ['uid', 'resourceVersion']);
  return JSON.stringify({
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    ...(dryRun && { dryRun: ['All'] }),
    preconditions,
    propagationPolicy: propagation,
    gracePeriodSeconds,
  });
}
