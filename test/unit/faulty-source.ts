// A collection in memory with the faults that a network and a busy server have. It checks that nobody asks for a version which it
// has not told.
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../../src/cache/index.ts';
import { versionOf } from '../../src/cache/object.ts';
import { FakeListWatcher, type FakeListWatcherOptions } from '../../src/testing/index.ts';
import { isInitialEventsEnd, type ObjectEvent } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import type { Watch } from '../../src/watch/watch.ts';

export interface Thing {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly value: number;
}
export const thing = (name: string, value: number = 0): Thing => ({ metadata: { name }, value });

/** How a server answers a request to stream: as it should, with a refusal, or as one that has never heard of it. */
export type Streaming = 'yes' | 'refused' | 'ignored';

export class FaultySource implements ListWatcher<Thing> {
  readonly fake: FakeListWatcher<Thing>;
  streaming: Streaming = 'yes';
  /** What was asked for: `list 0 500`, `stream `, `watch 7`. */
  readonly asked: string[] = [];
  readonly wrong: string[] = [];
  /** Watches that end as soon as they are open. */
  shortEnds: number = 0;
  /** Requests that fail as a network does. */
  unreachable: number = 0;
  /** What its answers wait for: they show what it had before. */
  late: Promise<void> | undefined;
  ends: number = 0;
  opened: number = 0;
  readonly #told: Set<string> = new Set(['', '0']);
  readonly #open: Set<Tap> = new Set();

  constructor(options?: FakeListWatcherOptions<Thing>) {
    this.fake = new FakeListWatcher<Thing>(options);
  }

  /** The links of all open watches go dead: nothing comes any more, not even an end. */
  mute(): void {
    for (const tap of this.#open) tap.mute();
  }

  async list(options: ListOptions = {}): Promise<List<Thing>> {
    this.#ask(`list ${options.resourceVersion ?? ''} ${options.limit ?? 0}`, options.resourceVersion);
    const list = await this.fake.list(options);
    await this.late;
    this.#told.add(list.resourceVersion);
    return list;
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<Thing>>> {
    const { sendInitialEvents, ...plain } = options;
    this.#ask(`${sendInitialEvents ? 'stream' : 'watch'} ${options.resourceVersion ?? ''}`, options.resourceVersion);
    if (sendInitialEvents && this.streaming === 'refused') throw FakeListWatcher.refusal(422, 'Invalid');
    const watch = await this.fake.watch(this.streaming === 'ignored' ? plain : options);
    await this.late;
    this.opened++;
    if (this.shortEnds > 0) {
      this.shortEnds--;
      watch.stop();
    }
    const tap = new Tap(watch, (event) => this.#tell(event));
    this.#open.add(tap);
    return counted(fromAsyncIterable<ObjectEvent<Thing>>(tap), () => {
      this.ends++;
      this.#open.delete(tap);
    });
  }

  /** Its objects by name. */
  get state(): Record<string, Thing> {
    return Object.fromEntries(this.objects.map((object) => [object.metadata.name, object]));
  }

  objects: Thing[] = [];

  add(object: Thing): void {
    const stored = this.fake.add(object);
    this.objects = [...this.objects.filter(({ metadata }) => metadata.name !== object.metadata.name), stored];
  }

  delete(name: string): void {
    this.fake.delete(thing(name));
    this.objects = this.objects.filter(({ metadata }) => metadata.name !== name);
  }

  #ask(text: string, version: string = ''): void {
    this.asked.push(text);
    if (!this.#told.has(version)) this.wrong.push(text);
    if (this.unreachable > 0) {
      this.unreachable--;
      throw new TypeError('fetch failed');
    }
  }

  #tell(event: ObjectEvent<Thing>): void {
    if (event.type !== 'ERROR' || isInitialEventsEnd(event)) this.#told.add(versionOf(event.object));
  }
}

/** A watch between the server and its client, which may go dead. */
class Tap implements AsyncIterator<ObjectEvent<Thing>, undefined> {
  readonly #watch: Watch<ObjectEvent<Thing>>;
  readonly #tell: (event: ObjectEvent<Thing>) => void;
  readonly #never: Promise<IteratorResult<ObjectEvent<Thing>, undefined>>;
  #muted: boolean = false;
  #leave: () => void = () => {};

  constructor(watch: Watch<ObjectEvent<Thing>>, tell: (event: ObjectEvent<Thing>) => void) {
    this.#watch = watch;
    this.#tell = tell;
    this.#never = new Promise((resolve) => {
      this.#leave = () => resolve({ done: true, value: undefined });
    });
  }

  mute(): void {
    this.#muted = true;
  }

  async next(): Promise<IteratorResult<ObjectEvent<Thing>, undefined>> {
    if (this.#muted) return this.#never;
    const result = await this.#watch.next();
    if (this.#muted) return this.#never;
    if (!result.done) this.#tell(result.value);
    return result;
  }

  async return(): Promise<IteratorResult<ObjectEvent<Thing>, undefined>> {
    this.#leave();
    return this.#watch.return();
  }
}

/** Calls `onEnd` each time that somebody ends the watch. */
function counted<E>(watch: Watch<E>, onEnd: () => void): Watch<E> {
  const stop = watch.stop.bind(watch);
  const leave = watch.return.bind(watch);
  watch.stop = () => {
    onEnd();
    stop();
  };
  watch.return = () => {
    onEnd();
    return leave();
  };
  return watch;
}

/** Lets everything happen that needs no time. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
