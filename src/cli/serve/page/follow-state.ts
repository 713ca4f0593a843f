import { messageOf } from '../../../bridge/client/transport.ts';
import type { InformerFailure, InformerState } from '../../../cache/informer/informer-options.ts';
import { systemClock } from '../../../watch/clock.ts';
import { isWatchError } from '../../../watch/errors.ts';
import type { History } from '../../page/history.ts';
import type { StateLine } from '../../page/state-line.ts';
import { count, plural } from '../../page/words.ts';
import type { Scope } from './follower.ts';

/** What is reported when a state has been read. */
export interface Arrival {
  readonly scope: Scope;
  readonly objects: number;
  readonly resourceVersion: string;
}

/** How the page follows its collection: what the header says, and what the history keeps. */
export class FollowState {
  private readonly line: StateLine;
  private readonly history: History;
  private wasConnected: boolean = false;
  /** Something has failed since the page was connected last. */
  private broken: boolean = false;
  /** The state had to be read again. */
  private expired: boolean = false;

  constructor(line: StateLine, history: History) {
    this.line = line;
    this.history = history;
  }

  /** Another collection. */
  begin(): void {
    this.wasConnected = this.broken = this.expired = false;
    this.line.show('connecting', 'connecting');
  }

  show({ phase, connected, nextAttemptMs }: InformerState): void {
    if (phase === 'waiting' && nextAttemptMs !== undefined) this.line.countDown(nextAttemptMs - systemClock.now());
    else if (!connected) this.line.show('connecting', 'connecting');
    else if (phase === 'watching') this.line.show('live', 'live');
    else this.line.show('connecting', 'reading');
    if (connected && !this.wasConnected && this.broken) {
      const how = this.expired ? 'and read everything again' : 'and resumed: nothing is missing';
      this.history.add(`Connected again, ${how}.`, 'good');
      this.broken = this.expired = false;
    }
    this.wasConnected = connected;
  }

  arrived(arrival: Arrival): void {
    this.history.add(arrivalWords(arrival), 'good');
  }

  failed(error: unknown, failure: InformerFailure<never> | { readonly kind: string }): void {
    if (failure.kind === 'object' || failure.kind === 'handler') return;
    this.broken = true;
    if (failure.kind === 'expired') {
      this.expired = true;
      this.history.add('Expired (410): the server no longer has the changes that this page missed.', 'cut');
      return;
    }
    this.history.add(failureWords(error), 'note');
  }
}

/** Such as `Following orders in all namespaces: 12 objects at version 34.` */
export function arrivalWords({ scope, objects, resourceVersion }: Arrival): string {
  const { resource, namespace, labelSelector } = scope;
  const where = !resource.namespaced ? '' : namespace === '' ? ' in all namespaces' : ` in ${namespace}`;
  const which = labelSelector === '' ? '' : ` with ${labelSelector}`;
  const version = /^\d{1,15}$/.test(resourceVersion) ? count(Number(resourceVersion)) : resourceVersion;
  return `Following ${resource.plural}${where}${which}: ${plural(objects, 'object')} at version ${version}.`;
}

/** What went wrong, in one sentence. */
export function failureWords(error: unknown): string {
  const refused = isWatchError(error, 'REFUSED') && error.status !== undefined;
  return refused ? `Refused: ${error.message}.` : `Connection lost: ${messageOf(error)}.`;
}
