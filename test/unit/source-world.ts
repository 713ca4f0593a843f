// A hub that follows a stream, on a clock that moves only when told to.
import { expect } from 'vitest';
import { coreOf, Hub, type HubOptions } from '../../src/bridge/hub/hub.ts';
import type { HubClient } from '../../src/bridge/hub/hub-core.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import { type CatchUpStart, toSourceVersion } from '../../src/bridge/hub/source/source.ts';
import type { HubNotice } from '../../src/bridge/hub/tally.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';

const hubs: Hub[] = [];

/** For `afterEach`. */
export async function endWorlds(): Promise<void> {
  for (const hub of hubs.splice(0)) await hub.shutdown({ signal: AbortSignal.abort() });
}

/** A stream that counts how often it is read. */
export class CountingSource extends FakeSource {
  reads: number = 0;

  override read(...asked: Parameters<FakeSource['read']>): ReturnType<FakeSource['read']> {
    this.reads++;
    return super.read(...asked);
  }
}

export interface World {
  readonly source: CountingSource;
  readonly clock: FakeClock;
  readonly hub: Hub;
  readonly notices: HubNotice[];
}

/** A hub with a stream, to which it need not be connected yet. */
export function worldOf(source: CountingSource, options: HubOptions = {}): World {
  const [clock, notices]: [FakeClock, HubNotice[]] = [new FakeClock(), []];
  const hub = new Hub({ source, clock, random: () => 0.5, onNotice: (notice) => notices.push(notice), ...options });
  hubs.push(hub);
  return { source, clock, hub, notices };
}

/** A hub that follows a stream with so many events. */
export async function world(count: number = 0, options: HubOptions = {}): Promise<World> {
  const source = new CountingSource();
  for (let i = 1; i <= count; i++) source.append(JSON.stringify(added(i)));
  const all = worldOf(source, options);
  await until(() => all.hub.stats().source?.phase === 'following');
  return all;
}

/** Publishes numbers, and waits until the hub has distributed them. */
export async function publish({ hub }: World, from: number, to: number): Promise<void> {
  const end = hub.stats().accepted + to - from + 1;
  for (let i = from; i <= to; i++) await hub.publish(added(i));
  await until(() => hub.stats().accepted === end);
  await turn();
}

/** Waits until the hub has noticed that its stream cannot be continued. */
export async function reset({ hub, clock }: World): Promise<void> {
  await until(() => {
    clock.advance(2_000);
    return (hub.stats().source?.resets ?? 0) > 0;
  });
}

export const versionAt = ({ source }: World, sequence: number): string => {
  const { mark } = source.events.find((event) => event.sequence === sequence) as { mark: string };
  return toSourceVersion({ epoch: source.epoch, sequence, mark });
};

/** Connects a client as transports do when its version is not kept. */
export async function catchUp(
  all: World,
  sequence: number,
  client: Partial<HubClient> = {},
  sink: FakeSink = new FakeSink(),
): Promise<FakeSink> {
  const core = coreOf(all.hub);
  const asked = { resourceVersion: versionAt(all, sequence), ...client.asked };
  expect(core.mustLocate(asked)).toBe(true);
  const found = (await core.locate(asked, new AbortController().signal)) as CatchUpStart;
  return connect(all.hub, sink, { asked, start: core.start(asked, { catchUp: found }) as Start, ...client });
}
