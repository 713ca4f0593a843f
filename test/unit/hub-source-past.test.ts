// What a hub reads from its stream for clients that are behind: which pages, how often, and what it keeps of them.
import { describe, expect, test } from 'vitest';
import { SourcePages } from '../../src/bridge/hub/source/catch-up.ts';
import type { ReadFrom, ReadLimits, SourceEvent, SourcePosition } from '../../src/bridge/hub/source/source.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import { added } from './fake-sink.ts';
import { fate, turn } from './support.ts';

/** A stream that says where it was read, and answers when the test says so. */
class Asked extends FakeSource {
  readonly asked: string[] = [];
  private holds: boolean = false;
  private readonly answers: (() => void)[] = [];

  override async read(from: ReadFrom, limits: ReadLimits): Promise<readonly SourceEvent[] | undefined> {
    this.asked.push(`${from.epoch} ${from.first}`);
    const events = await super.read(from, limits);
    if (this.holds) await new Promise<void>((resolve) => this.answers.push(resolve));
    return events;
  }

  holdReads(): void {
    this.holds = true;
  }

  /** Answers the reads that wait. */
  answer(): void {
    this.holds = false;
    for (const answer of this.answers.splice(0)) answer();
  }

  /** Where it was read since this was called last. */
  since(): string[] {
    return this.asked.splice(0);
  }

  positionAt(sequence: number): SourcePosition {
    const { mark } = this.events.find((event) => event.sequence === sequence) as SourceEvent;
    return { epoch: this.epoch, sequence, mark };
  }
}

interface World {
  readonly source: Asked;
  readonly past: SourcePages;
  /** Where the hub is. */
  readonly feed: { epoch: string; sequence: number; restarts: number; placeBefore: (sequence: number) => number };
}

function world(count: number, { maxReads = 4, filler = '' }: { maxReads?: number; filler?: string } = {}): World {
  const source = new Asked();
  for (let i = 1; i <= count; i++) source.append(JSON.stringify(added(filler || i)));
  const feed = { epoch: source.epoch, sequence: count, restarts: 0, placeBefore: (sequence: number) => sequence };
  return { source, past: new SourcePages(source, feed, { maxReads, maxEventBytes: 16_000_000 }), feed };
}

/** The sequences after a position. */
const following = async ({ past }: World, position: SourcePosition): Promise<number[] | undefined> =>
  (await past.after(position))?.map((entry) => entry.position.sequence);
const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe('what follows a position', () => {
  test('is the rest of its page, or the next page, or nothing yet', async () => {
    const all = world(300);
    expect(await following(all, { epoch: 'fake1', sequence: 0, mark: '0' })).toEqual(range(1, 256));
    expect(all.source.since()).toEqual(['fake1 1']);
    expect(await following(all, all.source.positionAt(254))).toEqual([255, 256]);
    expect(await following(all, all.source.positionAt(256))).toEqual(range(257, 300));
    expect(await following(all, all.source.positionAt(300))).toEqual([]);
  });

  test('is unknown if the stream does not hold it, or another event in its place', async () => {
    const all = world(20);
    const seventh = all.source.positionAt(7);
    all.source.trim(9);
    for (const position of [
      seventh,
      { ...seventh, sequence: 9, mark: '0' },
      { ...seventh, sequence: 12 },
      { ...seventh, sequence: 21 },
      { ...seventh, sequence: 0 },
      { ...seventh, sequence: 0, mark: '0' },
      { ...all.source.positionAt(12), epoch: 'fake2' },
    ])
      expect(await following(all, position)).toBeUndefined();
    all.source.remove(15);
    expect(await following(all, all.source.positionAt(14))).toBeUndefined();
    expect(await following(all, all.source.positionAt(12))).toEqual([13, 14]);
  });
});

