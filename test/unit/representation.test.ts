import { describe, expect, it } from 'vitest';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { humanDuration } from '../../src/apiserver/http/duration.ts';
import { choosePresentation, PLAIN, type Subject } from '../../src/apiserver/http/presentation.ts';
import { toBookmarkTable, toIncludeObject, toPartialList, toTable } from '../../src/apiserver/http/table.ts';
import { LINE } from '../../src/bridge/events/forms.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { encoded } from '../../src/storage/values.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

describe('a list of large objects whose JSON was let go', () => {
  const info = { listKind: 'ThingList', apiVersion: 'v1' } as never;

  it('is written in pieces: those that are empty are pauses', () => {
    const large = { metadata: { name: 'a' }, items: Array.from({ length: 60_000 }, (_, n) => ({ n, pad: 'x'.repeat(10) })) };
    const small = { metadata: { name: 'b' } };
    const pieces = [...PLAIN.list(info, { items: [large, small], resourceVersion: '1' })];
    expect(pieces.filter(({ length }) => length === 0).length).toBeGreaterThan(30);
    expect(JSON.parse(Buffer.concat(pieces).toString())).toMatchObject({ kind: 'ThingList', items: [large, small] });
  });
});

describe('the events of a table', () => {
  it('make a large one once, before it is sent, and keep nothing of it', async () => {
    let read = 0;
    const columns = [{ name: 'N', type: 'integer', value: () => ++read }];
    const wish = { query: new URLSearchParams(), subject: 'watch', now: () => 0, onError: () => {} } as const;
    const events = choosePresentation(TABLE, wish).events({ columns } as never);
    const object = { metadata: { name: 'a' }, pad: 'x'.repeat(300_000) };
    encoded(object);
    const batch = [{ type: 'ADDED', object }] as const;
    for (const round of [1, 2]) {
      await events.prepare(batch, 0, { turn: () => undefined, pause: () => undefined });
      expect(read).toBe(round);
      expect(events.slice(batch, 0, LINE)).toMatchObject({ to: 1 });
      expect(read).toBe(round);
    }
  });
});

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';

describe('choosePresentation', () => {
  const table = TABLE;
  const beta = 'application/json;as=Table;v=v1beta1;g=meta.k8s.io';
  const form = (accept: string | undefined, subject: Subject = 'list'): string => {
    try {
      const wish = { query: new URLSearchParams(), subject, now: () => 0, onError: () => {} };
      const chosen = choosePresentation(accept, wish);
      if (chosen === PLAIN) return 'plain';
      const bytes = atOnce(chosen.writing({} as never, { metadata: { name: 'a' } }));
      const { kind, apiVersion } = JSON.parse(new TextDecoder().decode(bytes));
      return `${kind} ${apiVersion}`;
    } catch (error) {
      return (error as Error).message.slice(0, 17);
    }
  };

  it.each([
    [undefined, 'plain'],
    ['', 'plain'],
    ['*/*', 'plain'],
    ['application/*', 'plain'],
    ['APPLICATION/JSON', 'plain'],
    ['text/html', '406 NotAcceptable'],
    ['text/html, */*;q=0.1', 'plain'],
    [`${table},${beta},application/json`, 'Table meta.k8s.io/v1'],
    [`${beta},application/json`, 'Table meta.k8s.io/v1beta1'],
    ['application/json;as=Table;v=v2;g=meta.k8s.io,application/json', 'plain'],
    ['application/json;as=Table;v=v1;g=other', '406 NotAcceptable'],
    ['application/json;as=constructor;v=v1;g=meta.k8s.io', '406 NotAcceptable'],
    ['application/json;v=v1', '406 NotAcceptable'],
    [`application/json;q=0.5,${table};q=0.9`, 'Table meta.k8s.io/v1'],
    [`${table};q=0.5,application/json`, 'plain'],
    ['application/json;q=0', '406 NotAcceptable'],
    ['application/json;stream=watch', 'plain'],
    ['application/json;stream=other', '406 NotAcceptable'],
    ['application/json;charset=utf-8', 'plain'],
    ['application/vnd.kubernetes.protobuf,application/json', 'plain'],
    ['application/vnd.kubernetes.protobuf', '406 NotAcceptable'],
    [',;;=,', '406 NotAcceptable'],
  ])('of a list, %s: %s', (accept, expected) => expect(form(accept)).toBe(expected));

  it('metadata is asked for by two names, each for its subject; a watch takes both', () => {
    const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
    const list = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
    expect([form(partial, 'object'), form(partial, 'list'), form(partial, 'watch')]).toEqual([
      'PartialObjectMetadata meta.k8s.io/v1',
      '406 NotAcceptable',
      'PartialObjectMetadata meta.k8s.io/v1',
    ]);
    expect([form(list, 'object'), form(list, 'list')]).toEqual(['406 NotAcceptable', 'PartialObjectMetadata meta.k8s.io/v1']);
    expect(form('application/json;stream=watch', 'watch')).toBe('plain');
    expect(form('application/json;stream=other', 'watch')).toBe('406 NotAcceptable');
  });
});

