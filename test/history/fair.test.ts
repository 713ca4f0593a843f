import { describe, expect, it } from 'vitest';
import { checkFair, type WorkStep } from '../../src/testing/checkers/check-fair.ts';
import { WORDED } from './build.ts';

/** `ask a`, `begin a`, `end a 60` (ms), `idle`; `a 60` is a piece from its beginning to its end. */
const check = (text: string): string | undefined => {
  const steps = text.split(', ').flatMap((line): WorkStep[] => {
    const [step = '', client = '', ms] = line.split(' ');
    if (step === 'idle') return [{ step }];
    if (step === 'ask' || step === 'begin') return [{ step, client }];
    if (step === 'end') return [{ step, client, ms: Number(ms) }];
    return [
      { step: 'begin', client: step },
      { step: 'end', client: step, ms: Number(client) },
    ];
  });
  return checkFair({ steps })?.message;
};

describe('Fair', () => {
  it.each([
    'ask a, a 60, idle',
    'ask a, ask a, ask a, a 60, ask b, a 60, b 1, a 60, idle',
    'ask a, begin a, ask b, end a 60, b 1, idle',
    'ask a, ask b, ask c, a 60, c 60, b 1, idle',
    'ask a, ask a, ask b, ask b, b 60, a 60, b 60, a 60, idle',
    'ask a, a 60, ask b, ask a, b 60, a 60, idle',
    'ask a, ask a, ask a, ask b, ask b, a 60, b 60, a 5, b 60, a 5, idle',
    'ask a',
  ])('accepts %s', (text) => {
    expect(check(text)).toBeUndefined();
  });

  it.each([
    [
      'ask a, ask a, ask b, a 60, a 60, b 1',
      'a small request behind all that was sent before',
      /^Fair for b: expected at most 61 ms of a since step 2, seen 120 ms$/,
    ],
    ['ask a, begin a, ask b, ask a, end a 60, a 60', 'one that is passed over again', /for b: .* since step 2/],
    ['ask a, ask a, ask a, ask b, ask b, b 5, a 60, a 60', 'one that has had little', /expected at most 71 ms of a since step 3/],
    ['ask a, begin a, ask b, begin b', 'two pieces at once', /expected one piece at a time, seen it begun during one of a/],
    ['ask a, a 1, begin a', 'a piece that nobody asked for', /expected a piece that was asked for, seen one more/],
    ['ask a, ask b, a 60, idle', 'one that is never begun', /for b: expected nothing left to do, seen 1 waiting/],
  ])('rejects %s: %s', (text, _, expected) => {
    expect(check(text)).toMatch(expected);
    expect(check(text)).toMatch(WORDED);
  });
});
