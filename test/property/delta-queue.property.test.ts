// Both queues of deltas against the obvious: arrays that are searched, and a consumer that keeps what it was told.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DeltaFifo, type RealDelta, RealFifo } from '../../src/cache/index.ts';
import { runs } from '../runs.ts';
import { inferred, shown, type Thing, thing } from '../unit/delta-support.ts';

type Type = 'Added' | 'Updated' | 'Deleted' | 'Deleted?' | 'Replaced' | 'Sync' | 'ReplacedAll' | 'SyncAll' | 'Bookmark';
/** A delta of the model: `of` is the key, `text` all of it. */
interface Item {
  readonly type: Type;
  readonly of: string;
  readonly value: number;
  readonly text: string;
}
const item = (type: Type, of: string, value: number): Item => ({ type, of, value, text: `${type} ${of}${value}` });
const isDeleted = ({ type }: Item): boolean => type.startsWith('Deleted');

/** The first list in numbers: how many are to come; undefined before anything. */
class Progress {
  left: number | undefined;
  begin(count: number): void {
    if (this.left === undefined) this.left = count;
  }
  step(count: number): void {
    if (this.left) this.left -= count;
  }
}

/** What a queue must hold. */
abstract class Model {
  known: Map<string, number> = new Map();
  progress: Progress = new Progress();
  abstract size(): number;
  abstract change(one: Item): void;
  abstract replace(list: ReadonlyMap<string, number>, version: string): void;
  abstract resync(): void;
  abstract bookmark(version: string): void;
  abstract pop(batch: boolean): Item[];
}

class DeltaModel extends Model {
  queue: { readonly key: string; deltas: Item[] }[] = [];
  private readonly emitReplaced: boolean;
  constructor(emitReplaced: boolean) {
    super();
    this.emitReplaced = emitReplaced;
  }
  size(): number {
    return this.queue.length;
  }
  push(one: Item): void {
    const entry = this.queue.find(({ key }) => key === one.of);
    if (entry) {
      const [before] = entry.deltas.slice(-1) as [Item];
      if (!isDeleted(before) || !isDeleted(one)) entry.deltas.push(one);
      else if (before.type === 'Deleted?') entry.deltas = [...entry.deltas.slice(0, -1), one];
    } else this.queue.push({ key: one.of, deltas: [one] });
  }
  change(one: Item): void {
    this.progress.begin(0);
    if (!isDeleted(one) || this.known.has(one.of) || this.queue.some(({ key }) => key === one.of)) this.push(one);
  }
  replace(list: ReadonlyMap<string, number>): void {
    const queued = this.queue.filter(({ key }) => !list.has(key)).map(({ key, deltas }) => [key, deltas.at(-1)?.value] as const);
    const known = [...this.known].filter(([key]) => !list.has(key) && !this.queue.some((entry) => entry.key === key));
    for (const [key, value] of list) this.push(item(this.emitReplaced ? 'Replaced' : 'Sync', key, value));
    for (const [key, value] of [...queued, ...known]) this.push(item('Deleted?', key, value as number));
    this.progress.begin(list.size + queued.length + known.length);
  }
  resync(): void {
    const missing = [...this.known].filter(([key]) => !this.queue.some((entry) => entry.key === key));
    for (const [key, value] of missing) this.push(item('Sync', key, value));
  }
  bookmark(): void {}
  pop(): Item[] {
    this.progress.step(1);
    return this.queue.shift()?.deltas ?? [];
  }
}

