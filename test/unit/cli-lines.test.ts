// What `watchmux pipe` makes of its input: lines, events, and what it says about those that are none. What is printed is harmless.
import { describe, expect, test } from 'vitest';
import { harmless, hinted, InputLines, type LineOptions, printable, readLine } from '../../src/cli/lines.ts';
import { Reports } from '../../src/cli/pipe.ts';
import { excerpt } from '../../src/pages/words.ts';

const utf8 = new TextEncoder();

/** The lines of a text that comes in pieces, as numbers and texts. */
function linesOf(text: string, options: LineOptions, pieceBytes: number): (readonly [number, string | undefined])[] {
  const lines = new InputLines(options);
  const bytes = utf8.encode(text);
  const found: (readonly [number, string | undefined])[] = [];
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const add = ({ number, bytes: line }: { number: number; bytes: Uint8Array | undefined }): void =>
    void found.push([number, line && decoder.decode(line)]);
  for (let at = 0; at < bytes.length; at += pieceBytes)
    for (const line of lines.push(bytes.slice(at, at + pieceBytes))) add(line);
  for (const line of lines.end()) add(line);
  return found;
}

describe.each([[1], [2], [3], [1_000]])('in pieces of %i bytes', (pieceBytes) => {
  test('with --raw, blank lines keep their spaces', () => {
    expect(linesOf('a\n   \n\t\n\n \r\n\r\n  b \n  ', { raw: true }, pieceBytes)).toEqual([
      [1, 'a'],
      [2, '   '],
      [3, '\t'],
      [4, ''],
      [5, ' '],
      [6, ''],
      [7, '  b '],
      [8, '  '],
    ]);
  });

  test('with --raw, a blank line after one that was too long is whole', () => {
    expect(linesOf('123456\n  \n', { raw: true, maxLineBytes: 5 }, pieceBytes)).toEqual([
      [1, undefined],
      [2, '  '],
    ]);
  });

  test('without it, they are ignored, and count as lines', () => {
    expect(linesOf(' \n1\n\t\r\n\n2\n  ', { raw: false }, pieceBytes)).toEqual([
      [2, '1'],
      [5, '2'],
    ]);
  });
});

test('a raw line has its JSON text, so that nothing else has to be kept', () => {
  expect(readLine({ number: 1, bytes: utf8.encode('a\0"') }, { raw: true })).toEqual({
    event: { type: 'ADDED', object: 'a\0"' },
    json: '{"type":"ADDED","object":"a\\u0000\\""}',
  });
});

test('a raw line that is not UTF-8 is passed on as far as it can be, and told once', () => {
  const bytes = new Uint8Array([0x63, 0x61, 0x66, 0xe9]); // in Latin-1
  const reading = readLine({ number: 3, bytes }, { raw: true });
  expect(reading).toEqual({
    event: { type: 'ADDED', object: 'caf\ufffd' },
    json: '{"type":"ADDED","object":"caf\ufffd"}',
    replaced: true,
  });
  expect(readLine({ number: 4, bytes: utf8.encode('\ufffd') }, { raw: true })).not.toHaveProperty('replaced');
  const said: string[] = [];
  const reports = new Reports({ write: (text) => said.push(text), writableLength: 0 });
  for (const number of [3, 4]) reports.replace(number);
  expect(said).toEqual([expect.stringMatching(/^watchmux pipe: line 3 is not UTF-8: .* becomes U\+FFFD/)]);
});

describe('what is said about lines that are no events', () => {
  const say = (input: string): string[] => {
    const said: string[] = [];
    const reports = new Reports({ write: (text) => said.push(text), writableLength: 0 });
    let events = 0;
    for (const line of new InputLines({ raw: false }).push(utf8.encode(input))) {
      const reading = readLine(line, { raw: false });
      if ('fault' in reading) reports.skip({ number: line.number, ...reading }, events);
      else events++;
    }
    reports.end(events);
    return said.filter((line) => !line.includes(' skipped: '));
  };
  const hint = (number: number): string =>
    `watchmux pipe: line ${number} begins a value that spans several lines; for one line per value, use jq -c\n`;

  test.each([
    ['an array of numbers', JSON.stringify([1, 2, 3], undefined, 2), 1],
    ['an array of objects', JSON.stringify([{ a: 1 }, { a: 2 }], undefined, 2), 1],
    ['an object', JSON.stringify({ a: { b: 1 } }, undefined, 2), 1],
    ['a list after an event', `1\n${JSON.stringify({ items: [1] }, undefined, 2)}`, 2],
  ])('%s over several lines: jq -c makes one of them, said once', (_name, input, number) => {
    expect(say(`${input}\n${input}\n`)).toEqual([hint(number)]);
  });

  test('text: --raw serves it', () => {
    expect(say('text\n'.repeat(30))).toEqual(['watchmux pipe: no line is an event so far; to serve lines of text, use --raw\n']);
    expect(say('text\n'.repeat(9))).toEqual(['watchmux pipe: no line was an event; to serve lines of text, use --raw\n']);
    expect([say(''), say('text\n1\n')]).toEqual([[], []]);
    expect(say(`1\n${'text\n'.repeat(30)}`)).toEqual([]);
  });
});

describe('what is printed of what came from elsewhere', () => {
  /** C0 but for what JSON escapes anyway, DEL, C1 with CSI, marks and isolates of direction, and separators of lines. */
  const acting = ['\u007f', '\u0085', '\u009b', '\u061c', '\u200e', '\u200f', '\u2028', '\u2029', '\u202e', '\u2066', '\u2069'];

  test.each(acting.map((char) => [char.codePointAt(0)?.toString(16), char] as const))(
    'U+%s is an escape in JSON, which means the same',
    (_code, char) => {
      const json = JSON.stringify({ [`k${char}`]: `a${char}31m${char}` });
      expect(harmless(json)).not.toContain(char);
      expect(JSON.parse(harmless(json))).toEqual(JSON.parse(json));
      expect([excerpt(`a${char}b`), printable(`a${char}\nb`)]).toEqual(['a.b', 'a.\nb']);
    },
  );

  test('everything else is as it was', () => {
    const json = '{"a":"✓ é 日本 \\u009b 😀 \\\\", "b": 12345678901234567890}';
    expect(harmless(json)).toBe(json);
    expect(printable('✓ é\n  at 日本 😀')).toBe('✓ é\n  at 日本 😀');
    expect(printable('\u001b]0;title\u0007\t\0')).toBe('.]0;title...');
  });
});

test.each([
  [
    'write EPROTO 80C:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:..',
    'the server does not speak TLS here: try an http: URL',
  ],
  ['unable to verify the first certificate', 'unable to verify the first certificate: NODE_EXTRA_CA_CERTS may name'],
  ['self-signed certificate in certificate chain', 'chain: NODE_EXTRA_CA_CERTS may name a file with the CA to trust'],
  ['unable to get local issuer certificate', 'NODE_EXTRA_CA_CERTS'],
  ['connect ECONNREFUSED 127.0.0.1:1', 'connect ECONNREFUSED 127.0.0.1:1'],
])('why a server could not be asked: %s', (message, told) => {
  expect(hinted(message)).toContain(told);
});
