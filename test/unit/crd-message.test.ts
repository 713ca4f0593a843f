// A CustomResourceDefinition in protobuf, as the typed client of Go sends it, is read as the JSON that it stands for.
import { expect, test } from 'vitest';
import type { Shape } from '../../src/apiserver/kinds/shape.ts';
import { messageOf } from '../../src/apiserver/kinds/tables.ts';
import { readProtobuf, writingMessage } from '../../src/apiserver/request/protobuf.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const CRD = { group: 'apiextensions.k8s.io', version: 'v1', kind: 'CustomResourceDefinition' };

/** What runtime.Encode of Go makes of {@link JSON_OF_IT}. */
const BYTES = Buffer.from(
  [
    'azhzAAozChdhcGlleHRlbnNpb25zLms4cy5pby92MRIYQ3VzdG9tUmVzb3VyY2VEZWZpbml0aW9uEuMICioKEnRoaW5ncy5leGFtcGxlLmNvbRIAGgAiACoA',
    'MgA4AEIAWgYKAWESAWISpggKC2V4YW1wbGUuY29tGhwKBnRoaW5ncxIAGgJ0aCIFVGhpbmcqADIDYWxsIgpOYW1lc3BhY2VkOuIHCgJ2MRABGAEigwcKgAcK',
    'ABIAIghBIHRoaW5nLioGb2JqZWN0MgA6AFAAYAB6AJABALoBBHNwZWPqAeYFCgRzcGVjEt0FCgASACIAKgZvYmplY3QyADoAUABgAHoAkAEA6gEzCgNhbnkS',
    'LAoAEgAiACoGb2JqZWN0MgA6AFAAYAB6AJABAPIBAggBqAIAsAIBuAIAwAIA6gFPCgVjb2xvchJGCgASACIAKgZzdHJpbmcyADoAQgcKBSJyZWQiUABgAHoE',
    'XnJ8YpABAKIBBwoFInJlZCKiAQgKBiJibHVlIqgCALgCAMACAOoBiwEKBGxpc3QSggEKABIAIgAqBWFycmF5MgA6AFAAYAB6AJABAMIBUgpQCgASACIAKgZv',
    'YmplY3QyADoAUABgAHoAkAEA6gEpCgFrEiQKABIAIgAqBnN0cmluZzIAOgBQAGAAegCQAQCoAgC4AgDAAgCoAgC4AgDAAgCoAgC4AgDAAgDKAgFr0gIDbWFw',
    '6gFYCgNtYXASUQoAEgAiACoGb2JqZWN0MgA6AFAAYAB6AJABAPIBKggBEiYKABIAIgAqBnN0cmluZzIAOgBQAGAAaAN6AJABAKgCALgCAMACAKgCALgCAMAC',
    'AOoBPAoBbhI3CgASACIAKgdpbnRlZ2VyMgA6AEkAAAAAAAAkQFABWQAAAAAAAPi/YAB6AJABAKgCAbgCAMACAOoBMQoEbm9uZRIpCgASACIAKgZvYmplY3Qy',
    'ADoAUABgAHoAkAEA8gECCACoAgC4AgDAAgDqAZ4BCgRwb3J0EpUBCgASACIAKgAyADoAUABgAHoAkAEA2gElCgASACIAKgdpbnRlZ2VyMgA6AFAAYAB6AJAB',
    'AKgCALgCAMACANoBJAoAEgAiACoGc3RyaW5nMgA6AFAAYAB6AJABAKgCALgCAMACAOIBJQoAEgAiACoHYm9vbGVhbjIAOgBQAGAAegCQAQCoAgC4AgDAAgCo',
    'AgC4AgDAAgGoAgC4AgDAAgDiAi8KCnNlbGYubiA+IDASCHBvc2l0aXZlGgAiEUZpZWxkVmFsdWVJbnZhbGlkKgAwAOoBYAoGc3RhdHVzElYKABIAIgAqBm9i',
    'amVjdDIAOgBQAGAAegCQAQDqAS8KAW4SKgoAEgAiACoHaW50ZWdlcjIFaW50MzI6AFAAYAB6AJABAKgCALgCAMACAKgCALgCAMACAKgCALgCAMACACoYCgAS',
    'FAoHLnNwZWMubhIJLnN0YXR1cy5uMiIKBUNvbG9yEgZzdHJpbmcaACIAKAEyCy5zcGVjLmNvbG9yOABCA29sZEoNCgsuc3BlYy5jb2xvckoGCgROb25lUAAa',
    'DBIICgASACIAKgAgABoAIgA=',
  ].join(''),
  'base64',
);