describe('a page', () => {
  test('is read once, for all who need it now or later, and again as long as it may grow', async () => {
    const all = world(300);
    const positions = [all.source.positionAt(3), all.source.positionAt(200)];
    await Promise.all(positions.map((position) => following(all, position)));
    await following(all, all.source.positionAt(100));
    expect(all.source.since()).toEqual(['fake1 1']);
    for (let i = 0; i < 2; i++) await following(all, all.source.positionAt(270));
    expect(all.source.since()).toEqual(['fake1 257', 'fake1 257']);
    all.feed.sequence = 255;
    all.feed.restarts++;
    for (let i = 0; i < 2; i++) await following(all, all.source.positionAt(3));
    expect(all.source.since()).toEqual(['fake1 1', 'fake1 1']);
    all.feed.sequence = 256;
    for (let i = 0; i < 2; i++) await following(all, all.source.positionAt(3));
    expect(all.source.since()).toEqual(['fake1 1']);
  });

  test('of a stream that the hub does not follow is not taken for one of its own', async () => {
    const all = world(300);
    all.feed.epoch = 'fake0';
    for (let i = 0; i < 2; i++) expect(await following(all, all.source.positionAt(3))).toEqual(range(4, 256));
    expect(all.source.since()).toEqual(['fake1 1', 'fake1 1']);
    expect(await following(all, { epoch: 'fake0', sequence: 3, mark: '3' })).toBeUndefined();
  });

  test('is forgotten with the others when the stream was replaced, also one that is just being read', async () => {
    const all = world(300);
    await following(all, all.source.positionAt(3));
    all.feed.restarts++;
    all.source.holdReads();
    const late = fate(following(all, all.source.positionAt(3)));
    await turn();
    all.feed.restarts++;
    const next = fate(following(all, all.source.positionAt(270)));
    await turn();
    all.source.answer();
    await turn();
    expect([late.state, next.state]).toEqual(['resolved', 'resolved']);
    await following(all, all.source.positionAt(3));
    expect(all.source.since()).toEqual(['fake1 1', 'fake1 1', 'fake1 257', 'fake1 1']);
  });

  test('is read again after a failure', async () => {
    const all = world(300);
    const third = all.source.positionAt(3);
    all.source.stop();
    await expect(following(all, third)).rejects.toThrow('cannot be reached');
    all.source.start();
    expect(await following(all, third)).toHaveLength(253);
  });

  test('that was read after a loss, before the hub has heard of it, is not kept', async () => {
    const all = world(512);
    all.source.lose(300);
    expect(await following(all, all.source.positionAt(3))).toHaveLength(209);
    for (let i = 0; i < 100; i++) all.source.append(JSON.stringify(added(i)));
    Object.assign(all.feed, { sequence: 312, restarts: 1 });
    expect(await following(all, all.source.positionAt(212))).toEqual(range(213, 256));
  });

  test('is kept while there is room, which is 16 MiB; those that were needed last stay', async () => {
    const all = world(17 * 256, { filler: 'x'.repeat(4_000) });
    const need = async (...pages: number[]): Promise<number> => {
      for (const page of pages) await following(all, all.source.positionAt(page * 256 + 1));
      return all.source.since().length;
    };
    expect(await need(...range(0, 15), 0, 1)).toBe(16);
    expect(await need(16, 0, 1, ...range(3, 16))).toBe(1);
    expect(await need(2)).toBe(1);
    expect(await need(1, ...range(3, 16), 2)).toBe(0);
    expect(await need(0)).toBe(1);
  });
});

test('there are so many reads at a time, and none after the end', async () => {
  const all = world(1_000, { maxReads: 2 });
  const positions = [3, 300, 600].map((sequence) => all.source.positionAt(sequence));
  all.source.holdReads();
  const found = positions.map((position) => fate(following(all, position)));
  await turn();
  expect(all.source.since()).toEqual(['fake1 1', 'fake1 257']);
  all.past.stop();
  all.source.answer();
  await turn();
  expect(found.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'rejected']);
  expect(all.source.since()).toEqual([]);
});
