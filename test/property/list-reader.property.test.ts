// Reading a list in parts against JSON.parse of the whole, for texts of all kinds, cut anywhere.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ListReader } from '../../src/cache/http/list-reader.ts';
import { runs } from '../runs.ts';

const RUNS = runs(1_500);
const timeout = Math.max(30_000, 10 * RUNS);

/** What reading gives, or undefined if it refuses. */
function attempt(code: () => unknown): { readonly value: unknown } | undefined {
  try {
    return { value: code() };
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return undefined;
  }
}

const utf8 = new TextEncoder();

function read(text: string, cuts: readonly number[]): unknown {
  const reader = new ListReader();
  const bytes = utf8.encode(text);
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  let from = 0;
  for (const to of places) {
    reader.push(bytes.subarray(from, to));
    from = to;
  }
  return reader.end();
}

const textArb = fc.oneof(
  fc.constantFrom('items', '"', '\\', 'a"b', ',', ']', '[', '{', '}', ':', '"items":[', 'é', '😀', '\ud800', '__proto__', ''),
  fc.string({ maxLength: 4 }),
);
const valueArb = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    textArb,
    fc.constantFrom(0, -1.5e3, true, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(textArb, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;
/** Members of a list, in any order, some twice. */
const listArb = fc
  .array(
    fc.oneof(
      fc.array(valueArb, { maxLength: 5 }).map((items) => ['items', items] as const),
      fc.tuple(textArb, valueArb).filter(([name, value]) => name !== 'items' || value !== 0),
    ),
    { maxLength: 4 },
  )
  .chain((members) =>
    fc.constantFrom(undefined, 1).map((space) => {
      const texts = members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value, null, space)}`);
      return `{${texts.join(space === undefined ? ',' : ' , \n')}}`;
    }),
  );
const cutsArb = fc.oneof(fc.array(fc.nat(), { maxLength: 4 }), fc.constant(Array.from({ length: 300 }, (_, at) => at)));

it('gives what JSON.parse gives', { timeout }, () => {
  fc.assert(
    fc.property(
      fc.oneof(
        listArb,
        valueArb.map((value) => JSON.stringify(value)),
      ),
      cutsArb,
      (text, cuts) => {
        const got = attempt(() => read(text, cuts));
        expect(got).toStrictEqual({ value: JSON.parse(text) });
        expect(JSON.stringify(got?.value)).toBe(JSON.stringify(JSON.parse(text)));
      },
    ),
    { numRuns: RUNS },
  );
});

it('refuses what JSON.parse refuses', { timeout }, () => {
  const damageArb = fc.array(
    fc.tuple(fc.nat(), fc.constantFrom('', '"', '\\', ',', '[', ']', '{', '}', ':', ' ', '1', '\u00a0', '\ufeff')),
    {
      minLength: 1,
      maxLength: 3,
    },
  );
  fc.assert(
    fc.property(listArb, damageArb, fc.boolean(), cutsArb, (whole, damages, replaces, cuts) => {
      let text = whole;
      for (const [at, character] of damages) {
        const place = at % text.length;
        text = text.slice(0, place) + character + text.slice(character === '' || replaces ? place + 1 : place);
        if (text === '') return;
      }
      const expected = attempt(() => JSON.parse(new TextDecoder().decode(utf8.encode(text))));
      fc.pre((expected?.value as { items?: unknown } | undefined)?.items !== 0); // see the reader's invariants
      expect(attempt(() => read(text, cuts))).toStrictEqual(expected);
    }),
    { numRuns: RUNS },
  );
});

it('takes a byte order mark where JSON in a file has one, and nowhere else', () => {
  expect(read('\ufeff{"items":[{}]}', [2])).toEqual({ items: [{}] });
  for (const text of ['{"items":[\ufeff{}]}', '{"items":[{},\ufeff{}]}', '{"items":[{}]\ufeff}']) {
    expect(() => read(text, [])).toThrow(SyntaxError);
  }
});

it('is of no list what is there of it', () => {
  const text = '{"items":[{"a":"\\"]"},{"b":[1,{}]}],"metadata":{}}';
  for (let to = 0; to < text.length; to++) expect(() => read(text.slice(0, to), [])).toThrow(SyntaxError);
  expect(read(text, [])).toEqual(JSON.parse(text));
});
