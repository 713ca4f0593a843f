import type { KubernetesObject } from 'watchmux/cache';
import { type Condition, controller, findCondition, isDeleting, kind, setCondition } from 'watchmux/operator';

/** As in manifests/crd.yaml: `npx watchmux types manifests/crd.yaml` prints it. */
export interface Sample extends KubernetesObject {
  spec: { message: string };
  status?: { conditions?: Condition[] };
}

export const SAMPLES = kind<Sample>('samples.sample.example/v1');

/** Keeps a ConfigMap of the same name with the message of each Sample. */
export const samples = controller({
  for: SAMPLES,
  owns: ['configmaps/v1'],
  async reconcile({ object, apply, updateStatus, events }) {
    // Objects that an object owns are deleted with it.
    if (object === undefined || isDeleting(object)) return;
    await apply('configmaps/v1', { data: { message: object.spec.message } });

    const observedGeneration = object.metadata?.generation;
    if (findCondition(object, 'Ready')?.observedGeneration === observedGeneration) return;
    const message = 'The ConfigMap has the message';
    await updateStatus((draft) =>
      setCondition(draft, { type: 'Ready', status: 'True', reason: 'Applied', message, observedGeneration }),
    );
    events.normal('Applied', message);
  },
});
