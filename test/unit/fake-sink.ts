// Connections without a socket, for the tests of hubs and sessions.
import type { Hub } from '../../src/bridge/hub.ts';
import type { Ending } from '../../src/bridge/protocol.ts';
import type { Session, Sink } from '../../src/bridge/session.ts';
import type { WatchEvent } from '../../src/watch/event.ts';

export const added = (object: unknown): WatchEvent => ({ type: 'ADDED', object });
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A connection that can be told to stand still. */
export class FakeSink implements Sink {
  readonly events: WatchEvent[] = [];
  readonly slices: number[] = [];
  ended: Ending | undefined = undefined;
  destroyed: boolean = false;
  bufferedBytes: number = 0;
  session: Session | undefined = undefined;
  private stalled: boolean = false;
  private relieve: () => void = () => {};

  stall(): void {
    this.stalled = true;
  }

  resume(): void {
    this.stalled = false;
    this.relieve();
  }

  write(events: readonly WatchEvent[]): Promise<void> | undefined {
    this.events.push(...events);
    this.slices.push(events.length);
    if (!this.stalled) return undefined;
    return new Promise((resolve) => {
      this.relieve = resolve;
    });
  }

  end(how: Ending): void {
    this.ended = how;
    this.session?.gone();
  }

  destroy(): void {
    this.destroyed = true;
  }

  get objects(): unknown[] {
    return this.events.map((event) => event.object);
  }
}

export function connect(hub: Hub, sink: FakeSink = new FakeSink()): FakeSink & { session: Session } {
  sink.session = hub.open(sink, { transport: 'http', address: 'test' });
  return sink as FakeSink & { session: Session };
}

export async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 10_000) throw new Error('the condition never came true');
    await turn();
  }
}
