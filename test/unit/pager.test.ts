import { describe, expect, it } from 'vitest';
import { type KubernetesObject, type List, type ListOptions, type ListWatcher, listAll } from '../../src/cache/index.ts';
import { FakeListWatcher } from '../../src/testing/index.ts';

const names = 'abcdefg';
const open = (): FakeListWatcher =>
  new FakeListWatcher<KubernetesObject>({ objects: [...names].map((name) => ({ metadata: { name } })) });
const shown = ({ items }: { items: readonly { metadata?: { name?: string | undefined } | undefined }[] }): string =>
  items.map(({ metadata }) => metadata?.name).join('');
const asked = (source: FakeListWatcher): object[] => source.requests.map(({ options: { signal: _, ...rest } }) => rest);
/** A source that answers with these lists, in turn. */
const answering = (
  ...lists: (Partial<List<number>> | Error)[]
): ListWatcher<number> & { readonly asked: (ListOptions | undefined)[] } => {
  const requests: (ListOptions | undefined)[] = [];
  return {
    asked: requests,
    list: async (options) => {
      const answer = lists[Math.min(requests.push(options), lists.length) - 1];
      if (answer instanceof Error) throw answer;
      return { items: [], resourceVersion: '7', ...answer };
    },
    watch: () => Promise.reject(new Error('not asked for')),
  };
};

