// The OpenAPI v2 document in protobuf says what the one in JSON says. The numbers of fields are those of gnostic's OpenAPIv2.proto.
import { describe, expect, it } from 'vitest';
import { OpenApi, PROTOBUF_TYPE } from '../../src/apiserver/documents/openapi.ts';
import { CONFIG_MAPS, LEASES, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { toInfo } from '../../src/apiserver/resource-info.ts';
import { ProtoReader } from '../../src/storage/etcd/wire/messages.ts';

/** The fields of a message, all of which are bytes here. */
class Fields {
  readonly #fields: Map<number, Uint8Array[]> = new Map();

  constructor(message: Uint8Array) {
    for (const reader = new ProtoReader(message); reader.next(); ) {
      this.#fields.set(reader.field, [...(this.#fields.get(reader.field) ?? []), reader.bytes().slice()]);
    }
  }

  all(field: number): Fields[] {
    return (this.#fields.get(field) ?? []).map((each) => new Fields(each));
  }

  texts(field: number): string[] {
    return (this.#fields.get(field) ?? []).map((each) => Buffer.from(each).toString());
  }

  text(field: number): string | undefined {
    return this.texts(field)[0];
  }

  /** The one message in it. */
  at(...path: number[]): Fields {
    return path.reduce((fields: Fields, field) => {
      const [only, ...more] = fields.all(field);
      if (only === undefined || more.length > 0) throw new Error(`there are ${more.length} more of field ${field}`);
      return only;
    }, this);
  }

  get names(): number[] {
    return [...this.#fields.keys()];
  }
}

const extensions = (fields: Fields, field: number): object =>
  Object.fromEntries(fields.all(field).map((each) => [each.text(1), JSON.parse(each.at(2).text(2) as string)]));
const named = (fields: Fields): object => Object.fromEntries(fields.all(1).map((each) => [each.text(1), schemaOf(each.at(2))]));

function schemaOf(fields: Fields): object {
  const has = (field: number): boolean => fields.names.includes(field);
  return {
    ...(has(1) && { $ref: fields.text(1) }),
    ...(has(2) && { format: fields.text(2) }),
    ...(has(4) && { description: fields.text(4) }),
    ...(has(19) && { required: fields.texts(19) }),
    ...(has(21) && { additionalProperties: schemaOf(fields.at(21, 1)) }),
    ...(has(22) && { type: fields.at(22).text(1) }),
    ...(has(23) && { items: schemaOf(fields.at(23, 1)) }),
    ...(has(25) && { properties: named(fields.at(25)) }),
    ...extensions(fields, 31),
  };
}

/** Responses are left out. */
function operationOf(fields: Fields): object {
  const parameters = fields.all(8).map((each) => {
    const query = each.at(1, 2, 3);
    return { in: query.text(2), name: query.text(4), type: query.text(6) };
  });
  return { parameters, ...extensions(fields, 13) };
}

const schema = {
  type: 'object',
  required: ['spec', 'status'],
  properties: {
    spec: {
      type: 'object',
      properties: {
        count: { type: 'integer', format: 'int32', description: 'How many.' },
        tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
        closed: { type: 'object', additionalProperties: false },
        text: { type: 'string', description: '' },
      },
    },
  },
};

describe('OpenAPI v2 in protobuf', () => {
  it('is the document in JSON', () => {
    const orders = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', schema };
    const things = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing', namespaced: false };
    const definitions = [CONFIG_MAPS, NAMESPACES, LEASES, orders, things] as ResourceDefinition[];
    const openApi = new OpenApi(definitions.map((each) => toInfo(each)));
    const { body: json, etag } = openApi.document('/openapi/v2') ?? {};
    const protobuf = openApi.document('/openapi/v2', PROTOBUF_TYPE)?.body as Uint8Array;
    const expected = JSON.parse(String(json));
    for (const { patch } of Object.values(expected.paths) as { patch: { responses?: object } }[]) {
      expect(patch.responses).toEqual({ 200: { description: 'OK' } });
      delete patch.responses;
    }
    // An empty text is none.
    delete expected.definitions['com.example.v1.Order'].properties.spec.properties.text.description;
    const fields = new Fields(protobuf);
    expect({
      swagger: fields.text(1),
      info: { title: fields.at(2).text(1), version: fields.at(2).text(2) },
      paths: Object.fromEntries(
        fields
          .at(8)
          .all(2)
          .map((each) => [each.text(1), { patch: operationOf(each.at(2, 8)) }]),
      ),
      definitions: named(fields.at(9)),
    }).toEqual(expected);
    expect(Object.keys(expected.paths)).toEqual([
      '/api/v1/namespaces/{namespace}/configmaps/{name}',
      '/api/v1/namespaces/{name}',
      '/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}',
      '/apis/example.com/v1/namespaces/{namespace}/orders/{name}',
      '/apis/example.com/v1/things/{name}',
    ]);
    expect(etag).toMatch(/^"[0-9A-F]{16}"$/);
  });
});
