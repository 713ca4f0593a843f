import type { ListOptions } from '../../cache/list-watcher.ts';
import { metadataOf } from '../../cache/object.ts';
import {
  FieldSelector,
  LabelSelector,
  parseFieldSelector,
  parseLabelSelector,
  SelectionPredicate,
} from '../../selectors/index.ts';
import { isWatchError, WatchError } from '../../watch/errors.ts';
import { type StatusDetails, toStatus } from '../../watch/event.ts';

/** An error like that of a server's refusal. */
export function refusal(code: number, reason: string, details?: StatusDetails, message: string = reason): WatchError {
  return new WatchError('REFUSED', `${code} ${reason}`, { status: toStatus({ code, reason, message, details }) });
}

/**
 * What a request selects. A field is a path in the object, such as `spec.nodeName`; a value that is not a string is compared as
 * JSON, and a missing one is empty.
 *
 * @throws {WatchError} REFUSED with code 400 for an invalid selector.
 */
export function predicateOf<T>({ labelSelector = '', fieldSelector = '' }: ListOptions): SelectionPredicate<T> {
  try {
    const labels = labelSelector ? parseLabelSelector(labelSelector) : LabelSelector.everything();
    const fields = fieldSelector ? parseFieldSelector(fieldSelector) : FieldSelector.everything();
    const names = fields.terms.map(({ field }) => field);
    return new SelectionPredicate<T>({
      labels,
      fields,
      attributesOf: (object) => ({
        labels: metadataOf(object).labels,
        fields: Object.fromEntries(names.map((name) => [name, textAt(object, name)])),
      }),
    });
  } catch (error) {
    if (isWatchError(error, 'INVALID_SELECTOR')) throw refusal(400, 'BadRequest', undefined, error.message);
    throw error;
  }
}

function textAt(object: unknown, path: string): string {
  let value = object;
  for (const name of path.split('.')) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return '';
    value = (value as Record<string, unknown>)[name];
  }
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}

/** Refuses a combination of options that a kube-apiserver refuses. */
export function checkMatch({ resourceVersion = '', resourceVersionMatch, continue: token }: ListOptions): void {
  if (resourceVersionMatch === undefined) return;
  const wrong =
    (token && 'it is forbidden with continue') ||
    (resourceVersion === '' && 'it is forbidden without resourceVersion') ||
    (resourceVersionMatch === 'Exact' && resourceVersion === '0' && 'Exact is forbidden for resourceVersion 0') ||
    (resourceVersionMatch !== 'Exact' && resourceVersionMatch !== 'NotOlderThan' && 'it must be Exact or NotOlderThan');
  if (wrong) throw refusal(422, 'Invalid', undefined, `resourceVersionMatch: ${wrong}`);
}
