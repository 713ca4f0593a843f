import { getOrMake } from '../../watch/errors.ts';

/** What rules cost. Each step costs one; a value costs its size wherever it is read. */

/** What the running expression may still cost, and the error of one that costs more: a single one, as loops meet it often. */
export const meter: { left: number } = { left: 0 };
export const OVER: Error = new Error('operation cancelled: actual cost limit exceeded');

/** Takes steps from what is left. Anything that may take long calls it first, with its cost. */
export function spend(cost: number): void {
  meter.left -= cost;
  if (meter.left < 0) throw OVER;
}

/** The sizes of lists and maps, with everything inside: counted once, as no expression changes them. */
export const sizes: WeakMap<object, number> = new WeakMap();

/** What a value adds to the size of its container. */
export function sizeIn(value: unknown): number {
  if (typeof value === 'string') return 1 + (value.length >> 2);
  return typeof value === 'object' && value !== null ? 1 + sizeOf(value) : 1;
}

function sizeOf(value: object): number {
  const known = sizes.get(value);
  if (known !== undefined) return known;
  if (value instanceof Uint8Array) return value.length >> 2;
  if (!Array.isArray(value) && !(value instanceof Map) && !isPlain(value)) return 1;
  let size = 1;
  const parts = Array.isArray(value) ? value : value instanceof Map ? value.values() : Object.values(value);
  for (const each of parts) size += sizeIn(each);
  sizes.set(value, size);
  return size;
}

const isPlain = (value: object): boolean => value.constructor === undefined || value.constructor === Object;

/** The cost of reading all of a value. */
export function costOf(value: unknown): number {
  if (typeof value === 'string') return value.length >> 5;
  if (typeof value !== 'object' || value === null) return 0;
  return value instanceof Uint8Array ? value.length >> 5 : sizeOf(value) >> 3;
}

/** What is done with the value of a part of an expression beyond reading it, and is charged when that is known. */
export type Use = (value: unknown) => void;

/** The whole value is compared. */
export const compared: Use = (value) => spend(costOf(value));

const keyCounts: WeakMap<object, number> = new WeakMap();

/** The keys of a map are counted or listed, however few are looked at: upstream's maps know their number, and ours do not. */
const listed: Use = (value) => {
  const isMap = value instanceof Map || (typeof value === 'object' && value !== null && isPlain(value));
  if (!isMap || Array.isArray(value)) return;
  spend(getOrMake(keyCounts, value, () => (value instanceof Map ? value.size : Object.keys(value).length)) / 4);
};

/** A text of another form takes long to be refused. */
const converted: Use = (value) => {
  if (typeof value === 'string') spend(value.length / 4);
};

/** A time in a zone takes 50 us and more to be told. */
const inZone: Use = () => spend(1_024);

/**
 * A text is looked for in another, which takes up to the product of their lengths: engines of JavaScript are fast only for most
 * texts. Upstream charges it for the same reason.
 */
function searched(): readonly [Use, Use] {
  const lengths: [number, number] = [0, 0];
  const use =
    (which: 0 | 1): Use =>
    (value) => {
      lengths[which] = typeof value === 'string' ? value.length : 0;
      const pairs = lengths[0] * lengths[1];
      if (pairs === 0) return;
      lengths.fill(0);
      spend(pairs / 256);
    };
  return [use(0), use(1)];
}

const SEARCHES: ReadonlySet<string> = new Set(['contains', 'indexOf', 'lastIndexOf', 'replace', 'split']);

/** How a call of a function uses what it is called on, and its first argument. */
export function usesIn(name: string, isMethod: boolean): { readonly target?: Use; readonly first?: Use } {
  if (!isMethod) return name === 'size' ? { first: listed } : name === 'duration' ? { first: converted } : {};
  if (/^get[A-Z]/.test(name)) return { first: inZone };
  if (!SEARCHES.has(name)) return { target: listed };
  const [target, first] = searched();
  return { target, first };
}

/** A value of one of Kubernetes' own types. Two are equal if their texts are. */
export interface Keyed {
  readonly key: string;
}

/** An optional value of cel-js. */
export interface Optional {
  hasValue(): boolean;
  value(): unknown;
}

/** A text that is the same for values that are equal in CEL. It costs the size of the value. */
export function keyOf(value: unknown): string {
  spend(1 + costOf(value));
  return toKey(value);
}

function toKey(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'number':
      return Number.isInteger(value) ? String(BigInt(value)) : String(value);
    case 'object':
      return value === null ? 'null' : keyOfObject(value);
    default:
      return String(value);
  }
}

export const isOptional = (value: unknown): value is Optional =>
  typeof (value as Partial<Optional> | null | undefined)?.hasValue === 'function';

function keyOfObject(value: object): string {
  if (Array.isArray(value)) return `[${value.map(toKey).join()}]`;
  if (value instanceof Uint8Array) return `b${value.join()}`;
  if (value instanceof Date) return `t${value.getTime()}`;
  if (typeof (value as Partial<Keyed>).key === 'string' && value.constructor !== Object) return (value as Keyed).key;
  if (isOptional(value)) return value.hasValue() ? `o${keyOf(value.value())}` : 'o';
  const { seconds, nanos } = value as { seconds?: unknown; nanos?: unknown };
  if (typeof seconds === 'bigint' && value.constructor !== Object) return `d${seconds}.${nanos}`;
  if (!(value instanceof Map) && value.constructor !== Object && value.constructor !== undefined) return String(value);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return `{${entries
    .map(([name, each]) => `${toKey(name)}:${toKey(each)}`)
    .sort()
    .join()}}`;
}
