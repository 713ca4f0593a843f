// Our parser of Server-Sent Events and the package eventsource-parser find the same messages in any stream, in any chunking.
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Frame, serverSentEvents } from '../../src/bridge/client/stream.ts';
import { runs } from '../runs.ts';

/** What a parser has found, in order. */
type Found =
  | { readonly data: string; readonly id: string | undefined }
  | { readonly comment: string }
  | { readonly retryMs: number };

/** Stands for a CR that ends no line: to us it is text like any other, to the standard it is a line's end. */
const BARE_CR = '\ue000';

const encoder = new TextEncoder();

function chunksOf(text: string, cuts: readonly number[]): Uint8Array[] {
  const bytes = encoder.encode(text);
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return places.slice(1).map((place, i) => bytes.subarray(places[i], place));
}

function ours(text: string, cuts: readonly number[]): Found[] {
  const found: Found[] = [];
  const parse = serverSentEvents(100_000, (name, value) => {
    if (name === '') found.push({ comment: value });
    // As the client reads it.
    if (name === 'retry' && /^\d+$/.test(value)) found.push({ retryMs: Number(value) });
  });
  const chunks = chunksOf(text, cuts);
  for (const chunk of chunks) for (const frame of parse(chunk)) found.push({ data: frame.text, id: frame.id });
  // A stream that ends within a line, or without the blank line after a message, was cut off.
  const end = (): Frame[] => [...parse()];
  if (/[^\n\ufeff\r]$/.test(text)) expect(end).toThrow('cut off');
  if (text.endsWith('\n\n')) expect(end()).toEqual([]);
  return found;
}

function theirs(text: string, cuts: readonly number[]): Found[] {
  const found: Found[] = [];
  const restore = (value: string): string => value.replaceAll(BARE_CR, '\r');
  const onEvent = ({ data, id, event = 'message' }: EventSourceMessage): void => {
    // A watch has no named messages: we pass them over.
    if (event === 'message') found.push({ data: restore(data), id: id === undefined ? undefined : restore(id) });
  };
  const parser = createParser({
    onEvent,
    onComment: (comment) => void found.push({ comment: restore(comment) }),
    onRetry: (retryMs) => void found.push({ retryMs }),
  });
  // A blank line says nothing. Behind it the parser looks for no mark of the byte order: the decoder takes one off, and by the
  // standard there is only one to take.
  parser.feed('\n');
  const utf8 = new TextDecoder();
  for (const chunk of chunksOf(text.replace(/\r(?!\n)/g, BARE_CR), cuts)) parser.feed(utf8.decode(chunk, { stream: true }));
  return found;
}

const END = fc.constantFrom('\n', '\n', '\r\n');
const VALUE = fc.string({
  unit: fc.constantFrom('a', '7', ' ', ':', '\0', '\t', '\r', '\u2028', '\u0085', '✓', '😀', '\ufeff'),
  maxLength: 6,
});
const NAME = fc.constantFrom('data', 'data', 'data', 'id', 'event', 'retry', 'Data', 'dat', 'datas', ' data', '', '\ufeffdata');
const FIELD = fc.oneof(
  // A name of its own, with all that may stand between it and its value; or nothing at all.
  { weight: 6, arbitrary: fc.tuple(NAME, fc.constantFrom('', ':', ': ', ':  ', ' :'), VALUE).map((parts) => parts.join('')) },
  { weight: 3, arbitrary: fc.constantFrom('data', 'data:', 'data: ', 'event: message', 'event:', 'id', 'id:', 'retry: 10', ':') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('retry: 1e3', 'retry: -5', 'retry: 0x9', 'retry: 7 ', 'retry:', 'retry', 'retry: 007'),
  },
);
const LINE = fc.oneof({ weight: 2, arbitrary: FIELD }, { weight: 2, arbitrary: fc.constantFrom('', '', 'data: {}') });
const LINES = fc.array(fc.tuple(LINE, END), { maxLength: 40, size: 'max' }).map((lines) => lines.flat().join(''));
// A mark of the byte order, lines, and one that has no end yet. Not two marks: decoders of some hosts take the second off, too,
// if it comes in a chunk of its own.
const STREAM = fc.tuple(fc.constantFrom('', '\ufeff'), LINES, VALUE).map((parts) => parts.join('').replace(/^\ufeff+/, '\ufeff'));

test('finds the same messages, comments and retry fields as eventsource-parser', () => {
  let messages = 0;
  fc.assert(
    fc.property(STREAM, fc.array(fc.nat(), { maxLength: 12 }), (text, cuts) => {
      const found = ours(text, cuts);
      expect(found).toEqual(theirs(text, cuts));
      messages += found.filter((each) => 'data' in each).length;
    }),
    { numRuns: runs(2_000) },
  );
  expect(messages).toBeGreaterThan(runs(2_000));
});
