/**
 * The entry point `watchmux/storage`: objects with versions, kept in memory, and a cache that serves many watchers.
 *
 *     MemoryStorage, EtcdStorage, SqliteStorage ---> Cacher ---> ApiServer, or callers in the process
 */

export { FieldSelector, type Fields, type FieldTerm, parseFieldSelector } from '../selectors/field-selector.ts';
export { LabelSelector, parseLabelSelector } from '../selectors/label-selector.ts';
export { type Attributes, SelectionPredicate, type SelectionPredicateOptions } from '../selectors/predicate.ts';
export { BackedStorage, type BackedStorageOptions } from './backed-storage.ts';
export type {
  Backend,
  Backing,
  Change,
  ChangeBatch,
  Changes,
  ChangesOptions,
  Entry,
  GetResult,
  RangeRequest,
  RangeResult,
  ReadOptions,
  RequestOptions,
  Txn,
  TxnResult,
} from './backend.ts';
export { Cacher } from './cacher/cacher.ts';
export type { CacherOptions } from './cacher/engine.ts';
export { type OpenMemoryStorageOptions, openMemoryStorage } from './journal/file-journal.ts';
export type { LoadProgress, TornTail } from './journal/load.ts';
export type { JournalRecord, JournalSnapshot, StorageJournal } from './journal/records.ts';
export { MemoryStorage, type MemoryStorageStats } from './memory/memory-storage.ts';
export type { MemoryStorageOptions } from './memory/writer.ts';
export type {
  CacherStats,
  ChangeEvent,
  CreateOptions,
  CreatingOptions,
  DeleteOptions,
  FieldFunctions,
  GetOptions,
  KeysOptions,
  Preconditions,
  ScopeOptions,
  ServedOptions,
  Storage,
  StorageEvent,
  StorageWatchOptions,
  UpdateOptions,
} from './storage.ts';
export { Draft, toObject } from './values.ts';
