import { describe, expect, test } from 'vitest';
import { readLine } from '../../src/cli/lines.ts';

const read = (text: string): ReturnType<typeof readLine> =>
  readLine({ number: 1, bytes: new TextEncoder().encode(text) }, { raw: false });

describe('a CR inside a line', () => {
  test('is white space, and must not reach SSE as a line end; the rest of the text stays as it was', () => {
    expect(read('{"type":"A",\r"object":1.0}')).toMatchObject({ json: '{"type":"A", "object":1.0}' });
    expect(read('[1.0,\r2]')).toMatchObject({ json: '{"type":"ADDED","object":[1.0, 2]}' });
  });

  test('within a string is no JSON', () => {
    expect(read('"a\rb"')).toEqual({ fault: 'not JSON: "a.b"' });
  });

  test('of a text too deep for JSON.stringify is no end of the program', () => {
    const rest = `${'['.repeat(20_000)}${']'.repeat(20_001)}`;
    expect(read(`[\r${rest}`)).toMatchObject({ json: `{"type":"ADDED","object":[ ${rest}}` });
  });
});
