import type { KubernetesObject } from '../../cache/object.ts';
import { type PatchType, toPatch } from '../patch/patch.ts';
import type { ResourceInfo } from '../resource-info.ts';
import type { FieldCheck } from '../validation/field-check.ts';
import { presented } from './read.ts';

/** What a patch is made a change with. */
export interface ChangeTerms {
  readonly type: PatchType;
  readonly kind: ResourceInfo;
  /** Looks at the fields of what is made; undefined: nobody does. */
  readonly fields: FieldCheck | undefined;
}

/** What a patch makes of an object of a kind, in the version of that kind. Refuses a patch that is none. */
export function toChange(patch: unknown, { type, kind, fields }: ChangeTerms): (current: KubernetesObject) => object {
  const patched = toPatch(patch, { type, kind });
  return (current) => {
    const before = presented(kind, current);
    const made = patched(before);
    fields?.patched(patch, made, before);
    return made;
  };
}
