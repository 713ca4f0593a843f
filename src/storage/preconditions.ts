import type { KubernetesObject } from '../cache/object.ts';
import type { WatchError } from '../watch/errors.ts';
import { PRECONDITION_NAMES } from './option-names.ts';
import { conflict } from './statuses.ts';
import type { Preconditions } from './storage.ts';

/** The refusal with code 409 if something else is there; undefined if the preconditions hold. */
export function unmetPrecondition(
  key: string,
  object: KubernetesObject | undefined,
  preconditions: Preconditions,
): WatchError | undefined {
  for (const name of PRECONDITION_NAMES) {
    const expected = preconditions[name];
    if (expected === undefined) continue;
    const found = object?.metadata?.[name];
    if (expected === found) continue;
    return conflict(key, `the ${name} of the precondition is ${expected}, that of the object is ${found ?? 'none'}`);
  }
  return undefined;
}
