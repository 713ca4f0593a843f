/** The metadata of all kinds. Upstream: `meta/v1`. */
import { byKey, SET, type Shape, shape } from './shape.ts';

const OWNER_REFERENCE: Shape = shape('OwnerReference identifies an owning object.', {
  apiVersion: [5, 'string', '!', 'API version of the referent.'],
  kind: [1, 'string', '!', 'Kind of the referent.'],
  name: [3, 'string', '!', 'Name of the referent.'],
  uid: [4, 'string', '!', 'UID of the referent.'],
  controller: [6, 'bool', '?', 'Whether the owner is the managing controller.'],
  blockOwnerDeletion: [7, 'bool', '?', 'Whether the owner cannot be deleted before this reference is removed.'],
});

const MANAGED_FIELDS: Shape = shape('What one manager has written.', {
  manager: [1, 'string', '', 'Who.'],
  operation: [2, 'string', '', 'Apply or Update.'],
  apiVersion: [3, 'string', '', 'In which version.'],
  time: [4, 'time', '?', 'When.'],
  fieldsType: [6, 'string', '', 'The format of the fields.'],
  fieldsV1: [7, 'json', '?', 'Which fields.'],
  subresource: [8, 'string', '', 'Through which subresource.'],
});

export const OBJECT_META: Shape = shape('Standard metadata.', {
  name: [1, 'string', '', 'Name must be unique within a namespace.'],
  generateName: [2, 'string', '', 'A prefix by which the server makes a unique name.'],
  namespace: [3, 'string', '', 'The space within which each name must be unique.'],
  selfLink: [4, 'string', '', 'Deprecated.'],
  uid: [5, 'string', '', 'The unique value in time and space.'],
  resourceVersion: [6, 'string', '', 'The version of this object.'],
  generation: [7, 'int64', '', 'A number that grows with the desired state.'],
  creationTimestamp: [8, 'time', '', 'When it was created.'],
  deletionTimestamp: [9, 'time', '?', 'When it was asked to be deleted.'],
  deletionGracePeriodSeconds: [10, 'int64', '?', 'How long it may take.'],
  labels: [11, 'string', '{}', 'Keys and values by which objects are selected.'],
  annotations: [12, 'string', '{}', 'Keys and values of any kind.'],
  ownerReferences: [13, OWNER_REFERENCE, '[]', 'Objects on which this one depends.', byKey('uid')],
  finalizers: [14, 'string', '[]', 'Must be empty before the object is deleted.', SET],
  managedFields: [17, MANAGED_FIELDS, '[]', 'Who manages which fields.'],
});
