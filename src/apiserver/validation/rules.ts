import type { KubernetesObject } from '../../cache/object.ts';
import type { Work } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';
import type { Structural } from './structural.ts';

/** Finds the rules of a schema that an object breaks. */
export type RuleCheck = (object: KubernetesObject, old: KubernetesObject | undefined) => Work<readonly FieldCause[]>;

/** Compiles the rules of a schema; undefined: it has none. */
export async function compileRules(_tree: Structural): Promise<RuleCheck | undefined> {
  return undefined;
}
