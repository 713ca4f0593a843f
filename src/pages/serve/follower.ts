import { messageOf } from '../../bridge/client/transport.ts';
import { Informer } from '../../cache/informer/informer.ts';
import type { InformerFailure, InformerState } from '../../cache/informer/informer-options.ts';
import { keyOf } from '../../cache/object.ts';
import { systemClock } from '../../watch/clock.ts';
import { isWatchError } from '../../watch/errors.ts';
import type { PageHistory, StateLine } from '../elements.ts';
import { type TableRow, TableSource } from '../table.ts';
import { count, plural } from '../words.ts';
import { type Access, collectionPath, type PageResource } from './api.ts';

/** What is followed. */
export interface Scope {
  readonly resource: PageResource;
  /** Empty for all. */
  readonly namespace: string;
  readonly labelSelector: string;
}

/** The callbacks of a {@link RowFollower}. */
interface RowFollowerEvents {
  /** Something has changed that can be read from the follower. */
  readonly onChange: () => void;
  readonly onState: (state: InformerState) => void;
  readonly onFailure: (error: unknown, failure: InformerFailure<TableRow>) => void;
  /** The server wants another token. */
  readonly onDenied: () => void;
  /** There are more objects than a page can hold. Following has ended. */
  readonly onTooMany: (limit: number) => void;
}

/** Objects that a page holds. Each is a row, without its content. */
const MAX_OBJECTS = 100_000;
const ANSWER_MS = 20_000;

interface Following {
  readonly scope: Scope;
  readonly source: TableSource;
  readonly informer: Informer<TableRow>;
}

/** Follows one collection at a time: an informer of rows, which survives broken connections and restarts of the server. */
export class RowFollower {
  /** Changes that this page has received, of all collections. */
  received: number = 0;
  private changed: Set<string> = new Set();
  private run: Following | undefined = undefined;
  private readonly access: Access;
  private readonly events: RowFollowerEvents;

  constructor(access: Access, events: RowFollowerEvents) {
    this.access = access;
    this.events = events;
  }

  get scope(): Scope | undefined {
    return this.run?.scope;
  }

  get columns(): readonly string[] | undefined {
    return this.run?.source.columns;
  }

  get rows(): readonly TableRow[] {
    return this.run?.informer.store.list() ?? [];
  }

  /** The row of an object; undefined if there is none. */
  get(key: string): TableRow | undefined {
    return this.run?.informer.store.get(key);
  }

  get size(): number {
    return this.run?.informer.store.size ?? 0;
  }

  get hasSynced(): boolean {
    return this.run?.informer.hasSynced ?? false;
  }

  get resourceVersion(): string {
    return this.run?.informer.resourceVersion ?? '';
  }

  /** Returns the keys of what has changed since the last call. */
  takeChanged(): ReadonlySet<string> {
    const { changed } = this;
    this.changed = new Set();
    return changed;
  }

  /** Follows another collection, or the same from the start. */
  follow(scope: Scope): void {
    this.stop();
    const url = new URL(collectionPath(scope.resource, scope.namespace), location.origin);
    const source = new TableSource({ url, fetch: this.access.fetch, manyNamespaces: true }, ANSWER_MS);
    const isCurrent = (): boolean => this.run?.informer === informer;
    const informer = new Informer<TableRow>(source, {
      labelSelector: scope.labelSelector || undefined,
      maxObjects: MAX_OBJECTS,
      maxMs: 10_000,
      transform: slim,
      onStateChange: (state) => isCurrent() && this.events.onState(state),
      onError: (error, failure) => isCurrent() && this.failed(error, failure),
    });
    this.run = { scope, source, informer };
    void this.read(informer);
    void informer.run();
  }

  stop(): void {
    const { run } = this;
    this.run = undefined;
    this.changed.clear();
    void run?.informer.stop();
  }

  private async read(informer: Informer<TableRow>): Promise<void> {
    // Objects that exist already are not changes; a BOOKMARK ends them.
    let begun = false;
    for await (const batch of informer.watch().batches()) {
      if (this.run?.informer !== informer) return;
      for (const event of batch) {
        begun ||= event.type === 'BOOKMARK';
        if (!begun || event.type === 'BOOKMARK' || event.type === 'ERROR') continue;
        this.received++;
        this.changed.add(keyOf(event.object));
      }
      this.events.onChange();
    }
  }

  private failed(error: unknown, failure: InformerFailure<TableRow>): void {
    if (isWatchError(error, 'REFUSED') && error.status?.code === 401) {
      this.stop();
      this.events.onDenied();
    } else if (isWatchError(error, 'OVERLOADED')) {
      this.stop();
      this.events.onTooMany(MAX_OBJECTS);
    } else this.events.onFailure(error, failure);
  }
}

/** A page needs little of the metadata, whose annotations can be as long as the object. */
function slim({ metadata, cells }: TableRow): TableRow {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  return { metadata: { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp }, cells };
}

/** What is reported when a state has been read. */
interface Arrival {
  readonly scope: Scope;
  readonly objects: number;
  readonly resourceVersion: string;
}

/** How the page follows its collection: what the header says, and what the history keeps. */
export class FollowState {
  private readonly line: StateLine;
  private readonly history: PageHistory;
  private wasConnected: boolean = false;
  /** Something has failed since the page was connected last. */
  private broken: boolean = false;
  /** The state had to be read again. */
  private expired: boolean = false;

  constructor(line: StateLine, history: PageHistory) {
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
