// Written by "watchmux types". Changes are lost when it is written again.
import { type Kind, kind, type ResourceType } from '../../src/operator/index.ts';

/** A website that an operator runs. */
export interface Website {
  apiVersion?: 'example.com/v1';
  kind?: 'Website';
  metadata: ObjectMeta & { name: string };
  /** What is wanted. */
  spec: WebsiteSpec;
  status?: WebsiteStatus;
}

export const WEBSITES: ResourceType & Kind<Website> = kind<Website>({
  group: 'example.com',
  version: 'v1',
  plural: 'websites',
  kind: 'Website',
  namespaced: true,
});

export interface WebsiteSpec {
  free?: { [key: string]: unknown };
  /**
   * The image of the server.
   *
   * minLength 1
   */
  image: string;
  labels?: { [key: string]: string };
  /** no two items with the same path */
  paths?: WebsiteSpecPathsItem[];
  /** @defaultValue `"Always"` */
  policy?: 'Always' | 'Never';
  /**
   * A number, or a name.
   * Closed by *\/ nobody.
   */
  port?: number | string;
  /**
   * How many servers run.
   *
   * format int32, minimum 0, maximum 10
   *
   * @defaultValue `1`
   */
  replicas?: number;
  template?: WebsiteSpecTemplate;
  'x-y'?: boolean;
}

export interface WebsiteSpecPathsItem {
  /** pattern `^/` */
  path: string;
  target?: string | null;
}

export interface WebsiteSpecTemplate {
  apiVersion: string;
  kind: string;
  metadata?: ObjectMeta;
  [key: string]: unknown;
}

export interface WebsiteStatus {
  /** no two items with the same type */
  conditions?: WebsiteStatusConditionsItem[];
  ready?: number;
}

export interface WebsiteStatusConditionsItem {
  /** format date-time */
  lastTransitionTime: string;
  message: string;
  /** format int64 */
  observedGeneration?: number;
  reason: string;
  status: 'True' | 'False' | 'Unknown';
  type: string;
}

/** @deprecated use v1 */
export interface WebsiteV1beta1 {
  apiVersion?: 'example.com/v1beta1';
  kind?: 'Website';
  metadata: ObjectMeta & { name: string };
  spec?: WebsiteV1beta1Spec;
}

export const WEBSITES_V1BETA1: ResourceType & Kind<WebsiteV1beta1> = kind<WebsiteV1beta1>({
  group: 'example.com',
  version: 'v1beta1',
  plural: 'websites',
  kind: 'Website',
  namespaced: true,
});

export interface WebsiteV1beta1Spec {
  image?: string;
}

/** Who manages a set of fields. */
export interface ManagedFieldsEntry {
  /** The version in which the fields are named. */
  apiVersion?: string;
  /** FieldsV1. */
  fieldsType?: string;
  /** The fields, as a tree. */
  fieldsV1?: object;
  /** The name of the manager. */
  manager?: string;
  /** Apply or Update. */
  operation?: string;
  /** Where the fields were written; empty: at the object itself. */
  subresource?: string;
  /**
   * When the manager last wrote the fields.
   *
   * format date-time
   */
  time?: string;
}

/** ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create. */
export interface ObjectMeta {
  /** Annotations is an unstructured key value map for metadata of any kind. They are not queryable. */
  annotations?: { [key: string]: string };
  /**
   * CreationTimestamp is a timestamp: when this object was created, by the clock of the server. Read-only.
   *
   * format date-time
   */
  creationTimestamp?: string;
  /**
   * Read-only.
   *
   * format int64
   */
  deletionGracePeriodSeconds?: number;
  /**
   * The time at which this object was asked to be deleted. Read-only.
   *
   * format date-time
   */
  deletionTimestamp?: string;
  /**
   * Must be empty before the object is deleted from the registry.
   *
   * no item twice
   */
  finalizers?: string[];
  /** A prefix by which the server makes a unique name if name is not given. */
  generateName?: string;
  /**
   * A number that grows with the desired state. Read-only.
   *
   * format int64
   */
  generation?: number;
  /** Map of string keys and values that can be used to organize and select objects. */
  labels?: { [key: string]: string };
  /** Who manages which fields. */
  managedFields?: ManagedFieldsEntry[];
  /** Name must be unique within a namespace. Cannot be updated. */
  name?: string;
  /** Namespace defines the space within which each name must be unique. Cannot be updated. */
  namespace?: string;
  /**
   * List of objects depended by this object.
   *
   * no two items with the same uid
   */
  ownerReferences?: OwnerReference[];
  /** The version of this object. Opaque: pass it back unmodified. Read-only. */
  resourceVersion?: string;
  /** Deprecated: no longer populated. */
  selfLink?: string;
  /** The unique value in time and space for this object. Read-only. */
  uid?: string;
}

/** OwnerReference contains enough information to let you identify an owning object. */
export interface OwnerReference {
  /** API version of the referent. */
  apiVersion: string;
  /** Whether the owner cannot be deleted before this reference is removed. */
  blockOwnerDeletion?: boolean;
  /** Whether the owner is the managing controller. */
  controller?: boolean;
  /** Kind of the referent. */
  kind: string;
  /** Name of the referent. */
  name: string;
  /** UID of the referent. */
  uid: string;
}
