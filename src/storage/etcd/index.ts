/** The entry point `watchmux/etcd`: a storage whose objects are in etcd. For Node, without dependencies. */

export type { FieldFunctions, ScopeOptions, Storage } from '../storage.ts';
export { EtcdStorage } from './etcd-storage.ts';
export type { EtcdStorageOptions, EtcdTls } from './options.ts';
