/** The entry point `watchmux/sqlite`: a storage whose objects are in a file of SQLite. For Node 22.13 and newer, without dependencies. */
import type { KubernetesObject } from '../../cache/object.ts';
import { systemClock } from '../../watch/clock.ts';
import { callable, checkOptions, invalid, requireMethod, wholeNumber } from '../../watch/errors.ts';
import { BackedStorage, type BackedStorageOptions } from '../backed-storage.ts';
import type { HistoryOptions } from '../storage.ts';
import { SqliteBackend, type SqliteSettings } from './sqlite-backend.ts';
import { sqliteOf } from './sqlite-file.ts';

/** Options of a {@link SqliteStorage}. */
export interface SqliteStorageOptions<T extends KubernetesObject = KubernetesObject>
  extends HistoryOptions,
    Omit<BackedStorageOptions<T>, 'prefix'> {
  /**
   * The path of the file. It is created if it does not exist, for its owner alone; its directory must exist, on a disk of this machine.
   * Several processes may have it open.
   */
  readonly file: string;
  /**
   * When a write is answered. `FULL`, which is the default: once the disk has it. `NORMAL`: once the operating system has it, so that it
   * outlives the process, but not a loss of power.
   */
  readonly synchronous?: 'FULL' | 'NORMAL' | undefined;
  /** How often watches look for what other processes have written, in ms; default 50. */
  readonly pollMs?: number | undefined;
  /** How long a request may wait for other processes that have the file locked, in ms; then it is refused with 429. Default 5,000. */
  readonly busyTimeoutMs?: number | undefined;
  /** The time of day in ms, by which objects expire. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

const NAMES = [
  'file',
  'synchronous',
  'pollMs',
  'busyTimeoutMs',
  'maxHistoryItems',
  'maxHistoryBytes',
  'historyMs',
  'maxObjectBytes',
  'fields',
  'clock',
  'now',
  'random',
  'onError',
] as const;

/**
 * Versioned objects in a file of SQLite, which several processes of one machine may have open. See `Storage` for what a storage promises.
 * It needs `node:sqlite`, which Node has since 22.13, and opens the file when it is first used.
 *
 *     const storage = new SqliteStorage({ file: 'orders.sqlite' });
 *     const orders = storage.scope<Order>('orders/');
 *     await orders.create('default/first', { metadata: { name: 'first' }, spec: { amount: 3 } });
 *     for await (const { type, object } of await orders.watch()) ...
 *     await storage.close();
 *
 * SQLite works in the thread that calls it: a write keeps it busy until the disk has it, together with all others that wait.
 */
export class SqliteStorage<T extends KubernetesObject = KubernetesObject> extends BackedStorage<T> {
  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and if this runtime has no `node:sqlite`. */
  constructor(options: SqliteStorageOptions<T>) {
    const { fields, onError, ...given } = checkOptions(options, NAMES);
    const settings = settingsOf(given);
    sqliteOf();
    super(new SqliteBackend(settings), { fields, onError, clock: settings.clock, random: settings.random });
  }
}

function settingsOf(given: Omit<SqliteStorageOptions, 'fields' | 'onError'>): SqliteSettings {
  const { file, synchronous = 'FULL', historyMs, clock = systemClock, now = Date.now, random = Math.random } = given;
  if (typeof file !== 'string' || file === '' || file === ':memory:') throw invalid('file', file, 'a path');
  if (synchronous !== 'FULL' && synchronous !== 'NORMAL') throw invalid('synchronous', synchronous, 'FULL or NORMAL');
  return {
    file,
    synchronous,
    pollMs: wholeNumber('pollMs', given.pollMs ?? 50, 1),
    busyTimeoutMs: wholeNumber('busyTimeoutMs', given.busyTimeoutMs ?? 5_000),
    maxObjectBytes: wholeNumber('maxObjectBytes', given.maxObjectBytes ?? 3 * 2 ** 20, 1),
    history: {
      maxItems: wholeNumber('maxHistoryItems', given.maxHistoryItems ?? 100_000),
      maxBytes: wholeNumber('maxHistoryBytes', given.maxHistoryBytes ?? 2 ** 26),
      maxAgeMs: historyMs === undefined ? Number.POSITIVE_INFINITY : wholeNumber('historyMs', historyMs),
    },
    clock: requireMethod('clock', clock, 'schedule', 'a Clock'),
    now: callable('now', now),
    random: callable('random', random),
  };
}

export type { FieldFunctions, ScopeOptions, Storage } from '../storage.ts';
