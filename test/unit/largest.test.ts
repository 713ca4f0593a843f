import { expect, test } from 'vitest';
import { Largest } from '../../src/broadcast/log.ts';

test('the largest of very many numbers', () => {
  const largest = new Largest();
  for (let i = 0; i < 200_000; i++) largest.add(i);
  largest.add(199_999);
  largest.remove(199_999);
  expect(largest.value).toBe(199_999);
  largest.remove(199_999);
  expect(largest.value).toBe(199_998);
  largest.remove(5);
  expect(largest.value).toBe(199_998);
  const one = new Largest();
  one.add(7);
  one.remove(7);
  expect(one.value).toBe(0);
});

test('the next largest may have been added before or after others', () => {
  const largest = new Largest();
  for (const number of [5, 9, 3, 7, 9, 2]) largest.add(number);
  const values: number[] = [];
  for (const number of [9, 9, 3, 7, 5, 2]) {
    largest.remove(number);
    values.push(largest.value);
  }
  expect(values).toEqual([9, 7, 7, 5, 2, 0]);
});
