// A stream that breaks, rather than ends, behind the last byte of a whole event and before its line end.
import { describe, expect, test } from 'vitest';
import { toDecoder } from '../../src/decode/decoder.ts';
import { StreamWatcher } from '../../src/decode/stream-watcher.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { at, open, event as versioned } from './client-rig.ts';

const text = (object: unknown): string => JSON.stringify({ type: 'ADDED', object });
const event = (object: unknown): WatchEvent => ({ type: 'ADDED', object });

async function* breaks(error: unknown, ...chunks: (string | Uint8Array)[]): AsyncGenerator<string | Uint8Array> {
  yield* chunks;
  throw error;
}

function lengthPrefixed(frame: string): Uint8Array {
  const body = new TextEncoder().encode(frame);
  const bytes = new Uint8Array(4 + body.length);
  new DataView(bytes.buffer).setUint32(0, body.length);
  bytes.set(body, 4);
  return bytes;
}

describe('toDecoder of a source that breaks', () => {
  const broken = new Error('broken');

  test('decodes the last line first, then rejects once', async () => {
    const decoder = toDecoder(breaks(broken, `${text(1)}\n${text(2)}`));
    expect([await decoder.decode(), await decoder.decode()]).toEqual([event(1), event(2)]);
    expect(decoder.poll()).toBeUndefined();
    await expect(decoder.decode()).rejects.toBe(broken);
    expect(await decoder.decode()).toBeUndefined();
  });

  test.each(['{"type":"ADDED","obj', '{"type":"ADDED"}', 'garbage', ' \r', ''])(
    'rejects with its error alone if the last line is %j',
    async (last) => {
      const decoder = toDecoder(breaks(broken, `${text(1)}\n`, last));
      expect(await decoder.decode()).toEqual(event(1));
      await expect(decoder.decode()).rejects.toBe(broken);
      expect(await decoder.decode()).toBeUndefined();
    },
  );

  test('drops the last line wherever the break has cut it off', async () => {
    const last = new TextEncoder().encode(text({ text: '}} \\" {', é: ['😀', { a: '\\' }], n: -1.5e3, no: null }));
    for (let cut = 0; cut < last.length; cut++) {
      await expect(toDecoder(breaks(broken, last.slice(0, cut))).decode()).rejects.toBe(broken);
    }
    expect(await toDecoder(breaks(broken, last)).decode()).toMatchObject({ type: 'ADDED' });
  });

  test('needs no line end where frames have a length', async () => {
    const decoder = toDecoder(breaks(broken, lengthPrefixed(text(1)), lengthPrefixed(text(2)).slice(0, -1)), {
      framing: 'length-prefixed',
    });
    expect(await decoder.decode()).toEqual(event(1));
    await expect(decoder.decode()).rejects.toBe(broken);
  });

  test('says nothing more once it is closed', async () => {
    const decoder = toDecoder(breaks(broken, text(1)));
    expect(await decoder.decode()).toEqual(event(1));
    decoder.close();
    expect(await decoder.decode()).toBeUndefined();
  });
});

describe('a StreamWatcher of a source that breaks', () => {
  async function read(error: unknown): Promise<unknown[]> {
    const got: unknown[] = [];
    for await (const { type, object } of new StreamWatcher(toDecoder(breaks(error, text(1)))))
      got.push(type === 'ERROR' ? (object as { code: number }).code : object);
    return got;
  }

  test('delivers the event, then ends without an error if the connection broke', async () => {
    expect(await read(Object.assign(new Error('read'), { code: 'ECONNRESET' }))).toEqual([1]);
    expect(await read(new TypeError('terminated'))).toEqual([1]);
  });

  test('delivers the event, then the ERROR of any other failure', async () => {
    expect(await read(new Error('disk'))).toEqual([1, 500]);
  });
});

describe('the client, when a connection breaks', () => {
  test.each([
    [JSON.stringify(versioned(2)), [1, 2]],
    [JSON.stringify(versioned(2)).slice(0, -1), [1]],
  ])('HTTP: the last line %s', async (last, expected) => {
    const { network, accept, read, watch } = open('http');
    await accept(versioned(1), last);
    network.link.cut();
    expect(await read()).toEqual(expected);
    expect(watch.state).toBe('waiting');
  });

  test('SSE: an unfinished message is ignored', async () => {
    const { network, accept, read } = open('sse');
    await accept(versioned(1), `id: ${at(2)}\ndata: ${JSON.stringify(versioned(2))}\n`);
    network.link.cut();
    expect(await read()).toEqual([1]);
  });
});
