import type { KubernetesObject } from '../../cache/object.ts';
import type { PatchType } from '../../cache/resource-client.ts';
import { paceOf } from '../../watch/pace.ts';
import { isPromise } from '../../watch/promises.ts';
import { toPatch } from '../patch/patch.ts';
import { checkParts } from '../request/json.ts';
import type { ResourceInfo } from '../resource-info.ts';
import type { FieldCheck } from '../validation/field-check.ts';
import { presented } from './read.ts';

/** What is needed to turn a patch into a change. */
export interface ChangeTerms {
  readonly type: PatchType;
  readonly kind: ResourceInfo;
  /** The check of the result's fields; undefined: they are not checked. */
  readonly fields: FieldCheck | undefined;
  /** The signal of the request, by which its pace is found. */
  readonly signal: AbortSignal | undefined;
}

/** The change that a patch makes to an object of a kind, in that kind's version. Refuses an invalid patch. */
export function toChange(
  patch: unknown,
  { type, kind, fields, signal }: ChangeTerms,
): (current: KubernetesObject) => object | Promise<object> {
  const patched = toPatch(patch, { type, kind, pace: paceOf(signal) });
  return (current) => {
    const before = presented(kind, current);
    const checked = (made: object): object => {
      checkParts(made);
      fields?.patched(patch, made, before);
      return made;
    };
    const made = patched(before);
    return isPromise(made) ? made.then(checked) : checked(made);
  };
}
