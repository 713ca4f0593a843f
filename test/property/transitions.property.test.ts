import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { filterTransitions } from '../../src/broadcast/filter.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { runs } from '../runs.ts';

/**
 * The model: two sets, the objects that are in and those that are not. Whoever applies the filtered events to an empty map must
 * have exactly the objects that match, after each event.
 */

interface Thing {
  readonly metadata: { readonly namespace?: string; readonly name: string; readonly resourceVersion: string };
  readonly on: boolean;
}
type Type = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
interface Change extends WatchEvent<Type, Thing> {
  readonly previous?: Thing | undefined;
}

const isOn = (thing: Thing): boolean => thing.on;
const keyOf = ({ metadata }: Thing): string => `${metadata.namespace ?? ''}/${metadata.name}`;

const steps = fc.array(
  fc.record({
    namespace: fc.constantFrom(undefined, '', 'x'),
    name: fc.constantFrom('a', 'b'),
    on: fc.boolean(),
    type: fc.constantFrom<Type>('ADDED', 'MODIFIED', 'MODIFIED', 'DELETED', 'BOOKMARK'),
  }),
  { maxLength: 30 },
);
type Step = typeof steps extends fc.Arbitrary<(infer S)[]> ? S : never;

function thingOf({ namespace, name, on }: Step, at: number): Thing {
  return { metadata: { ...(namespace !== undefined && { namespace }), name, resourceVersion: String(at) }, on };
}

/** The steps as a store would tell them: what is not there is added, what is there is modified or deleted. */
function storeHistory(list: readonly Step[]): Change[] {
  const store = new Map<string, Thing>();
  const history: Change[] = [];
  for (const [at, step] of list.entries()) {
    const object = thingOf(step, at);
    const previous = store.get(keyOf(object));
    if (step.type === 'BOOKMARK') {
      history.push({ type: 'BOOKMARK', object });
    } else if (step.type === 'DELETED') {
      if (previous === undefined) continue;
      store.delete(keyOf(object));
      const last = { ...previous, metadata: { ...previous.metadata, resourceVersion: String(at) } };
      history.push({ type: 'DELETED', object: last, previous });
    } else {
      store.set(keyOf(object), object);
      history.push({ type: previous === undefined ? 'ADDED' : 'MODIFIED', object, previous });
    }
  }
  return history;
}

function watchOf(changes: readonly Change[]): Watch<Change> {
  return fromAsyncIterable(
    (async function* () {
      yield* changes;
    })(),
  );
}

async function follow(
  changes: readonly Change[],
  options?: { previousOf: (event: Change) => Thing | undefined },
): Promise<Change[]> {
  const events: Change[] = [];
  for await (const event of filterTransitions(watchOf(changes), isOn, options)) events.push(event);
  return events;
}

const previousOf = (event: Change): Thing | undefined => event.previous;
const bare = ({ type, object }: Change): Change => ({ type, object });

/** What must come out for one event, from what is in. */
function expected(change: Change, within: Map<string, Thing>): Change[] {
  const { type, object } = change;
  const key = keyOf(object);
  const last = within.get(key);
  if (type === 'BOOKMARK') return [bare(change)];
  if (type !== 'DELETED' && object.on) {
    within.set(key, object);
    return [{ type: last === undefined ? 'ADDED' : 'MODIFIED', object }];
  }
  if (last === undefined) return [];
  within.delete(key);
  const metadata = { ...last.metadata, resourceVersion: object.metadata.resourceVersion };
  return [{ type: 'DELETED', object: { ...last, metadata } }];
}

test('Transitional: with previous objects and without, the history of a store matches the model', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const history = storeHistory(list);
      const within = new Map<string, Thing>();
      const model = history.flatMap((change) => expected(change, within));
      expect((await follow(history, { previousOf })).map(bare)).toEqual(model);
      expect((await follow(history)).map(bare)).toEqual(model);
    }),
    { numRuns: runs(500) },
  );
});

test('Transitional: any sequence of events matches the model, if only keys are known', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const changes = list.map((step, at): Change => ({ type: step.type, object: thingOf(step, at) }));
      const within = new Map<string, Thing>();
      const model = changes.flatMap((change) => expected(change, within));
      expect(await follow(changes)).toEqual(model);
    }),
    { numRuns: runs(500) },
  );
});

test('a client that applies the events has exactly the matching objects, and gets valid transitions only', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.boolean(), async (list, withPrevious) => {
      const history = storeHistory(list);
      const seen = new Map<string, Thing>();
      for (const { type, object } of await follow(history, withPrevious ? { previousOf } : undefined)) {
        if (type === 'BOOKMARK') continue;
        const key = keyOf(object);
        expect(seen.has(key)).toBe(type !== 'ADDED');
        expect(object.on).toBe(true);
        if (type === 'DELETED') seen.delete(key);
        else seen.set(key, object);
      }
      const store = new Map<string, Thing>();
      for (const { type, object } of history) {
        if (type === 'DELETED') store.delete(keyOf(object));
        else if (type !== 'BOOKMARK') store.set(keyOf(object), object);
      }
      expect([...seen.values()].map(keyOf).sort()).toEqual([...store.values()].filter(isOn).map(keyOf).sort());
      for (const [key, object] of seen) expect(object).toBe(store.get(key));
    }),
    { numRuns: runs(500) },
  );
});

test('stacked filters: with previous objects, the second one sees the transitions of the first', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const history = storeHistory(list);
      const inX = (thing: Thing): boolean => thing.metadata.namespace === 'x';
      const stacked: Change[] = [];
      const first = filterTransitions(watchOf(history), isOn, { previousOf });
      for await (const event of filterTransitions(first, inX, { previousOf })) stacked.push(bare(event));
      const both: Change[] = [];
      const at = filterTransitions(watchOf(history), (thing) => isOn(thing) && inX(thing), { previousOf });
      for await (const event of at) both.push(bare(event));
      expect(stacked.filter(({ type }) => type !== 'BOOKMARK')).toEqual(both.filter(({ type }) => type !== 'BOOKMARK'));
    }),
    { numRuns: runs(300) },
  );
});