class RealModel extends Model {
  queue: Item[] = [];
  private readonly atomic: boolean;
  constructor(atomic: boolean) {
    super();
    this.atomic = atomic;
  }
  size(): number {
    return this.queue.length;
  }
  change(one: Item): void {
    this.queue.push(one);
    this.progress.begin(0);
  }
  last(key: string): Item | undefined {
    return this.queue.filter(({ of }) => of === key).at(-1);
  }
  replace(list: ReadonlyMap<string, number>, version: string): void {
    const all = Array.from(list, ([key, value]) => key + value).join(' ');
    if (this.atomic) this.queue.push({ type: 'ReplacedAll', of: '', value: 0, text: `ReplacedAll@${version} ${all}`.trim() });
    else {
      const keys = [...new Set(this.queue.map(({ of }) => of))];
      const gone = keys.filter((key) => !list.has(key) && !isDeleted(this.last(key) as Item));
      const deletions = gone.map((key) => item('Deleted?', key, (this.last(key) as Item).value));
      for (const [key, value] of this.known) {
        if (!list.has(key) && !keys.includes(key)) deletions.push(item('Deleted?', key, value));
      }
      this.queue.push(...deletions, ...Array.from(list, ([key, value]) => item('Replaced', key, value)));
    }
    this.progress.begin(this.queue.length);
  }
  resync(): void {
    if (this.atomic) this.queue.push({ type: 'SyncAll', of: '', value: 0, text: 'SyncAll' });
    else {
      const missing = [...this.known].filter(([key]) => !this.last(key));
      this.queue.push(...missing.map(([key, value]) => item('Sync', key, value)));
    }
  }
  bookmark(version: string): void {
    if (this.atomic) this.queue.push({ type: 'Bookmark', of: '', value: 0, text: `Bookmark@${version}` });
  }
  pop(batch: boolean): Item[] {
    const most = Math.min(batch ? 3 : 1, this.progress.left || 3);
    const taken: Item[] = [];
    for (const one of this.queue.slice(0, most)) {
      const alone = one.of === '';
      if (taken.length > 0 && (alone || taken.some(({ of }) => of === one.of))) break;
      taken.push(one);
      if (alone) break;
    }
    this.queue.splice(0, taken.length);
    this.progress.step(taken.length);
    return taken;
  }
}

/** The queue, and its consumer: what it has applied, and what the producer had told by then. */
interface Real {
  readonly queue: DeltaFifo<Thing> | RealFifo<Thing>;
  readonly known: Map<string, Thing>;
  readonly atomic: boolean;
  /** What the producer has told, after each of its calls; only for the atomic queue. */
  readonly views: string[];
  /** What a collection is after all that the producer has told. */
  readonly view: Map<string, number>;
}

/** What a consumer does with a delta. */
function apply(known: Map<string, Thing>, delta: RealDelta<Thing>): void {
  if (delta.type === 'ReplacedAll') {
    known.clear();
    for (const [key, object] of delta.objects) known.set(key, object);
  } else if (delta.type === 'Deleted') known.delete(delta.key);
  else if ('key' in delta) known.set(delta.key, delta.object);
}

const stateOf = (state: Iterable<readonly [string, number]>): string => JSON.stringify([...state].sort());

/** One command from a function, with its text. */
function command(text: string, act: (model: Model, real: Real) => Promise<void> | void): fc.AsyncCommand<Model, Real> {
  return {
    check: () => true,
    run: async (model, real) => {
      const { queue } = real;
      const before = queue.size;
      await act(model, real);
      if (real.atomic) for (let at = before; at < queue.size; at++) real.views.push(stateOf(real.view));
      expect(queue.size).toBe(model.size());
      expect(queue.hasSynced).toBe(model.progress.left === 0);
    },
    toString: () => text,
  };
}

