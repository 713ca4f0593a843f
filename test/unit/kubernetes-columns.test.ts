// What `kubectl get` shows of Kubernetes' own kinds in several states. test/peers/kubernetes-columns.test.ts compares the same with a kube-apiserver.
import { beforeAll, describe, expect, it } from 'vitest';
import { kubernetesKinds, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { TABLE } from '../../src/apiserver/kinds/kubernetes-table.ts';
import { bring, NAMES_SHOWN, pathOf, readTable, STATES } from '../kubernetes-states.ts';
import { rig } from './apiserver-rig.ts';

const NAMES = Object.keys(STATES);
const AS_TABLE = { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' };

let kinds: ResourceDefinition[];
beforeAll(async () => {
  kinds = await kubernetesKinds(...NAMES);
});

describe("the columns of Kubernetes' own kinds", () => {
  it('are tested for each kind', () => {
    expect(NAMES).toHaveLength((TABLE.split('\n\n', 1)[0] as string).split('\n').length);
  });

  it.each(NAMES)('show %s', async (name) => {
    const kind = kinds[NAMES.indexOf(name)] as ResourceDefinition;
    const errors: unknown[] = [];
    const { server, call } = rig({ resources: [kind], onError: (error) => errors.push(error) });
    const states = STATES[name] ?? [];
    for (const state of states) {
      await bring(kind, state, async (method, path, body, type) => {
        const { code, text } = await call(method, path, body, type ? { 'content-type': type } : {});
        if (code >= 300) throw new Error(`${method} ${path}: ${code} ${text}`);
      });
    }
    const { rows } = readTable((await call('GET', pathOf(kind), undefined, AS_TABLE)).body);
    for (const { name: own, cells } of states) expect(rows.get(own)).toEqual([NAMES_SHOWN[`${name}/${own}`] ?? own, ...cells]);
    expect(errors).toEqual([]);
    await server.shutdown();
  });
});
