// A client with a network, a clock and random numbers under the control of the test.
import { expect } from 'vitest';
import type { Attempt, ClientState, ConnectOptions, PerAttempt, StateDetail } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { Status } from '../../src/watch/event.ts';
import { isErrorEvent, toStatus } from '../../src/watch/event.ts';
import type { Kind } from './client-network.ts';
import { FakeNetwork, settle } from './client-network.ts';

export type Event = WireEvent<string, unknown>;
export const at = (sequence: number, epoch = 'e'): string => `${epoch}.${sequence}`;
export const event = (sequence: number, epoch = 'e'): Event => ({
  type: 'ADDED',
  object: sequence,
  resourceVersion: at(sequence, epoch),
});
export const range = (from: number, to: number): Event[] => Array.from({ length: to - from }, (_, i) => event(from + i));
export const status = (code: number, more: Partial<Status> = {}): Status => ({
  ...toStatus({ code, reason: 'Because', message: `said ${code}` }),
  ...more,
});
export const error = (code: number, more: Partial<Status> = {}): Event => ({ type: 'ERROR', object: status(code, more) });

export type { Attempt };

export function open(kind: Kind, options: ConnectOptions<Event> = {}, url: PerAttempt<string | URL> = 'http://h.example/watch') {
  const clock = new FakeClock();
  const network = new FakeNetwork();
  const states: ClientState[] = [];
  const details: StateDetail[] = [];
  const watch = connect<Event>(url, {
    ...network.options(kind),
    clock,
    random: () => 1,
    onStateChange: (state, detail) => {
      states.push(state);
      details.push(detail);
    },
    ...options,
  });
  /** Reads everything that is available. An ERROR is represented by its code. */
  const read = async (): Promise<unknown[]> => {
    await settle();
    const got: unknown[] = [];
    for (let each = watch.tryNext(); each !== undefined; each = watch.tryNext()) {
      got.push(isErrorEvent(each) ? each.object.code : each.object);
      await settle();
    }
    return got;
  };
  const accept = async (...events: (Event | string)[]): Promise<void> => {
    await settle();
    network.link.accept();
    await settle();
    network.link.send(...events);
    await settle();
  };
  /** Advances the clock to the next attempt. */
  const backOff = (): void => clock.advance(details.at(-1)?.delayMs ?? 0);
  const expectOver = async (): Promise<void> => {
    await settle();
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect(watch.state).toBe('closed');
    expect(clock.pending).toBe(0);
    expect(network.links.every(({ closed }) => closed)).toBe(true);
  };
  return { clock, network, states, details, watch, read, accept, backOff, expectOver };
}
