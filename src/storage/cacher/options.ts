import { type KubernetesObject, keyOf as keyOfObject } from '../../cache/object.ts';
import { compareVersions as compareDecimals, type VersionComparator } from '../../cache/versions.ts';
import { type Clock, systemClock } from '../../watch/clock.ts';
import { callable, checkOptions, requireMethod, wholeNumber } from '../../watch/errors.ts';
import { Failures } from '../../watch/failures.ts';
import type { FieldFunctions } from '../storage.ts';

/** Options of a {@link Cacher}. */
export interface CacherOptions<T extends KubernetesObject = KubernetesObject> {
  /**
   * Only for a storage of your own that has no `backing`, and so does not tell keys: the key of an object, which must be the one under
   * which it was created. A `create` or `update` under another one is refused with INVALID_ARGUMENT, and nothing is written. Default:
   * `<namespace>/<name>`, or the name for an object without a namespace.
   */
  readonly keyOf?: ((object: T) => string) | undefined;
  /** Fields that selectors may use in addition to `metadata.name` and `metadata.namespace`. Each is an index. */
  readonly fields?: FieldFunctions<T> | undefined;
  /** Number of past changes to keep for watches and lists of the past; default 100,000. */
  readonly windowItems?: number | undefined;
  /** How many bytes they may take, including their objects and the JSON of these; default 256 MiB. */
  readonly windowBytes?: number | undefined;
  /** How long they are kept, except for the last 100, in milliseconds; default 75,000. */
  readonly windowMs?: number | undefined;
  /**
   * How many revisions of the storage, counting all its objects, it goes back when it starts, so that its window has the changes
   * that clients of another cacher may not have seen yet; default 10,000. 0: it starts with the current state. If the storage no
   * longer has that many, it goes back less far; if it cannot catch up within four times `freshnessTimeoutMs`, not at all. Only
   * if versions are decimal numbers.
   */
  readonly pastRevisions?: number | undefined;
  /** How long a read may wait for the version that it needs, in milliseconds; default 3,000. */
  readonly freshnessTimeoutMs?: number | undefined;
  /** How often the storage is asked for progress while a read waits, in milliseconds; default 100. */
  readonly progressMs?: number | undefined;
  /** How often a watch that allows BOOKMARKs gets one, if the version is new, in milliseconds; default 60,000. */
  readonly bookmarkMs?: number | undefined;
  /** Number of watches that may be open; a further one is refused with 429. Default 100,000. */
  readonly maxWatches?: number | undefined;
  /** The delay after the first failure of the storage, in milliseconds; each further one doubles it. Default 100. */
  readonly minRetryMs?: number | undefined;
  /** The longest delay, to which jitter is added, in milliseconds; default 30,000. */
  readonly maxRetryMs?: number | undefined;
  /** How to compare versions. Default `compareVersions`: Kubernetes' decimal numbers. */
  readonly compareVersions?: VersionComparator | undefined;
  /**
   * Called with every failure of the storage, and of a function in `fields`. What it throws is ignored. Default: `console.error`,
   * once per kind, and when the storage works again.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Source of time. Default: the host's. */
  readonly clock?: Clock | undefined;
  /** Source of jitter: a number from 0 to below 1. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** The options with their defaults. */
export type CacherSettings<T extends KubernetesObject> = {
  readonly [Name in Exclude<keyof CacherOptions<T>, 'onError'>]-?: NonNullable<CacherOptions<T>[Name]>;
} & { readonly failures: Failures };

const NUMBERS = {
  windowItems: 100_000,
  windowBytes: 256 * 1024 * 1024,
  windowMs: 75_000,
  pastRevisions: 10_000,
  freshnessTimeoutMs: 3_000,
  progressMs: 100,
  bookmarkMs: 60_000,
  maxWatches: 100_000,
  minRetryMs: 100,
  maxRetryMs: 30_000,
} as const;

const NAMES = [
  ...(Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]),
  ...(['keyOf', 'fields', 'compareVersions', 'onError', 'clock', 'random'] as const),
] as const;

/** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
export function toSettings<T extends KubernetesObject>(options: CacherOptions<T>): CacherSettings<T> {
  const { keyOf, fields = {}, compareVersions, onError, clock = systemClock, random } = checkOptions(options, NAMES);
  const numbers = Object.entries(NUMBERS).map(([name, value]) => {
    return [name, wholeNumber(name, options[name as keyof typeof NUMBERS] ?? value, name.endsWith('Ms') ? 1 : 0)];
  });
  for (const [name, field] of Object.entries(fields)) callable(`fields.${name}`, field);
  return {
    ...(Object.fromEntries(numbers) as Record<keyof typeof NUMBERS, number>),
    keyOf: callable('keyOf', keyOf) ?? keyOfObject,
    fields,
    compareVersions: callable('compareVersions', compareVersions) ?? compareDecimals,
    failures: new Failures('cacher', { onError, clock }),
    clock: requireMethod('clock', clock, 'schedule', 'a Clock'),
    random: callable('random', random) ?? Math.random,
  };
}
