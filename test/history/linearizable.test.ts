import { describe, expect, it } from 'vitest';
import { checkLinearizable, type StorageRequest } from '../../src/testing/checkers/check-linearizable.ts';
import { WORDED } from './build.ts';

/**
 * A history of one key, a request each: `1-3 write 5`, `2-4 write 5 if 4 refused`, `2-4 delete`, `5-6 read 5`, `7- write 8` (no
 * answer). `-` stands for nothing.
 */
function history(text: string): StorageRequest[] {
  return text.split('; ').map((each): StorageRequest => {
    const [times = '', verb, ...words] = each.split(' ');
    const [from, to] = times.split('-');
    const numberOf = (word: string | undefined): number | undefined => (word === '-' ? undefined : Number(word));
    const condition = words.includes('if') ? { value: numberOf(words[words.indexOf('if') + 1]) } : undefined;
    const common = { key: 'k', from: Number(from), ...(to && { to: Number(to) }) };
    const answer = to ? (words.includes('refused') ? { is: 'refused' as const } : { is: 'done' as const }) : undefined;
    if (verb === 'read')
      return { ...common, call: { do: 'read' }, answer: to ? { is: 'done', value: numberOf(words[0]) } : undefined };
    if (verb === 'delete') return { ...common, call: { do: 'delete', if: condition }, answer };
    return { ...common, call: { do: 'write', value: numberOf(words[0]), if: condition }, answer };
  });
}

const ACCEPTED: readonly string[] = [
  '1-2 read -',
  '1-2 write 1; 3-4 read 1; 5-6 delete; 7-8 read -',
  // At once: in any order, but in one.
  '1-9 write 1; 2-3 read -; 4-5 read 1; 6-7 read 1',
  '1-9 write 1; 1-9 write 2; 10-11 read 1; 12-13 read 1',
  '1-9 write 1; 1-9 write 2; 2-3 read 2; 4-5 read 1; 10-11 read 1',
  // Conditions
  '1-2 write 1 if -; 3-4 write 2 if 1; 5-6 write 3 if 1 refused; 7-8 read 2',
  '1-5 write 1 if -; 2-6 write 2 if - refused; 7-8 read 1',
  '1-5 write 1 if - refused; 2-6 write 2 if -; 7-8 read 2',
  '1-2 delete refused; 3-4 write 1; 5-6 delete if 2 refused; 7-8 delete if 1; 9-10 read -',
  // Without an answer: it happened, late or never.
  '1- write 1; 2-3 read -; 4-5 read -',
  '1- write 1; 2-3 read -; 4-5 read 1; 6-7 read 1',
  '1- write 1 if 7; 2-3 read -',
  '1- read 5; 2-3 read -',
  '1- delete; 2-3 write 1; 4-5 read -',
];

const REJECTED: readonly (readonly [string, string])[] = [
  ['a read that misses what was answered', '1-2 write 1; 3-4 read -'],
  ['a read of what nobody wrote', '1-2 write 1; 3-4 read 2'],
  ['a read from the future', '1-2 read 1; 3-4 write 1'],
  ['reads that go back', '1-9 write 1; 2-3 read 1; 4-5 read -'],
  ['two orders for two readers', '1-20 write 1; 1-20 write 2; 2-3 read 1; 4-5 read 2; 6-7 read 1; 8-9 read 2'],
  ['a lost update', '1-2 write 1; 3-9 write 2 if 1; 4-8 write 3 if 1; 10-11 read 3'],
  ['two creates that both succeed', '1-5 write 1 if -; 2-6 write 2 if -'],
  ['a write whose condition does not hold', '1-2 write 1; 3-4 write 2 if 5'],
  ['a refusal though the condition holds', '1-2 write 1; 3-4 write 2 if 1 refused'],
  ['a refused write that is there', '1-2 write 1; 3-4 write 2 if 5 refused; 5-6 read 2'],
  ['what was deleted is there again', '1-2 write 1; 3-4 delete; 5-6 read 1'],
  ['a delete of nothing', '1-2 delete'],
  ['a delete that is refused though there is something', '1-2 write 1; 3-4 delete refused'],
  ['what has no answer happens before its call', '1-2 read 1; 3- write 1'],
  ['what has no answer happens twice', '1- write 1; 2-3 read 1; 4-5 write 2; 6-7 read 1'],
  ['what has no answer is undone', '1- write 1; 2-3 read 1; 4-5 read -'],
];

