// What URLs and queries mean: tables of truth, and no way through them for what comes over a wire.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { extentOf, MAX_DEPTH, parseJson } from '../../src/apiserver/request/json.ts';
import {
  conversionOf,
  isJson,
  mediaType,
  type ResourcePath,
  readAccept,
  readPath,
  splitTarget,
  toVerb,
} from '../../src/apiserver/request/path.ts';
import {
  checkedParameters,
  checkVersion,
  fromListOptions,
  fromWatchOptions,
  type ListParameters,
  readCount,
  readFlag,
  readListQuery,
} from '../../src/apiserver/request/query.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const codeOf = (act: () => unknown): unknown => {
  try {
    act();
    return 200;
  } catch (error) {
    return isWatchError(error) ? error.status?.code : error;
  }
};

/** The words with which something is refused. */
const words = (act: () => unknown): unknown => {
  try {
    return act();
  } catch (error) {
    return isWatchError(error) ? error.status?.message : error;
  }
};

describe('paths', () => {
  const of = (path: string): unknown => {
    const read = readPath(path);
    if (!read.isResource) return read.segments.join(' ');
    const { apiVersion, plural, namespace, name, subresource, forcedWatch } = read;
    return [apiVersion, plural, namespace, name, subresource, forcedWatch];
  };

  test.each([
    ['/api/v1/configmaps', ['v1', 'configmaps', undefined, undefined, undefined, false]],
    ['/api/v1/namespaces', ['v1', 'namespaces', undefined, undefined, undefined, false]],
    ['/api/v1/namespaces/a', ['v1', 'namespaces', undefined, 'a', undefined, false]],
    ['/api/v1/namespaces/a/status', ['v1', 'namespaces', undefined, 'a', 'status', false]],
    ['/api/v1/namespaces/a/finalize', ['v1', 'namespaces', undefined, 'a', 'finalize', false]],
    ['/api/v1/namespaces/a/configmaps', ['v1', 'configmaps', 'a', undefined, undefined, false]],
    ['/api/v1/namespaces/a/configmaps/b', ['v1', 'configmaps', 'a', 'b', undefined, false]],
    ['/api/v1/namespaces/a/configmaps/b/', ['v1', 'configmaps', 'a', 'b', undefined, false]],
    ['/apis/g.io/v1/orders/b/status', ['g.io/v1', 'orders', undefined, 'b', 'status', false]],
    ['/apis/g.io/v1/watch/orders', ['g.io/v1', 'orders', undefined, undefined, undefined, true]],
    ['/apis/g.io/v1/watch/namespaces/x/orders/y', ['g.io/v1', 'orders', 'x', 'y', undefined, true]],
    ['/api/v1/watch', ['v1', 'watch', undefined, undefined, undefined, false]],
    ['/api/v1/configmaps/a%2Eb', ['v1', 'configmaps', undefined, 'a.b', undefined, false]],
    ['/api', 'api'],
    ['/apis/g.io/v1', 'apis g.io v1'],
    ['/healthz', 'healthz'],
  ])('%s', (path, expected) => {
    expect(of(path)).toEqual(expected);
  });

  test.each([
    ['', 400],
    ['api/v1/configmaps', 400],
    ['/api/v1//configmaps', 404],
    ['/api/v1/configmaps/..', 400],
    ['/api/v1/configmaps/%2e%2E', 400],
    ['/api/v1/configmaps/a%2Fb', 400],
    ['/api/v1/configmaps/a%5Cb', 400],
    ['/api/v1/configmaps/a%00b', 400],
    ['/api/v1/configmaps/a%', 400],
    ['/api/v1/configmaps/%ff', 400],
    ['/api/v1/namespaces/a/configmaps/b/status/more', 404],
    [`/api/v1/configmaps/${'a'.repeat(513)}`, 400],
    [`/${'a/'.repeat(30)}`, 404],
  ])('%s is %i', (path, code) => {
    expect(codeOf(() => readPath(path))).toBe(code);
  });

  test.each([
    ['/api/v1/configmaps/a', ['', 'v1', 'v1']],
    ['/apis/g.io/v1beta1/orders', ['g.io', 'v1beta1', 'g.io/v1beta1']],
  ])('%s has group and version', (path, [group, version, apiVersion]) => {
    expect(readPath(path)).toMatchObject({ isResource: true, group, version, apiVersion });
  });

  test('the longest path and the longest segment', () => {
    const name = 'a'.repeat(512);
    expect(readPath(`/api/v1/configmaps/${name}`)).toMatchObject({ name });
    expect(readPath(`/api/v1/configmaps/${'%61'.repeat(512)}`)).toMatchObject({ name });
    expect(codeOf(() => readPath(`/api/v1/configmaps/${'%61'.repeat(512)}a`))).toBe(404);
    expect(readPath(`/x${'/x'.repeat(11)}`)).toEqual({ isResource: false, segments: Array(12).fill('x') });
    expect(codeOf(() => readPath(`/x${'/x'.repeat(12)}`))).toBe(404);
  });

  test.each([
    ['x', 'the URL has no path'],
    ['/api/v1/configmaps/%', 'the path of the URL is not encoded correctly'],
    ['/api/v1/configmaps/.', 'the path of the URL has a segment that cannot be a name'],
    ['/api/v1/configmaps/a/b/c', 'the server could not find the requested resource'],
    ['//', 'the server could not find the requested resource'],
  ])('of %s it is said: %s', (path, message) => {
    expect(words(() => readPath(path))).toBe(message);
  });

  test('of an absolute target the path counts, whatever the scheme and host; of what only looks like one, all', () => {
    for (const host of ['http://host', 'HTTPS://host:1', 'a+b-c.1://host'])
      expect(splitTarget(`${host}/a/b://c?d=e://f`)).toEqual({ path: '/a/b://c', search: 'd=e://f' });
    expect(splitTarget('http://host?a')).toEqual({ path: '', search: 'a' });
    expect(splitTarget('http://host#a')).toEqual({ path: '', search: '' });
    expect(splitTarget('/x/http://host/a')).toEqual({ path: '/x/http://host/a', search: '' });
    expect(splitTarget('/a?b#c\nd')).toEqual({ path: '/a', search: 'b' });
    expect(splitTarget('http://host/a/')).toEqual({ path: '/a/', search: '' });
    expect(splitTarget('1://host/a')).toEqual({ path: '1://host/a', search: '' });
    expect(splitTarget('1a://host/b')).toEqual({ path: '1a://host/b', search: '' });
  });

  test('a target is split at its first question mark; of an absolute one the path counts', () => {
    expect(splitTarget('/a?b?c')).toEqual({ path: '/a', search: 'b?c' });
    expect(splitTarget('http://host:1/a?b')).toEqual({ path: '/a', search: 'b' });
    expect(splitTarget('/a#b')).toEqual({ path: '/a', search: '' });
  });

  test('any text is a path or a refusal of 400 or 404, and no segment leads out of its place', () => {
    const text = fc.oneof(
      fc.string(),
      fc.webPath(),
      fc.string({ unit: fc.constantFrom('/', '.', '%', '2', 'e', 'F', 'a', '\\', '\0') }),
    );
    fc.assert(
      fc.property(text, (rest) => {
        const path = `/api/v1/${rest}`;
        const code = codeOf(() => readPath(path));
        expect([200, 400, 404]).toContain(code);
        if (code !== 200) return;
        const { name = 'a', namespace = 'a', plural } = readPath(path) as ResourcePath;
        for (const each of [name, namespace, plural ?? 'a']) expect(each).not.toMatch(/^\.{1,2}$|[/\\\0]/);
      }),
    );
  });

  test.each([
    ['GET', undefined, false, 'list'],
    ['GET', 'a', false, 'get'],
    ['GET', 'a', true, 'watch'],
    ['HEAD', 'a', false, 'get'],
    ['POST', undefined, false, 'create'],
    ['POST', 'a', false, undefined],
    ['PUT', 'a', false, 'update'],
    ['PUT', undefined, false, undefined],
    ['PATCH', 'a', false, 'patch'],
    ['PATCH', undefined, false, undefined],
    ['DELETE', 'a', false, 'delete'],
    ['DELETE', undefined, false, 'deletecollection'],
    ['TRACE', 'a', false, undefined],
  ])('%s of %s, watch %s: %s', (method, name, isWatch, verb) => {
    expect(toVerb(method, { name }, isWatch)).toBe(verb);
  });
});

