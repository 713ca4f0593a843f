// The list of the page of `watchmux serve`: order, columns, selectors, place and window, without a browser.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { rowsAround } from '../../src/pages/row-window.ts';
import { type Breadth, columnsLeftOut, toColumns, wordsOf } from '../../src/pages/serve/columns.ts';
import { faultOf, labelsIn, toggleLabel, versionIn } from '../../src/pages/serve/filters.ts';
import { readPlace, toUrl } from '../../src/pages/serve/place.ts';
import { naturalKey, type PageRow, quantityOf, SortedRows, type Sorting, spanOf } from '../../src/pages/serve/sorting.ts';
import type { ColumnDefinition } from '../../src/pages/table-source.ts';
import { parseLabelSelector } from '../../src/selectors/label-selector.ts';
import { runs } from '../runs.ts';

const row = (name: string, cell: string = '', namespace: string = 'default'): PageRow => ({
  ...{ metadata: { name, namespace }, cells: [name, cell] },
});
const byCell = ({ cells }: PageRow): { text: string } => ({ text: cells?.[1] ?? '' });
const sortedRows = (sorting: Sorting, rows: readonly PageRow[]): SortedRows => {
  const sorted = new SortedRows();
  Array.from(sorted.sort(sorting, rows));
  return sorted;
};
const cellsOf = (cells: readonly string[], descending: boolean = false): readonly (string | undefined)[] => {
  const rows = cells.map((cell, at) => row(`o-${at}`, cell));
  return sortedRows({ descending, cellOf: byCell }, rows).all.map((entry) => entry.row.cells?.[1]);
};

describe('the order of rows', () => {
  test.each([
    ['numbers in texts', ['order-1', 'order-2', 'order-010', 'order-100', 'Order-200', 'other']],
    ['parts with points', ['1.2.9', '1.2.10', '1.10.0']],
    ['fractions', ['0/10', '1/2', '2/2', '10/10']],
    ['numbers', ['-5', '0', '0.5', '9', '10', '1e3']],
    ['quantities', ['100m', '0.5', '2', '512Ki', '1500k', '1Gi', '2Gi', '1Ti']],
    ['spans', ['59s', '90s', '2m', '5m30s', '3h', '2d5h', '400d', '2y']],
    ['nothing is the last', ['1', '2', '<none>', '']],
  ])('%s', (_what, sorted) => {
    const mixed = sorted.filter((_, at) => at % 2).concat(sorted.filter((_, at) => at % 2 === 0));
    const isEmpty = (cell: unknown): boolean => cell === '' || cell === '<none>';
    const some = sorted.filter((cell) => !isEmpty(cell));
    const found = cellsOf(mixed);
    expect(found.filter((cell) => !isEmpty(cell))).toEqual(some);
    expect(found.slice(some.length).every(isEmpty)).toBe(true);
    const back = cellsOf(mixed, true);
    expect(back.filter((cell) => !isEmpty(cell))).toEqual([...some].reverse());
    expect(back.slice(some.length).every(isEmpty)).toBe(true);
  });

  test('ages are sorted by when, whatever their cells say', () => {
    const at = (name: string, timeMs: number): PageRow => ({ metadata: { name }, atMs: timeMs });
    const sorting: Sorting = { descending: false, cellOf: ({ atMs }) => ({ text: '5m', timeMs: atMs }) };
    const sorted = sortedRows(sorting, [at('a', 100), at('b', 300), at('c', 200)]);
    expect(sorted.all.map(({ key }) => key)).toEqual(['b', 'c', 'a']);
  });

  test('a key is a total order: equal only if the texts are equal for people', () => {
    const text = fc.stringMatching(/^[a-c0-9.-]{0,8}$/);
    fc.assert(
      fc.property(text, fc.nat(10_000), fc.nat(10_000), (before, one, other) => {
        const [a, b] = [naturalKey(`${before}${before && '-'}${one}`), naturalKey(`${before}${before && '-'}${other}`)];
        expect(a < b).toBe(one < other);
        expect(a === b).toBe(one === other);
      }),
      { numRuns: runs(500) },
    );
  });

  test('kept while rows come, change and go, it is the order of sorting them all', () => {
    const cell = fc.oneof(fc.nat(30).map(String), fc.constantFrom('5m', '1h', 'x', '<none>', '1Ki', ''));
    const name = fc.nat(8).map((at) => `default/o-${at}`);
    const step = fc.array(fc.tuple(name, fc.option(cell)), { maxLength: 5 });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), fc.boolean(), fc.nat(8), (steps, descending, resorted) => {
        const sorting = { descending, cellOf: byCell };
        const kept = sortedRows({ descending: !descending, cellOf: ({ metadata }) => ({ text: metadata.name ?? '' }) }, []);
        const store = new Map<string, PageRow>();
        for (const [at, changes] of steps.entries()) {
          for (const [key, value] of changes) {
            if (value === null) store.delete(key);
            else store.set(key, row(key.slice(8), value));
          }
          const told = changes.map(([key]) => key);
          kept.change([...told, ...told], (key) => store.get(key));
          if (at === resorted) Array.from(kept.sort(sorting));
          const now =
            at < resorted
              ? { descending: !descending, cellOf: ({ metadata }: PageRow) => ({ text: metadata.name ?? '' }) }
              : sorting;
          const whole = sortedRows(now, [...store.values()]);
          expect(kept.all.map((entry) => entry.row)).toEqual(whole.all.map((entry) => entry.row));
        }
      }),
      { numRuns: runs(500) },
    );
  });

  test('10,000 rows are sorted in steps, and a change of one of them reads one and compares it with few', () => {
    let [read, compared] = [0, 0];
    const cellOf = ({ cells }: PageRow): { text: string; timeMs: number } => {
      read++;
      const value = Number(cells?.[1]);
      return { text: '', timeMs: value };
    };
    const rows = Array.from({ length: 10_000 }, (_, at) => row(`o-${at}`, String((at * 7_919) % 10_007)));
    const sorted = new SortedRows();
    const perStep: number[] = [];
    for (const _ of sorted.sort({ descending: false, cellOf }, rows)) {
      perStep.push(read);
      read = 0;
    }
    expect(Math.max(...perStep)).toBeLessThanOrEqual(500);
    const values = sorted.all.map((entry) => Number(entry.row.cells?.[1]));
    expect(values).toEqual([...values].sort((one, other) => other - one));
    read = 0;
    const changed = row('o-7', '5000.5');
    for (const entry of sorted.all as unknown as { span: number }[]) {
      const { span } = entry;
      Object.defineProperty(entry, 'span', { get: () => ++compared && span });
    }
    sorted.change(['default/o-7'], () => changed);
    expect(read).toBe(1);
    // Once to count it out, and in a binary search.
    expect(compared).toBeLessThan(40);
    const at = sorted.all.findIndex((entry) => entry.row === changed);
    const around = sorted.all.slice(at - 1, at + 2).map((entry) => Number(entry.row.cells?.[1]));
    expect(around).toEqual([...around].sort((one, other) => other - one));
  });

  test('what is no quantity, and no span, is a text', () => {
    expect(['', 'x', '1x', '1 Gi', '0x10', 'Infinity', '1.2.3'].map(quantityOf).every(Number.isNaN)).toBe(true);
    expect(['', 'x', '5', '5m ago', '1s5m'].map(spanOf).every(Number.isNaN)).toBe(true);
    expect([quantityOf('50%'), quantityOf('.5Ki'), spanOf('1d2h')]).toEqual([50, 512, 93_600_000]);
  });
});

