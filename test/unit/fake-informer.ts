import type { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { WatchError } from '../../src/watch/errors.ts';
import type { ControllerHandler, ControllerInformer } from '../../src/workqueue/index.ts';

export interface Thing {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly owner?: string;
}

interface Registered {
  readonly handler: ControllerHandler<Thing>;
  /** As they were given. */
  readonly options: unknown;
  /** Calls that are still to be made. The last one of a handler's initial calls resolves `synced`. */
  readonly due: (() => void)[];
}

/** An informer whose source is the test. What handlers are to hear waits for `deliver` while `lagging` is true. */
export class FakeInformer implements ControllerInformer<Thing> {
  readonly store: { keyOf(object: Thing): string } = { keyOf: ({ metadata }) => metadata.name };
  readonly objects: Map<string, Thing> = new Map();
  /** What `atLeast` compares with; it follows `version`, except while `stale`. */
  reached: number = 0;
  version: number = 0;
  stale: boolean = false;
  lagging: boolean = false;
  started: boolean | undefined;
  stops: number = 0;
  readonly handlers: Set<Registered> = new Set();
  readonly waiting: Set<() => void> = new Set();
  private readonly clock: FakeClock;
  hasSynced: boolean;
  private failRun: (error: unknown) => void = () => {};
  private endRun: () => void = () => {};

  constructor(clock: FakeClock, { synced = true, started }: { synced?: boolean; started?: boolean } = {}) {
    this.clock = clock;
    this.hasSynced = synced;
    this.started = started;
  }

  addHandler(handler: ControllerHandler<Thing>, options?: unknown): { readonly synced: Promise<void>; remove(): void } {
    const registered: Registered = { handler, options, due: [] };
    this.handlers.add(registered);
    const synced = new Promise<void>((resolve) => {
      const initial = (): void => {
        for (const object of this.objects.values()) handler.onAdd(object);
        resolve();
      };
      registered.due.push(initial);
    });
    if (this.hasSynced && !this.lagging) this.deliver();
    return { synced, remove: () => void this.handlers.delete(registered) };
  }

  /** The initial list is there. */
  sync(): void {
    this.hasSynced = true;
    this.deliver();
  }

  set(name: string, owner?: string): Thing {
    const resourceVersion = String(++this.version);
    const object: Thing = { metadata: { name, resourceVersion }, ...(owner === undefined ? {} : { owner }) };
    const old = this.objects.get(name);
    this.objects.set(name, object);
    this.tell((handler) => (old ? handler.onUpdate(old, object) : handler.onAdd(object)));
    return object;
  }

  delete(name: string): void {
    const old = this.objects.get(name);
    if (!old) return;
    this.version++;
    this.objects.delete(name);
    this.tell((handler) => handler.onDelete(old));
  }

  resync(): void {
    for (const object of this.objects.values()) this.tell((handler) => handler.onUpdate(object, object));
  }

  deliver(): void {
    if (!this.hasSynced) return;
    for (const { due } of this.handlers) for (const call of due.splice(0)) call();
  }

  /** The store has all there is. */
  catchUp(): void {
    this.reached = this.version;
    for (const look of [...this.waiting]) look();
  }

  atLeast(
    version: string,
    { signal, timeoutMs }: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number | undefined } = {},
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const end = (settle: () => void): void => {
        this.waiting.delete(look);
        cancel();
        signal?.removeEventListener('abort', onAbort);
        settle();
      };
      const look = (): void => {
        if (this.reached >= Number(version)) end(resolve);
      };
      const onAbort = (): void => end(() => reject(signal?.reason));
      const late = (): void => end(() => reject(new WatchError('TIMEOUT', `not at ${version} yet`, { limit: timeoutMs })));
      const cancel = timeoutMs === undefined ? () => {} : this.clock.schedule(timeoutMs, late);
      signal?.addEventListener('abort', onAbort, { once: true });
      this.waiting.add(look);
      look();
    });
  }

  run(signal?: AbortSignal): Promise<void> {
    if (this.started) throw new Error('it runs already');
    this.started = true;
    return new Promise((resolve, reject) => {
      this.failRun = reject;
      this.endRun = () => {
        this.stops++;
        resolve();
      };
      signal?.addEventListener('abort', this.endRun, { once: true });
    });
  }

  /** What `run` returned rejects. */
  break(error: unknown): void {
    this.failRun(error);
  }

  /** What `run` returned resolves. */
  end(): void {
    this.endRun();
  }

  private tell(call: (handler: ControllerHandler<Thing>) => void): void {
    if (!this.stale) this.catchUp();
    if (!this.hasSynced) return;
    for (const { handler, due } of this.handlers) due.push(() => call(handler));
    if (!this.lagging) this.deliver();
  }
}
