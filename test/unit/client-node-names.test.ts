// AsJson knows every name that the classes of client-node call otherwise. test/types/kubernetes.test.ts has what it makes of them.
import * as clientNode from '@kubernetes/client-node';
import { expect, it } from 'vitest';

interface Attribute {
  readonly name: string;
  readonly baseName: string;
}

it('no class has a name that AsJson does not know', () => {
  const renamed = new Map<string, string>();
  const ofSchemas = new Map<string, string>();
  for (const [name, value] of Object.entries(clientNode)) {
    const { getAttributeTypeMap } = value as { getAttributeTypeMap?: () => readonly Attribute[] };
    const differing = getAttributeTypeMap?.().filter((each) => each.name !== each.baseName) ?? [];
    for (const each of differing) (name === 'V1JSONSchemaProps' ? ofSchemas : renamed).set(each.name, each.baseName);
  }
  const words = { _continue: 'continue', _default: 'default', _from: 'from', _int: 'int' };
  expect(Object.fromEntries([...renamed].sort())).toEqual(words);
  expect(Object.fromEntries([...ofSchemas].sort())).toEqual({
    _default: 'default',
    _enum: 'enum',
    ref: '$ref',
    schema: '$schema',
    x_kubernetes_embedded_resource: 'x-kubernetes-embedded-resource',
    x_kubernetes_int_or_string: 'x-kubernetes-int-or-string',
    x_kubernetes_list_map_keys: 'x-kubernetes-list-map-keys',
    x_kubernetes_list_type: 'x-kubernetes-list-type',
    x_kubernetes_map_type: 'x-kubernetes-map-type',
    x_kubernetes_preserve_unknown_fields: 'x-kubernetes-preserve-unknown-fields',
    x_kubernetes_validations: 'x-kubernetes-validations',
  });
});
