import type { KubernetesObject } from '../../cache/object.ts';
import type { PatchType } from '../../cache/resource-client.ts';
import type { Work } from '../../watch/fair-queue.ts';
import { toPatch } from '../patch/patch.ts';
import { checkingParts, type Json } from '../request/json.ts';
import type { ResourceInfo } from '../resource-info.ts';
import type { Subresource } from '../subresources.ts';
import { type FieldCheck, invalidPatch } from '../validation/field-check.ts';
import { isOfKind } from './metadata.ts';
import { presented } from './read.ts';

/** What is needed to turn a patch into a change. */
export interface ChangeTerms {
  readonly type: PatchType;
  readonly info: ResourceInfo;
  /** What is changed: the object itself, or a subresource. */
  readonly row: Subresource;
  /** The check of the result's fields; undefined: they are not checked. */
  readonly fields: FieldCheck | undefined;
}

/** The change that a patch makes to what a client sees of an object. Refuses an invalid patch. */
export function* toChange(
  patch: unknown,
  { type, info, row, fields }: ChangeTerms,
): Work<(current: KubernetesObject) => Work<object>> {
  const patched = yield* toPatch(patch, { type, kind: row.kind ?? info });
  return function* (current) {
    const before = row.view(presented(info, current), true);
    const made = yield* patched(before);
    yield* checkingParts(made);
    if (fields) yield* fields.patched(patch, made, before);
    const isOther = row.kind && !isOfKind(row.kind, made);
    const fault = isOther ? `expected a ${row.kind?.kind}` : row.fault?.(made as Json);
    if (fault !== undefined) throw invalidPatch(made, fault);
    return made;
  };
}
