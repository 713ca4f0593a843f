import type { KubernetesObject } from '../../cache/object.ts';
import { type Clock, systemClock } from '../../watch/clock.ts';
import { checkOptions, requireMethod, wholeNumber } from '../../watch/errors.ts';
import { reporter } from '../../watch/failures.ts';
import type { LogLimits } from '../collection/change-log.ts';
import type { StorageJournal } from '../journal/journal.ts';
import type { FieldFunctions } from '../storage.ts';

/** Options of a `MemoryStorage`. */
export interface MemoryStorageOptions<T extends KubernetesObject = KubernetesObject> {
  /** The number of past changes that are kept, so that watches can resume and lists can be read at a version; default 100,000. */
  readonly maxHistoryItems?: number | undefined;
  /** The size of the kept changes: the JSON of the states that they replaced, in bytes. Default 64 MiB. */
  readonly maxHistoryBytes?: number | undefined;
  /** The greatest age of a kept change, in ms. Older ones are dropped at the next write, not by a timer. Default: no limit. */
  readonly historyMs?: number | undefined;
  /** The largest size of an object's JSON, in bytes; a larger one is refused with 413. Default 3 MiB. */
  readonly maxObjectBytes?: number | undefined;
  /** The largest total size of all objects' JSON, in bytes; a write that would exceed it is refused with 429. Default 1 GiB. */
  readonly maxBytes?: number | undefined;
  /** The fields that selectors may use in addition to `metadata.name` and `metadata.namespace`. Scopes may have others. */
  readonly fields?: FieldFunctions<T> | undefined;
  /**
   * The version before the first write. Default 1; with a journal, one that no other life of it has had: clients then get a 410
   * for a version from before it was restored from a copy. A server whose objects are only in memory should start above all
   * versions from before a restart, for example at `Date.now() * 1_000`. If the journal is beyond it already, it has no effect.
   */
  readonly startRevision?: number | undefined;
  /** Makes writes durable. Default: none; see `openMemoryStorage` for one in a file. */
  readonly journal?: StorageJournal | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
  /**
   * Called with what a function in `fields` throws (the object is then not selected), and when the journal fails. What it throws is
   * ignored. Default: `console.error`, once per kind.
   */
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
  readonly history: LogLimits;
  readonly maxObjectBytes: number;
  readonly maxBytes: number;
  readonly startRevision: number | undefined;
  readonly journal: StorageJournal | undefined;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
export function settingsOf<T extends KubernetesObject>(options: MemoryStorageOptions<T>): Settings {
  const { historyMs, clock = systemClock, onError, ...given } = checkOptions(options, NAMES);
  return {
    history: {
      maxItems: wholeNumber('maxHistoryItems', given.maxHistoryItems ?? 100_000),
      maxBytes: wholeNumber('maxHistoryBytes', given.maxHistoryBytes ?? 2 ** 26),
      maxAgeMs: historyMs === undefined ? Number.POSITIVE_INFINITY : wholeNumber('historyMs', historyMs),
    },
    maxObjectBytes: wholeNumber('maxObjectBytes', given.maxObjectBytes ?? 3 * 2 ** 20, 1),
    maxBytes: wholeNumber('maxBytes', given.maxBytes ?? 2 ** 30, 1),
    startRevision: given.startRevision === undefined ? undefined : wholeNumber('startRevision', given.startRevision, 1),
    journal: given.journal && requireMethod('journal', given.journal, 'restore', 'a StorageJournal'),
    clock: requireMethod('clock', clock, 'schedule', 'a Clock'),
    onError: reporter('memory storage', { onError, clock }),
  };
}

/** What every change costs besides its bytes: itself, its place in the history, its events. Rounded. */
const OVERHEAD_BYTES = 300;

/**
 * What a change costs the history if the object before it has so many bytes: that is what the history keeps. A deletion shows that
 * object again, with its own version.
 */
export function costOf(key: string, { bytes, isDeletion }: { readonly bytes: number; readonly isDeletion: boolean }): number {
  return OVERHEAD_BYTES + 2 * key.length + (isDeletion ? 2 : 1) * bytes;
}
