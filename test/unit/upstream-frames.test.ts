/**
 * `upstream-frames.ndjson` holds byte streams, and what Kubernetes' own decoder made of each: `framer`, `streaming`, client-go's
 * `rest/watch` and `StreamWatcher` of release 0.37.2, as its dynamic client puts them together. The two "served" streams were
 * written by apiserver's own `WatchServer`. "error" stands for the ERROR event of a stream that cannot be decoded.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { jsonCodec } from '../../src/decode/codec.ts';
import { toDecoder } from '../../src/decode/decoder.ts';
import { StreamWatcher } from '../../src/decode/stream-watcher.ts';
import { isErrorEvent, type WatchEvent } from '../../src/watch/event.ts';

type Outcome = WatchEvent | 'error';

interface Stream {
  readonly name: string;
  readonly framing: 'newline' | 'length-prefixed';
  readonly text?: string;
  readonly base64?: string;
  readonly go: readonly Outcome[];
}

const streams: readonly Stream[] = readFileSync(new URL('upstream-frames.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line));

/** Where this package decides differently: it refuses what Go reads, or refuses it at once. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  'Go reads JSON values wherever they end; here, a line is an event': [
    ...['lone cr between', 'concatenated', 'concatenated with a newline at the end', 'space separated', 'tab separated'],
    ...['pretty printed', 'garbage after the object on its line', 'extra closing brace', 'comma separated'],
  ],
  'Go replaces bytes that are not UTF-8': [
    ...['invalid utf-8 in a string', 'overlong utf-8', 'utf-8 surrogate', 'invalid utf-8 in a key', 'invalid utf-8'],
  ],
  'Go waits for 16 MiB of a frame before it refuses the length in its header': [
    ...['length 4 GiB', 'length 2 GiB', 'length little endian', 'newline stream read as lp'],
  ],
};

/** And it reads what Go refuses. */
const READ: Readonly<Record<string, readonly string[]>> = {
  'a byte order mark is ignored': ['bom', 'bom before the second'],
  'any JSON value may be an object, and what it is, is up to the application': [
    ...['null object', 'number object', 'string object', 'array object', 'empty object', 'object without kind'],
    ...['object without apiVersion', 'error with status without kind', 'bookmark without kind', 'other kind in the envelope'],
  ],
  'a number too large is Infinity, as for JSON.parse': ['huge float'],
};

/** And it keeps what Go changes or drops. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  'an escaped half of a surrogate pair': ['lone surrogate', 'reversed surrogates'],
  'details of a Status that Go does not know': ['error with status'],
  'the sign of an integer 0': ['floats'],
};

const names = (differences: Readonly<Record<string, readonly string[]>>): ReadonlySet<string> =>
  new Set(Object.values(differences).flat());
const refused = names(REFUSED);
const read = names(READ);
const kept = names(KEPT);

/** Reads a stream in chunks of a size. Objects are as Go's decoder knows them. */
async function decode({ framing, text, base64 }: Stream, size: number): Promise<Outcome[]> {
  const data = text === undefined ? Buffer.from(base64 ?? '', 'base64') : Buffer.from(text);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
  }
  const codec = jsonCodec({ types: ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] });
  const outcomes: Outcome[] = [];
  for await (const event of new StreamWatcher(toDecoder(chunks(), { framing, codec }))) {
    const undecoded = isErrorEvent(event) && event.object.message.startsWith('cannot decode the watch stream');
    outcomes.push(undecoded ? 'error' : { type: event.type, object: event.object });
  }
  return outcomes;
}

describe("the streams that Kubernetes' own decoder was given", () => {
  it.each(streams)('$framing: $name', async (stream) => {
    const ours = await decode(stream, 1 << 20);
    const events = stream.go.filter((outcome) => outcome !== 'error');
    if (refused.has(stream.name)) {
      expect(ours.at(-1)).toBe('error');
      expect(events.slice(0, ours.length - 1)).toEqual(ours.slice(0, -1));
      expect(ours).not.toEqual(stream.go);
    } else if (read.has(stream.name)) {
      expect(stream.go.at(-1)).toBe('error');
      expect(ours).not.toContain('error');
      expect(ours.slice(0, events.length)).toEqual(events);
    } else if (kept.has(stream.name)) {
      expect(ours.map((outcome) => outcome !== 'error' && outcome.type)).toEqual(events.map(({ type }) => type));
      expect(ours).not.toEqual(stream.go);
    } else {
      expect(ours).toEqual(stream.go);
    }
    expect(await decode(stream, 1)).toEqual(ours);
  });

  it('include every difference that is listed', () => {
    const known = new Set(streams.map(({ name }) => name));
    expect([...refused, ...read, ...kept].filter((name) => !known.has(name))).toEqual([]);
  });
});