describe('toTable', () => {
  const now = Date.parse('2026-01-02T00:00:00Z');
  const object = (name: string): KubernetesObject & { count?: number } => ({
    apiVersion: 'x.io/v1',
    kind: 'Order',
    metadata: { name, resourceVersion: '7', creationTimestamp: '2026-01-01T23:55:00Z' },
    count: 3,
  });
  const columns: ResourceDefinition<ReturnType<typeof object>>['columns'] = [
    { name: 'Count', type: 'integer', value: ({ count }) => count, priority: 1 },
    { name: 'Bad', type: 'string', value: ({ metadata }) => (metadata as unknown as { a: { b: string } }).a.b },
  ];

  it('the name and the age, beside the metadata of the object', () => {
    expect(toTable({}, [object('a')], { now })).toEqual({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: '7' },
      columnDefinitions: [
        expect.objectContaining({ name: 'Name', type: 'string', format: 'name', priority: 0 }),
        expect.objectContaining({ name: 'Age', type: 'date', format: '', priority: 0 }),
      ],
      rows: [
        {
          cells: ['a', '5m'],
          object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object('a').metadata },
        },
      ],
    });
  });

  it('the beginning of an object, in the time that this takes', () => {
    const cell = (value: unknown): unknown =>
      toTable({ columns: [{ name: 'All', type: 'string', value: () => value as string }] }, [object('a')], { now }).rows[0]
        ?.cells[1];
    const [small, large] = [{ a: ['b', { c: 1 }] }, { a: Array.from({ length: 400 }, () => 'b') }];
    expect(cell(small)).toBe(JSON.stringify(small));
    expect(cell(large)).toBe(`${JSON.stringify(large).slice(0, 1_024)}...`);
  });

  it('a time is shown as an age in a column of dates, and as it is in others', () => {
    const at = (type: 'date' | 'string', value: Date | string | number | boolean | null | undefined): unknown =>
      toTable({ columns: [{ name: 'At', type, value: () => value }] }, [object('a')], { now }).rows[0]?.cells[1];
    const time = new Date(now - 60_000);
    expect([at('date', time), at('date', time.toJSON()), at('date', +time)]).toEqual(['60s', '60s', '60s']);
    for (const none of [undefined, true, false, '', new Date(Number.NaN)]) expect(at('date', none)).toBe('<unknown>');
    expect([at('date', null), at('date', 'soon')]).toEqual([null, '<invalid>']);
    expect([at('string', time), at('string', undefined)]).toEqual(['2026-01-01T23:59:00.000Z', null]);
  });

  it('columns of its own; one that throws has no cell, and keeps nothing else away', () => {
    const table = toTable({ columns: columns as ResourceDefinition['columns'] }, [object('a')], {
      now,
      metadata: { resourceVersion: '9' },
    });
    expect(table.columnDefinitions?.map(({ name, priority }) => [name, priority])).toEqual([
      ['Name', 0],
      ['Count', 1],
      ['Bad', 0],
    ]);
    expect(table.rows[0]?.cells).toEqual(['a', 3, null]);
    expect(table.metadata).toEqual({ resourceVersion: '9' });
  });

  it('what has no metadata has no name, an unknown age and no version; so has nothing', () => {
    expect(toTable({}, [{ kind: 'Order' }], { now })).toMatchObject({
      metadata: { resourceVersion: undefined },
      rows: [{ cells: ['', '<unknown>'], object: { metadata: {} } }],
    });
    expect(toTable({}, [], { now })).toMatchObject({ metadata: { resourceVersion: undefined }, rows: [] });
  });

  it('the first failure of a column is told, by the name of the object, if it has one', () => {
    const told: unknown[] = [];
    const onError = (error: unknown): void => void told.push(error);
    const definition = { columns: columns as ResourceDefinition['columns'] };
    toTable(definition, [{ kind: 'Order' }, object('b')], { now, onError });
    toTable({ columns: columns as ResourceDefinition['columns'] }, [object('b')], { now, onError });
    expect(told.map(String)).toEqual(
      ['undefined', 'b'].map((name) => `Error: the column Bad failed for ${name}; further failures are not reported`),
    );
    expect((told[0] as Error).cause).toBeInstanceOf(TypeError);
  });

  it('rows with the whole object, or with none; in the version that was asked for', () => {
    const rows = (includeObject: 'None' | 'Object'): unknown => toTable({}, [object('a')], { now, includeObject }).rows;
    expect(rows('Object')).toEqual([{ cells: ['a', '5m'], object: object('a') }]);
    expect(rows('None')).toEqual([{ cells: ['a', '5m'], object: null }]);
    const old = toTable({}, [object('a')], { now, version: 'v1beta1', columns: false });
    expect([old.apiVersion, old.columnDefinitions]).toEqual(['meta.k8s.io/v1beta1', null]);
    expect(old.rows[0]?.object).toMatchObject({ apiVersion: 'meta.k8s.io/v1beta1' });
    const values = [undefined, null, '', 'Metadata', 'None', 'Object'];
    expect(values.map(toIncludeObject)).toEqual(['Metadata', 'Metadata', 'Metadata', 'Metadata', 'None', 'Object']);
    expect(() => toIncludeObject('object')).toThrow(
      `400 BadRequest: Unable to convert to Table as requested: includeObject: Invalid value: "object": must be 'Metadata', 'Object', 'None', or empty`,
    );
    expect(() => toIncludeObject('x'.repeat(100))).toThrow(`"${'x'.repeat(80)}": must be`);
  });

  it('a bookmark says its version, and where the initial events end', () => {
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const table = toBookmarkTable(
      {},
      { metadata: { resourceVersion: '9', annotations } },
      { now, columns: false, includeObject: 'None' },
    );
    expect(table.metadata).toEqual({ resourceVersion: '9' });
    expect(table.rows).toEqual([
      { cells: ['', null], object: expect.objectContaining({ metadata: { resourceVersion: '9', annotations } }) },
    ]);
  });

  it('an object without a time has an unknown age, be it a Date or a text', () => {
    const aged = (creationTimestamp: string | Date | undefined): unknown =>
      toTable({}, [{ metadata: { name: 'a', creationTimestamp } }], { now }).rows[0]?.cells[1];
    expect([aged(undefined), aged('soon'), aged(new Date(now - 1000))]).toEqual(['<unknown>', '<invalid>', '1s']);
  });

  it('a list of metadata', () => {
    expect(toPartialList([object('a')], { metadata: { resourceVersion: '9', continue: 'x' } })).toEqual({
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { resourceVersion: '9', continue: 'x' },
      items: [{ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object('a').metadata }],
    });
  });
});

describe('humanDuration', () => {
  const [s, m, h, d, y] = [1, 60, 3600, 86_400, 365 * 86_400] as const;
  // TestHumanDuration of apimachinery's duration_test.go, and its bounds.
  it.each([
    [-2, '<invalid>'],
    [-1, '0s'],
    [0, '0s'],
    [s, '1s'],
    [70 * s, '70s'],
    [2 * m - 1, '119s'],
    [190 * s, '3m10s'],
    [10 * m - 1, '9m59s'],
    [70 * m, '70m'],
    [3 * h - 1, '179m'],
    [3 * h, '3h'],
    [47 * h, '47h'],
    [49 * h, '2d1h'],
    [8 * d + 2 * h, '8d'],
    [367 * d, '367d'],
    [2 * y + 25 * h, '2y1d'],
    [8 * y + 2 * h, '8y'],
    [Number.NaN, '<invalid>'],
  ])('TestHumanDuration: %s s: %s', (seconds, shown) => expect(humanDuration(seconds * 1000)).toBe(shown));
});
