/**
 * What differs between two states of an object, value by value:
 *
 *     { spec: { count: 1 }, list: [{ name: 'a' }] }
 *     { spec: { count: 2 }, list: [{ name: 'b' }, { name: 'a' }] }   -->   spec.count: 1, 2    list[name=b]: (none), { name: 'b' }
 *
 * - Items of a list are identified by a member, if one is unique, and otherwise by their place.
 * - What changes with every write does not count: the version, the generation, and who has written which field.
 * - It takes time in proportion to the size of both states, and lists as many changes as asked for.
 */
import { hasMembers, itemPath, keyMember, type Members, memberPath, scalarText } from './paths.ts';

/** A value that has changed. Without `before` there was none, without `after` there is none. */
export interface FieldChange {
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** The first changes, and how many more there are. */
export interface FieldChanges {
  readonly list: readonly FieldChange[];
  readonly more: number;
}

/** What is not compared. */
const UNSAID: ReadonlySet<string> = new Set(['metadata.managedFields', 'metadata.resourceVersion', 'metadata.generation']);

/** The differences between two JSON values, at most `max` of them. */
export function changesOf(before: unknown, after: unknown, max: number = 200): FieldChanges {
  const comparison = new Comparison(max);
  try {
    comparison.compare({ before, after }, '');
  } catch (error) {
    // Nested more deeply than the stack allows.
    if (!(error instanceof RangeError)) throw error;
    return { list: [{ path: '', before, after }], more: 0 };
  }
  return { list: comparison.list, more: comparison.more };
}

interface Two {
  readonly before: unknown;
  readonly after: unknown;
}

class Comparison {
  readonly list: FieldChange[] = [];
  more: number = 0;
  private readonly max: number;

  constructor(max: number) {
    this.max = max;
  }

  compare({ before, after }: Two, path: string): void {
    if (before === after || UNSAID.has(path)) return;
    if (hasMembers(before) && hasMembers(after)) this.members(before, after, path);
    else if (Array.isArray(before) && Array.isArray(after)) this.items(before, after, path);
    else if (isNested(before) || isNested(after) || scalarText(before) !== scalarText(after)) this.add({ path, before, after });
  }

  private members(before: Members, after: Members, path: string): void {
    for (const [name, old] of Object.entries(before)) {
      const at = memberPath(path, name);
      if (!Object.hasOwn(after, name)) this.add({ path: at, before: old });
      else this.compare({ before: old, after: after[name] }, at);
    }
    for (const [name, now] of Object.entries(after)) {
      if (!Object.hasOwn(before, name)) this.add({ path: memberPath(path, name), after: now });
    }
  }

  private items(before: readonly unknown[], after: readonly unknown[], path: string): void {
    const key = keyMember(after) ?? keyMember(before);
    const isKeyed = key !== undefined && [before, after].every((list) => list.length === 0 || keyMember(list) === key);
    const byPath = (list: readonly unknown[]): ReadonlyMap<string, unknown> =>
      new Map(list.map((item, at) => [itemPath(path, at, isKeyed ? { key, item } : undefined), item]));
    const [old, now] = [byPath(before), byPath(after)];
    for (const [at, item] of old) {
      if (!now.has(at)) this.add({ path: at, before: item });
      else this.compare({ before: item, after: now.get(at) }, at);
    }
    for (const [at, item] of now) if (!old.has(at)) this.add({ path: at, after: item });
    const order = [...old.keys()].filter((at) => now.has(at));
    // The same items in another order.
    if (isKeyed && [...now.keys()].filter((at) => old.has(at)).some((at, index) => at !== order[index]))
      this.add({ path, before, after });
  }

  private add(change: FieldChange): void {
    if (UNSAID.has(change.path)) return;
    if (this.list.length < this.max) this.list.push(change);
    else this.more++;
  }
}

const isNested = (value: unknown): boolean => Array.isArray(value) || hasMembers(value);
