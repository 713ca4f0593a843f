function sorted(values: readonly number[]): Float64Array {
  return Float64Array.from(values).sort();
}

export function median(values: readonly number[]): number {
  const all = sorted(values);
  const middle = all.length >> 1;
  const upper = all[middle] ?? Number.NaN;
  return all.length % 2 === 1 ? upper : (upper + (all[middle - 1] ?? Number.NaN)) / 2;
}

/** Returns a quantile of sorted values. */
export function quantile(values: Float64Array, share: number): number {
  return values[Math.max(0, Math.ceil(values.length * share) - 1)] ?? Number.NaN;
}

/** Returns the range of the middle half of the values. */
export function middleHalf(values: readonly number[]): readonly [from: number, to: number] {
  const all = sorted(values);
  return [quantile(all, 0.25), quantile(all, 0.75)];
}

/** Divides two rows round by round, so that a disturbance affects both. */
export function pairedRatios(rounds: readonly number[], reference: readonly number[]): number[] {
  return rounds.flatMap((value, round) => {
    const other = reference[round];
    return other === undefined || other === 0 ? [] : [value / other];
  });
}
