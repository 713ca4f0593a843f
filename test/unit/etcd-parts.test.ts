// The parts in which a list of etcd is read: how large they are, what is asked for, and what a refusal of one becomes.
import { describe, expect, it } from 'vitest';
import { decodeContinue } from '../../src/storage/continue.ts';
import { toBytes, toText } from '../../src/storage/etcd/key-bytes.ts';
import { PartReader, type ReadOptions, readList } from '../../src/storage/etcd/lists.ts';
import type { KeyValue, RangeRequest, RangeResponse } from '../../src/storage/etcd/wire/messages.ts';
import type { Failure } from '../../src/storage/etcd/wire/outcome.ts';
import { WatchError } from '../../src/watch/errors.ts';

const FUTURE: Failure = { code: 11, message: 'required revision is a future revision', sent: true };
const COMPACTED: Failure = { code: 11, message: 'required revision has been compacted', sent: true };
const TOO_LARGE: Failure = { code: 8, message: 'x', sent: true, error: new WatchError('FRAME_TOO_LARGE', 'too long') };
const header = { clusterId: 1n, revision: 7n, term: 2n };

function kvs(count: number, valueBytes: number, from = 0): KeyValue[] {
  const value = new Uint8Array(valueBytes);
  return Array.from({ length: count }, (_, at) => {
    return { key: toBytes(`/p/n${from + at}`), value, createRevision: 1n, modRevision: 1n, lease: 0n };
  });
}

const part = (own: KeyValue[], count: number): RangeResponse => ({ header, kvs: own, more: count > own.length, count });

/** A reader whose questions are answered one after the other, and what it has asked. */
function rig(answers: readonly (RangeResponse | Failure)[], options: Partial<ReadOptions> = {}) {
  const asked: RangeRequest[] = [];
  const client = {
    tryRange: async (request: RangeRequest, { what }: { what: string }) => {
      expect(what).toBe('list /p/');
      asked.push(request);
      return answers[asked.length - 1];
    },
    tooLarge: async (version: string, { what }: { what: string }) => new Error(`${what}: ${version} is too large`),
  };
  const plan = { exact: undefined, atLeast: undefined, from: undefined };
  const all: ReadOptions = { prefix: '/p/', plan, ...options };
  return { asked, client: client as never, reader: new PartReader(client as never, all), all };
}

describe('the parts of a list', () => {
  it('are as many objects as have 8 MiB, judging by the part before, at most four times as many and 10,000', async () => {
    for (const [counts, valueBytes, expected] of [
      [[500, 2_000, 8_000, 10_000], 100, [500, 2_000, 8_000, 10_000, 10_000]],
      [[500, 838, 838], 10_000, [500, 838, 838, 838]],
      [[500, 8], 1_048_576, [500, 8, 8]],
      [[1, 1], 16_777_216, [500, 1, 1]],
      [[500, 2_000], 0, [500, 2_000, 8_000]],
    ] as const) {
      const { reader, asked } = rig([...counts, 1].map((count) => part(kvs(count, valueBytes), 1_000_000)));
      for (const _ of expected) await reader.next(Number.POSITIVE_INFINITY);
      expect(asked.map(({ limit }) => limit)).toEqual(expected);
    }
  });

  it('grow to 500 at once when objects are small again', async () => {
    const { reader, asked } = rig([part(kvs(1, 16_777_216), 9), part(kvs(1, 10), 9), part(kvs(1, 10), 9)]);
    for (let i = 0; i < 3; i++) await reader.next(Number.POSITIVE_INFINITY);
    expect(asked.map(({ limit }) => limit)).toEqual([500, 1, 500]);
  });

  it('are no larger than what is wanted', async () => {
    const { reader, asked } = rig([part(kvs(3, 10), 9), part(kvs(3, 10), 6)]);
    await reader.next(3);
    await reader.next(4);
    expect(asked.map(({ limit }) => limit)).toEqual([3, 4]);
  });

  it('go on behind the last key, at the revision of the first part', async () => {
    const { reader, asked } = rig([part(kvs(2, 10), 5), { ...part(kvs(2, 10, 2), 3), header: { ...header, revision: 9n } }]);
    const seen = [await reader.next(2), await reader.next(2)];
    expect(seen.map(({ revision, left }) => [revision, left])).toEqual([
      [7n, 3],
      [7n, 1],
    ]);
    expect(asked.map(({ key, revision }) => [toText(key), revision])).toEqual([
      ['/p/', 0n],
      ['/p/n1\0', 7n],
    ]);
    expect(asked.map(({ end }) => toText(end as Uint8Array))).toEqual(['/p0', '/p0']);
  });

  it('what follows is what etcd counts, or something if it says so', async () => {
    for (const [more, count, left] of [
      [true, 5, 3],
      [true, 2, 1],
      [false, 5, 0],
    ] as const) {
      const { reader } = rig([{ ...part(kvs(2, 10), 5), more, count }]);
      expect((await reader.next(2)).left).toBe(left);
    }
  });

  it('that are longer than an answer may be are read in smaller ones, down to one object', async () => {
    const { reader, asked } = rig([TOO_LARGE, TOO_LARGE, TOO_LARGE, part(kvs(1, 10), 9), TOO_LARGE]);
    await reader.next(Number.POSITIVE_INFINITY);
    expect(asked.map(({ limit }) => limit)).toEqual([500, 62, 7, 1]);
    await expect(reader.next(1)).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE', message: expect.stringContaining('list /p/') });
    expect(asked).toHaveLength(5);
  });
});

