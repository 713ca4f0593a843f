// Connections without sockets, for the tests of hubs and sessions.

import { type Form, LINE } from '../../src/bridge/events/forms.ts';
import type { Sink } from '../../src/bridge/hub/connection.ts';
import { coreOf, type Hub } from '../../src/bridge/hub/hub.ts';
import type { HubClient } from '../../src/bridge/hub/hub-core.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { HubSession } from '../../src/bridge/hub/hub-session.ts';
import type { ParsedQuery } from '../../src/bridge/hub/query.ts';
import type { Ending, WireEvent } from '../../src/bridge/protocol.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { macrotask } from './support.ts';

/** A turn of the event loop, in which a hub flushes. */
export const turn = macrotask;
export const added = (object: unknown): WatchEvent => ({ type: 'ADDED', object });

/** A connection that can be stalled, and that decodes what it is sent. */
export class FakeSink implements Sink {
  readonly form: Form;
  /** The bytes of each write. */
  readonly writes: Uint8Array[] = [];
  ended: Ending | undefined = undefined;
  retryMs: number | undefined = undefined;
  destroyed: boolean = false;
  bufferedBytes: number = 0;
  session: HubSession | undefined = undefined;
  protected stalled: boolean = false;

  constructor(form: Form = LINE) {
    this.form = form;
  }

  stall(): void {
    this.stalled = true;
  }

  resume(): void {
    this.stalled = false;
    this.session?.relieved();
  }

  opened(session: HubSession): void {
    this.session = session;
  }

  write(bytes: Uint8Array): boolean {
    if (this.session?.over || this.ended !== undefined || this.destroyed) throw new Error('written to after the end');
    this.writes.push(bytes);
    return !this.stalled;
  }

  end(how: Ending, retryMs: number | undefined): void {
    this.ended = how;
    this.retryMs = retryMs;
    this.session?.gone();
  }

  destroy(retryMs: number | undefined): void {
    this.retryMs = retryMs;
    this.destroyed = true;
  }

  get text(): string {
    return this.writes.map((bytes) => new TextDecoder().decode(bytes)).join('');
  }

  get events(): WireEvent[] {
    return this.text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as WireEvent);
  }

  get objects(): unknown[] {
    return this.events.map((event) => event.object);
  }

  get versions(): (string | undefined)[] {
    return this.events.map((event) => event.resourceVersion);
  }
}

export function connect<S extends FakeSink>(
  hub: Hub,
  sink: S = new FakeSink() as S,
  client: Partial<HubClient> = {},
): S & { session: HubSession } {
  coreOf(hub).open(sink, { transport: 'http', address: 'test', ...client });
  return sink as S & { session: HubSession };
}

/** Requests a start from a hub, and opens a session there. */
export function join(hub: Hub, asked: ParsedQuery = {}, more: Parameters<typeof connect>[2] = {}): ReturnType<typeof connect> {
  return connect(hub, new FakeSink(), { start: coreOf(hub).start(asked) as Start, asked, ...more });
}

export { until } from '../eventually.ts';
