import type { Clock } from '../../watch/clock.ts';
import { Failures } from '../../watch/failures.ts';
import type { ReflectorFailure, ReflectorState } from './options.ts';

/**
 * What is said of a source's failures without `onError`. A failure after which the next attempt is made at once, such as a version
 * that has expired, is a part of the protocol: it is not worth a line unless that attempt fails as well.
 */
export class SourceReports {
  readonly #failures: Failures;

  constructor(who: string, clock: Clock | undefined) {
    this.#failures = new Failures(who, { clock });
  }

  failed(error: unknown, { kind, delayMs }: Pick<ReflectorFailure, 'kind' | 'delayMs'>): void {
    if (kind === 'event') this.#failures.failed('an event', error);
    else if (kind === 'store') this.#failures.failed('the store', error);
    else if (delayMs !== undefined) this.#failures.down('the source', error, ` (${kind})`);
  }

  changed({ connected }: Pick<ReflectorState, 'connected'>): void {
    if (connected) this.#failures.up('the source');
  }
}
