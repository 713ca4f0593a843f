/** The cells of printer columns. Upstream: `tableconvertor.go` of custom resources. */
import type { PrinterColumn } from '../definition.ts';
import { goNumber } from '../validation/causes.ts';
import type { JsonPath } from './json-path.ts';

type Cell = ReturnType<PrinterColumn['value']>;

/** What a path finds, as its column shows it; null: nothing. */
export function toCell(type: PrinterColumn['type'], path: JsonPath, object: unknown): Cell {
  const value = found(path, object);
  if (value === undefined) return null;
  switch (type) {
    case 'string':
      return toText(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : typeof value === 'bigint' ? value : null;
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? value : null;
  }
}

/** The first value. An object that the path does not fit has none. */
function found(path: JsonPath, object: unknown): unknown {
  try {
    return path(object)[0];
  } catch {
    return undefined;
  }
}

/** A value as Go prints it. */
function toText(value: unknown): string {
  if (value === null) return '<nil>';
  if (typeof value === 'object') return goJson(value);
  return typeof value === 'number' ? goNumber(value) : String(value);
}

/** Members are in the order of their names, and HTML's characters are escaped. */
function goJson(value: unknown): string {
  const sorted = JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
  return sorted.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
