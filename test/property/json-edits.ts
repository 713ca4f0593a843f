// Objects of JSON with every name that is special somewhere, and the same with a few changes.
import fc from 'fast-check';

export type Json = Record<string, unknown>;

const NAMES = ['a', 'b', 'a/b', 'm~n', '~1', '', '-', '0', '1', '__proto__', 'constructor', 'ä'];
const name = fc.oneof(fc.constantFrom(...NAMES), fc.string({ maxLength: 3 }));
const made = fc.letrec<{ value: unknown; object: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(fc.constant(null), fc.boolean(), fc.integer({ min: -3, max: 3 }), fc.string({ maxLength: 2 })),
    fc.array(tie('value'), { maxLength: 6 }),
    tie('object'),
  ),
  object: fc.dictionary(name, tie('value'), { maxKeys: 5, noNullPrototype: true }),
}));
/** A value, and an object. */
export const value: fc.Arbitrary<unknown> = made.value;
export const object: fc.Arbitrary<Json> = fc.dictionary(name, value, { maxKeys: 5, noNullPrototype: true });

/** As it comes out of JSON, where `__proto__` is a member. */
export const json = <T>(made: T): T => JSON.parse(JSON.stringify(made)) as T;

/** A value with a few changes somewhere in it. */
export function changed(whole: unknown, [seed = 0, ...more]: readonly number[], other: unknown): unknown {
  if (more.length === 0 || typeof whole !== 'object' || whole === null) return other;
  const names = Object.keys(whole);
  const at = names[seed % Math.max(names.length, 1)];
  if (Array.isArray(whole)) {
    const copy = [...whole];
    const index = seed % (whole.length + 1);
    if (seed % 3 === 0) copy.splice(index, 0, other);
    else if (seed % 3 === 1) copy.splice(index, 1 + (seed % 2));
    else if (index < copy.length) copy[index] = changed(copy[index], more, other);
    return copy;
  }
  const kept = Object.entries(whole).filter(([each]) => seed % 4 !== 0 || each !== at);
  const entries = kept.map(([each, old]) => [each, each === at ? changed(old, more, other) : old]);
  if (seed % 4 === 1) entries.push([NAMES[seed % NAMES.length], other]);
  return Object.fromEntries(entries);
}

/** An object before and after a few changes. */
export const edited: fc.Arbitrary<{ readonly before: Json; readonly after: Json }> = fc
  .tuple(object, fc.array(fc.tuple(fc.array(fc.nat(40), { minLength: 1, maxLength: 5 }), value), { minLength: 1, maxLength: 4 }))
  .map(([before, edits]) => {
    let after: unknown = json(before);
    for (const [seeds, other] of edits) after = changed(after, [...seeds, 0], other);
    return { before: json(before), after: json(after) as Json };
  });

/** Values with the same text are the same: a member `constructor` misleads matchers. */
export function canonical(whole: unknown): string {
  if (Array.isArray(whole)) return `[${whole.map(canonical).join()}]`;
  if (typeof whole !== 'object' || whole === null) return JSON.stringify(whole);
  const members = Object.entries(whole).map(([each, inner]) => `${JSON.stringify(each)}:${canonical(inner)}`);
  return `{${members.sort().join()}}`;
}
