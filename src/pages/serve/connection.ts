// The state of the connection in words: in the header, which stays in view; above the table, which must not look live when it is
// not; and in the history.
//
//     connecting --> live --> reconnecting in 3 seconds, offline, no answer --> live
//                      '----> signed out, refused, version 12: until the user does something
import { messageOf } from '../../bridge/client/transport.ts';
import type { ReflectorFailure, ReflectorState } from '../../cache/reflector/reflector-options.ts';
import { systemClock } from '../../watch/clock.ts';
import { isWatchError } from '../../watch/errors.ts';
import { byId, type PageHistory, type StateLine, say } from '../elements.ts';
import { count, plural, timeOf } from '../words.ts';
import type { Scope } from './follower.ts';

/** What is reported when a state has been read. */
interface Arrival {
  readonly scope: Scope;
  readonly objects: number;
  readonly resourceVersion: string;
}

/** How the page follows its collection, and whether what it shows is what there is. */
export class FollowState {
  private readonly line: StateLine;
  private readonly history: PageHistory;
  private state: ReflectorState | undefined = undefined;
  /** The server does not answer, though its connection is open. */
  private isSilent: boolean = false;
  /** There is a table, which may be out of date. */
  private hasArrived: boolean = false;
  private wasConnected: boolean = false;
  /** Something has failed since the page was last connected. */
  private broken: boolean = false;
  /** The state had to be read again. */
  private expired: boolean = false;
  /** When the server was last heard. */
  private heard: Date = new Date();

  constructor(line: StateLine, history: PageHistory) {
    this.line = line;
    this.history = history;
    for (const type of ['online', 'offline']) addEventListener(type, () => this.tell());
  }

  /** Whether time passes in the table: it has arrived, and the server responds. */
  get isLive(): boolean {
    return this.hasArrived && this.state?.connected === true && !this.isSilent;
  }

  /** The time up to which the table is correct. */
  get nowMs(): number {
    return this.isLive || !this.hasArrived ? Date.now() : this.heard.getTime();
  }

  /** Another collection. */
  begin(): void {
    this.state = undefined;
    this.hasArrived = this.wasConnected = this.broken = this.expired = false;
    this.line.show('connecting', 'connecting');
    this.mark('');
  }

  show(state: ReflectorState): void {
    const { connected } = state;
    this.state = state;
    if (connected) this.heard = new Date();
    this.tell();
    if (connected && !this.wasConnected && this.broken) {
      const how = this.expired ? 'and read everything again' : 'and resumed: nothing is missing';
      this.history.add(`Connected again, ${how}.`, 'good');
      this.broken = this.expired = false;
    }
    this.wasConnected = connected;
  }

  /** Whether the server has answered another request. A lost network leaves the watch open. */
  answers(does: boolean): void {
    if (does && this.state?.connected) this.heard = new Date();
    if (does !== this.isSilent) return;
    this.isSilent = !does;
    this.tell();
  }

  /** The collection is shown. */
  arrived(arrival: Arrival): void {
    this.hasArrived = true;
    this.history.add(arrivalWords(arrival), 'good');
    const { version } = arrival.scope;
    if (version === '') return;
    this.line.show('off', `version ${versionText(version)}, not live`);
    this.mark(`This is how it was at version ${versionText(version)}. Nothing changes here.`);
  }

  /** Nothing is followed until the user does something. */
  halt(words: string, why: string = '', { retry = false }: { readonly retry?: boolean } = {}): void {
    this.state = undefined;
    this.line.show('off', words, { retry });
    this.mark(why);
  }

  failed(error: unknown, failure: Pick<ReflectorFailure, 'kind'>): void {
    this.broken = true;
    if (failure.kind === 'expired') {
      this.expired = true;
      this.history.add('Expired (410): the server no longer has the changes that this page missed.', 'cut');
      return;
    }
    this.history.add(failureWords(error), 'note');
  }

  private tell(): void {
    const { state, line } = this;
    if (state === undefined) return;
    const { phase, connected, nextAttemptMs, error } = state;
    const offline = !navigator.onLine;
    const what = isRefusal(error) ? 'refused' : offline ? 'offline' : 'reconnecting';
    if (phase === 'waiting' && nextAttemptMs !== undefined) line.countDown(nextAttemptMs - systemClock.now(), what);
    else if (!connected) line.show('connecting', offline ? 'offline' : this.broken ? 'reconnecting' : 'connecting');
    else if (this.isSilent) line.show('off', offline ? 'offline' : 'the server does not answer', { retry: true });
    else if (phase === 'watching') line.show('live', 'live');
    else line.show('connecting', 'reading');
    if (!this.hasArrived) return;
    this.mark(this.isLive ? '' : `Not live: this is how it was at ${timeOf(this.heard)}. Later changes are missing.`);
  }

  /** Old rows must not look like current ones. */
  private mark(words: string): void {
    byId('objects').classList.toggle('lost', words !== '');
    byId('lost').toggleAttribute('hidden', words === '');
    say(byId('lost'), words);
  }
}

const isRefusal = (error: unknown): boolean => isWatchError(error, 'REFUSED') && error.status !== undefined;

/** Versions are decimal numbers here, and easier to read with separators. */
export function versionText(version: string): string {
  const number = Number(version);
  return Number.isSafeInteger(number) && version !== '' ? count(number) : version || 'none';
}

/** Why the past of a collection cannot be shown. `since`: the first version that the server has, if it is known. */
export function pastWords(error: unknown, { version, since }: { version: string; since: string | undefined }): string {
  const named = `version ${versionText(version)}`;
  if (!isRefusal(error)) return `The state at ${named} could not be read: ${messageOf(error)}.`;
  const { code } = (error as { status: { code: number } }).status;
  if (code !== 410) return `The server does not show ${named}: ${(error as Error).message}.`;
  const window = since ? ` It has those from ${versionText(since)} on.` : '';
  return `The server does not have ${named}: it is too old, or was never given.${window}`;
}

/** Such as `Following orders in all namespaces: 12 objects at version 34.` */
export function arrivalWords({ scope, objects, resourceVersion }: Arrival): string {
  const { resource, namespace, labelSelector, fieldSelector } = scope;
  const where = !resource.namespaced ? '' : namespace === '' ? ' in all namespaces' : ` in ${namespace}`;
  const selectors = [labelSelector, fieldSelector].filter((each) => each !== '');
  const which = selectors.length === 0 ? '' : ` with ${selectors.join(' and ')}`;
  const what = `${resource.plural}${where}${which}: ${plural(objects, 'object')} at version ${versionText(resourceVersion)}.`;
  return `${scope.version === '' ? 'Following' : 'Read'} ${what}`;
}

/** What went wrong, in one sentence. */
export function failureWords(error: unknown): string {
  return isRefusal(error) ? `Refused: ${(error as Error).message}.` : `Connection lost: ${messageOf(error)}.`;
}