describe('the columns', () => {
  const define = (name: string, more: Partial<ColumnDefinition> = {}): ColumnDefinition => ({
    ...{ name, type: 'string', format: '', description: '', wide: false, ...more },
  });
  const definitions = [
    ...[define('Name', { format: 'name' }), define('Count', { type: 'integer' }), define('Size', { wide: true })],
    ...[define('Seen', { type: 'date' }), define('Age')],
  ];
  const names = (breadth: Breadth, hasNamespaces: boolean = false): readonly string[] =>
    toColumns({ definitions, hasNamespaces, breadth }).map(({ name }) => name);

  test('are those of the server, and the labels; the wide ones on demand', () => {
    expect(names('usual')).toEqual(['name', 'count', 'seen', 'age', 'labels']);
    expect(names('all', true)).toEqual(['namespace', 'name', 'count', 'size', 'seen', 'age', 'labels']);
    expect(names('few', true)).toEqual(['namespace', 'name', 'age']);
    expect(toColumns({ definitions: undefined, hasNamespaces: false, breadth: 'few' }).map(({ name }) => name)).toEqual([
      'name',
      'age',
    ]);
  });

  test('of hundreds, thirty are shown, with that of the names, and the others are counted', () => {
    const many = [...Array.from({ length: 200 }, (_, at) => define(`c${at}`)), define('Name', { format: 'name' })];
    const known = { definitions: many, hasNamespaces: true, breadth: 'usual' } as const;
    const shown = toColumns(known).map(({ role }) => role);
    expect([shown.length, shown.at(-2), shown.at(-1), columnsLeftOut(known)]).toEqual([33, 'name', 'labels', 170]);
    expect(columnsLeftOut({ definitions, hasNamespaces: true, breadth: 'all' })).toBe(0);
  });

  test('the column of the names opens an object, wherever it is', () => {
    const events = [define('Last Seen'), define('Reason'), define('Name', { format: 'name', wide: true })];
    const columns = toColumns({ definitions: events, hasNamespaces: false, breadth: 'usual' });
    expect(columns.map(({ name, role }) => `${name} ${role}`)).toEqual([
      'last seen more',
      'reason more',
      'name name',
      'labels labels',
    ]);
  });

  test('how long ago is counted from when it was; an age that is none is a text', () => {
    const [, , , seen, age] = toColumns({ definitions, hasNamespaces: false, breadth: 'all' });
    const at = Date.parse('2026-01-01T01:00:00Z');
    const metadata = { name: 'a', creationTimestamp: '2026-01-01T00:00:00Z' };
    const cells = ['a', '3', '1Gi', '5m', '60m'];
    const shown = { metadata, cells, atMs: at };
    expect(wordsOf(seen?.cellOf(shown) ?? { text: '' }, at + 60_000)).toBe('6m');
    expect(wordsOf(age?.cellOf(shown) ?? { text: '' }, at + 60_000)).toBe('61m');
    expect(wordsOf(age?.cellOf({ metadata, cells: ['a', '3', '', '', 'bronze'] }) ?? { text: '' }, at)).toBe('bronze');
  });
});