describe('checkLinearizable', () => {
  it.each(ACCEPTED)('accepts %s', (text) => {
    expect(checkLinearizable({ requests: history(text) })).toBeUndefined();
  });

  it.each(REJECTED)('rejects %s: %s', (_, text) => {
    expect(checkLinearizable({ requests: history(text) })).toMatchObject({
      guarantee: 'Linearizable',
      message: expect.stringMatching(WORDED),
    });
  });

  it('takes each key for itself, and what was there before', () => {
    const [one, other] = [history('1-2 read 1'), history('1-2 read -').map((each) => ({ ...each, key: 'other' }))];
    expect(checkLinearizable({ requests: [...one, ...other], initial: { k: 1 } })).toBeUndefined();
    expect(checkLinearizable({ requests: [...one, ...other], initial: { other: 1, k: 1 } })?.message).toContain('other');
    expect(checkLinearizable({ requests: [...one, ...other] })?.message).toContain('"k"');
  });

  it.each(REJECTED)('rejects %s, in whatever order it was written down', (_, text) => {
    expect(checkLinearizable({ requests: history(text).toReversed() })).toBeDefined();
  });

  it('takes requests in any order, and as long as they lasted', () => {
    const requests = history('1-2 write 1; 3-4 read 1; 5-6 delete; 7-8 read -');
    expect(checkLinearizable({ requests: requests.toReversed() })).toBeUndefined();
    // One begins at the moment at which the other is answered, so each may be the first.
    expect(checkLinearizable({ requests: history('1-2 write 1; 2-3 read -') })).toBeUndefined();
    // An answer that does not say whether it happened ends nothing: it may still happen.
    const [write, ...reads] = history('1- write 1; 3-4 read -; 5-6 read 1') as [StorageRequest, ...StorageRequest[]];
    expect(checkLinearizable({ requests: [{ ...write, to: 2 }, ...reads] })).toBeUndefined();
  });

  it('knows nothing of a key that is named like a method, and no value is nothing', () => {
    const requests = history('1-2 read -').map((each) => ({ ...each, key: 'toString' }));
    expect(checkLinearizable({ requests })).toBeUndefined();
    const written = history('1-2 write 1').map((each) => ({ ...each, call: { do: 'write' as const, value: 'nothing' } }));
    expect(checkLinearizable({ requests: [...written, ...history('3-4 read -')] })).toBeDefined();
    const [value, other] = [Symbol('value'), Symbol('other')];
    const put: StorageRequest = { key: 'k', from: 1, to: 2, call: { do: 'write', value }, answer: { is: 'done' } };
    const got = (seen: unknown): StorageRequest => ({
      key: 'k',
      from: 3,
      to: 4,
      call: { do: 'read' },
      answer: { is: 'done', value: seen },
    });
    expect(checkLinearizable({ requests: [put, got(value)] })).toBeUndefined();
    expect(checkLinearizable({ requests: [put, got(other)] })).toBeDefined();
  });

  it.each([
    [
      '1-2 write 1; 3-4 read 2',
      'Linearizable for ann at {"key":"k","do":"read"}: expected an order of the requests for k in which each answer is right, ' +
        'seen {"is":"done","value":2} where there is 1, in the order that goes furthest',
    ],
    // The first that got no further, not one that was tried behind it, and no read that nobody heard.
    ['1- read 5; 1-9 read 3; 2-9 read 4', 'seen {"is":"done","value":3} where there is nothing,'],
    ['1-9 read 3; 2-9 write 1; 2-9 read 4', 'seen {"is":"done","value":3} where there is 1,'],
    ['1-2 write 1; 3-9 read 7; 4-9 write 2; 10-11 delete refused', 'seen {"is":"done","value":7} where there is 2,'],
  ])('says of %s how far it came', (text, expected) => {
    const requests = history(text).map((each) => ({ ...each, client: 'ann' }));
    expect(checkLinearizable({ requests })?.message).toContain(expected);
    expect(checkLinearizable({ requests: history(text) })?.message).toMatch(/^Linearizable at \{/);
    expect(checkLinearizable({ requests: history(text) })).not.toHaveProperty('watcher');
  });

  it('ends soon for many requests at once', () => {
    const writes = Array.from({ length: 10 }, (_, n) => `1-99 write ${n}`).join('; ');
    expect(checkLinearizable({ requests: history(`${writes}; 100-101 read 9; 102-103 read 8`) })).toBeDefined();
  });
});
