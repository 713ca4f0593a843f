/** The entry point `watchmux/sqlite`: a storage in a SQLite file. For Node 22.13 and newer, without dependencies. */
import type { KubernetesObject } from '../../cache/object.ts';
import { systemClock } from '../../watch/clock.ts';
import { callable, checkOptions, invalid, wholeNumber } from '../../watch/errors.ts';
import { BackedStorage, type BackedStorageOptions } from '../backed-storage.ts';
import type { HistoryOptions } from '../storage.ts';
import { SqliteBackend, type SqliteSettings } from './sqlite-backend.ts';
import { absolute, sqliteOf } from './sqlite-file.ts';

/** Options of a {@link SqliteStorage}. */
export interface SqliteStorageOptions<T extends KubernetesObject = KubernetesObject>
  extends HistoryOptions,
    Omit<BackedStorageOptions<T>, 'prefix'> {
  /**
   * The path of the file. It is created if it does not exist, readable by its owner only; its directory must exist, on a local
   * disk. Several processes may have it open.
   */
  readonly file: string;
  /**
   * When a write is confirmed. `FULL`, the default: once it is on the disk. `NORMAL`: once the operating system has it, so that
   * it survives a crash of the process, but not a loss of power.
   */
  readonly synchronous?: 'FULL' | 'NORMAL' | undefined;
  /** How often watches look for other processes' writes, in ms; default 50. */
  readonly pollMs?: number | undefined;
  /** How long a request may wait for other processes' locks on the file, in ms; then it is refused with 429. Default 5,000. */
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
 * Versioned objects in a SQLite file, which several processes on one machine may have open. See `Storage` for what a storage
 * promises. It needs `node:sqlite`, which Node has since 22.13, and opens the file when it is first used.
 *
 *     const storage = new SqliteStorage({ file: 'orders.sqlite' });
 *     const orders = storage.scope<Order>('orders/');
 *     await orders.create('default/first', { metadata: { name: 'first' }, spec: { amount: 3 } });
 *     for await (const { type, object } of await orders.watch()) ...
 *     await storage.close();
 *
 * SQLite runs in the calling thread: a write blocks the thread until it is on the disk, together with all other waiting writes.
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
  const { pollMs = 50, busyTimeoutMs = 5_000, maxObjectBytes = 3 * 2 ** 20 } = given;
  const { maxHistoryItems = 100_000, maxHistoryBytes = 2 ** 26 } = given;
  if (typeof file !== 'string' || file === '' || file === ':memory:') throw invalid('file', file, 'a path');
  if (synchronous !== 'FULL' && synchronous !== 'NORMAL') throw invalid('synchronous', synchronous, 'FULL or NORMAL');
  return {
    file: absolute(file),
    synchronous,
    pollMs: wholeNumber('pollMs', pollMs, 1),
    busyTimeoutMs: wholeNumber('busyTimeoutMs', busyTimeoutMs),
    maxObjectBytes: wholeNumber('maxObjectBytes', maxObjectBytes, 1),
    history: {
      maxItems: wholeNumber('maxHistoryItems', maxHistoryItems),
      maxBytes: wholeNumber('maxHistoryBytes', maxHistoryBytes),
      maxAgeMs: historyMs === undefined ? Number.POSITIVE_INFINITY : wholeNumber('historyMs', historyMs),
    },
    clock,
    now: callable('now', now),
    random: callable('random', random),
  };
}

export type { FieldFunctions, ScopeOptions, Storage } from '../storage.ts';