describe('a part that is refused', () => {
  it('because the member has less than another: etcd as a whole is asked, from then on', async () => {
    const { reader, asked } = rig([FUTURE, part(kvs(1, 10), 2), part(kvs(1, 10), 1)], { anyState: true });
    await reader.next(1);
    await reader.next(1);
    expect(asked.map(({ serializable }) => serializable)).toEqual([true, false, false]);
  });

  it('because it has not come: etcd as a whole is asked whether it has', async () => {
    const plan = { exact: '12', atLeast: undefined, from: undefined };
    const { reader, asked } = rig([FUTURE], { plan });
    await expect(reader.next(1)).rejects.toThrow('list /p/: 12 is too large');
    expect(asked[0]).toMatchObject({ revision: 12n, serializable: false });
  });

  it('is 410, if etcd is not where it has to be', async () => {
    const atLeast = (version: string) => rig([part([], 0)], { plan: { exact: undefined, atLeast: version, from: undefined } });
    await expect(atLeast('8').reader.next(1)).rejects.toMatchObject({ status: { code: 410 } });
    await expect(atLeast('7').reader.next(1)).resolves.toMatchObject({ revision: 7n });
  });

  it('a version beyond 64 bits with a sign is not asked for', async () => {
    const at = (exact: string) => rig([FUTURE], { plan: { exact, atLeast: undefined, from: undefined } });
    const [last, beyond] = [at(`${2n ** 63n - 1n}`), at(`${2n ** 63n}`)];
    await expect(last.reader.next(1)).rejects.toThrow('is too large');
    await expect(beyond.reader.next(1)).rejects.toThrow(`list /p/: ${2n ** 63n} is too large`);
    expect([last.asked.length, beyond.asked.length]).toEqual([1, 0]);
  });

  it('because it has been compacted: 410; behind a token, with another one that begins at the same key', async () => {
    const exact = rig([COMPACTED], { plan: { exact: '3', atLeast: undefined, from: undefined } });
    await expect(exact.reader.next(1)).rejects.toMatchObject({
      status: { code: 410, message: expect.stringContaining('it has been compacted') },
    });
    const from = rig([part(kvs(1, 10), 9), COMPACTED], {
      plan: { exact: undefined, atLeast: undefined, from: { revision: '3', start: 'n' } },
    });
    await from.reader.next(1);
    expect(from.asked[0]).toMatchObject({ key: toBytes('/p/n'), revision: 3n });
    const error = (await from.reader.next(1).catch((thrown: unknown) => thrown)) as WatchError;
    const { code, metadata } = error.status as { code: number; metadata: { continue: string } };
    expect([code, decodeContinue(metadata.continue)]).toEqual([410, { revision: undefined, start: 'n0\0' }]);
  });

  it('for another reason: with the name of what was read', async () => {
    const { reader } = rig([{ code: 7, message: 'no', sent: true }]);
    await expect(reader.next(1)).rejects.toMatchObject({ message: expect.stringContaining('list /p/: no') });
  });
});

describe('a page', () => {
  const json = (count: number, from = 0): KeyValue[] =>
    kvs(count, 0, from).map((kv) => ({
      ...kv,
      value: Buffer.from(JSON.stringify({ n: from + Number(toText(kv.key).slice(4)) })),
    }));
  const read = async (answers: RangeResponse[], limit: number, selects?: (object: object) => boolean) => {
    const { client, asked, all } = rig(answers);
    const list = await readList(client, { ...all, limit, selects });
    const token = list.continue === undefined ? undefined : decodeContinue(list.continue);
    return { list, token, limits: asked.map((each) => each.limit) };
  };

  it('tells what remains, unless a selector hides it, and where to go on', async () => {
    const plain = await read([part(json(2), 5)], 2);
    expect(plain.limits).toEqual([2]);
    expect([plain.list.items.length, plain.list.remainingItemCount, plain.token]).toEqual([
      2,
      3,
      { revision: '7', start: 'n1\0' },
    ]);
    const selected = await read([part(json(4), 5)], 2, () => true);
    expect(selected.limits).toEqual([500]);
    expect(selected.list).not.toHaveProperty('remainingItemCount');
    expect([selected.list.items.length, selected.token]).toEqual([2, { revision: '7', start: 'n1\0' }]);
  });

  it('that has the last object has no token', async () => {
    for (const selects of [undefined, () => true]) {
      const { list } = await read([part(json(2), 2)], 2, selects);
      expect(list).toEqual({ items: [expect.anything(), expect.anything()], resourceVersion: '7' });
    }
  });

  it('is read in parts until it is full', async () => {
    const { list, token } = await read([part(json(2), 6), part(json(2, 2), 4), part(json(2, 4), 2)], 2, (object) => {
      return (object as { n: number }).n % 2 === 1 || (object as { n: number }).n === 4;
    });
    expect(list.items.map((object) => (object as { n?: number }).n)).toHaveLength(2);
    expect(token).toBeDefined();
    const whole = await read([part(json(2), 3), part(json(1, 2), 1)], 0);
    expect([whole.list.items.length, whole.limits]).toEqual([3, [500, 2_000]]);
  });
});
