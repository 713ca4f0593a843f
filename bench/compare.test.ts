import { describe, expect, test } from 'vitest';
import { turnsOf } from './compare.ts';

describe('turns', () => {
  const rounds = Array.from({ length: 6 }, (_, round) => turnsOf(round, 5));

  test('everyone has one in each round', () => {
    for (const turns of rounds) expect([...turns].sort()).toEqual([0, 1, 2, 3, 4]);
  });

  test('the first one changes', () => {
    expect(rounds.map(([first]) => first)).toEqual([0, 1, 2, 3, 4, 0]);
  });

  test('nobody always follows the same one', () => {
    for (let player = 0; player < 5; player++) {
      const before = rounds.map((turns) => turns[turns.indexOf(player) - 1]).filter((each) => each !== undefined);
      expect(new Set(before).size).toBe(2);
    }
  });

  test('a single one has all of them', () => {
    expect([0, 1, 2, 3].map((round) => turnsOf(round, 1))).toEqual([[0], [0], [0], [0]]);
  });
});
