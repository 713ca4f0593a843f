import { keyOf } from '../../../cache/object.ts';
import type { Row } from '../../get/table.ts';

/** Which rows are shown. */
export interface Choice {
  /** Only objects in whose namespace/name this is, in lower case; empty for all. */
  readonly text: string;
  /** Not more than this. */
  readonly max: number;
  /** A row that is shown in any case, because the user reads it. */
  readonly pinned?: Row | undefined;
}

/** The rows that are shown, in the order of their keys, and how many there are. */
export interface Chosen {
  readonly rows: readonly Row[];
  readonly matching: number;
}

/**
 * Chooses the first rows by key. Of a hundred thousand rows, most are compared only once, with the last of those chosen so far;
 * sorting all of them for each change would take too long.
 */
export function chooseRows(all: Iterable<Row>, { text, max, pinned }: Choice): Chosen {
  const first: { readonly key: string; readonly row: Row }[] = [];
  let matching = 0;
  const enter = (key: string, row: Row): void => {
    first.splice(placeOf(first, key), 0, { key, row });
  };
  for (const row of all) {
    const key = keyOf(row);
    if (text !== '' && !key.toLowerCase().includes(text)) continue;
    matching++;
    const last = first.at(-1);
    if (first.length === max && last !== undefined && key > last.key) continue;
    enter(key, row);
    if (first.length > max) first.pop();
  }
  if (pinned !== undefined && !first.some(({ key }) => key === keyOf(pinned))) enter(keyOf(pinned), pinned);
  return { rows: first.map(({ row }) => row), matching };
}

/** Where a key belongs among keys that are in order. */
function placeOf(sorted: readonly { readonly key: string }[], key: string): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((sorted[middle] as { readonly key: string }).key < key) from = middle + 1;
    else to = middle;
  }
  return from;
}
