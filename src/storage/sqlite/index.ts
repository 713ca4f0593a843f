/** The entry point `watchmux/sqlite`: a storage whose objects are in a file of SQLite. For Node 22.13 and newer, without dependencies. */

export type { FieldFunctions, ScopeOptions, Storage } from '../storage.ts';
export { SqliteStorage, type SqliteStorageOptions } from './sqlite-storage.ts';
