import { describe, expect, test } from 'vitest';
import { parseCommand } from '../../src/cli/args.ts';
import { said } from '../../src/cli/get/get.ts';
import type { GetCommand } from '../../src/cli/get/get-args.ts';
import { AlignedColumns, createPrinter, type PrinterOptions } from '../../src/cli/get/printer.ts';
import { helpText } from '../../src/cli/help.ts';
import { UsageError } from '../../src/cli/usage.ts';
import { age, clean, ShownColumns, toPage, toRow } from '../../src/pages/table-source.ts';

const parsed = (line: string): GetCommand => parseCommand(['get', ...line.split(' ')]) as GetCommand;

describe('the arguments of get', () => {
  test('a URL has defaults', () => {
    expect(parsed('http://127.0.0.1:8080/api/v1/pods?x=1')).toEqual({
      command: 'get',
      target: new URL('http://127.0.0.1:8080/api/v1/pods?x=1'),
      name: undefined,
      watch: false,
      output: 'table',
      labelSelector: undefined,
      fieldSelector: undefined,
      limit: undefined,
      headers: {},
      responseTimeoutMs: 60_000,
      file: undefined,
      context: undefined,
      namespace: undefined,
      allNamespaces: false,
    });
  });

  test('a resource, with everything', () => {
    const line =
      'deployments.apps/v1 web -w -o json -l app=web --field-selector a=b --timeout 1.5 --kubeconfig f --context c -n team';
    expect(parsed(`${line} --token t --header X-A:1`)).toMatchObject({
      target: 'deployments.apps/v1',
      name: 'web',
      watch: true,
      output: 'json',
      labelSelector: 'app=web',
      fieldSelector: 'a=b,metadata.name=web',
      responseTimeoutMs: 1_500,
      file: 'f',
      context: 'c',
      namespace: 'team',
      headers: { authorization: 'Bearer t', 'x-a': '1' },
    });
    expect(parsed('pods -A --limit 7')).toMatchObject({ allNamespaces: true, limit: 7 });
  });

  test.each([
    ['', 'missing URL or resource, for example: watchmux get pods'],
    ['pods a b', 'unexpected argument "b": get takes one resource and one name'],
    ['ftp://x/', 'neither an HTTP URL nor a resource such as pods or deployments.apps: "ftp://x/"'],
    ['localhost:8080/pods', 'neither an HTTP URL nor a resource'],
    ['pods -o yaml', '--output takes one of table, json, name, not "yaml"'],
    ['pods --limit 0', '--limit takes a whole number from 1, not "0"'],
    ['pods --limit -1', '--limit takes a whole number from 1, not "-1"'],
    ['pods --limit 5 -w', '--limit and --watch cannot be combined'],
    ['pods --timeout soon', '--timeout takes seconds, from 0 to 86400, not "soon"'],
    ['pods -n a -A', '--namespace and --all-namespaces cannot be combined'],
    ['pods --selector=', '--selector takes a non-empty value, not ""'],
    ['pods --kubeconfig=', '--kubeconfig takes a non-empty value, not ""'],
    ['pods --header x', '--header takes "NAME: VALUE", not "x"'],
    ['pods --token', '--token needs a value'],
    ['pods --token=\u00e9', '--token takes visible ASCII characters without spaces'],
    ['pods --token=secret\n', '--token takes visible ASCII characters without spaces'],
    ['pods --token t --header Authorization:x', '--token and --header "authorization: ..." cannot be combined'],
    ['pods --header authorization:s\u20ac', '--header takes "NAME: VALUE", not "authorization ..."'],
    ['pods --header Content-Length:5', '--header cannot set "Content-Length", which says how a request is sent'],
    ['pods --header transfer-encoding:chunked', '--header cannot set "transfer-encoding"'],
    ['http://u:%zz@x/', '"http://x/": expected %25 for % in the user and the password'],
    ['https://u:secret@x:99999/', 'neither an HTTP URL nor a resource such as pods or deployments.apps: "https://x:99999/"'],
    ['http://x/?watch=1', 'use --watch instead of the parameter watch in the URL'],
    ['http://x/?labelSelector=a -l b', 'labelSelector in the URL cannot be combined with --selector'],
    [
      'http://x/?fieldSelector=a=b --field-selector c=d',
      'fieldSelector in the URL cannot be combined with --field-selector or a name',
    ],
    ['http://x/?fieldSelector=a=b name', 'fieldSelector in the URL cannot be combined with --field-selector or a name'],
    ['http://x/ -n a', '--namespace goes with a resource, not with a URL'],
    ['http://x/ -A', '--all-namespaces goes with a resource, not with a URL'],
    ['http://x/ --kubeconfig f', '--kubeconfig goes with a resource, not with a URL'],
    ['pods --all', "Unknown option '--all'"],
  ])('get %s', (line, message) => {
    const words = line.split(' ').filter(Boolean);
    expect(() => parseCommand(['get', ...words])).toThrow(UsageError);
    expect(() => parseCommand(['get', ...words])).toThrow(message);
  });

  test('a context without a kubeconfig', () => {
    expect(said('context: expected one of none, got "x"', 'get')).toBe(
      '--context: expected a kubeconfig that has "x", found none',
    );
    expect(said('context: expected one of a, got "x"', 'get')).toBe('--context: expected one of a, got "x"');
  });

  test('a header that is given twice is sent with both values', () => {
    const line = ['get', 'pods', '--header', 'X-A: 1', '--header', 'x-a: 2', '--header', 'cookie: a', '--header', 'Cookie: b'];
    expect(parseCommand(line)).toMatchObject({ headers: { 'x-a': '1, 2', cookie: 'a; b' } });
  });

  test('parameters of the URL that the options say nothing about go with them', () => {
    for (const line of ['http://x/?watch=1 -w', 'http://x/?labelSelector=a n', 'http://x/?fieldSelector=a=b -l c'])
      expect(parseCommand(['get', ...line.split(' ')])).toMatchObject({ target: expect.any(URL) });
  });

  test('its help names every option', () => {
    const help = helpText('get');
    for (const option of ['watch', 'output', 'selector', 'field-selector', 'limit', 'kubeconfig', 'context', 'namespace'])
      expect(help).toContain(`--${option}`);
    for (const option of ['all-namespaces', 'token', 'header', 'timeout']) expect(help).toContain(`--${option}`);
    for (const line of help.split('\n')) expect(line.length).toBeLessThanOrEqual(128);
  });
});

