import { describe, expect, test } from 'vitest';
import { MAX_AGE_MS, MIN_AGE_MS, SharedAnswer } from '../../src/cli/server/server.ts';

/** An answer that takes `costMs` to make, and a clock that only this moves. */
function slow(costMs: number): { made: () => number; read: () => string; pass: (ms: number) => void } {
  let nowMs = 0;
  let made = 0;
  const answer = new SharedAnswer(
    () => {
      nowMs += costMs;
      return `${++made}`;
    },
    () => nowMs,
  );
  return {
    made: () => made,
    read: () => Buffer.from(answer.body).toString(),
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

describe('an answer', () => {
  test('that costs nothing is made again after a moment', () => {
    const { read, pass } = slow(0);
    expect([read(), read()]).toEqual(['1', '1']);
    pass(MIN_AGE_MS - 1);
    expect(read()).toBe('1');
    pass(1);
    expect(read()).toBe('2');
  });

  test('takes at most a twentieth of the time to make, however often it is asked for', () => {
    const { read, pass, made } = slow(5);
    let asked = 0;
    for (let ms = 0; ms < 10_000; ms++) {
      read();
      asked++;
      pass(1);
    }
    expect(asked).toBe(10_000);
    expect(made()).toBeGreaterThan(80);
    expect(made()).toBeLessThanOrEqual(10_000 / 100 + 1);
  });

  test('is never older than its limit, whatever it costs', () => {
    const { read, pass } = slow(1_000);
    read();
    pass(MAX_AGE_MS - 1);
    expect(read()).toBe('1');
    pass(1);
    expect(read()).toBe('2');
  });
});
