// A watch that is checked event by event: each follows from those before, and none comes twice.
import { setTimeout as sleep } from 'node:timers/promises';
import { type KubernetesObject, type ListWatcher, RetryWatcher } from '../../src/cache/index.ts';
import type { ObjectEvent, Watch } from '../../src/index.ts';

export class WatchLog {
  readonly state: Map<string, string> = new Map();
  readonly faults: string[] = [];
  /** Names by the version of their events. */
  readonly seen: Map<string, string> = new Map();
  /** The code of the ERROR with which it has ended. */
  error: number | undefined;
  readonly #watch: Watch<ObjectEvent<KubernetesObject>>;
  readonly #from: bigint;
  /** Resolves when it has ended. */
  readonly over: Promise<void>;
  #last: bigint;

  /** The watch begins behind `after`, where there is this; default nothing. */
  constructor(watch: Watch<ObjectEvent<KubernetesObject>>, after: string, items: readonly KubernetesObject[] = []) {
    this.#watch = watch;
    this.#from = BigInt(after);
    this.#last = BigInt(after);
    for (const { metadata } of items) this.state.set(metadata?.name ?? '', metadata?.resourceVersion ?? '');
    this.over = this.#loop();
  }

  get versions(): string[] {
    return Array.from(this.state, ([name, version]) => `${name}@${version}`).sort();
  }

  /** Whether it must have seen what was written at a version. */
  covers(version: string): boolean {
    const at = BigInt(version);
    return at > this.#from && at <= this.#last;
  }

  async end(): Promise<void> {
    await this.#watch.return();
    await this.over;
  }

  async #loop(): Promise<void> {
    for await (const event of this.#watch) {
      if (event.type === 'ERROR') this.error = event.object.code;
      else if (event.type !== 'BOOKMARK') this.#change(event.type, event.object);
    }
  }

  #change(type: string, { metadata }: KubernetesObject): void {
    const [name, version] = [metadata?.name ?? '', metadata?.resourceVersion ?? ''];
    if (BigInt(version) <= this.#last) this.faults.push(`${type} ${name}@${version} after ${this.#last}`);
    if (this.state.has(name) !== (type !== 'ADDED'))
      this.faults.push(`${type} ${name}@${version}, known ${this.state.get(name)}`);
    this.#last = BigInt(version);
    this.seen.set(version, name);
    if (type === 'DELETED') this.state.delete(name);
    else this.state.set(name, version);
  }
}

const RETRY = { minMs: 100, maxMs: 2_000 };

/** A RetryWatcher that is followed by another one when it has heard 410, from a fresh list on. Each of them is checked by itself. */
export class WatchLogs {
  readonly all: WatchLog[] = [];
  readonly #source: ListWatcher<KubernetesObject>;
  readonly #stop: AbortController = new AbortController();
  readonly #running: Promise<void>;

  /** The first one begins behind `after`, where there is nothing yet. */
  constructor(source: ListWatcher<KubernetesObject>, after: string) {
    this.#source = source;
    this.#running = this.#run(after);
  }

  /** The one that goes on. */
  get last(): WatchLog {
    return this.all.at(-1) as WatchLog;
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.last.end();
    await this.#running;
  }

  async #run(first: string): Promise<void> {
    const { signal } = this.#stop;
    let after = first;
    let items: readonly KubernetesObject[] = [];
    while (!signal.aborted) {
      const watch = new RetryWatcher(this.#source, { resourceVersion: after, ...RETRY, onError: () => {}, signal });
      const log = new WatchLog(watch, after, items);
      this.all.push(log);
      await log.over;
      if (log.error !== 410) return;
      let list = await this.#list();
      for (; list === undefined && !signal.aborted; list = await this.#list()) await sleep(RETRY.minMs);
      if (list) ({ items, resourceVersion: after } = list);
    }
  }

  async #list(): Promise<{ items: readonly KubernetesObject[]; resourceVersion: string } | undefined> {
    return this.#source.list({ signal: this.#stop.signal }).catch(() => undefined);
  }
}