describe('flags and numbers', () => {
  test.each([
    [null, undefined],
    ['', true],
    ['true', true],
    ['1', true],
    ['yes', true],
    ['0', false],
    ['false', false],
    ['FALSE', false],
    ['False', false],
  ])('the flag %j is %s', (text, expected) => {
    expect(readFlag(text)).toBe(expected);
  });

  test.each([
    ['00', true],
    ['0x', true],
    ['x0', true],
    ['falsely', true],
    ['a false', true],
  ])('the flag %j is %s', (text, expected) => {
    expect(readFlag(text)).toBe(expected);
  });

  test.each([
    [null, 0],
    ['', 0],
    ['0', 0],
    ['9'.repeat(15), 999_999_999_999_999],
    ['1 ', 'refused'],
    ['1.5', 'refused'],
    ['12', 12],
    ['-1', 'refused'],
    ['1e3', 'refused'],
    [' 1', 'refused'],
    ['0x1', 'refused'],
    ['9'.repeat(16), 'refused'],
  ])('the number %j is %s', (text, expected) => {
    if (expected === 'refused') expect(codeOf(() => readCount('limit', text))).toBe(400);
    else expect(readCount('limit', text)).toBe(expected);
  });

  test('what is wrong with a number is said with its name', () => {
    expect(words(() => readCount('limit', 'x\n'))).toBe(
      'limit: Invalid value: "x.": expected a whole number that is not negative',
    );
  });

  test('a query has each parameter at its place', () => {
    const query = {
      watch: '1',
      resourceVersion: '2',
      resourceVersionMatch: 'Exact',
      sendInitialEvents: '0',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '3',
      labelSelector: 'a',
      fieldSelector: 'b',
      limit: '4',
      continue: 'c',
    };
    const numbers = { timeoutSeconds: 3, limit: 4 };
    const flags = { watch: true, sendInitialEvents: false, allowWatchBookmarks: true };
    expect(readListQuery(new URLSearchParams(query))).toEqual({ ...query, ...numbers, ...flags });
    const none = { ...NONE, watch: false, sendInitialEvents: undefined, allowWatchBookmarks: false, timeoutSeconds: 0, limit: 0 };
    const texts = { resourceVersion: '', resourceVersionMatch: '', labelSelector: '', fieldSelector: '', continue: '' };
    expect(readListQuery(new URLSearchParams())).toEqual({ ...none, ...texts });
    expect(readListQuery(new URLSearchParams('watch=0')).watch).toBe(false);
    expect(readListQuery(new URLSearchParams('watch=0'), true).watch).toBe(true);
    expect(readListQuery(new URLSearchParams(), true).watch).toBe(true);
  });

  test('options in process are the same parameters', () => {
    const common = {
      resourceVersion: '2',
      resourceVersionMatch: 'Exact',
      timeoutSeconds: 3,
      labelSelector: 'a',
      fieldSelector: 'b',
    } as const;
    expect(fromListOptions({})).toEqual(NONE);
    expect(fromListOptions({ ...common, limit: 4, continue: 'c' })).toEqual({ ...NONE, ...common, limit: 4, continue: 'c' });
    expect(fromWatchOptions({})).toEqual({ ...NONE, watch: true });
    expect(fromWatchOptions({ ...common, allowWatchBookmarks: true })).toEqual({
      ...{ ...NONE, ...common },
      watch: true,
      allowWatchBookmarks: true,
    });
    const initial = { watch: true, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' };
    expect(fromWatchOptions({ sendInitialEvents: true })).toEqual({ ...NONE, ...initial, allowWatchBookmarks: true });
    expect(fromWatchOptions({ sendInitialEvents: true, allowWatchBookmarks: false, resourceVersionMatch: 'Exact' })).toEqual({
      ...{ ...NONE, ...initial },
      resourceVersionMatch: 'Exact',
    });
    const later = { ...NONE, watch: true, resourceVersionMatch: 'NotOlderThan', sendInitialEvents: false };
    expect(fromWatchOptions({ sendInitialEvents: false })).toEqual(later);
  });

  test.each([
    ['resourceVersion', 7],
    ['resourceVersionMatch', 7],
    ['labelSelector', {}],
    ['fieldSelector', null],
    ['continue', 7],
  ])('the option %s that is no text is refused by name', (name, value) => {
    const message = new RegExp(`^${name}: .*a string`);
    expect(() => fromListOptions({ [name]: value } as never)).toThrow(message);
    if (name !== 'continue') expect(() => fromWatchOptions({ [name]: value } as never)).toThrow(message);
  });

  test('options that belong to the other are refused, and so are numbers that are none', () => {
    expect(() => fromListOptions({ sendInitialEvents: true } as never)).toThrow('sendInitialEvents');
    expect(() => fromWatchOptions({ limit: 1 } as never)).toThrow('limit');
    for (const wrong of [-1, 1.5, Number.NaN, Infinity, '1x', null]) {
      expect(words(() => fromListOptions({ limit: wrong as number }))).toContain('limit: Invalid value');
      expect(words(() => fromWatchOptions({ timeoutSeconds: wrong as number }))).toContain('timeoutSeconds: Invalid value');
    }
  });

  test('of parameters that repeat, the first counts', () => {
    expect(readListQuery(new URLSearchParams('resourceVersion=1&resourceVersion=2')).resourceVersion).toBe('1');
  });
});

const NONE = readListQuery(new URLSearchParams());
const check = (given: Partial<ListParameters>): ListParameters =>
  checkedParameters({ ...NONE, ...given }, { maxSelectorLength: 100 });

/** An obviously right model of what fits together: upstream's sentences, one by one. */
function isValid({
  watch,
  resourceVersion,
  resourceVersionMatch: match,
  continue: next,
  sendInitialEvents,
}: ListParameters): boolean {
  const rules = watch
    ? [
        sendInitialEvents === undefined || match === 'NotOlderThan',
        match === '' || sendInitialEvents !== undefined,
        match === '' || match === 'NotOlderThan',
        // A watch without a version means the match too, so `continue` is refused there as well: a kube-apiserver does so.
        (match === '' && (sendInitialEvents !== undefined || resourceVersion === '7')) || next === '',
      ]
    : [
        match === '' || resourceVersion !== '',
        match === '' || next === '',
        ['', 'Exact', 'NotOlderThan'].includes(match),
        !(match === 'Exact' && resourceVersion === '0'),
        sendInitialEvents === undefined,
      ];
  return rules.every(Boolean);
}

describe('what fits together', () => {
  const table: ListParameters[] = [];
  for (const watch of [true, false])
    for (const resourceVersion of ['', '0', '7'])
      for (const resourceVersionMatch of ['', 'Exact', 'NotOlderThan', 'Other'])
        for (const next of ['', 'token'])
          for (const sendInitialEvents of [undefined, true, false])
            table.push({ ...NONE, watch, resourceVersion, resourceVersionMatch, continue: next, sendInitialEvents });

  test('P7.1: the whole table of watch, version, match, continue and sendInitialEvents', () => {
    expect(table).toHaveLength(144);
    const seen = table.map((given) => codeOf(() => check(given)));
    expect(seen).toEqual(table.map((given) => (isValid(given) ? 200 : 422)));
    expect(seen.filter((code) => code === 200).length).toBeGreaterThan(15);
  });

  test('R7.7: only a watch without version, match and sendInitialEvents gets initial events by default', () => {
    for (const given of table.filter(isValid)) {
      const { watch, resourceVersion, resourceVersionMatch, sendInitialEvents } = given;
      const isLegacy = watch && resourceVersion !== '7' && resourceVersionMatch === '' && sendInitialEvents === undefined;
      expect(check(given)).toEqual(
        isLegacy ? { ...given, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' } : given,
      );
    }
  });

  test('a refusal names each field and why', () => {
    let status: unknown;
    try {
      check({ resourceVersionMatch: 'Other', sendInitialEvents: true });
    } catch (error) {
      status = isWatchError(error) && error.status;
    }
    expect(status).toMatchObject({
      reason: 'Invalid',
      message: expect.stringContaining('ListOptions.meta.k8s.io "" is invalid: ['),
      details: {
        group: 'meta.k8s.io',
        kind: 'ListOptions',
        causes: [
          { reason: 'FieldValueForbidden', field: 'resourceVersionMatch' },
          { reason: 'FieldValueNotSupported', field: 'resourceVersionMatch' },
          { reason: 'FieldValueForbidden', field: 'sendInitialEvents' },
        ],
      },
    });
  });

  test.each(['x', '-1', '1.5', '007', ' 1', '1'.repeat(40)])(
    'FIX7.1: version %j is 400, for a list and for a watch',
    (resourceVersion) => {
      expect(codeOf(() => check({ resourceVersion }))).toBe(400);
      expect(codeOf(() => check({ resourceVersion, watch: true }))).toBe(400);
    },
  );

  test('a version is a decimal number of at most 39 digits, as its message says', () => {
    for (const version of ['', '0', '7', '10', '9'.repeat(39)])
      expect(codeOf(() => checkVersion('resourceVersion', version))).toBe(200);
    expect(words(() => checkVersion('resourceVersion', 'x'))).toBe(
      'resourceVersion: Invalid value: "x": expected a decimal number',
    );
  });

  const FORBIDDEN = 'Forbidden: ';
  test.each([
    [
      { resourceVersionMatch: 'Exact' },
      'resourceVersionMatch',
      `${FORBIDDEN}resourceVersionMatch is forbidden unless resourceVersion is provided`,
    ],
    [
      { resourceVersionMatch: 'Exact', resourceVersion: '1', continue: 'x' },
      'resourceVersionMatch',
      `${FORBIDDEN}resourceVersionMatch is forbidden when continue is provided`,
    ],
    [
      { resourceVersionMatch: 'Other', resourceVersion: '1' },
      'resourceVersionMatch',
      'Unsupported value: "Other": supported values: "Exact", "NotOlderThan", ""',
    ],
    [
      { resourceVersionMatch: 'Exact', resourceVersion: '0' },
      'resourceVersionMatch',
      `${FORBIDDEN}resourceVersionMatch "exact" is forbidden for resourceVersion "0"`,
    ],
    [{ sendInitialEvents: false }, 'sendInitialEvents', `${FORBIDDEN}sendInitialEvents is forbidden for list`],
    [
      { watch: true, sendInitialEvents: true },
      'resourceVersionMatch',
      `${FORBIDDEN}sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`,
    ],
    [
      { watch: true, resourceVersionMatch: 'NotOlderThan' },
      'resourceVersionMatch',
      `${FORBIDDEN}resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`,
    ],
    [
      { watch: true, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', continue: 'x' },
      'resourceVersionMatch',
      `${FORBIDDEN}resourceVersionMatch is forbidden when continue is provided`,
    ],
  ])('%j: %s %s', (given, field, message) => {
    let details: unknown;
    try {
      check(given);
    } catch (error) {
      details = isWatchError(error) && error.status?.details;
    }
    expect(details).toMatchObject({ causes: [{ field, message }] });
  });

  test('of a watch, a match that is not supported is told which is', () => {
    const given = { watch: true, sendInitialEvents: true, resourceVersionMatch: 'Exact' };
    expect(words(() => check(given))).toContain('Unsupported value: "Exact": supported values: "NotOlderThan"]');
  });

  test('what cannot be read is told before what does not fit together, and a version last', () => {
    const unfit = { watch: true, resourceVersionMatch: ',', resourceVersion: 'x' };
    expect(codeOf(() => check({ ...unfit, labelSelector: '=' }))).toBe(400);
    expect(codeOf(() => check({ ...unfit, fieldSelector: 'a' }))).toBe(400);
    expect(codeOf(() => check(unfit))).toBe(422);
    expect(codeOf(() => check({ resourceVersion: 'x' }))).toBe(400);
  });

  test('selectors and tokens are limited before they are parsed', () => {
    expect(words(() => check({ labelSelector: `${'a,'.repeat(50)}a` }))).toContain('expected at most 100 characters, got 101');
    expect(words(() => check({ fieldSelector: `a=${'b'.repeat(99)}` }))).toContain('expected at most 100 characters, got 101');
    expect(codeOf(() => check({ continue: 'a'.repeat(4_097) }))).toBe(400);
    expect(codeOf(() => check({ labelSelector: `${'a,'.repeat(49)}aa`, continue: 'a'.repeat(4_096) }))).toBe(200);
    expect(codeOf(() => check({ fieldSelector: `a=${'b'.repeat(98)}` }))).toBe(200);
    expect(words(() => check({ labelSelector: 'a'.repeat(101) }))).toBe(
      'labelSelector: expected at most 100 characters, got 101',
    );
    expect(words(() => check({ fieldSelector: 'a'.repeat(102) }))).toBe(
      'fieldSelector: expected at most 100 characters, got 102',
    );
    expect(words(() => check({ continue: 'a'.repeat(4_097) }))).toBe('continue: the token is too long');
  });
});

describe('Accept', () => {
  test('is ranked by q, then by place; q=0 excludes', () => {
    const types = (header: string | undefined): string[] => readAccept(header).map(({ type }) => type);
    expect(types('a/b;q=0.1, c/d, e/f;q=0, G/H')).toEqual(['c/d', 'g/h', 'a/b']);
    expect(types(undefined)).toEqual(['*/*']);
    expect(types('  ')).toEqual(['*/*']);
    expect(readAccept('application/json;as=Table;g="meta.k8s.io"')[0]?.parameters).toEqual(
      new Map([
        ['as', 'Table'],
        ['g', 'meta.k8s.io'],
      ]),
    );
  });

  test('parameters are read without their spaces and quotes; a clause without a type is none, nor is a quality that is no number', () => {
    const [first, ...others] = readAccept(' Text/A ; AS = "B;c ; G=d;;x, ;q=1, text/b;q=x, text/c;q=2');
    expect(first?.type).toBe('text/c');
    expect(others.map(({ type }) => type)).toEqual(['text/a', 'text/b']);
    expect(others[0]?.parameters).toEqual(
      new Map([
        ['as', '"B'],
        ['c', ''],
        ['g', 'd'],
        ['', ''],
        ['x', ''],
      ]),
    );
    expect(readAccept('a/b;x="y"z;w=z"y"')[0]?.parameters).toEqual(
      new Map([
        ['x', '"y"z'],
        ['w', 'z"y"'],
      ]),
    );
    expect(readAccept('a/b;=x')[0]?.parameters).toEqual(new Map([['', 'x']]));
    expect(readAccept('a/b; q=0.5')[0]?.parameters).toEqual(new Map());
    expect(readAccept(Array.from({ length: 40 }, (_, at) => `a/${at}`).join()).length).toBe(32);
  });

  test.each([
    ['application/json', true],
    ['application/*', true],
    ['*/*', true],
    ['application/yaml', false],
    ['text/*', false],
  ])('%s includes JSON: %s', (header, expected) => {
    expect(readAccept(header).map(isJson)).toEqual([expected]);
  });

  test('conversions have three parameters, of which any may be absent', () => {
    const of = (header: string): unknown => readAccept(header).map(conversionOf)[0];
    expect(of('application/json')).toBeUndefined();
    expect(of('application/json;as=Table;g=meta.k8s.io;v=v1')).toEqual({ kind: 'Table', group: 'meta.k8s.io', version: 'v1' });
    expect(of('application/json;as=Table')).toEqual({ kind: 'Table', group: '', version: '' });
    expect(of('application/json;g=a')).toEqual({ kind: '', group: 'a', version: '' });
    expect(of('application/json;v=v1')).toEqual({ kind: '', group: '', version: 'v1' });
  });

  test.each([
    [undefined, ''],
    ['', ''],
    [' Application/JSON ; charset=utf-8', 'application/json'],
  ])('the media type of %j is %j', (header, expected) => {
    expect(mediaType(header)).toBe(expected);
  });

  test('never fails', () => {
    fc.assert(
      fc.property(fc.string(), (header) => {
        for (const clause of readAccept(header)) isJson(clause);
        mediaType(header);
      }),
    );
  });
});

describe('JSON over a wire', () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

  test('its depth is that of the parsed value', () => {
    const depth = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(atOnce(extentOf(bytes(JSON.stringify(value)))).depth).toBe(depth(value));
      }),
    );
  });

  test('what is too deep, not UTF-8 or not JSON is 400', () => {
    expect(codeOf(() => parseJson(bytes('['.repeat(MAX_DEPTH) + ']'.repeat(MAX_DEPTH))))).toBe(200);
    expect(codeOf(() => parseJson(bytes('['.repeat(MAX_DEPTH + 1) + ']'.repeat(MAX_DEPTH + 1))))).toBe(400);
    expect(codeOf(() => parseJson(bytes('['.repeat(3_000_000))))).toBe(400);
    expect(codeOf(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22)))).toBe(400);
    expect(codeOf(() => parseJson(bytes('')))).toBe(400);
  });

  test('is said to be what it is', () => {
    expect(words(() => parseJson(bytes('['.repeat(MAX_DEPTH + 1))))).toBe('the body is nested deeper than 128 levels');
    expect(words(() => parseJson(bytes('{')))).toBe('the body is not JSON in UTF-8');
    expect(words(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22)))).toBe('the body is not JSON in UTF-8');
  });

  test.each([
    ...['9007199254740993', '-9007199254740993', '1152921504606846976', '12345678901234567890', '9223372036854775807'],
    ...['1e309', '-1e400', `1${'0'.repeat(309)}`, '9999999999999999e295'],
  ])('the number %s, which would come out as another one, is refused wherever it is', (number) => {
    const message = `the number ${number.slice(0, 40)} cannot be kept as it is: send it as a string`;
    const texts = [number, `[${number}]`, `{"a":${number}}`, `{"a\\"":"1,\\\\","b":[1,{"c":"\\\\\\"" , "d":${number} }]}`];
    for (const text of texts)
      expect(
        words(() => parseJson(bytes(text))),
        text,
      ).toBe(message);
    const kept = { a: number, [number]: `"${number}\\` };
    expect(parseJson(bytes(JSON.stringify(kept)))).toEqual(kept);
  });

  test('all other numbers are taken: those of JavaScript as it writes them, and fractions with any digits', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.maxSafeInteger(), (a, b) => {
        expect(String(parseJson(bytes(JSON.stringify([a, b, '1234567890123456']))))).toBe(`${a},${b},1234567890123456`);
      }),
    );
    const taken =
      '[999999999999999999999,9007199254740992,-0,0.10000000000000000555,1e308,1.0E+002,1e-400,1000000000000000000000000]';
    expect(parseJson(bytes(taken))).toEqual([1e21, 2 ** 53, -0, 0.1, 1e308, 100, 0, 1e24]);
  });

  test('the depth ends at the limit, and texts have none', () => {
    expect(atOnce(extentOf(bytes('[[[[]]]]'), 2)).depth).toBe(3);
    // Escapes, ends of texts, and members around the ends of pieces.
    for (let at = 65_520; at < 65_540; at++) {
      const text = JSON.stringify([{ a: `${'x'.repeat(at)}\\"{[:`, b: '"', c: [{}] }, { d: 1 }]);
      expect(atOnce(extentOf(bytes(text)))).toMatchObject({ depth: 4, members: 4, containers: 5, widest: 3 });
    }
    expect(atOnce(extentOf(bytes('"[[{{"'))).depth).toBe(0);
    expect(atOnce(extentOf(bytes('["\\"[[", "\\\\", []]'))).depth).toBe(2);
    expect(atOnce(extentOf(bytes('[{}, {"a": []}, []]'))).depth).toBe(3);
  });

  test('a member __proto__ is a member, and nobody else gets one', () => {
    const value = parseJson(bytes('{"__proto__":{"polluted":true},"a":1}')) as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(['__proto__', 'a']);
    expect(value.polluted).toBeUndefined();
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
