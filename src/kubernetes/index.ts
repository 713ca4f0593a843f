/**
 * The entry point `watchmux/kubernetes`, for Node: from a kubeconfig to collections that can be listed, watched and changed.
 *
 *     kubeconfig ---> Cluster ---> Resource: a ListWatcher, with get, create, update, patch and delete
 */

export type {
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  ObjectOptions,
  PatchOptions,
  PatchType,
  ResourceClient,
  ResourceType,
  Scale,
  SubresourceClient,
  WriteOptions,
} from '../cache/resource-client.ts';
export {
  Cluster,
  type ClusterOptions,
  type ClusterSource,
  type FindOptions,
  type LoadClusterOptions,
  loadCluster,
  type RequestCount,
} from './cluster.ts';
export type { KubeConfigLike } from './credentials.ts';
export type { KubeConfigOptions } from './kube-config.ts';
export { createNodeFetch, type NodeFetch, type NodeRequest, type PrepareRequest } from './node-fetch.ts';
export type { AsJson, Resource } from './resource.ts';
