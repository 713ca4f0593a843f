// What a cacher is asked in property tests, and what a watch of it has to bring: a filter of the list of revisions.
import fc from 'fast-check';
import { expect } from 'vitest';
import { namespaceOf, versionOf } from '../../src/cache/object.ts';
import type { StorageEvent } from '../../src/storage/index.ts';
import { isInitialEventsEnd } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import type { Pod, Pods } from '../unit/faulty-storage.ts';

export interface Selected {
  readonly scope: '' | 'x/' | 'y/';
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

// Few, so that several watches often have the same.
export const selected: fc.Arbitrary<Selected> = fc.constantFrom<Selected>(
  { scope: '' },
  { scope: '' },
  { scope: 'x/' },
  { scope: 'y/', labelSelector: 'app in (web,db)' },
  { scope: '', labelSelector: 'app=web' },
  { scope: '', labelSelector: '!app' },
  { scope: '', fieldSelector: 'spec.node=n1' },
  { scope: 'x/', fieldSelector: 'spec.node=n1', labelSelector: 'app!=web' },
  { scope: '', fieldSelector: 'spec.node=n2,metadata.name!=a' },
  { scope: '', fieldSelector: 'spec.node!=n1' },
  { scope: '', fieldSelector: 'metadata.name=a' },
  { scope: 'y/', fieldSelector: 'metadata.namespace=x' },
  { scope: '', fieldSelector: 'metadata.namespace=x', labelSelector: 'app=web' },
  { scope: '', fieldSelector: 'metadata.name=a,metadata.name=b' },
);

/** The selectors above, written in another way: as the model has them. */
const LABELS: Readonly<Record<string, (app: string) => boolean>> = {
  'app=web': (app) => app === 'web',
  'app in (web,db)': (app) => app === 'web' || app === 'db',
  '!app': () => false,
  'app!=web': (app) => app !== 'web',
};
const BY_FIELDS: Readonly<Record<string, (pod: Pod) => boolean>> = {
  'metadata.name=a': (pod) => pod.metadata?.name === 'a',
  'metadata.namespace=x': (pod) => pod.metadata?.namespace === 'x',
  'spec.node=n1': (pod) => pod.spec?.node === 'n1',
  'spec.node=n2,metadata.name!=a': (pod) => pod.spec?.node === 'n2' && pod.metadata?.name !== 'a',
  'spec.node!=n1': (pod) => pod.spec?.node !== 'n1',
  'metadata.name=a,metadata.name=b': () => false,
};
export function matches({ scope, labelSelector, fieldSelector }: Selected, pod: Pod | undefined): boolean {
  if (!pod) return false;
  if (scope && `${namespaceOf(pod)}/` !== scope) return false;
  if (labelSelector && !LABELS[labelSelector]?.(pod.metadata?.labels?.app ?? '')) return false;
  return !fieldSelector || BY_FIELDS[fieldSelector]?.(pod) === true;
}

/** With what a watch begins: `back` so many versions. */
export type Begin = 'state' | 'initial' | 'now' | { readonly back: number };

/** Who knows what a reader cannot. */
export interface Judge {
  readonly pods: Pods;
  expectLost(reader: Reader): void;
  expectShared(what: Selected, event: StorageEvent<Pod>): void;
}

const shown = ({ type, object }: StorageEvent<Pod>): string => {
  if (type === 'ERROR' || type === 'BOOKMARK') return type;
  return `${type} ${object.metadata?.namespace}/${object.metadata?.name}@${versionOf(object)} ${object.spec?.n} ${object.spec?.node}`;
};

/** A watch, what it has brought, and what it had to. */
export class Reader {
  readonly events: StorageEvent<Pod>[] = [];
  over: boolean = false;
  stopped: boolean = false;
  readonly #world: Judge;
  readonly watch: Watch<StorageEvent<Pod>>;
  readonly what: Selected;
  readonly begin: Begin;
  /** The versions between which it has begun. */
  readonly from: readonly [number, number];

