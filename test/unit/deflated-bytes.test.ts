// Compressed copies of events: they hold no more memory than their bytes, and every limit counts them.
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Envelope } from '../../src/bridge/events/envelope.ts';
import { LINE } from '../../src/bridge/events/forms.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { SourcePages } from '../../src/bridge/hub/source/catch-up.ts';
import type { SourceEntry, SourceEvent } from '../../src/bridge/hub/source/source.ts';
import { DEFLATED_MESSAGE } from '../../src/bridge/transport/handshakes.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';
import { endWorlds, world } from './source-world.ts';

/** About 2,000 bytes, of which compression leaves half. */
const half = (): unknown => added(randomBytes(500).toString('hex') + 'x'.repeat(1_000)).object;
const envelopeOf = (object: unknown): Envelope => new Envelope(added(object), { sequence: 1, version: 'e.1' });

describe('what is kept of an event', () => {
  test.each([
    ['its text', (envelope: Envelope) => envelope.bytes],
    ['its text with another version', (envelope: Envelope) => envelope.relabelled('e.2').bytes],
    ['its compressed copy', (envelope: Envelope) => envelope.deflated],
  ])('%s is no part of a larger buffer', (_name, bytesOf) => {
    const envelope = envelopeOf(half());
    DEFLATED_MESSAGE.size(envelope);
    const bytes = bytesOf(envelope) as Uint8Array;
    expect(bytes.length).toBeGreaterThan(0);
    expect(bytes.buffer.byteLength).toBe(bytes.length);
  });

  test('nothing, if compression does not make it smaller; and it is not tried again', () => {
    const noise = randomBytes(3_000)
      .toString('latin1')
      .replaceAll(/[^ -~]/g, '');
    const envelope = envelopeOf(`${noise}${randomBytes(2_000).toString('base64')}`);
    expect(DEFLATED_MESSAGE.size(envelope)).toBeLessThanOrEqual(envelope.bytes.length + 4);
    const first = envelope.deflated;
    DEFLATED_MESSAGE.size(envelope);
    expect(envelope.deflated).toBe(first);
    expect(envelope.heldBytes).toBe(envelope.bytes.length + (first as Uint8Array).length);
  });

  test('is in heldBytes', () => {
    const envelope = envelopeOf(half());
    expect(envelope.heldBytes).toBe(envelope.bytes.length);
    DEFLATED_MESSAGE.size(envelope);
    expect(envelope.heldBytes).toBe(envelope.bytes.length + (envelope.deflated as Uint8Array).length);
  });
});

test.each([
  [4_194_304, 0xc1],
  [4_194_305, 0x81],
])('an event of %i bytes has a first byte of %i: Node takes no message that becomes longer than 4 MiB', (size, first) => {
  const envelope = envelopeOf('x'.repeat(size - envelopeOf('').bytes.length));
  expect(envelope.bytes.length).toBe(size);
  const frame = new Uint8Array(DEFLATED_MESSAGE.size(envelope));
  expect(DEFLATED_MESSAGE.put(envelope, frame, 0)).toBe(frame.length);
  expect(frame[0]).toBe(first);
});