describe('rows', () => {
  const table = (...rows: object[]): object => ({
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { resourceVersion: '9', continue: 'next' },
    columnDefinitions: [{ name: 'Name' }, { name: 'Status' }, { name: 'IP', priority: 1 }],
    rows,
  });
  const row = (name: string, ...cells: unknown[]): object => ({ cells: [name, ...cells], object: { metadata: { name } } });

  test('of a table: the columns of the first priority', () => {
    const shown = new ShownColumns();
    const page = toPage(JSON.stringify(table(row('a', 'Running', '1.2.3.4'), row('b', null, ''))), shown);
    expect(page).toEqual({
      columns: ['NAME', 'STATUS'],
      items: [
        { metadata: { name: 'a' }, cells: ['a', 'Running'] },
        { metadata: { name: 'b' }, cells: ['b', '<none>'] },
      ],
      resourceVersion: '9',
      continue: 'next',
    });
    // Later tables of a stream do not repeat their columns.
    const later = { ...table(row('c', 'Failed', '1.2.3.5')), columnDefinitions: null };
    expect(toRow(later, shown)).toMatchObject({ metadata: { name: 'c', resourceVersion: '9' }, cells: ['c', 'Failed'] });
  });

  test('of a bookmark: the version is that of the table, the mark that of the row', () => {
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const bookmark = {
      ...table({ cells: ['', ''], object: { metadata: { annotations } } }),
      metadata: { resourceVersion: '12' },
    };
    expect(toRow(bookmark, new ShownColumns()).metadata).toEqual({ resourceVersion: '12', annotations });
    expect(toRow({ ...bookmark, rows: null }, new ShownColumns()).metadata).toEqual({ resourceVersion: '12' });
  });

  test('of a list of objects: no cells', () => {
    const list = { kind: 'PodList', metadata: { resourceVersion: '7' }, items: [{ metadata: { name: 'a' } }] };
    const shown = new ShownColumns();
    expect(toPage(JSON.stringify(list), shown)).toEqual({
      columns: undefined,
      items: [{ metadata: { name: 'a' } }],
      resourceVersion: '7',
    });
    expect(toRow({ metadata: { name: 'a' } }, shown)).toEqual({ metadata: { name: 'a' } });
  });

  test.each(['', 'null', '[]', '{}', '{"kind":"PodList"}', '<html>'])('%j is no list', (text) => {
    expect(() => toPage(text, new ShownColumns())).toThrow();
  });

  test('of a table from a hostile server', () => {
    const odd = [
      { rows: 5 },
      { rows: [null, 5, { cells: 5 }, { object: null }] },
      { columnDefinitions: [null, 5] },
      { metadata: null },
    ];
    for (const each of odd)
      expect(toPage(JSON.stringify({ ...table(), ...each }), new ShownColumns()).items).toBeInstanceOf(Array);
    expect(clean('\u001b[31mred\nline')).toBe('.[31mred.line');
    expect(clean({ a: 1 })).toBe('{"a":1}');
    expect(clean('x'.repeat(1_000)).length).toBeLessThan(300);
  });

  test.each([
    [0, '0s'],
    [119, '119s'],
    [120, '2m'],
    [150, '2m30s'],
    [600, '10m'],
    [3 * 3_600 - 1, '179m'],
    [3 * 3_600, '3h'],
    [3 * 3_600 + 60, '3h1m'],
    [8 * 3_600 + 60, '8h'],
    [47 * 3_600, '47h'],
    [48 * 3_600, '2d'],
    [49 * 3_600, '2d1h'],
    [8 * 86_400 + 3_600, '8d'],
    [729 * 86_400, '729d'],
    [731 * 86_400, '2y1d'],
    [9 * 365 * 86_400, '9y'],
    [-5, '0s'],
  ])('an age of %d s is %s', (seconds, text) => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    expect(age(new Date(now - seconds * 1_000).toISOString(), now)).toBe(text);
  });

  test('an age that nobody knows', () => {
    expect(age(undefined, 0)).toBe('<unknown>');
  });
});

