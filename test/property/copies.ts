// A state, a hub that serves it, and the copies that others should have, for the property tests of copies.
import fc from 'fast-check';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { Objects } from '../../src/bridge/hub/hub-options.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';

export const MAX_AGE_MS = 20_000;
export const SOURCES = ['none', 'at once', 'lazy', 'later', 'by object', 'by key'] as const;

/** Options of a server. */
export interface Options {
  readonly source: (typeof SOURCES)[number];
  readonly replayItems: number;
  readonly replay: number;
  readonly capacity: number;
  readonly maxSnapshots: number;
}

export const NAMES = ['a', 'b', 'c', 'd'] as const;

/** An object: `n` differs at each change. */
export interface Thing {
  readonly metadata: { readonly name: string };
  readonly n: number;
}

export interface Change extends WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED', Thing> {
  /** The object before; not on the wire. */
  readonly previous?: Thing | undefined;
}

/** The `n` of each object, by name. */
export type Copy = Map<string, number>;

/** A filter by a property that never changes. */
export const visible = ({ object }: WatchEvent): boolean => 'abc'.includes((object as Thing).metadata.name);

/** What clients do with an event. */
export function apply(copy: Copy, { type, object }: WatchEvent): void {
  const { metadata, n } = object as Thing;
  if (type === 'DELETED') copy.delete(metadata.name);
  else if (type === 'ADDED' || type === 'MODIFIED') copy.set(metadata.name, n);
}

/** The copy that one who heard of all these changes has. */
export function copyOf(changes: Iterable<WatchEvent>): Copy {
  const copy: Copy = new Map();
  for (const change of changes) apply(copy, change);
  return copy;
}

export const same = (a: Copy, b: Copy): boolean => a.size === b.size && [...a].every(([name, n]) => b.get(name) === n);

/** The objects of an application. */
export class State {
  readonly things: Map<string, Thing> = new Map();
  /** Those that were deleted, and have not come back. */
  private readonly gone: Map<string, Thing> = new Map();
  private n: number = 0;

  /** Changes the state. Returns the event to publish. */
  change(name: string, remove: boolean): Change {
    const previous = this.things.get(name);
    const object = { metadata: { name }, n: ++this.n };
    const type = previous === undefined ? 'ADDED' : remove ? 'DELETED' : 'MODIFIED';
    const [from, to] = type === 'DELETED' ? [this.things, this.gone] : [this.gone, this.things];
    from.delete(name);
    to.set(name, object);
    return { type, object, previous };
  }

  /** What is not there any more, told as events. */
  get deletions(): Change[] {
    return [...this.gone.values()].map((object) => ({ type: 'DELETED', object }));
  }

  /** The state, told as events. */
  get initial(): Change[] {
    return [...this.things.values()].map((object) => ({ type: 'ADDED', object }));
  }
}

/** A hub over a state that changes before each publish, and snapshots of it that are read bit by bit. */
export class Server {
  readonly state: State = new State();
  readonly clock: FakeClock = new FakeClock();
  readonly hub: Hub;
  readonly options: Options;
  /** Changes that the state has, and that are still to be published. */
  readonly due: Change[] = [];
  readonly published: Change[] = [];
  /** What snapshots read, and what is published of what is due; a test may replace them. */
  view: () => ReadonlyMap<string, Thing> = () => this.state.things;
  tamper: (changes: Change[]) => Change[] = (changes) => changes;
  private readonly gates: (() => void)[] = [];
  private open: boolean = false;

  constructor(given: Options) {
    this.options = given;
    const { source, replay, ...more } = given;
    this.hub = new Hub({
      ...more,
      epoch: 'e',
      clock: this.clock,
      replay: Math.min(replay, more.replayItems),
      maxConnectionAgeMs: MAX_AGE_MS,
      snapshot: source === 'none' ? undefined : () => this.read(source),
    });
  }

  publish(): void {
    for (const change of this.tamper(this.due.splice(0))) {
      this.published.push(change);
      void this.hub.publish(change);
    }
  }

  /** All changes have been distributed. */
  get upToDate(): boolean {
    return this.hub.version === `e.${this.published.length}`;
  }

  /** What a client with this filter should have: now, or as of what clients have been sent. */
  truth(filtered: boolean, changes: readonly Change[] = this.state.initial): Copy {
    return copyOf(filtered ? changes.filter(visible) : changes);
  }

  /** A list from elsewhere, with its version. */
  list(filtered: boolean): { copy: Copy; version: string } {
    const { version } = this.hub;
    return { version, copy: this.truth(filtered, this.published.slice(0, Number(version.split('.')[1]))) };
  }

  /** Lets the first snapshot that waits read on; at the end, all of them. */
  feed(all: boolean = false): void {
    this.open ||= all;
    for (const go of this.gates.splice(0, all ? this.gates.length : 1)) go();
  }

  private gate(): Promise<void> | undefined {
    return this.open ? undefined : new Promise((resolve) => this.gates.push(resolve));
  }

  private read(source: Options['source']): Objects<Thing> | Promise<Objects<Thing>> {
    const things = this.view();
    const gate = (): Promise<void> | undefined => this.gate();
    async function* byObject(): AsyncGenerator<Thing> {
      for (const thing of things.values()) {
        await gate();
        yield thing;
      }
      await gate();
    }
    async function* byKey(): AsyncGenerator<Thing> {
      for (const name of [...things.keys()]) {
        await gate();
        const thing = things.get(name);
        if (thing !== undefined) yield thing;
      }
    }
    if (source === 'by object') return byObject();
    if (source === 'by key') return byKey();
    if (source === 'lazy') return things.values();
    const all = [...things.values()];
    return source === 'at once' ? all : Promise.resolve(gate()).then(() => all);
  }
}

/** Whether any plan shows that something is broken. One that fails in another way does not count. */
export async function isCaught<T>(any: fc.Arbitrary<T>, isWrong: (one: T) => Promise<boolean>): Promise<boolean> {
  let caught = false;
  const seek = fc.asyncProperty(any, async (one) => {
    caught = await isWrong(one);
    return !caught;
  });
  // From the same place each time: how long the search takes is no matter of luck.
  await fc.check(seek, { numRuns: 15_000, endOnFailure: true, seed: 1 });
  return caught;
}
