/** The first place from `from` on that is not before what is looked for; `to` if all are. What is before comes first. */
export function bisect(from: number, to: number, isBefore: (at: number) => boolean): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Puts a few entries among many. Both are sorted, and none compares equal to another: comparing costs more than copying. */
export function merge<T>(many: readonly T[], few: readonly T[], compare: (one: T, other: T) => number): T[] {
  const merged: T[] = [];
  let from = 0;
  for (const entry of few) {
    const to = bisect(from, many.length, (at) => compare(many[at] as T, entry) < 0);
    for (; from < to; from++) merged.push(many[from] as T);
    merged.push(entry);
  }
  for (; from < many.length; from++) merged.push(many[from] as T);
  return merged;
}
