import type { ListOptions, ListWatchOptions } from '../cache/list-watcher.ts';
import type {
  CreateOptions,
  DeleteOptions,
  KeysOptions,
  Preconditions,
  ServedOptions,
  StorageWatchOptions,
  UpdateOptions,
} from './storage.ts';

/** The names of options that every storage knows. An unknown one is refused: it is probably misspelt. */
const SELECTION: readonly (keyof ListOptions & keyof ListWatchOptions)[] = [
  'labelSelector',
  'fieldSelector',
  'resourceVersion',
  'resourceVersionMatch',
  'timeoutSeconds',
  'signal',
];
export const LIST_NAMES: readonly (keyof ListOptions)[] = [...SELECTION, 'limit', 'continue'];
export const WATCH_NAMES: readonly (keyof StorageWatchOptions<unknown>)[] = [
  ...SELECTION,
  'sendInitialEvents',
  'allowWatchBookmarks',
  'stored',
  'onBytes',
  'previousOf',
];
export const KEYS_NAMES: readonly (keyof KeysOptions)[] = ['from', 'limit', 'signal'];
export const PRECONDITION_NAMES: readonly (keyof Preconditions)[] = ['uid', 'resourceVersion'];
export const CREATE_NAMES: readonly (keyof CreateOptions)[] = ['ttlSeconds', 'signal'];
export const UPDATE_NAMES: readonly (keyof UpdateOptions<unknown>)[] = [
  ...PRECONDITION_NAMES,
  'cached',
  'createIfMissing',
  ...CREATE_NAMES,
];
export const DELETE_NAMES: readonly (keyof DeleteOptions<unknown>)[] = [...PRECONDITION_NAMES, 'validate', 'cached', 'signal'];
export const SERVED_NAMES: readonly (keyof ServedOptions)[] = ['bookmarkMs', 'maxWatches', 'clock'];
