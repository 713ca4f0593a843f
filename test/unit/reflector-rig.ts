// A reflector, or a retry watcher, between a source that follows a script and a store that notes what it is told.
import {
  type List,
  type ListOptions,
  type ListWatcher,
  type ListWatchOptions,
  Reflector,
  type ReflectorFailure,
  type ReflectorOptions,
  type ReflectorStore,
} from '../../src/cache/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock, FakeListWatcher, FakeWatcher } from '../../src/testing/index.ts';
import { INITIAL_EVENTS_END, type ObjectEvent, type StatusDetails, toStatus } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { settle } from './faulty-source.ts';

export interface Pod {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
}
export const pod = (name: string, resourceVersion: string): Pod => ({ metadata: { name, resourceVersion } });
export const list = (resourceVersion: string, ...names: string[]): List<Pod> => ({
  items: names.map((name) => pod(name, resourceVersion)),
  resourceVersion,
});
export const refusal = (code: number, reason: string = 'No', details?: StatusDetails): Error =>
  FakeListWatcher.refusal(code, reason, details);
export const errorEvent = (code: number, reason: string = 'No', details?: StatusDetails): ObjectEvent<Pod> => ({
  type: 'ERROR',
  object: toStatus({ code, reason, message: reason, details }),
});
export const bookmark = (resourceVersion: string, end?: string): ObjectEvent<Pod> => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion, annotations: end === undefined ? {} : { [INITIAL_EVENTS_END]: end } } },
});
export const change = (type: 'ADDED' | 'MODIFIED' | 'DELETED', name: string, version: string): ObjectEvent<Pod> => ({
  type,
  object: pod(name, version),
});

/** A watch of the script. */
export class ScriptedWatch extends FakeWatcher<ObjectEvent<Pod>> {
  /** How often its reader has ended it. */
  ends: number = 0;
  constructor(events: readonly ObjectEvent<Pod>[] = []) {
    super({ capacity: 1_000 });
    for (const event of events) this.push(event);
  }
  push(...events: readonly ObjectEvent<Pod>[]): void {
    for (const event of events) void this.send(event);
  }
  /** The source ends it. */
  finish(): void {
    super.stop();
  }
  override stop(): void {
    this.ends++;
    super.stop();
  }
  override return(): Promise<IteratorResult<ObjectEvent<Pod>, undefined>> {
    this.ends++;
    return super.return();
  }
}

type Answer<V> = V | Error | (() => V | Promise<V>);

/** Answers each request with what is next in its script. When that is over, a list is the last one, and a watch stays open. */
export class ScriptedSource implements ListWatcher<Pod> {
  readonly lists: ListOptions[] = [];
  /** Questions whether it has reached a version. */
  readonly checks: ListOptions[] = [];
  readonly watches: ListWatchOptions[] = [];
  readonly opened: ScriptedWatch[] = [];
  toList: Answer<List<Pod>>[] = [];
  /** When this is over, it has reached them. */
  toCheck: Answer<List<Pod>>[] = [];
  toWatch: Answer<Watch<ObjectEvent<Pod>>>[] = [];
  #last: List<Pod> = list('1');

  async list(options: ListOptions = {}): Promise<List<Pod>> {
    // A list of pages that may be newer has pages of more.
    if (options.resourceVersionMatch === 'NotOlderThan' && options.limit === 1) {
      this.checks.push(options);
      return await answerOf(this.toCheck.shift() ?? list(options.resourceVersion ?? ''));
    }
    this.lists.push(options);
    const answer = await answerOf(this.toList.shift() ?? this.#last);
    this.#last = answer;
    return answer;
  }
  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<Pod>>> {
    this.watches.push(options);
    const watch = await answerOf(this.toWatch.shift() ?? new ScriptedWatch());
    if (watch instanceof ScriptedWatch) this.opened.push(watch);
    return watch;
  }
  /** The versions that were asked for. */
  get listed(): (string | undefined)[] {
    return this.lists.map(({ resourceVersion }) => resourceVersion);
  }
  get watched(): (string | undefined)[] {
    return this.watches.map(({ resourceVersion }) => resourceVersion);
  }
  get last(): ScriptedWatch {
    return this.opened.at(-1) as ScriptedWatch;
  }
}

async function answerOf<V>(answer: Answer<V>): Promise<V> {
  if (answer instanceof Error) throw answer;
  return typeof answer === 'function' ? await (answer as () => V | Promise<V>)() : answer;
}

export class NotingStore implements ReflectorStore<Pod> {
  readonly notes: string[] = [];
  /** The next call throws this. */
  error: Error | undefined;
  add(object: Pod): void {
    this.#note(`add ${object.metadata.name}`);
  }
  update(object: Pod): void {
    this.#note(`update ${object.metadata.name}`);
  }
  delete(object: Pod): void {
    this.#note(`delete ${object.metadata.name}`);
  }
  replace(all: Iterable<Pod>, resourceVersion: string): void {
    this.#note(`replace ${resourceVersion} ${Array.from(all, ({ metadata }) => metadata.name).join()}`);
  }
  resync(): void {
    this.#note('resync');
  }
  bookmark(resourceVersion: string): void {
    this.#note(`bookmark ${resourceVersion}`);
  }
  #note(text: string): void {
    const { error } = this;
    this.error = undefined;
    if (error) throw error;
    this.notes.push(text);
  }
}

export class Rig {
  readonly clock: FakeClock = new FakeClock();
  readonly source: ScriptedSource = new ScriptedSource();
  readonly store: NotingStore;
  readonly abort: AbortController = new AbortController();
  readonly listeners: ListenerCount = new ListenerCount(this.abort.signal);
  readonly failures: ({ error: unknown } & ReflectorFailure)[] = [];
  readonly phases: string[] = [];
  readonly reflector: Reflector<Pod>;
  running: Promise<void> | undefined;

  /** Lists without streams, and without jitter, unless it is told otherwise. */
  constructor(options: ReflectorOptions<Pod> = {}, store: NotingStore = new NotingStore()) {
    this.store = store;
    this.reflector = new Reflector(this.source, store, {
      ...{ streamingList: false, random: () => 0, clock: this.clock },
      onError: (error, failure) => this.failures.push({ error, ...failure }),
      onStateChange: ({ phase }) => phase !== this.phases.at(-1) && this.phases.push(phase),
      ...options,
    });
  }
  async start(): Promise<void> {
    this.running = this.reflector.run(this.abort.signal);
    await settle();
  }
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    await settle();
  }
  /** Stops it, and tells what is left behind: timers, listeners, watches that were not ended exactly once. */
  async stop(): Promise<unknown[]> {
    this.abort.abort();
    await this.running;
    await settle();
    return [this.clock.pending, this.listeners.count, ...this.source.opened.map(({ ends }) => ends).filter((ends) => ends !== 1)];
  }
}
/** Nothing. */
export const CLEAN = [0, 0];
