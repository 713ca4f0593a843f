// A client that keeps a copy, as PROTOCOL.md describes it, for the property test of copies.
import { expect } from 'vitest';
import { coreOf } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { ParsedQuery } from '../../src/bridge/hub/query.ts';
import type { Overflow } from '../../src/broadcast/broadcaster.ts';
import { isInitialEventsEnd, isStatus } from '../../src/watch/event.ts';
import { connect, FakeSink } from '../unit/fake-sink.ts';
import { apply, type Copy, type Server, visible } from './copies.ts';

/** What a client asks of its server. */
export interface Taste {
  readonly overflow: Overflow;
  readonly capacity: number;
  readonly filtered: boolean;
  readonly allowWatchBookmarks: boolean;
}

/** A client as the protocol describes it: it keeps a copy and a version, resumes, and starts over when it must. */
export class Reader {
  copy: Copy = new Map();
  /** Events that the server says this client did not get, since its copy was begun. */
  dropped: number = 0;
  told: number = 0;
  resumed: number = 0;
  readonly taste: Taste;
  private readonly server: Server;
  version: string | undefined = undefined;
  private link: { sink: FakeSink; copying: boolean } | undefined = undefined;

  constructor(server: Server, its: Taste) {
    this.server = server;
    this.taste = its;
  }

  get sink(): FakeSink | undefined {
    return this.link?.sink;
  }

  get settled(): boolean {
    return this.sink?.session?.upToDate === true;
  }

  /** What it starts over with. */
  nothing(): { copy: Copy; version?: string } {
    return { copy: new Map() };
  }

  connect(request: Pick<ParsedQuery, 'sendInitialEvents' | 'timeoutSeconds'> = {}): void {
    if (this.link !== undefined) return;
    const { allowWatchBookmarks, filtered, overflow, capacity } = this.taste;
    const { hub, options: of } = this.server;
    const sendInitialEvents = of.source === 'none' ? undefined : request.sendInitialEvents;
    const asked: ParsedQuery = { ...request, allowWatchBookmarks, sendInitialEvents, resourceVersion: this.version };
    const anew = this.version === undefined || sendInitialEvents === true;
    const start = coreOf(hub).start(asked);
    if (isStatus(start)) {
      expect(start.code).toBe(410);
      this.told++;
      this.version = undefined;
      return;
    }
    const copying = anew && of.source !== 'none' && sendInitialEvents !== false;
    if (anew) {
      // Whoever gets no snapshot has the state from elsewhere.
      const { copy, version } = copying ? this.nothing() : this.server.list(filtered);
      this.copy = copy;
      this.version = version;
      this.dropped = 0;
    } else this.resumed++;
    const more = { overflow, capacity, filter: filtered ? visible : undefined };
    this.link = { sink: connect(hub, new FakeSink(), { start: start as Start, asked, options: more }), copying };
  }

  /** The connection ends, here or there, and so many of the last events have not come through. */
  cut(lost: number): void {
    if (this.link === undefined) return;
    this.apply(lost);
    this.sink?.session?.gone();
    this.link = undefined;
  }

  apply(lost: number): void {
    const { link } = this;
    if (link === undefined) return;
    const { events, session } = link.sink;
    this.dropped += session?.stats().dropped ?? 0;
    for (const event of events.slice(0, Math.max(0, events.length - lost))) {
      if (event.type === 'ERROR') this.told++;
      else if (isInitialEventsEnd(event)) link.copying = false;
      else apply(this.copy, event);
      this.version = event.resourceVersion ?? this.version;
    }
    // Half a snapshot has no version.
    if (link.copying) this.version = undefined;
  }
}
