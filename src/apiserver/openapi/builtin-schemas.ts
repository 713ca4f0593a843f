/**
 * The schemas of the built-in kinds, for `kubectl explain` and for the checks of old clients. The server itself checks these
 * kinds without a schema, so it needs no package for that.
 */
import type { JsonSchema } from '../definition.ts';

const texts = (description: string, more: JsonSchema = {}): JsonSchema => ({
  description,
  type: 'object',
  additionalProperties: { type: 'string', ...more },
});

const text = (description: string, more: JsonSchema = {}): JsonSchema => ({ description, type: 'string', ...more });
const count = (description: string): JsonSchema => ({ description, type: 'integer', format: 'int32' });

/** By group, version and kind. */
export const BUILT_IN_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  'v1/ConfigMap': {
    description: 'ConfigMap holds configuration data.',
    type: 'object',
    properties: {
      data: texts('Data contains the configuration data. Keys are letters, digits, -, _ and a dot.'),
      binaryData: texts('BinaryData contains binary data in base64. A key must not be in Data as well.', { format: 'byte' }),
      immutable: { description: 'If true, the data cannot be updated.', type: 'boolean' },
    },
  },
  'v1/Namespace': {
    description: 'Namespace provides a scope for names.',
    type: 'object',
    properties: {
      spec: {
        description: 'The desired state.',
        type: 'object',
        properties: {
          finalizers: { description: 'What must be done before it is removed.', type: 'array', items: { type: 'string' } },
        },
      },
      status: {
        description: 'The observed state.',
        type: 'object',
        properties: {
          phase: { description: 'Active or Terminating.', type: 'string' },
          conditions: {
            description: 'What is observed while it is being removed.',
            type: 'array',
            items: {
              type: 'object',
              required: ['type', 'status'],
              properties: {
                type: text('What is observed.'),
                status: text('True, False or Unknown.'),
                lastTransitionTime: text('When the status changed.', { format: 'date-time' }),
                reason: text('Why, in one word.'),
                message: text('Why, in words.'),
              },
            },
          },
        },
      },
    },
  },
  'coordination.k8s.io/v1/Lease': {
    description: 'Lease says who holds a role, and until when others may rely on that.',
    type: 'object',
    properties: {
      spec: {
        description: 'Who holds it, and since when.',
        type: 'object',
        properties: {
          holderIdentity: text('The current holder.'),
          leaseDurationSeconds: count('How long others wait after the last renewal before they take it.'),
          acquireTime: text('When the current holder took it.', { format: 'date-time' }),
          renewTime: text('When the current holder last renewed it.', { format: 'date-time' }),
          leaseTransitions: count('How often the holder has changed.'),
          strategy: text('How the holder is chosen, if another program coordinates that.'),
          preferredHolder: text('Who is to hold it next, if another program coordinates that.'),
        },
      },
    },
  },
};