const JSON_OF_IT = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'things.example.com',
    labels: {
      a: 'b',
    },
  },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: {
      plural: 'things',
      kind: 'Thing',
      shortNames: ['th'],
      categories: ['all'],
    },
    conversion: {
      strategy: 'None',
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        deprecationWarning: 'old',
        selectableFields: [
          {
            jsonPath: '.spec.color',
          },
        ],
        additionalPrinterColumns: [
          {
            name: 'Color',
            type: 'string',
            jsonPath: '.spec.color',
            priority: 1,
          },
        ],
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.n',
            statusReplicasPath: '.status.n',
          },
        },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: 'A thing.',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                properties: {
                  color: {
                    type: 'string',
                    enum: ['red', 'blue'],
                    default: 'red',
                    pattern: '^r|b',
                  },
                  n: {
                    type: 'integer',
                    minimum: -1.5,
                    maximum: 10,
                    exclusiveMaximum: true,
                    nullable: true,
                  },
                  map: {
                    type: 'object',
                    additionalProperties: {
                      type: 'string',
                      maxLength: 3,
                    },
                  },
                  any: {
                    type: 'object',
                    additionalProperties: true,
                    'x-kubernetes-preserve-unknown-fields': true,
                  },
                  none: {
                    type: 'object',
                    additionalProperties: false,
                  },
                  list: {
                    type: 'array',
                    items: {
                      type: 'object',
                      properties: {
                        k: {
                          type: 'string',
                        },
                      },
                    },
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['k'],
                  },
                  port: {
                    'x-kubernetes-int-or-string': true,
                    anyOf: [
                      {
                        type: 'integer',
                      },
                      {
                        type: 'string',
                      },
                    ],
                    not: {
                      type: 'boolean',
                    },
                  },
                },
                'x-kubernetes-validations': [
                  {
                    rule: 'self.n > 0',
                    message: 'positive',
                    reason: 'FieldValueInvalid',
                    optionalOldSelf: false,
                  },
                ],
              },
              status: {
                type: 'object',
                properties: {
                  n: {
                    type: 'integer',
                    format: 'int32',
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

test('it has every kind of member', () => {
  expect(atOnce(readProtobuf(BYTES, CRD))).toMatchObject(JSON_OF_IT);
});

test('half of it is no definition', () => {
  // Before byte 80 it names its kind alone.
  for (let length = 80; length < BYTES.length; length += 7) {
    expect(() => atOnce(readProtobuf(BYTES.subarray(0, length), CRD))).toThrow(
      expect.objectContaining({ status: expect.objectContaining({ code: 400 }) }),
    );
  }
});

test('schemas inside each other are read to a depth', () => {
  let schema: object = { type: 'object' };
  const deep = (levels: number): Buffer => {
    schema = { type: 'object' };
    for (let level = 0; level < levels; level++) schema = { not: schema };
    const versions = [{ name: 'v1', schema: { openAPIV3Schema: schema } }];
    const message = Buffer.from(atOnce(writingMessage({ spec: { versions } }, messageOf(CRD) as Shape)));
    return envelope(message);
  };
  expect(atOnce(readProtobuf(deep(150), CRD))).toMatchObject({ spec: { versions: [{ name: 'v1' }] } });
  expect(() => atOnce(readProtobuf(deep(250), CRD))).toThrow('nested deeper than 200 levels');
});

function envelope(message: Buffer): Buffer {
  const length: number[] = [];
  for (let rest = message.length; ; rest >>= 7) {
    length.push((rest & 127) | (rest > 127 ? 128 : 0));
    if (rest <= 127) break;
  }
  return Buffer.concat([Buffer.from([0x6b, 0x38, 0x73, 0, 0x12, ...length]), message]);
}
