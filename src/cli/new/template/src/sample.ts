import type { KubernetesObject } from 'watchmux/cache';
import { type Condition, kind, type OperatorControllerOptions, setCondition } from 'watchmux/operator';

/** As in manifests/crd.yaml: `npx watchmux types manifests/crd.yaml` prints it. */
export interface Sample extends KubernetesObject {
  spec: { message: string };
  status?: { observedGeneration?: number; conditions?: Condition[] };
}

export const SAMPLES = kind<Sample>('samples.sample.example/v1');

/** Keeps a ConfigMap of the same name with the message of each Sample. */
export const samples: OperatorControllerOptions<Sample> = {
  for: SAMPLES,
  owns: ['configmaps/v1'],
  async reconcile({ object, apply, updateStatus, events }) {
    // What an object owns is deleted with it.
    if (object === undefined || object.metadata?.deletionTimestamp !== undefined) return;
    await apply('configmaps/v1', { data: { message: object.spec.message } });
    const ready = { type: 'Ready', status: 'True', reason: 'Applied', message: 'The ConfigMap has the message' } as const;
    if (object.status?.observedGeneration !== object.metadata?.generation) events.normal(ready.reason, ready.message);
    await updateStatus((draft) => {
      setCondition(draft, ready);
      draft.status = { ...draft.status, observedGeneration: draft.metadata?.generation };
    });
  },
};
