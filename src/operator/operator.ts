import { whenAborted } from '../watch/abort.ts';
import { systemClock } from '../watch/clock.ts';
import { checkOptions, checkText, requireMethod, WatchError } from '../watch/errors.ts';
import { oneLine } from '../watch/failures.ts';
import type { LeaseResource } from '../workqueue/election.ts';
import { LeaderElector } from '../workqueue/leader-elector.ts';
import { KindCaches } from './caches.ts';
import { OperatorController, type OperatorDeps } from './controller.ts';
import type { OperatorControllerOptions, OperatorFailure, OperatorOptions } from './operator-options.ts';

const NAMES = [
  'cluster',
  'name',
  'namespace',
  'leaderElection',
  'listen',
  'syncTimeoutMs',
  'shutdownTimeoutMs',
  'log',
  'onError',
  'clock',
] as const;

/** Runs controllers on shared informers. Upstream: `Manager` of controller-runtime. */
export class Operator {
  readonly name: string;
  readonly #options: OperatorOptions;
  readonly #deps: OperatorDeps;
  readonly #controllers: OperatorController<never>[] = [];
  #began: boolean = false;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
  constructor(options: OperatorOptions) {
    const { cluster, name, namespace, log = console, clock } = checkOptions(options, NAMES);
    requireMethod('cluster', cluster, 'resource', 'a Cluster or an ApiServer');
    this.name = checkText('name', name);
    this.#options = options;
    const tell = (error: unknown, failure: OperatorFailure): void => this.#tell(error, failure);
    const caches = new KindCaches({
      cluster,
      namespace,
      clock,
      tell: (text) => log.warn(text),
      onError: (error) => tell(error, { during: 'source' }),
    });
    this.#deps = { name, namespace, clock, log, caches, tell };
  }

  /** Adds a controller. */
  controller<T extends object>(options: OperatorControllerOptions<T>): this {
    if (this.#began) throw new WatchError('INVALID_ARGUMENT', 'an operator that runs takes no further controllers');
    this.#controllers.push(new OperatorController<T>(options, this.#deps) as unknown as OperatorController<never>);
    return this;
  }

  /** Works until the signal aborts. */
  async run(signal?: AbortSignal): Promise<void> {
    if (this.#began) throw new WatchError('INVALID_ARGUMENT', 'an operator runs once');
    this.#began = true;
    const stopped = new AbortController();
    const leave = whenAborted(signal, (reason) => stopped.abort(reason));
    const { caches } = this.#deps;
    caches.start();
    try {
      await this.#lead(stopped.signal);
    } finally {
      leave();
      await caches.stop();
    }
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { cluster, leaderElection, clock = systemClock } = this.#options;
    const work = async (until: AbortSignal): Promise<void> => {
      await Promise.all(this.#controllers.map((controller) => controller.run(until)));
    };
    if (!leaderElection) return work(signal);
    const { namespace = this.#options.namespace ?? 'default', ...own } = leaderElection === true ? {} : leaderElection;
    const leases = cluster.resource('leases.coordination.k8s.io/v1').in(namespace) as unknown as LeaseResource;
    const elector = new LeaderElector({ name: this.name, clock, ...own, leases });
    return elector.run(({ signal: until }) => work(until), { signal });
  }

  #tell(error: unknown, failure: OperatorFailure): void {
    const { onError, log = console } = this.#options;
    if (onError) onError(error, failure);
    else log.error(`${failure.during} failed: ${oneLine(error)}`);
  }
}
