import type { KubernetesObject } from '../cache/object.ts';
import type { WatchError } from '../watch/errors.ts';
import { known } from '../watch/options.ts';
import { conflict } from './statuses.ts';
import type { Preconditions } from './storage.ts';

const NAMES = ['uid', 'resourceVersion'] as const;

/** The refusal with code 409 if something else is there; undefined if the preconditions hold. Throws for one that there is not. */
export function unmetPrecondition(
  key: string,
  object: KubernetesObject | undefined,
  preconditions: Preconditions = {},
): WatchError | undefined {
  known(preconditions, NAMES);
  for (const name of NAMES) {
    const [expected, found] = [preconditions[name], object?.metadata?.[name]];
    if (expected === undefined || expected === found) continue;
    return conflict(key, `the ${name} of the precondition is ${expected}, that of the object is ${found ?? 'none'}`);
  }
  return undefined;
}