describe('printers', () => {
  const NOW = Date.parse('2026-01-01T00:00:10Z');
  const thing = (
    key: string,
  ): { metadata: { name: string | undefined; namespace: string | undefined; creationTimestamp: string } } => {
    const [namespace, name] = key.split('/');
    return { metadata: { name, namespace, creationTimestamp: '2026-01-01T00:00:00Z' } };
  };
  const options: PrinterOptions = { manyNamespaces: false, single: false, columns: () => undefined, now: () => NOW };

  test('a table grows wider page by page', () => {
    const printer = createPrinter('table', { ...options, manyNamespaces: true });
    expect(printer.begin('7') + printer.objects([thing('x/a')])).toBe('NAMESPACE   NAME   AGE\nx           a      10s\n');
    expect(printer.objects([thing('x/longer'), thing('y/b')])).toBe('x           longer   10s\ny           b        10s\n');
    expect(printer.objects([]) + printer.end()).toBe('');
  });

  test('what is in no namespace has no column for it, whatever its URL allows', () => {
    const printer = createPrinter('table', { ...options, manyNamespaces: true });
    expect(printer.objects([]) + printer.objects([thing('/a')]) + printer.objects([thing('/b')])).toBe(
      'NAME   AGE\na      10s\nb      10s\n',
    );
    const changes = createPrinter('table', { ...options, manyNamespaces: true });
    expect(changes.events([{ type: 'ADDED', object: thing('/a') }])).toBe('EVENT      NAME   AGE\nADDED      a      10s\n');
    const mixed = createPrinter('table', { ...options, manyNamespaces: true });
    expect(mixed.objects([thing('/a'), thing('x/b')])).toBe(
      'NAMESPACE   NAME   AGE\n<none>      a      10s\nx           b      10s\n',
    );
  });

  test('a table of changes has room for every type', () => {
    const printer = createPrinter('table', { ...options, columns: () => ['NAME', 'STATUS'] });
    const row = Object.assign(thing('x/a'), { cells: ['a', 'ok'] });
    expect(printer.events([{ type: 'ADDED', object: row }])).toBe('EVENT      NAME   STATUS\nADDED      a      ok\n');
    expect(printer.events([{ type: 'MODIFIED', object: row }])).toBe('MODIFIED   a      ok\n');
  });

  test('names are keys', () => {
    const printer = createPrinter('name', options);
    expect(printer.begin('7') + printer.objects([thing('x/a'), thing('/n')]) + printer.end()).toBe('x/a\nn\n');
    expect(printer.events([{ type: 'ADDED', object: thing('x/a') }])).toBe('ADDED x/a\n');
  });

  test('JSON is one List, in however many pages', () => {
    for (const pages of [[[]], [[1], [2, 3]], [[1, 2, 3]], [[], [1]]]) {
      const printer = createPrinter('json', options);
      const text =
        printer.begin('7') + pages.map((page) => printer.objects(page as unknown as object[])).join('') + printer.end();
      expect(JSON.parse(text)).toEqual({
        kind: 'List',
        apiVersion: 'v1',
        metadata: { resourceVersion: '7' },
        items: pages.flat(),
      });
      expect(text.endsWith('}\n')).toBe(true);
    }
  });

  test('JSON of one object is that object; changes are one per line', () => {
    const printer = createPrinter('json', { ...options, single: true });
    expect(printer.begin('7') + printer.objects([{ kind: 'A' }]) + printer.end()).toBe('{"kind":"A"}\n');
    const change = { type: 'ADDED', object: { kind: 'A' } };
    expect(createPrinter('json', options).events([change, change])).toBe('{"type":"ADDED","object":{"kind":"A"}}\n'.repeat(2));
  });

  test('no lines', () => {
    expect(new AlignedColumns().lines([])).toBe('');
  });

  test('json says what it says, and has nothing that a terminal acts on', () => {
    const object = { metadata: { name: 'a\u009b2J' }, text: '\u202eb\u001b[2J\u2066' };
    const printer = createPrinter('json', { ...options, single: true });
    for (const line of [printer.objects([object]), printer.events([{ type: 'ADDED', object }])]) {
      expect(line).toMatch(/^[\x20-\x7e]+\n$/);
    }
    expect(JSON.parse(printer.objects([object]))).toEqual(object);
    expect(createPrinter('json', options).begin('1\u009b')).toMatch(/"resourceVersion":"1\\u009b"/);
  });
});
