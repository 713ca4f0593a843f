// What the engine and its decoders hold. Nothing runs beside these tests: they measure memory.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { LengthPrefixedFramer } from '../../src/decode/framing.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { collectedUntil, macrotask, NO_GC } from '../unit/support.ts';

type Told = WatchEvent<string, { readonly topic: string }>;

describe.skipIf(globalThis.gc === undefined)(`a topic that nobody watches any more${NO_GC}`, () => {
  const topicsOf = ({ object }: { object: unknown }): string => (object as Told['object']).topic;

  /** What is left of 100,000 watches, each with the topic that it is given, once it is below a limit, or else in the end. */
  async function leftOf(topicOf: (at: number) => string, limit: number): Promise<number> {
    const broadcaster = new Broadcaster<Told>({ topicsOf, overflow: 'drop-oldest' });
    const comeAndGo = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at++) {
        const topic = topicOf(at);
        const watch = broadcaster.watch({ topics: [topic] });
        broadcaster.tryPublish({ type: 'TOLD', object: { topic } });
        await watch.return();
        if (at % 1_000 === 0) await macrotask();
      }
    };
    await comeAndGo(20_000); // code is loaded and compiled, which takes memory, too
    let rounds = 0;
    await collectedUntil(() => ++rounds === 5);
    const before = process.memoryUsage().heapUsed;
    await comeAndGo(100_000);
    const left = (): number => process.memoryUsage().heapUsed - before;
    await collectedUntil(() => left() < limit);
    return left();
  }

  test('holds no memory, and no more than one topic that is watched as often', async () => {
    const one = await leftOf(() => 'room', 500_000);
    // A single byte of each topic would be 100 KB; V8 itself moves by some ten KB.
    const each = await leftOf((at) => `room ${at}`, Math.min(500_000, one + 100_000));
    expect(each, `${each} bytes for 100,000 topics, ${one} for one`).toBeLessThan(500_000);
    expect(each - one).toBeLessThan(500_000);
  });
});

test('a framer does not allocate the length in a header in advance', () => {
  /** What it allocates for a header that announces a frame of this length, and three bytes of it. */
  const allocated = (length: number): number => {
    const framer = new LengthPrefixedFramer({ maxFrameBytes: 2 ** 32 });
    const bytes = new Uint8Array(7);
    new DataView(bytes.buffer).setUint32(0, length);
    const before = process.memoryUsage().arrayBuffers;
    framer.push(bytes);
    expect(framer.next()).toBeUndefined();
    expect(framer.buffered).toBe(3);
    const grown = process.memoryUsage().arrayBuffers - before;
    framer.end();
    return grown;
  };
  const small = allocated(4);
  expect(allocated(0xff_ff_ff_ff)).toBeLessThan(small + 1_000_000);
});
