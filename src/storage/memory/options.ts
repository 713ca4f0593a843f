import type { KubernetesObject } from '../../cache/object.ts';
import { type Clock, systemClock } from '../../watch/clock.ts';
import { callable, having, wholeNumber } from '../../watch/errors.ts';
import { known } from '../../watch/options.ts';
import type { StorageJournal } from '../journal/journal.ts';
import type { FieldFunctions } from '../storage.ts';

/** Options of a `MemoryStorage`. */
export interface MemoryStorageOptions<T extends KubernetesObject = KubernetesObject> {
  /** The number of changes that are kept, so that watches can resume and lists be read at a version; default 100,000. */
  readonly maxHistoryItems?: number | undefined;
  /** What the kept changes may cost in bytes of JSON: that of the states that they replaced. Default 64 MiB. */
  readonly maxHistoryBytes?: number | undefined;
  /** How old a change may get in ms. Old ones are forgotten at the next write, by no timer. Default: any age. */
  readonly historyMs?: number | undefined;
  /** The largest object in bytes of JSON; default 3 MiB. */
  readonly maxObjectBytes?: number | undefined;
  /** The largest sum of all objects in bytes of JSON; a write that would exceed it is refused with 429. Default 1 GiB. */
  readonly maxBytes?: number | undefined;
  /** The fields that selectors may name beside `metadata.name` and `metadata.namespace`. Scopes may have others. */
  readonly fields?: FieldFunctions<T> | undefined;
  /**
   * The version before the first write, for a storage without a journal; default 1. A server whose objects do not outlive it starts
   * above all versions that it told before, such as at `Date.now() * 1_000`: who comes with one of those is told 410, and lists again.
   */
  readonly startRevision?: number | undefined;
  /** What makes writes last. Default: nothing does; see `openMemoryStorage` for one in a file. */
  readonly journal?: StorageJournal | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
  /** Called with what a function of `fields` throws; the object is then not selected. Default: nothing is called. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const NAMES = [
  'maxHistoryItems',
  'maxHistoryBytes',
  'historyMs',
  'maxObjectBytes',
  'maxBytes',
  'fields',
  'startRevision',
  'journal',
  'clock',
  'onError',
] as const;

/** The options with their defaults. */
export interface Settings {
  readonly history: { readonly maxItems: number; readonly maxBytes: number; readonly maxAgeMs: number };
  readonly maxObjectBytes: number;
  readonly maxBytes: number;
  readonly startRevision: number;
  readonly journal: StorageJournal | undefined;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
export function settingsOf<T extends KubernetesObject>(options: MemoryStorageOptions<T>): Settings {
  const { historyMs, clock = systemClock, onError, ...given } = known(options, NAMES);
  return {
    history: {
      maxItems: wholeNumber('maxHistoryItems', given.maxHistoryItems ?? 100_000),
      maxBytes: wholeNumber('maxHistoryBytes', given.maxHistoryBytes ?? 2 ** 26),
      maxAgeMs: historyMs === undefined ? Number.POSITIVE_INFINITY : wholeNumber('historyMs', historyMs),
    },
    maxObjectBytes: wholeNumber('maxObjectBytes', given.maxObjectBytes ?? 3 * 2 ** 20, 1),
    maxBytes: wholeNumber('maxBytes', given.maxBytes ?? 2 ** 30, 1),
    startRevision: wholeNumber('startRevision', given.startRevision ?? 1, 1),
    journal: given.journal && having('journal', given.journal, 'restore', 'a StorageJournal'),
    clock: having('clock', clock, 'schedule', 'a Clock'),
    onError: guarded(callable('onError', onError)),
  };
}

/** What user code throws while it is told of an error is of no interest. */
function guarded(onError: ((error: unknown) => void) | undefined): (error: unknown) => void {
  return (error) => {
    try {
      onError?.(error);
    } catch {
      // Nobody is left to tell.
    }
  };
}
