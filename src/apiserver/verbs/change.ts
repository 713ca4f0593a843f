import type { KubernetesObject } from '../../cache/object.ts';
import type { Work } from '../../watch/fair-queue.ts';
import { type PatchType, toPatch } from '../patch/patch.ts';
import { checkingParts } from '../request/json.ts';
import type { ResourceInfo } from '../resource-info.ts';
import type { FieldCheck } from '../validation/field-check.ts';
import { presented } from './read.ts';

/** What is needed to turn a patch into a change. */
interface ChangeTerms {
  readonly type: PatchType;
  readonly kind: ResourceInfo;
  /** The check of the result's fields; undefined: they are not checked. */
  readonly fields: FieldCheck | undefined;
}

/** The change that a patch makes to an object of a kind, in that kind's version. Refuses an invalid patch. */
export function* toChange(
  patch: unknown,
  { type, kind, fields }: ChangeTerms,
): Work<(current: KubernetesObject) => Work<object>> {
  const patched = yield* toPatch(patch, { type, kind });
  return function* (current) {
    const before = presented(kind, current);
    const made = yield* patched(before);
    yield* checkingParts(made);
    if (fields) yield* fields.patched(patch, made, before);
    return made;
  };
}