describe('selectors', () => {
  test.each([
    ['', 'app=web', 'app=web'],
    ['tier in (a,b)', 'app=web', 'tier in (a,b),app=web'],
    ['app=api,tier=a', 'app=web', 'tier=a,app=web'],
    ['app in (api,web)', 'app=web', 'app=web'],
    ['app!=db', 'app=web', 'app!=db,app=web'],
    ['app==web', 'app=web', ''],
    ['app=web,x', 'app=web', 'x'],
    ['app=', 'app=', ''],
    ['a in (', 'app=web', 'app=web'],
  ])('a click in "%s" on %s leads to "%s"', (before, label, after) => {
    expect(toggleLabel(before, label)).toBe(after);
    expect(labelsIn(after).has(label)).toBe(after.includes(label));
  });

  test('a label that was clicked selects the objects that have it, and of these no others than before', () => {
    const key = fc.constantFrom('a', 'b', 'c/d.e');
    const value = fc.constantFrom('', 'x', 'y');
    const term = fc.oneof(
      fc.tuple(key, value).map(([k, v]) => `${k}=${v}`),
      fc.tuple(key, value).map(([k, v]) => `${k} notin (${v},z)`),
      key.map((k) => `!${k}`),
      key,
    );
    const labels = fc.dictionary(key, value);
    fc.assert(
      fc.property(fc.array(term, { maxLength: 4 }), key, value, labels, (terms, k, v, some) => {
        const before = terms.join(',');
        const after = toggleLabel(before, `${k}=${v}`);
        expect(faultOf(after)).toBeUndefined();
        const wasOn = labelsIn(before).has(`${k}=${v}`);
        expect(labelsIn(after).has(`${k}=${v}`)).toBe(!wasOn);
        const matches = parseLabelSelector(after).matches(some);
        if (!wasOn && matches) expect(some[k]).toBe(v);
        const rest = terms.filter((each) => !each.startsWith(`${k}=`)).join(',');
        if (!wasOn) expect(matches).toBe(some[k] === v && Object.hasOwn(some, k) && parseLabelSelector(rest).matches(some));
      }),
      { numRuns: runs(500) },
    );
  });

  test('a field selector that is wrong is marked', () => {
    expect(faultOf('metadata.name=a', 'field')).toBeUndefined();
    expect(faultOf('metadata.name', 'field')).toMatch(/^field selector: /);
  });

  test.each([
    ['12345', '12345'],
    ['12,345', '12345'],
    [' resourceVersion: "12345",', '12345'],
    ['007', '7'],
    ['0', '0'],
    ['', ''],
    ['latest', ''],
  ])('the version in %j is %j', (text, version) => {
    expect(versionIn(text)).toBe(version);
  });
});

describe('the place in the URL', () => {
  test('is read as it was written; what others keep there stays', () => {
    // A URL can have no halves of characters.
    const value = fc.string({ maxLength: 20, unit: 'grapheme' });
    const place = fc.record({
      ...{ namespace: value, labelSelector: value, fieldSelector: value, resourceVersion: value, search: value },
      ...{ sort: value, columns: value, kind: value },
    });
    fc.assert(
      fc.property(place, (wanted) => {
        const url = new URL(toUrl(new URL('http://a/?open=x#b'), wanted), 'http://a');
        expect(readPlace(url)).toEqual(wanted);
        expect(url.searchParams.get('open')).toBe('x');
      }),
      { numRuns: runs(300) },
    );
  });

  test('an empty value is not in it; a hash that cannot be decoded is no kind', () => {
    expect(toUrl(new URL('http://a/?sort=-age&x=1#b%2Fv1'), { sort: '' })).toBe('/?x=1#b%2Fv1');
    expect(readPlace(new URL('http://a/#%'))).toMatchObject({ kind: '', sort: '' });
  });
});

describe('the window', () => {
  test('has the rows in view, whatever was scrolled, and few others', () => {
    fc.assert(
      fc.property(fc.nat(400_000), fc.integer({ min: 1, max: 2_000 }), fc.nat(10_000), (top, height, count) => {
        const first = Math.min(Math.floor(top / 33), Math.max(0, count - 1));
        const { start, end } = rowsAround({ first, inView: height / 33, length: count });
        expect(start >= 0 && start <= end && end <= count).toBe(true);
        expect(end - start).toBeLessThanOrEqual(Math.max(60, Math.ceil((3 * height) / 33)));
        for (let at = Math.floor(top / 33); at < Math.min(count, (top + height) / 33); at++) {
          expect(at >= start && at < end).toBe(true);
        }
      }),
      { numRuns: runs(300) },
    );
  });
});
