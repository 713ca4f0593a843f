import { expect } from 'vitest';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';
import { type Answered, rig } from './apiserver-rig.ts';

export const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

const ANYTHING = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** A definition of `widgets.example.com`, unless it is changed. */
export function crdOf(spec: object = {}, version: object = {}, plural = 'widgets', kind = 'Widget'): object {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.example.com` },
    spec: {
      ...{ group: 'example.com', scope: 'Namespaced', names: { plural, kind } },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: ANYTHING }, ...version }],
      ...spec,
    },
  };
}

export type CrdRig = ReturnType<typeof crdRig>;

/** A server with definitions at run time. */
export function crdRig(options: Partial<ApiServerOptions> = {}) {
  const uid = (): string => crypto.randomUUID();
  const made = rig({ customResourceDefinitions: true, resources: [], uid, ...options });
  const read = (name: string): Promise<Answered> => made.call('GET', `${CRDS}/${name}`);
  /** Creates or changes a definition, and waits until it is served. */
  const define = async (crd: object): Promise<void> => {
    const { name } = (crd as { metadata: { name: string } }).metadata;
    const { code, text } = await made.call('POST', CRDS, crd);
    expect([code, text]).toEqual([201, text]);
    await established(name);
  };
  const established = (name: string): Promise<void> =>
    expect.poll(async () => conditionsOf(await read(name))).toMatchObject({ Established: 'True' }) as never;
  const gone = (name: string): Promise<void> => expect.poll(async () => (await read(name)).code).toBe(404) as never;
  return { ...made, read, define, established, gone };
}

/** The conditions of a definition, by their types. */
export function conditionsOf({ body }: Answered): Record<string, string> {
  const conditions = (body.status?.conditions ?? []) as { type: string; status: string }[];
  return Object.fromEntries(conditions.map(({ type, status }) => [type, status]));
}
