// Etcd behind the port of backends: what a part of a range asks for, and what a refusal of it becomes.
import { describe, expect, it } from 'vitest';
import type { RangeRequest } from '../../src/storage/backend.ts';
import { EtcdBackend } from '../../src/storage/etcd/etcd-backend.ts';
import { settingsOf } from '../../src/storage/etcd/options.ts';
import type { Failure } from '../../src/storage/etcd/wire/call-stream.ts';
import type { RangeRequest as Asked, KeyValue, RangeResponse } from '../../src/storage/etcd/wire/messages.ts';
import { toBytes, toText } from '../../src/storage/keys.ts';
import { WatchError } from '../../src/watch/errors.ts';

const FUTURE: Failure = { code: 11, message: 'required revision is a future revision', sent: true };
const COMPACTED: Failure = { code: 11, message: 'required revision has been compacted', sent: true };
const TOO_LARGE: Failure = { code: 8, message: 'x', sent: true, error: new WatchError('FRAME_TOO_LARGE', 'too long') };

function kvs(keys: readonly (string | Uint8Array)[]): KeyValue[] {
  return keys.map((key) => {
    const bytes = typeof key === 'string' ? toBytes(key) : key;
    return { key: bytes, value: new Uint8Array(10), createRevision: 1n, modRevision: 1n };
  });
}

const part = (own: KeyValue[], count: number, more = count > own.length): RangeResponse => {
  return { header: { clusterId: 1n, revision: 7n, term: 2n }, kvs: own, more, count };
};

/** A backend whose questions are answered one after the other, and what it has asked. */
function rig(answers: readonly (RangeResponse | Failure)[]) {
  const asked: Asked[] = [];
  const backend = new EtcdBackend(settingsOf({ endpoints: ['http://127.0.0.1:1'] }));
  const answer = async (request: Asked): Promise<RangeResponse | Failure | undefined> => answers[asked.push(request) - 1];
  Object.assign(backend, { tryRange: answer });
  const range = (request: Partial<RangeRequest> = {}) => backend.range({ prefix: '/p/', limit: 1, ...request });
  return { asked, range };
}

describe('a part of a range of etcd', () => {
  it('begins at the prefix, at a key, or behind an entry, and ends with the prefix', async () => {
    const { range, asked } = rig([part(kvs(['/p/a']), 2), part([], 0), part([], 0)]);
    const first = await range();
    expect(first.entries.map(({ key }) => key)).toEqual(['/p/a']);
    await range({ from: '/p/b', revision: '3' });
    await range({ after: first.entries[0] });
    expect(asked.map(({ key, end, revision }) => [toText(key), toText(end as Uint8Array), revision])).toEqual([
      ['/p/', '/p0', 0n],
      ['/p/b', '/p0', 3n],
      ['/p/a\0', '/p0', 0n],
    ]);
  });

  it('goes on behind a key that is no text', async () => {
    const key = Uint8Array.from([0x2f, 0x70, 0x2f, 0xff, 0xf0, 0x9f, 0x98, 0x80]);
    const { range, asked } = rig([part(kvs([key]), 2), part([], 0)]);
    await range({ after: (await range()).entries[0] });
    expect(Buffer.compare(Buffer.from(asked[1]?.key as Uint8Array), Buffer.concat([key, Buffer.from([0])]))).toBe(0);
  });

  it('has the revision that was asked for, or that of the answer; and the size of its values', async () => {
    const { range } = rig([part(kvs(['/p/a', '/p/b']), 2), part([], 0)]);
    expect(await range()).toMatchObject({ revision: '7', bytes: 20 });
    expect(await range({ revision: '3' })).toMatchObject({ revision: '3', bytes: 0 });
  });

  it('what follows is what etcd counts, or something if it says so', async () => {
    for (const [more, count, left] of [
      [true, 5, 3],
      [true, 2, 1],
      [false, 5, 0],
    ] as const) {
      const { range } = rig([part(kvs(['/p/a', '/p/b']), count, more)]);
      expect((await range()).left).toBe(left);
    }
  });

  it('that is longer than an answer may be is a smaller one, down to one object', async () => {
    const { range, asked } = rig([TOO_LARGE, TOO_LARGE, TOO_LARGE, part(kvs(['/p/a']), 9), TOO_LARGE]);
    expect((await range({ limit: 500 })).left).toBe(8);
    expect(asked.map(({ limit }) => limit)).toEqual([500, 62, 7, 1]);
    await expect(range()).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE', message: expect.stringContaining('list /p/') });
    expect(asked).toHaveLength(5);
  });

  it('of which a member has less than another: etcd as a whole is asked', async () => {
    const { range, asked } = rig([FUTURE, part(kvs(['/p/a']), 2)]);
    await range({ anyState: true });
    expect(asked.map(({ serializable }) => serializable)).toEqual([true, false]);
  });

  it('that has not come: 410, or 504 if etcd as a whole has it', async () => {
    for (const [revision, code] of [
      ['12', 410],
      ['6', 504],
    ] as const) {
      const { range, asked } = rig([FUTURE, part([], 0)]);
      await expect(range({ revision })).rejects.toMatchObject({ status: { code } });
      expect(asked[0]).toMatchObject({ revision: BigInt(revision) });
    }
  });

  it('of a revision beyond 64 bits with a sign is not asked for', async () => {
    const [last, beyond] = [rig([FUTURE, part([], 0)]), rig([part([], 0)])];
    await expect(last.range({ revision: `${2n ** 63n - 1n}` })).rejects.toMatchObject({ status: { code: 410 } });
    await expect(beyond.range({ revision: `${2n ** 63n}` })).rejects.toMatchObject({ status: { code: 410 } });
    expect([last.asked.length, beyond.asked.length]).toEqual([2, 1]);
  });

  it('that has been compacted: 410', async () => {
    const { range } = rig([COMPACTED]);
    const message = expect.stringContaining('it has been compacted');
    await expect(range({ revision: '3' })).rejects.toMatchObject({ status: { code: 410, message } });
  });

  it('that is refused for another reason: with the name of what was read', async () => {
    const { range } = rig([{ code: 7, message: 'no', sent: true }]);
    await expect(range()).rejects.toMatchObject({ message: expect.stringContaining('list /p/: no') });
  });
});