describe('replayBytes', () => {
  /** How many of the last events a hub keeps after 40 events, with one client of a form. */
  async function kept(form: typeof LINE, compressedLater: boolean = false): Promise<number> {
    const hub = new Hub({ epoch: 'e', replay: 1_000, replayItems: 1_000, replayBytes: 20_000, capacity: 1_000 });
    const client = connect(hub, new FakeSink(form));
    if (compressedLater) client.stall();
    for (let i = 0; i < 40; i++) await hub.publish(added(half()));
    await turn();
    client.resume();
    await turn();
    const late = connect(hub);
    await turn();
    const { length } = late.events;
    await hub.shutdown({ signal: AbortSignal.abort() });
    return length;
  }

  test('counts compressed copies, whether they are made at once or when a client has room again', async () => {
    expect(await kept(LINE)).toBe(9);
    const compressed = await kept(DEFLATED_MESSAGE);
    expect(compressed).toBeLessThanOrEqual(7);
    expect(compressed).toBeGreaterThanOrEqual(5);
    expect(await kept(DEFLATED_MESSAGE, true)).toBe(compressed);
  });

  test('counts them in a hub with a source, too', async () => {
    const kept = async (form: typeof LINE): Promise<number> => {
      const all = await world(0, { replay: 1_000, replayItems: 1_000, replayBytes: 20_000, capacity: 1_000 });
      connect(all.hub, new FakeSink(form));
      for (let i = 0; i < 40; i++) await all.hub.publish(added(half()));
      await until(() => all.hub.stats().accepted === 40);
      await turn();
      const late = connect(all.hub);
      await turn();
      return late.events.length;
    };
    expect(await kept(LINE)).toBe(9);
    expect(await kept(DEFLATED_MESSAGE)).toBeLessThanOrEqual(7);
    await endWorlds();
  });

  test('is not charged for an event that is no longer kept', async () => {
    const hub = new Hub({ epoch: 'e', replay: 10, replayItems: 10, replayBytes: 40_000, capacity: 1_000 });
    const client = connect(hub, new FakeSink(DEFLATED_MESSAGE));
    client.stall();
    for (let i = 0; i < 100; i++) await hub.publish(added(half()));
    await turn();
    client.resume();
    await turn();
    for (let i = 0; i < 1_000; i++) await hub.publish(added('small'));
    const late = connect(hub);
    await turn();
    expect(late.events).toHaveLength(10);
    await hub.shutdown({ signal: AbortSignal.abort() });
  });
});

test('maxQueuedBytes counts compressed copies of what waits', async () => {
  const hub = new Hub({ epoch: 'e', capacity: 1_000, maxQueuedBytes: 22_000 });
  const slow = connect(hub);
  slow.stall();
  connect(hub, new FakeSink(DEFLATED_MESSAGE));
  await hub.publish(added('first'));
  await turn();
  for (let i = 0; i < 9; i++) {
    await hub.publish(added(half()));
    await turn();
  }
  // 18,000 bytes of texts, and half as much again.
  expect(slow.session.stats()).toMatchObject({ queued: 0 });
  slow.resume();
  await turn();
  expect(slow.ended).toBe('expired');
  await hub.shutdown({ signal: AbortSignal.abort() });
});

test('the pages that are read for clients that are behind are limited with their compressed copies', async () => {
  let reads = 0;
  class Counted extends FakeSource {
    override read(...asked: Parameters<FakeSource['read']>): ReturnType<FakeSource['read']> {
      reads++;
      return super.read(...asked);
    }
  }
  const source = new Counted();
  const pages = 12;
  // 900 KB per page, of which compression leaves three quarters.
  for (let i = 0; i < 256 * pages; i++) source.append(JSON.stringify(added(randomBytes(2_600).toString('base64'))));
  const feed = { epoch: source.epoch, sequence: 256 * pages, restarts: 0, placeBefore: (sequence: number) => sequence };
  const past = new SourcePages(source, feed, { maxReads: 4, maxEventBytes: 1_000_000 });
  const page = async (number: number): Promise<readonly SourceEntry[]> => {
    const { sequence, mark } = source.events[256 * number] as SourceEvent;
    return (await past.after({ epoch: source.epoch, sequence, mark })) ?? [];
  };
  const readAgain = async (): Promise<number> => {
    const before = reads;
    for (let number = 0; number < pages; number++) await page(number);
    return reads - before;
  };
  expect(await readAgain()).toBe(pages);
  expect(await readAgain()).toBe(0); // all of them are kept: 11 MB of 16
  for (let number = 0; number < pages; number++) {
    for (const { envelope } of await page(number)) DEFLATED_MESSAGE.size(envelope as Envelope);
  }
  expect(await readAgain()).toBeGreaterThan(0); // 19 MB were too much
});