function pop(batch: boolean, async: boolean): fc.AsyncCommand<Model, Real> {
  return command(`pop${batch ? 'Batch' : ''}`, async (model, { queue, known, atomic, views }) => {
    if (model.size() === 0) return;
    const initial = model.progress.left !== 0;
    const expected = model.pop(batch);
    for (const one of expected) {
      if (isDeleted(one)) model.known.delete(one.of);
      else if (one.of) model.known.set(one.of, one.value);
    }
    const process = (deltas: readonly RealDelta<Thing>[], first: boolean): unknown => {
      expect(first).toBe(initial);
      for (const delta of deltas) {
        apply(known, delta);
        // P11.5: after the k-th delta the consumer has what the producer had told by its k-th call.
        if (atomic) expect(stateOf(Array.from(known, ([key, { value }]) => [key, value] as const))).toBe(views.shift());
      }
      return async ? Promise.resolve() : undefined;
    };
    const popped = batch && queue instanceof RealFifo ? await queue.popBatch(process) : await queue.pop(process);
    expect(popped.map(shown)).toEqual(expected.map(({ text }) => text));
    if (atomic) model.known = new Map(Array.from(known, ([key, { value }]) => [key, value]));
  });
}

const name = fc.constantFrom('a', 'b', 'c', 'd');
const value = fc.integer({ min: 0, max: 9 });
const COMMANDS = [
  fc.tuple(name, value).map(([of, next]) =>
    command(`add ${of}${next}`, (model, { queue, view }) => {
      model.change(item('Added', of, next));
      view.set(of, next);
      queue.add(thing(of, next));
    }),
  ),
  fc.tuple(name, value).map(([of, next]) =>
    command(`update ${of}${next}`, (model, { queue, view }) => {
      model.change(item('Updated', of, next));
      view.set(of, next);
      queue.update(thing(of, next));
    }),
  ),
  fc.tuple(name, value, fc.boolean()).map(([of, next, guess]) =>
    command(`delete${guess ? '?' : ''} ${of}${next}`, (model, { queue, view }) => {
      model.change(item(guess ? 'Deleted?' : 'Deleted', of, next));
      view.delete(of);
      queue.delete(guess ? inferred(of, next) : thing(of, next));
    }),
  ),
  fc.tuple(fc.array(fc.tuple(name, value), { maxLength: 5 }), value).map(([list, version]) =>
    command(`replace ${JSON.stringify(list)}`, (model, { queue, view }) => {
      model.replace(new Map(list), `${version}`);
      view.clear();
      for (const [of, next] of list) view.set(of, next);
      queue.replace(
        list.map(([of, next]) => thing(of, next)),
        `${version}`,
      );
    }),
  ),
  fc.constant(
    command('resync', (model, { queue }) => {
      model.resync();
      queue.resync();
    }),
  ),
  fc.constant(
    command('bookmark', (model, { queue }) => {
      model.bookmark('5');
      if (queue instanceof RealFifo) queue.bookmark('5');
    }),
  ),
  fc.tuple(fc.boolean(), fc.boolean()).map(([batch, async]) => pop(batch, async)),
  fc.tuple(fc.boolean(), fc.boolean()).map(([batch, async]) => pop(batch, async)),
];

describe.each<[string, () => { model: Model; real: Real }]>([
  ['a DeltaFifo', () => delta(false)],
  ['a DeltaFifo with emitReplaced', () => delta(true)],
  ['a RealFifo', () => real(true)],
  ['a RealFifo with knownObjects', () => real(false)],
])('%s', (_, setup) => {
  test('delivers what the model does: P11.1 to P11.5', async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands(COMMANDS, { maxCommands: 40 }), (commands) => fc.asyncModelRun(setup, commands)),
      { numRuns: runs(2_000) },
    );
  });
});

function delta(emitReplaced: boolean): { model: Model; real: Real } {
  const known = new Map<string, Thing>();
  const queue = new DeltaFifo<Thing>({ knownObjects: known, emitReplaced });
  return { model: new DeltaModel(emitReplaced), real: { queue, known, atomic: false, views: [], view: new Map() } };
}

function real(atomic: boolean): { model: Model; real: Real } {
  const known = new Map<string, Thing>();
  const queue = new RealFifo<Thing>(atomic ? { batchSize: 3 } : { knownObjects: known, batchSize: 3 });
  return { model: new RealModel(atomic), real: { queue, known, atomic, views: [], view: new Map() } };
}
