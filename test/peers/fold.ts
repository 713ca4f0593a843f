// What a handler of an informer was told, folded: at the end it must be what the store has, and each call must fit to those before.
import type { Handler, KubernetesObject } from '../../src/cache/index.ts';
import { keyOf } from '../../src/cache/index.ts';

/** Handlers and their results. */
export class Fold {
  readonly objects: Map<string, KubernetesObject> = new Map();
  /** Calls that do not fit to what was told before. */
  readonly faults: string[] = [];
  /** Keys of objects whose deletion was only seen in a list. */
  readonly inferred: string[] = [];
  calls: number = 0;

  get handler(): Handler<KubernetesObject> {
    return {
      onAdd: (object) => this.#tell('onAdd', object, { known: undefined, now: object }),
      onUpdate: (old, object) => this.#tell('onUpdate', object, { known: old, now: object }),
      onDelete: (object, finalStateUnknown) => {
        if (finalStateUnknown) this.inferred.push(keyOf(object));
        const known = this.objects.get(keyOf(object));
        this.#tell('onDelete', object, { known: known ?? object, now: undefined });
      },
    };
  }

  #tell(call: string, object: KubernetesObject, { known, now }: Record<'known' | 'now', KubernetesObject | undefined>): void {
    this.calls++;
    const key = keyOf(object);
    if (this.objects.get(key) !== known) this.faults.push(`${call} ${key} does not follow what was told before`);
    if (now) this.objects.set(key, now);
    else this.objects.delete(key);
  }

  /** What it has come to: versions by key. */
  get versions(): Record<string, string | undefined> {
    return versionsOf(this.objects.values());
  }
}

/** Versions by key, to compare whole collections. */
export function versionsOf(objects: Iterable<KubernetesObject>): Record<string, string | undefined> {
  return Object.fromEntries(Array.from(objects, (each) => [keyOf(each), each.metadata?.resourceVersion] as const).sort());
}