describe('listAll', () => {
  it('follows the pages to their end; later pages are asked for without a version', async () => {
    const source = open();
    const whole = await listAll(source, { pageSize: 3, resourceVersion: '1', resourceVersionMatch: 'NotOlderThan' });
    expect([shown(whole), whole.resourceVersion, whole.paged]).toEqual([names, '1', true]);
    expect(asked(source)).toEqual([
      { resourceVersion: '1', resourceVersionMatch: 'NotOlderThan', limit: 3 },
      { limit: 3, continue: expect.any(String) },
      { limit: 3, continue: expect.any(String) },
    ]);
    expect(Object.keys(whole).sort()).toEqual(['items', 'paged', 'resourceVersion']);
  });

  it('tells a list of one page from others; asks for 500 by default', async () => {
    const source = open();
    expect(await listAll(source)).toMatchObject({ paged: false, resourceVersion: '1' });
    expect(await listAll(source, { pageSize: 0 })).toMatchObject({ paged: false });
    expect(asked(source)).toEqual([{ limit: 500 }, { limit: 0 }]);
  });

  it('starts over once, without pages, when the past expires on the way', async () => {
    const source = open();
    const { list } = source;
    source.list = (options) => {
      if (options?.continue) {
        source.add({ metadata: { name: 'new' } });
        source.expire();
      }
      return list.call(source, options);
    };
    const whole = await listAll(source, { pageSize: 3, resourceVersion: '0' });
    expect([shown(whole), whole.resourceVersion, whole.paged]).toEqual([`${names}new`, '2', true]);
    expect(asked(source).at(-1)).toEqual({ resourceVersion: '0' });
  });

  it('passes on every other error, and a 410 of the first page', async () => {
    const gone = FakeListWatcher.refusal(410, 'Expired');
    const busy = FakeListWatcher.refusal(429, 'TooManyRequests');
    await expect(listAll(answering(gone))).rejects.toBe(gone);
    await expect(listAll(answering({ continue: 'a' }, busy))).rejects.toBe(busy);
    await expect(listAll(answering({ continue: 'a' }, gone, busy))).rejects.toBe(busy);
    const reason = new Error('enough');
    await expect(listAll(open(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it('does not follow a server that never ends', async () => {
    const same = answering({ continue: 'a' });
    await expect(listAll(same)).rejects.toMatchObject({
      code: 'INVALID_FRAME',
      message: 'the server repeated a continue token',
    });
    expect(same.asked).toHaveLength(2);
    const turns = answering({ continue: 'a' }, { continue: 'b' }, { continue: 'c' }, { continue: 'd' }, { continue: 'e' });
    await expect(listAll(turns, { maxPages: 4 })).rejects.toMatchObject({
      code: 'OVERLOADED',
      limit: 4,
      message: 'the list has more than maxPages (4)',
    });
    expect(turns.asked).toHaveLength(4);
    const gone = FakeListWatcher.refusal(410, 'Expired');
    await expect(listAll(answering({ continue: 'a' }, gone, { continue: 'b' }))).rejects.toMatchObject({ code: 'INVALID_FRAME' });
  });

  it.each([2, 3, 7, 100])('does not follow a server round a circle of %d pages', async (length) => {
    let pages = 0;
    const source = { ...answering(), list: async () => ({ items: [], resourceVersion: '7', continue: `${pages++ % length}` }) };
    await expect(listAll(source)).rejects.toMatchObject({
      code: 'INVALID_FRAME',
      message: 'the server repeated a continue token',
    });
    expect(pages).toBeLessThanOrEqual(3 * length);
  });

  it('bounds the objects and the bytes of all pages together', async () => {
    const endless = (): ListWatcher<number> & { asked: number } => {
      const source = {
        ...answering(),
        asked: 0,
        list: async () => ({ items: [1, 2, 3], bytes: 100, resourceVersion: '7', continue: `${source.asked++}` }),
      };
      return source;
    };
    for (const [name, limit] of [
      ['maxObjects', 10],
      ['maxTotalListBytes', 399],
    ] as const) {
      const source = endless();
      await expect(listAll(source, { [name]: limit })).rejects.toMatchObject({
        code: 'OVERLOADED',
        limit,
        message: `the list has more than ${name} (${limit})`,
      });
      expect(source.asked).toBe(4);
    }
    const all = { items: [1, 2, 3], bytes: 100 };
    const pages = (): ListWatcher<number> => answering({ ...all, continue: 'a' }, all);
    expect(await listAll(pages(), { maxObjects: 6, maxTotalListBytes: 200 })).toEqual({
      items: [1, 2, 3, 1, 2, 3],
      resourceVersion: '7',
      paged: true,
    });
    await expect(listAll(pages(), { maxObjects: 5 })).rejects.toMatchObject({ code: 'OVERLOADED', limit: 5 });
    await expect(listAll(answering(all), { maxObjects: 2 })).rejects.toMatchObject({ code: 'OVERLOADED', limit: 2 });
    // What has expired is not part of the whole list.
    const gone = FakeListWatcher.refusal(410, 'Expired');
    const again = answering({ ...all, continue: 'a' }, gone, all);
    expect((await listAll(again, { maxObjects: 3, maxTotalListBytes: 100 })).items).toEqual([1, 2, 3]);
    await expect(listAll(answering({ ...all, continue: 'a' }, gone, all), { maxObjects: 2 })).rejects.toMatchObject({ limit: 2 });
    const huge = answering({ bytes: 2 ** 29, continue: 'a' }, { bytes: 2 ** 29, continue: 'b' }, { bytes: 1 });
    await expect(listAll(huge)).rejects.toMatchObject({ code: 'OVERLOADED', limit: 2 ** 30 });
  });

  it.each<[string, object, string]>([
    ['a limit of no objects', { maxObjects: 0 }, 'maxObjects: expected a whole number >= 1, got 0'],
    ['a limit of no bytes', { maxTotalListBytes: 0 }, 'maxTotalListBytes: expected a whole number >= 1, got 0'],
    ['a limit', { limit: 5 }, expect.stringMatching(/^unknown option limit: expected one of pageSize, .*, signal$/)],
    ['a negative page', { pageSize: -1 }, 'pageSize: expected a whole number >= 0, got -1'],
    ['no pages', { maxPages: 0 }, 'maxPages: expected a whole number >= 1, got 0'],
  ])('refuses %s', async (_, options, message) => {
    await expect(listAll(open(), options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  });
});
