import { type Labels, labelOf } from './condition.ts';
import { faultOfKey, faultOfValue } from './label-text.ts';
import { byCodeUnit, checkText, type Fault, type ParseOptions, selectorError } from './syntax.ts';

/** Prints labels as `key=value` with commas between, sorted by key: `app=web,tier=front`. Upstream: `Set.String`. */
export function printLabels(labels: Labels): string {
  return Object.keys(labels)
    .sort(byCodeUnit)
    .map((key) => `${key}=${labels[key]}`)
    .join(',');
}

/**
 * Reads `key=value` pairs with commas between. Spaces around a key or a value are dropped; the last of two equal keys counts.
 * Upstream: `ConvertSelectorToLabelsMap`.
 *
 * @throws {WatchError} INVALID_SELECTOR with a `position`, as {@link parseLabelSelector}.
 */
export function parseLabels(text: string, options: ParseOptions = {}): Record<string, string> {
  checkText(KIND, text, options);
  if (text === '') return {};
  const found: [string, string][] = [];
  let at = 0;
  for (const pair of text.split(',')) {
    const equals = pair.indexOf('=');
    if (equals < 0) throw selectorError(KIND, text, { at: at + pair.length, expected: '"=" after a label key' });
    const key = part(text, { from: at, to: at + equals }, faultOfKey);
    const value = part(text, { from: at + equals + 1, to: at + pair.length }, faultOfValue);
    found.push([key, value]);
    at += pair.length + 1;
  }
  return Object.fromEntries(found); // it defines properties, so that a key `__proto__` is a key
}

const KIND = 'labels';

function part(text: string, { from, to }: { from: number; to: number }, faultOf: (text: string) => Fault | undefined): string {
  const raw = text.slice(from, to);
  const trimmed = raw.trim();
  const fault = faultOf(trimmed);
  if (fault) throw selectorError(KIND, text, { ...fault, at: from + raw.indexOf(trimmed) + fault.at });
  return trimmed;
}

/** Whether two sets of labels have a key in common with different values. Upstream: `labels.Conflicts`. */
export function conflicts(one: Labels, other: Labels): boolean {
  return Object.keys(one).some((key) => (labelOf(other, key) ?? one[key]) !== one[key]);
}

/** Both sets of labels in one new object; of two values for a key, the second counts. Upstream: `labels.Merge`. */
export function mergeLabels(one: Labels, other: Labels): Record<string, string> {
  return { ...one, ...other };
}
