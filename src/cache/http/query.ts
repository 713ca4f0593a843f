import { callable, oneOf, wholeNumber } from '../../watch/errors.ts';
import { checkOptions } from '../../watch/options.ts';
import type { ListOptions, ListWatchOptions } from '../list-watcher.ts';
import { checkText } from '../object.ts';

const TEXTS = ['labelSelector', 'fieldSelector', 'resourceVersion', 'continue'] as const;
const NUMBERS = ['limit', 'timeoutSeconds'] as const;
const COMMON = ['labelSelector', 'fieldSelector', 'resourceVersion', 'resourceVersionMatch', 'timeoutSeconds', 'signal'] as const;

/** The URL of a list. Parameters of the collection's own URL stay, unless an option says otherwise. */
export function toListUrl(collection: URL, options: ListOptions): URL {
  checkOptions(options, [...COMMON, 'limit', 'continue']);
  const url = new URL(collection);
  url.searchParams.delete('watch');
  setCommon(url.searchParams, options);
  return url;
}

/** The URL of a watch. Kubernetes requires what `sendInitialEvents` implies. */
export function toWatchUrl(collection: URL, options: ListWatchOptions): URL {
  checkOptions(options, [...COMMON, 'sendInitialEvents', 'allowWatchBookmarks', 'stored', 'onBytes']);
  callable('stored', options.stored);
  callable('onBytes', options.onBytes);
  const { sendInitialEvents, allowWatchBookmarks = sendInitialEvents } = options;
  const url = new URL(collection);
  const { searchParams } = url;
  searchParams.set('watch', 'true');
  if (sendInitialEvents !== undefined) searchParams.set('resourceVersionMatch', 'NotOlderThan');
  setCommon(searchParams, options);
  if (sendInitialEvents !== undefined) searchParams.set('sendInitialEvents', `${sendInitialEvents}`);
  if (allowWatchBookmarks !== undefined) searchParams.set('allowWatchBookmarks', `${allowWatchBookmarks}`);
  return url;
}

/** Sets what is given; an empty text means the same as none. */
function setCommon(parameters: URLSearchParams, options: ListOptions): void {
  for (const name of TEXTS) {
    const text = options[name];
    if (text !== undefined && checkText(name, text)) parameters.set(name, text);
  }
  for (const name of NUMBERS) {
    const number = options[name];
    if (number !== undefined) parameters.set(name, `${wholeNumber(name, number)}`);
  }
  const { resourceVersionMatch } = options;
  if (resourceVersionMatch !== undefined) {
    parameters.set('resourceVersionMatch', oneOf('resourceVersionMatch', resourceVersionMatch, ['Exact', 'NotOlderThan']));
  }
}
