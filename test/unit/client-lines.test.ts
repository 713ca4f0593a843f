import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Frame, jsonLines, type Parser, serverSentEvents } from '../../src/bridge/client/stream.ts';

const encoder = new TextEncoder();

/** All frames of a text whose bytes are cut where the numbers say, and then the end. */
function parse(parser: Parser, text: string, cuts: readonly number[] = []): Frame[] {
  const bytes = encoder.encode(text);
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
  const frames: Frame[] = [];
  for (let i = 1; i < places.length; i++) frames.push(...parser(bytes.subarray(places[i - 1], places[i])));
  return [...frames, ...parser()];
}

const lines = (): Parser => jsonLines(1_000);
const texts = (frames: readonly Frame[]): string[] => frames.map(({ text }) => text);

describe('lines of JSON', () => {
  test('end in LF or CRLF; blank lines and a byte order mark are skipped; the last one needs no line end', () => {
    expect(texts(parse(lines(), '\ufeffa\r\nb\n\n  \r\n\tc\n✓'))).toEqual(['a', 'b', '\tc', '✓']);
    expect(parse(lines(), '')).toEqual([]);
  });

  test('are the same in any chunking', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', '\n', '\r', '✓', '😀', ' ') }), fc.array(fc.nat()), (text, cuts) => {
        expect(parse(lines(), text, cuts)).toEqual(parse(lines(), text));
      }),
    );
  });

  test('throw if they are too long, even before they are complete, and if they are not UTF-8', () => {
    const parser = jsonLines(10);
    expect([...parser(encoder.encode('0123456789'))]).toEqual([]);
    expect(() => [...parser(encoder.encode('0'))]).toThrow('longer than maxFrameChars (10)');
    expect(() => [...lines()(new Uint8Array([0xff, 0x0a]))]).toThrow(TypeError);
    expect(() => parse(lines(), '').concat([...lines()(new Uint8Array([0xe2, 0x9c]))])).not.toThrow();
  });

  test('a long line in many chunks takes linear time', () => {
    const parser = jsonLines(100_000_000);
    const piece = encoder.encode('x'.repeat(1_000));
    for (let i = 0; i < 20_000; i++) for (const _ of parser(piece)) throw new Error('there is none yet');
    expect(texts([...parser(encoder.encode('\n'))])[0]).toHaveLength(20_000_000);
  });
});

test('a message of Server-Sent Events may be as long as a line of JSON, however it is cut: what comes before it does not count', () => {
  const parser = serverSentEvents(10, () => {});
  expect([...parser(encoder.encode('id: 1\ndata: 0123456789'))]).toEqual([]);
  expect([...parser(encoder.encode('\n\n'))]).toEqual([{ text: '0123456789', id: '1' }]);
  expect(() => [...parser(encoder.encode('data: 01234567890'))]).toThrow('longer than maxFrameChars (10)');
  expect(() => [...serverSentEvents(10, () => {})(encoder.encode('data:01234567890\n'))]).toThrow(
    'longer than maxFrameChars (10)',
  );
});

describe('Server-Sent Events', () => {
  const events = (text: string, cuts?: readonly number[], fields: unknown[] = []): Frame[] =>
    parse(
      serverSentEvents(1_000, (...field) => void fields.push(field)),
      text,
      cuts,
    );

  test.each([
    ['data: a\n\n', [{ text: 'a', id: undefined }]],
    ['data:a\r\n\r\n', [{ text: 'a', id: undefined }]],
    ['data:  a \n\n', [{ text: ' a ', id: undefined }]],
    ['id: 1.2\ndata: a\ndata: b\n\ndata: c\n\n', [{ text: 'a\nb', id: '1.2' }, { text: 'c', id: undefined }]], // biome-ignore format: one case, one line
    ['data\n\n', [{ text: '', id: undefined }]],
    ['data\ndata: a\n\n', [{ text: '\na', id: undefined }]],
    ['data: {"a":"b: c"}\n\n', [{ text: '{"a":"b: c"}', id: undefined }]],
    ['event: message\ndata: a\n\n', [{ text: 'a', id: undefined }]],
    ['event: other\nevent:\ndata: a\n\n', [{ text: 'a', id: undefined }]],
    ['id: 1\nid: 2\0\ndata: a\n\n', [{ text: 'a', id: '1' }]],
    ['event: other\ndata: a\n\ndata: b\n\n', [{ text: 'b', id: undefined }]],
    ['\n\n\nid: 7\n\n', []],
    ['nonsense: 1\ndata:a\nfoo\n\n', [{ text: 'a', id: undefined }]],
    ['\ufeffdata: a\n\n', [{ text: 'a', id: undefined }]],
    // What JSON leaves as it is, and other notions of a line's end take for one.
    ['data: "\u2028\u2029\u0085\v\r:"\n\n', [{ text: '"\u2028\u2029\u0085\v\r:"', id: undefined }]],
    ['\u2028\ndata: a\n\n', [{ text: 'a', id: undefined }]],
  ])('%j', (text, expected) => {
    expect(events(text)).toEqual(expected);
  });

  test.each(['data: a\n', 'data: a', 'data: a\n\ndata', 'id: 1\n: b', 'event: other\ndata: a\n'])('%j is cut off', (text) => {
    expect(() => events(text)).toThrow('cut off');
  });

  test('report comments and fields of the connection', () => {
    const fields: unknown[] = [];
    expect(events(': hello\nretry: 5\n:\n\n', [], fields)).toEqual([]);
    expect(fields).toEqual([['', 'hello'], ['retry', '5'], ['', '']]); // biome-ignore format: one line
  });

  test('are the same in any chunking', () => {
    const part = fc.constantFrom('data: ', 'id: ', 'a', '✓', '\n', '\r\n', ': c', 'event: x', '\n\n');
    fc.assert(
      fc.property(fc.array(part), fc.array(fc.nat()), (parts, cuts) => {
        const text = parts.join('');
        const found = (own?: readonly number[], end: string = ''): unknown => {
          try {
            return events(text + end, own);
          } catch (error) {
            return error;
          }
        };
        expect(found(cuts)).toEqual(found());
        expect(found(cuts, '\n\n')).toEqual(found([], '\n\n'));
      }),
    );
  });

  test('throw if their lines together are too long', () => {
    const parser = serverSentEvents(10, () => {});
    expect([...parser(encoder.encode('data: 01234\ndata: 678\n'))]).toEqual([]);
    expect(() => [...parser(encoder.encode('data: 9\n'))]).toThrow('longer than');
  });
});