  constructor(
    world: Judge,
    watch: Watch<StorageEvent<Pod>>,
    { what, begin: how, from }: { what: Selected; begin: Begin; from: readonly [number, number] },
  ) {
    this.#world = world;
    this.watch = watch;
    this.what = what;
    this.begin = how;
    this.from = from;
  }

  take(event: StorageEvent<Pod>): void {
    expect(this.over).toBe(false);
    this.events.push(event);
    if (event.type === 'ERROR') {
      expect(event.object.code).toBe(410);
      this.over = true;
      this.#world.expectLost(this);
    }
    this.#world.expectShared(this.what, event);
  }

  readNow(how: 'one' | 'batch' | 'all'): void {
    const watch = this.watch as Watch<StorageEvent<Pod>> & { tryBatch(): readonly StorageEvent<Pod>[] | undefined };
    do {
      const events = how === 'one' ? watch.tryNext() : watch.tryBatch();
      if (events === undefined) return;
      for (const event of [events].flat() as StorageEvent<Pod>[]) this.take(event);
    } while (how === 'all');
  }

  async follow(): Promise<void> {
    for await (const batch of this.watch.batches()) for (const event of batch) this.take(event);
    this.over = true;
  }

  /** The last version of which everything was delivered. */
  get told(): number {
    const last = this.events.findLast(({ type }) => type !== 'ERROR');
    return last ? Number(versionOf(last.object)) : this.from[0];
  }

  /** Judges everything that has come, by some version at which it may have begun. */
  check(whole: boolean): void {
    const [low, high] = this.from;
    const failures: unknown[] = [];
    for (let version = high; version >= low; version--) {
      try {
        this.#checkFrom(version, whole);
        return;
      } catch (error) {
        failures.push(error);
      }
    }
    throw failures[0];
  }

  #checkFrom(start: number, whole: boolean): void {
    const { pods } = this.#world;
    const expected: string[] = [];
    if (this.begin === 'state' || this.begin === 'initial') {
      const state = [...pods.at(start)].filter(([, pod]) => matches(this.what, pod)).sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [, object] of state) expected.push(shown({ type: 'ADDED', object }));
    }
    const marks = this.begin === 'initial' ? [expected.length] : [];
    const versions: number[] = expected.map(() => start);
    for (const { version, before, after } of pods.revisions) {
      if (version <= start) continue;
      const [was, is] = [matches(this.what, before), matches(this.what, after)];
      if (!was && !is) continue;
      versions.push(version);
      if (is) expected.push(shown({ type: was ? 'MODIFIED' : 'ADDED', object: after as Pod }));
      else
        expected.push(
          shown({
            type: 'DELETED',
            object: { ...before, metadata: { ...before?.metadata, resourceVersion: `${version}` } } as Pod,
          }),
        );
    }
    const seen = this.events.filter(({ type }) => type !== 'BOOKMARK' && type !== 'ERROR').map(shown);
    expect(seen).toEqual(expected.slice(0, seen.length));
    if (whole && this.events.at(-1)?.type !== 'ERROR' && !this.stopped) expect(seen.length).toBe(expected.length);
    let count = 0;
    let last = 0;
    for (const event of this.events) {
      if (event.type === 'ERROR') continue;
      if (event.type !== 'BOOKMARK') {
        count++;
        continue;
      }
      const version = Number(versionOf(event.object));
      if (isInitialEventsEnd(event)) {
        expect(marks.shift()).toBe(count);
        expect(version).toBe(start);
      } else expect(version).toBeGreaterThanOrEqual(last);
      // Everything up to it was delivered before it, and nothing after it is as old.
      expect(versions.filter((each) => each <= version)).toHaveLength(count);
      last = version;
    }
    if (whole && this.events.at(-1)?.type !== 'ERROR' && !this.stopped) expect(marks).toEqual([]);
  }
}
