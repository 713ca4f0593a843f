// The parts in which a list of a backend is read, and its pages: how large they are, what is asked for, and what a refusal becomes.
import { describe, expect, it } from 'vitest';
import { type PartOptions, Parts, readList } from '../../src/storage/backed-lists.ts';
import type { ChangesOptions, Entry, RangeRequest, RangeResult } from '../../src/storage/backend.ts';
import { Cacher, MemoryStorage } from '../../src/storage/index.ts';
import { decodeContinue } from '../../src/storage/requests.ts';
import { expired } from '../../src/storage/statuses.ts';
import { WatchError } from '../../src/watch/errors.ts';

const COMPACTED = expired('3', 'it has been compacted');

function entries(count: number, from = 0): Entry<object>[] {
  return Array.from({ length: count }, (_, at) => ({ key: `/p/n${from + at}`, object: { n: from + at } }));
}

const part = (own: Entry<object>[], left: number, valueBytes = 10): RangeResult<object> => {
  return { entries: own, revision: '7', left, bytes: own.length * valueBytes };
};

/** Parts whose questions are answered one after the other, and what they have asked. */
function rig(answers: readonly (RangeResult<object> | WatchError)[], options: Partial<PartOptions> = {}) {
  const asked: RangeRequest[] = [];
  const backend = {
    range: async (request: RangeRequest) => {
      const answer = answers[asked.push(request) - 1];
      if (answer instanceof WatchError) throw answer;
      return answer;
    },
  };
  const plan = { exact: undefined, atLeast: undefined, from: undefined };
  const all: PartOptions = { prefix: '/p/', plan, ...options };
  return { asked, backend: backend as never, reader: new Parts(backend as never, all), all };
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
      const { reader, asked } = rig([...counts, 1].map((count) => part(entries(count), 1_000_000, valueBytes)));
      for (const _ of expected) await reader.next(Number.POSITIVE_INFINITY);
      expect(asked.map(({ limit }) => limit)).toEqual(expected);
    }
  });

  it('grow to 500 at once when objects are small again', async () => {
    const { reader, asked } = rig([part(entries(1), 8, 16_777_216), part(entries(1), 8), part(entries(1), 8)]);
    for (let i = 0; i < 3; i++) await reader.next(Number.POSITIVE_INFINITY);
    expect(asked.map(({ limit }) => limit)).toEqual([500, 1, 500]);
  });

  it('are no larger than what is wanted', async () => {
    const { reader, asked } = rig([part(entries(3), 6), part(entries(3), 3)]);
    await reader.next(3);
    await reader.next(4);
    expect(asked.map(({ limit }) => limit)).toEqual([3, 4]);
  });

  it('go on behind the last entry, at the revision of the first part', async () => {
    const { reader, asked } = rig([part(entries(2), 3), { ...part(entries(2, 2), 1), revision: '9' }]);
    const seen = [await reader.next(2), await reader.next(2)];
    expect(seen.map(({ revision, left }) => [revision, left])).toEqual([
      ['7', 3],
      ['7', 1],
    ]);
    expect(asked.map(({ prefix, after, revision }) => [prefix, after?.key, revision])).toEqual([
      ['/p/', undefined, undefined],
      ['/p/', '/p/n1', '7'],
    ]);
  });
});

describe('a part that is refused', () => {
  it('is 410, if the backend is not where it has to be', async () => {
    const atLeast = (version: string) => rig([part([], 0)], { plan: { exact: undefined, atLeast: version, from: undefined } });
    await expect(atLeast('8').reader.next(1)).rejects.toMatchObject({ status: { code: 410 } });
    await expect(atLeast('10').reader.next(1)).rejects.toMatchObject({ status: { code: 410 } });
    await expect(atLeast('7').reader.next(1)).resolves.toMatchObject({ revision: '7' });
  });

  it('because it has been compacted: 410; behind a token, with another one that begins at the same key', async () => {
    const exact = rig([COMPACTED], { plan: { exact: '3', atLeast: undefined, from: undefined } });
    await expect(exact.reader.next(1)).rejects.toBe(COMPACTED);
    expect(exact.asked[0]).toMatchObject({ revision: '3' });
    const plan = { exact: undefined, atLeast: undefined, from: { revision: '3', start: 'n' } };
    for (const [answers, start] of [
      [[COMPACTED], 'n'],
      [[part(entries(1), 8), COMPACTED], 'n0\0'],
    ] as const) {
      const from = rig(answers, { plan });
      if (answers.length > 1) await from.reader.next(1);
      const error = (await from.reader.next(1).catch((thrown: unknown) => thrown)) as WatchError;
      expect(from.asked[0]).toMatchObject({ from: '/p/n', revision: '3' });
      const { code, metadata } = error.status as { code: number; metadata: { continue: string } };
      expect([code, decodeContinue(metadata.continue)]).toEqual([410, { revision: undefined, start }]);
    }
  });

  it('for another reason, is told as it is', async () => {
    const no = new WatchError('TIMEOUT', 'no');
    const { reader } = rig([no], { plan: { exact: undefined, atLeast: undefined, from: { revision: '3', start: 'n' } } });
    await expect(reader.next(1)).rejects.toBe(no);
  });
});

