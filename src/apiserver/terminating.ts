/**
 * Deletions that outlive their requests: those of objects that contain others, in each of the servers that share a storage.
 * Namespaces contain objects; definitions contain those of their kind.
 *
 *     list, watch ---> Terminating, and no other finalizer ---> after a second or two: finish ---> gone
 *                        '- an object of it is gone (hurry): finish now -^        '- not yet: again, later and later
 *
 * The server that was asked to delete a namespace does so while it answers; most of the time the namespace is gone before another
 * server looks. The others finish what is left when an object goes later, by a request to one of them, or when a server dies in
 * between.
 */
import { setMaxListeners } from 'node:events';
import type { KubernetesObject } from '../cache/object.ts';
import type { ChangeEvent, Storage } from '../storage/storage.ts';
import { Backoff } from '../watch/backoff.ts';
import type { Clock } from '../watch/clock.ts';
import { isWatchError } from '../watch/errors.ts';
import { Follower } from './follower.ts';

/** Also gets the existing objects and then every change, after the deleter. What it throws is reported. */
interface Observer {
  whole(items: readonly KubernetesObject[]): void | Promise<void>;
  changed(event: ChangeEvent<KubernetesObject>): void | Promise<void>;
}

/** What a server's background work needs. */
export interface BackgroundDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly onError: (error: unknown) => void;
}

/** What the deletion of containers needs. */
export interface TerminatingDeps extends BackgroundDeps {
  /** Whether it is the servers' turn to finish a Terminating object. */
  readonly isDue: (object: KubernetesObject) => boolean;
  /** Tries to finish a deletion. Resolves to whether it is gone. */
  readonly finish: (name: string, uid: string | undefined, signal: AbortSignal) => Promise<boolean>;
  readonly observer: Observer;
}

/** A Terminating object. */
interface Job {
  readonly name: string;
  readonly uid: string | undefined;
  readonly backoff: Backoff;
  /** Cancels the next attempt. */
  cancel: () => void;
  running: Promise<void> | undefined;
  /** Whether something has happened since the current attempt began. */
  again: boolean;
}

const FIRST_MS = 1_000;
const MAX_MS = 60_000;

export class Terminating {
  private readonly deps: TerminatingDeps;
  private readonly jobs: Map<string, Job> = new Map();
  private readonly stopping: AbortController = new AbortController();
  private follower: Follower | undefined;
  private following: Promise<void> | undefined;

  constructor(deps: TerminatingDeps) {
    this.deps = deps;
    // Many may be Terminating at once: node 20 would warn of a leak.
    setMaxListeners(0, this.stopping.signal);
  }

  /** Resolves when the existing objects have been seen. From then on it follows the storage. */
  async start(storage: Storage<KubernetesObject>): Promise<void> {
    const { signal } = this.stopping;
    const { clock, random, onError } = this.deps;
    const follower = new Follower({
      ...{ storage, signal, clock, random, onError },
      whole: (items) => this.whole(items),
      changed: (event) => this.changed(event),
    });
    this.follower = follower;
    const after = await follower.list();
    if (!signal.aborted) this.following = follower.follow(after);
  }

  /** Resolves to whether all that was written before this call has been seen, as far as it is followed. */
  async caughtUp(): Promise<boolean> {
    return (await this.follower?.caughtUp()) ?? true;
  }

  /** Called when something happened in a container, for which its deletion may have been waiting. */
  hurry(name: string): void {
    const job = this.jobs.get(name);
    if (job) this.attempt(job);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    const running = [...this.jobs.values()].map((job) => job.running);
    for (const name of [...this.jobs.keys()]) this.forget(name);
    await Promise.all([...running, this.following]);
  }

  private whole(items: readonly KubernetesObject[]): Promise<void> {
    const names = new Set(items.map(({ metadata }) => metadata?.name));
    for (const name of [...this.jobs.keys()]) if (!names.has(name)) this.forget(name);
    for (const item of items) this.see(item);
    return this.told(() => this.deps.observer.whole(items));
  }

  private changed(event: ChangeEvent<KubernetesObject>): Promise<void> {
    if (event.type === 'DELETED') this.forget(event.object.metadata?.name ?? '');
    else this.see(event.object);
    return this.told(() => this.deps.observer.changed(event));
  }

  private async told(tell: () => void | Promise<void>): Promise<void> {
    try {
      await tell();
    } catch (error) {
      if (!this.stopping.signal.aborted) this.deps.onError(error);
    }
  }

  private see(object: KubernetesObject): void {
    const { name = '', uid, deletionTimestamp } = object.metadata ?? {};
    const known = this.jobs.get(name);
    // The removal of a namespace's last finalizer leads here.
    const isDue = deletionTimestamp !== undefined && this.deps.isDue(object);
    if (known && (!isDue || known.uid !== uid)) this.forget(name);
    if (!isDue || this.jobs.has(name) || this.stopping.signal.aborted) return;
    const backoff = new Backoff({ minMs: FIRST_MS, maxMs: MAX_MS, factor: 2, random: this.deps.random, apart: true });
    const job: Job = { name, uid, backoff, cancel: () => {}, running: undefined, again: false };
    this.jobs.set(name, job);
    this.plan(job);
  }

  private forget(name: string): void {
    this.jobs.get(name)?.cancel();
    this.jobs.delete(name);
  }

  private plan(job: Job): void {
    job.cancel = this.deps.clock.schedule(job.backoff.failed({}), () => this.attempt(job));
  }

  private attempt(job: Job): void {
    job.again = true;
    job.running ??= this.work(job).finally(() => {
      job.running = undefined;
      // It may have happened after the attempt's last look.
      if (job.again && !this.stopping.signal.aborted && this.jobs.get(job.name) === job) this.attempt(job);
    });
  }

  private async work(job: Job): Promise<void> {
    const { signal } = this.stopping;
    const { finish, onError } = this.deps;
    job.cancel();
    try {
      while (job.again && !signal.aborted) {
        job.again = false;
        if (await finish(job.name, job.uid, signal)) {
          if (this.jobs.get(job.name) === job) this.forget(job.name);
          return;
        }
      }
    } catch (error) {
      if (!signal.aborted && !isWatchError(error, 'CLOSED')) onError(error);
    }
    if (!signal.aborted && this.jobs.get(job.name) === job) this.plan(job);
  }
}
