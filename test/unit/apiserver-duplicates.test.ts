import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  duplicateFields,
  extentOf,
  FieldPaths,
  MAX_PATHS,
  membersIn,
  parseJson,
  parsingBody,
} from '../../src/apiserver/request/json.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What a reader of a body is told; undefined: nothing. */
function told(text: string): readonly string[] | undefined {
  let paths: readonly string[] | undefined;
  parseJson(bytes(text), (found) => {
    paths = found.told;
  });
  return paths;
}

describe('members that are sent twice', () => {
  it.each<[string, readonly string[] | undefined]>([
    ['{}', undefined],
    ['{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}', undefined],
    ['[{"a":1},{"a":1}]', undefined],
    ['{"a":":","b":"{\\"a\\":1,\\"a\\":2}"}', undefined],
    ['{"a":1,"a":2}', ['a']],
    ['{"a":1,"a":2,"a":3}', ['a']],
    ['{"a":1,"b":2,"a":3,"b":4}', ['a', 'b']],
    ['{"spec":{"a":1},"spec":{"b":1}}', ['spec']],
    ['{"spec":{"a":[{"b":1},[],{"b":1,"c":{},"b":2}]}}', ['spec.a[2].b']],
    ['{"a":[1,2,{"x":"]}"},[{"y":1,"y":2}]]}', ['a[3][0].y']],
    ['[{"value":{"x":1,"x":2}}]', ['[0].value.x']],
    ['{"a":{"x":1,"x":2},"a":{"x":1,"x":2}}', ['a.x', 'a']],
    ['{"\\u0061":1,"a":2}', ['a']],
    ['{"a\\"b":1,"a\\"b":2,"c\\\\":1,"c\\\\":2}', ['a"b', 'c\\']],
    ['{"":1,"":2}', ['']],
    ['{"__proto__":1,"__proto__":2}', ['__proto__']],
    ['{"constructor":1,"toString":2}', undefined],
    ['{ "a" : [ 1 , 2 ] , "b" : { } , "a" : "x,y" }', ['a']],
    ['"a:b"', undefined],
    ['null', undefined],
  ])('%s: %j', (text, paths) => {
    expect(told(text)).toEqual(paths);
    expect(parseJson(bytes(text))).toEqual(JSON.parse(text));
    expect(atOnce(duplicateFields(text)).told).toEqual(paths ?? []);
  });

  it('are looked for in pieces in a long list', () => {
    const body = bytes(`{"list":[${'0,'.repeat(400_000)}0]}`);
    const pauses = (again?: () => void): number => [...parsingBody(body, { again })].length;
    expect(pauses(() => {}) - pauses()).toBeGreaterThan(1_000);
  });

  it('JSON that was written from a value has none, however it is written', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space);
        expect(atOnce(extentOf(bytes(text))).members).toBe(atOnce(membersIn(JSON.parse(text))));
        expect(atOnce(duplicateFields(text)).told).toEqual([]);
      }),
    );
  });

  it('any member that is written once more is told, at its place', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), (object, nth) => {
        const names = Object.keys(object);
        const name = names[nth % names.length] as string;
        const text = `[0,${JSON.stringify(object).slice(0, -1)},${JSON.stringify(name)}:null}]`;
        expect(told(text)).toEqual([`[1].${name}`].map((path) => (path.length > 256 ? `${path.slice(0, 256)}...` : path)));
      }),
    );
  });

  it('a hundred are told, and the others counted; long paths are cut', () => {
    const many = Array.from({ length: 150 }, (_, at) => `"a${at}":1,"a${at}":2`).join();
    const found = atOnce(duplicateFields(`{${many}}`));
    expect([found.told.length, found.more]).toEqual([MAX_PATHS, 50]);
    const name = 'x'.repeat(10_000);
    expect(atOnce(duplicateFields(`{"${name}":{"a":1,"a":2}}`)).told).toEqual([`${'x'.repeat(256)}...`]);
    expect(atOnce(duplicateFields(`{"${name}":[[{"a":1,"a":2}]]}`)).told).toEqual([`${'x'.repeat(256)}...`]);
  });

  it('steps are asked for only if they are told', () => {
    const paths = new FieldPaths();
    for (let at = 0; at < MAX_PATHS; at++) paths.add(() => ['a', at]);
    paths.add(() => expect.unreachable());
    expect([paths.told[99], paths.more]).toEqual(['a[99]', 1]);
  });
});