describe('a page', () => {
  const read = async (answers: RangeResult<object>[], limit: number, selects?: (object: object) => boolean) => {
    const { backend, asked, all } = rig(answers);
    const list = await readList(backend, { ...all, limit, selects });
    const token = list.continue === undefined ? undefined : decodeContinue(list.continue);
    return { list, token, limits: asked.map((each) => each.limit) };
  };

  it('tells what remains, unless a selector hides it, and where to go on', async () => {
    const plain = await read([part(entries(2), 3)], 2);
    expect(plain.limits).toEqual([2]);
    expect([plain.list.items.length, plain.list.remainingItemCount, plain.token]).toEqual([
      2,
      3,
      { revision: '7', start: 'n1\0' },
    ]);
    const selected = await read([part(entries(4), 1)], 2, () => true);
    expect(selected.limits).toEqual([500]);
    expect(selected.list).not.toHaveProperty('remainingItemCount');
    expect([selected.list.items.length, selected.token]).toEqual([2, { revision: '7', start: 'n1\0' }]);
  });

  it('that has the last object has no token', async () => {
    for (const selects of [undefined, () => true]) {
      const { list } = await read([part(entries(2), 0)], 2, selects);
      expect(list).toEqual({ items: [expect.anything(), expect.anything()], resourceVersion: '7' });
    }
  });

  it('is read in parts until it is full', async () => {
    const { list, token } = await read([part(entries(2), 4), part(entries(2, 2), 2), part(entries(2, 4), 0)], 2, (object) => {
      return (object as { n: number }).n % 2 === 1 || (object as { n: number }).n === 4;
    });
    expect(list.items.map((object) => (object as { n?: number }).n)).toHaveLength(2);
    expect(token).toBeDefined();
    const whole = await read([part(entries(2), 1), part(entries(1, 2), 0)], 0);
    expect([whole.list.items.length, whole.limits]).toEqual([3, [500, 2_000]]);
  });
});

describe('a cacher', () => {
  it('reads its state in such parts, and goes on in the life that it has read', async () => {
    const storage = new MemoryStorage();
    for (let at = 0; at < 510; at++) await storage.create(`p/n${at}`, { metadata: { name: `n${at}` } });
    const limits: number[] = [];
    const lives: unknown[] = [];
    const { backend } = storage.backing;
    const told = {
      revision: () => backend.revision(),
      range: async (request: RangeRequest) => {
        limits.push(request.limit);
        const read = await backend.range(request);
        return { ...read, bytes: read.entries.length * 1_048_576, life: 'the first' };
      },
      changesAfter: (revision: string, options: ChangesOptions) => {
        lives.push(options.life);
        return backend.changesAfter(revision, options);
      },
    };
    const of = { backing: { backend: told, prefix: 'p/' } } as Record<string | symbol, unknown>;
    const backed = new Proxy(storage, {
      get: (target, name) => {
        const found = of[name] ?? target[name as keyof MemoryStorage];
        return typeof found === 'function' ? found.bind(target) : found;
      },
    });
    const cacher = new Cacher(backed, { pastRevisions: 0 });
    expect((await cacher.list()).items).toHaveLength(510);
    expect([limits, lives]).toEqual([[500, 8, 8], ['the first']]);
    await cacher.close();
    await storage.close();
  });
});
