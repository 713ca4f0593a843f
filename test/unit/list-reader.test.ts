// A list that comes in one answer is read item by item. That it is right is a property; this is about what is parsed at once.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ListReader } from '../../src/cache/http/list-reader.ts';

afterEach(() => void vi.restoreAllMocks());

const item = (number: number): object => ({ metadata: { name: `pod-${number}` }, text: '","items":[{' });
const ITEMS = Array.from({ length: 50 }, (_, number) => JSON.stringify(item(number)));

/** Reads a text in pieces, and returns it with the texts that were parsed: first those of items, last what is around them. */
function read(text: string, pieceBytes: number): { readonly value: unknown; readonly parsed: string[] } {
  const parse = vi.spyOn(JSON, 'parse');
  const reader = new ListReader();
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) reader.push(bytes.subarray(at, at + pieceBytes));
  const value = reader.end();
  const parsed = parse.mock.calls.map(([each]) => each);
  parse.mockRestore();
  return { value, parsed };
}

describe.each([1, 7, 10_000])('in pieces of %i bytes', (pieceBytes) => {
  it.each([
    ['nothing', '{', '}'],
    ['what Kubernetes sends', '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},', '}'],
    ['space', '\n{ "kind" : "PodList" ,\r\n\t', ' , "metadata" : { } }'],
    ['texts with quotes and backslashes', '{"kind":"a\\"b\\\\","\\\\":"\\"items\\":[",', ',"more":"\\""}'],
    ['items that are deeper', '{"metadata":{"items":[1,2],"more":[{"items":[3]}]},', '}'],
    ['items that are a text', '{"kind":"items","of":["items"],', '}'],
    ['names that begin or end alike', '{"item":[1],"itemss":[2],"_items":[3],"items_":[4],', '}'],
  ])('each item is parsed by itself, behind %s', (_, head, tail) => {
    const text = `${head}"items":[${ITEMS.join(', ')}]${tail}`;
    const { value, parsed } = read(text, pieceBytes);
    expect(value).toEqual(JSON.parse(text));
    expect(parsed.slice(0, -1).map((each) => each.trim())).toEqual(ITEMS);
    expect(parsed.at(-1)).toBe(`${head}"items":0${tail}`);
  });

  it.each([
    ['a space before the array', '{"items" :\n[', '] }', ITEMS.slice(0, 3)],
    ['one item', '{"items":[', ']}', ITEMS.slice(0, 1)],
    ['items that are numbers and texts', '{"items":[', ']}', ['1', '"a"', 'null', '[2,"]"]']],
  ])('so it is with %s', (_, head, tail, items) => {
    const { value, parsed } = read(`${head}${items.join()}${tail}`, pieceBytes);
    expect(value).toEqual({ items: items.map((each) => JSON.parse(each)) });
    expect(parsed.slice(0, -1)).toEqual(items);
  });

  it.each(['', '  \n'])('an array with nothing but %j has no items', (space) => {
    expect(read(`{"items":[${space}],"a":1}`, pieceBytes)).toEqual({ value: { items: [], a: 1 }, parsed: ['{"items":0,"a":1}'] });
  });

  it.each(['{"items":null}', '{"items":{"a":[1]}}', '{"metadata":{}}', '[{"items":[1]}]', '{"a":"items","b":[1]}'])(
    '%s is no list of items, and parsed as it is',
    (text) => {
      expect(read(text, pieceBytes)).toEqual({ value: JSON.parse(text), parsed: [text] });
    },
  );

  it.each(['{"items":[,]}', '{"items":[{},]}', '{"items":[{} {}]}', '{"items":[ , {}]}', '{"items":[{}}'])(
    '%s is refused',
    (text) => {
      expect(() => read(text, pieceBytes)).toThrow(SyntaxError);
    },
  );
});
