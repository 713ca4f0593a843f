// Reading what is mostly known against JSON.parse, on values and bytes of all kinds.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Reparser, readStored } from '../../src/cache/http/reparse.ts';
import { runs } from '../runs.ts';

const RUNS = runs(1_500);
const timeout = Math.max(30_000, 10 * RUNS);

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

const textArb = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'name',
    'metadata',
    '"',
    '\\',
    'a"b',
    '\u0000',
    'é',
    '😀',
    '\ud800',
    '__proto__',
    '1',
    'x'.repeat(150),
  ),
  fc.string({ unit: 'binary', maxLength: 5 }),
);
const numberArb = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, 10, 1.5, 1e21, 2 ** 53, 999_999_999_999_999),
  fc.double({ noNaN: true }),
);
const leafArb: fc.Arbitrary<Json> = fc.oneof(
  textArb,
  numberArb.map((n) => (Number.isFinite(n) ? n : 0)),
  fc.boolean(),
  fc.constant(null),
);
/**
 * JSON.parse of Node 24 and 26 takes an escape in a name for the backslash that a name of an earlier object ended in: after
 * {"k":1,"\\":0}, the text {"k":1,"\n":0} gives that earlier name. What errs cannot be compared with.
 */
const nameArb = textArb.filter((name) => !name.endsWith('\\'));
const valueArb: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    leafArb,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(nameArb, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

/** The same value, but for some of its parts. */
function changed(value: Json, choose: () => number, fresh: () => Json): Json {
  if (choose() === 0) return fresh();
  if (Array.isArray(value)) {
    const items = value.map((each) => changed(each, choose, fresh));
    return choose() === 1 ? items.slice(1) : choose() === 2 ? [...items, fresh()] : items;
  }
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([name, each]) => [name, changed(each, choose, fresh)] as const);
  return Object.fromEntries(choose() === 1 ? entries.reverse() : choose() === 2 ? entries.slice(1) : entries);
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(value).map(frozen);
  return Object.freeze(value);
}

/** JSON may say the same in many ways. */
const WRITTEN: readonly ((value: Json) => string)[] = [
  (value) => JSON.stringify(value),
  (value) => JSON.stringify(value, null, 1),
  (value) => JSON.stringify(value).replaceAll('a', '\\u0061').replaceAll('/', '\\/'),
  (value) => JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
  (value) => JSON.stringify(value).replaceAll(':0', ':-0').replaceAll('1', '1.0'),
];

const read = (text: Uint8Array, known: unknown): unknown => {
  const reader = new Reparser(text);
  const value = reader.value(known, 0);
  if (reader.at !== text.length) throw new SyntaxError('there is more');
  return value;
};

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What reading gives, or undefined if it refuses. */
function attempt<R>(code: () => R): { readonly value: R } | undefined {
  try {
    return { value: code() };
  } catch {
    return undefined;
  }
}

const parse = (text: Uint8Array): unknown => JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(text));

it('gives what JSON.parse gives, or nothing, whatever is known', { timeout }, () => {
  const runs = fc.tuple(valueArb, valueArb, fc.boolean(), fc.nat(WRITTEN.length - 1), fc.infiniteStream(fc.nat(9)), fc.gen());
  fc.assert(
    fc.property(runs, ([one, other, related, how, choices, g]) => {
      const known = frozen(JSON.parse(JSON.stringify(one)) as Json);
      const value = related
        ? changed(
            known,
            () => choices.next().value as number,
            () => g(() => leafArb),
          )
        : other;
      const text = bytes((WRITTEN[how] as (value: Json) => string)(value));
      const expected = attempt(() => parse(text));
      const got = attempt(() => read(text, known));
      if (got) expect(got).toStrictEqual(expected);
      // The order of members, too.
      if (got) expect(JSON.stringify(got.value)).toBe(JSON.stringify(expected?.value));
      if (how === 0 && !JSON.stringify(value).includes('__proto__')) expect(got).toBeDefined();
    }),
    { numRuns: RUNS },
  );
});

it('gives the very same object if nothing differs', { timeout }, () => {
  fc.assert(
    fc.property(valueArb, fc.nat(WRITTEN.length - 1), (value, how) => {
      const text = bytes((WRITTEN[how] as (value: Json) => string)(value));
      const known = frozen(attempt(() => parse(text))?.value);
      const got = attempt(() => read(text, known));
      if (how === 0 && !JSON.stringify(value).includes('__proto__')) expect(got).toBeDefined();
      if (got && !JSON.stringify(value).includes('__proto__')) expect(Object.is(got.value, known)).toBe(true);
    }),
    { numRuns: RUNS },
  );
});

it('believes no bytes that JSON.parse refuses', { timeout }, () => {
  const object = fc.record({ metadata: fc.record({ name: fc.constant('a'), labels: valueArb }), spec: valueArb });
  fc.assert(
    fc.property(object, fc.array(fc.tuple(fc.nat(), fc.nat(255), fc.nat(2)), { maxLength: 3 }), (known, damages) => {
      const stored = JSON.parse(JSON.stringify(known)) as object;
      let frame = [...bytes(JSON.stringify({ type: 'MODIFIED', object: known }))];
      for (const [at, byte, how] of damages) {
        const place = at % frame.length;
        const inserted = how === 0 ? [] : [byte];
        frame = [...frame.slice(0, place), ...inserted, ...frame.slice(how === 2 ? place : place + 1)];
      }
      const text = Uint8Array.from(frame);
      const got = readStored(text, () => stored);
      if (got) expect(got).toStrictEqual(parse(text));
      else if (damages.length === 0) expect(JSON.stringify(known)).toContain('__proto__');
    }),
    { numRuns: RUNS },
  );
});
