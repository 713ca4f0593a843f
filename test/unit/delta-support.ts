import type { DeletedFinalStateUnknown, DeltaFifo, KnownObjects, RealDelta, RealFifo } from '../../src/cache/index.ts';

/** The objects of the tests of queues: a name as key, and a value to tell versions apart. */
export interface Thing {
  readonly metadata: { readonly name: string };
  readonly value: number;
}

export const thing = (name: string, value: number): Thing => ({ metadata: { name }, value });

/** An inferred deletion, as upstream's tests make them. */
export const inferred = (name: string, value: number): DeletedFinalStateUnknown<Thing> => ({
  type: 'Deleted',
  key: name,
  object: thing(name, value),
  finalStateUnknown: true,
});

/** Objects that are known, as text: `a1 b2` is a with value 1 and b with value 2. */
export function knows(text: string): KnownObjects<Thing> & Map<string, Thing> {
  return new Map(things(text).map((each) => [each.metadata.name, each]));
}

/** Objects from text. */
export function things(text: string): Thing[] {
  return text
    .split(' ')
    .filter(Boolean)
    .map((word) => thing(word.slice(0, -1), Number(word.slice(-1))));
}

/** A delta as text: `Added a1`, and `Deleted? a1` if the final state is not known. */
export function shown(delta: RealDelta<Thing>): string {
  if (delta.type === 'ReplacedAll') {
    return `ReplacedAll@${delta.resourceVersion} ${Array.from(delta.objects, ([key, { value }]) => key + value).join(' ')}`.trim();
  }
  if (delta.type === 'Bookmark') return `Bookmark@${delta.resourceVersion}`;
  if (delta.type === 'SyncAll') return delta.type;
  const guess = delta.type === 'Deleted' && delta.finalStateUnknown ? '?' : '';
  return `${delta.type}${guess} ${delta.key}${delta.object.value}`;
}

/** Pops everything that is queued: one text per pop. Those of the first list begin with `!`. */
export async function popAll(queue: DeltaFifo<Thing> | RealFifo<Thing>): Promise<string[]> {
  const popped: string[] = [];
  while (queue.size > 0) {
    await queue.pop((deltas: readonly RealDelta<Thing>[], initial: boolean) => {
      popped.push(`${initial ? '!' : ''}${deltas.map(shown).join(', ')}`);
    });
  }
  return popped;
}
