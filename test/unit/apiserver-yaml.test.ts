import { describe, expect, it } from 'vitest';
import * as yaml from 'yaml';
import { choosePresentation } from '../../src/apiserver/http/presentation.ts';
import { PiecesSource } from '../../src/apiserver/http/sources.ts';
import { yamlOf } from '../../src/apiserver/http/yaml-writer.ts';
import type { FieldPaths } from '../../src/apiserver/request/json.ts';
import { looksLikeJson, readYaml } from '../../src/apiserver/request/yaml.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { ORDER, ORDERS_PATH, rig } from './apiserver-rig.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (text: string): unknown => atOnce(readYaml(bytesOf(text), { yaml }));

/** The members that a text is told to have more than once. */
function duplicatesOf(text: string): string[] {
  let found: string[] = [];
  const again = (duplicates: FieldPaths): void => {
    found = duplicates.told;
  };
  atOnce(readYaml(bytesOf(text), { yaml, again }));
  return found;
}

/** Objects within objects, of so many levels together, though each text has two. */
const deepByAliases = (levels: number): string =>
  Array.from({ length: levels - 1 }, (_, at) => `a${at}: &a${at} ${at === 0 ? '{}' : `{b: *a${at - 1}}`}`).join('\n');

describe('YAML bodies', () => {
  it.each([
    [
      'a: yes\nb: Off\nc: n\nd: Null\ne: ~\nf:\ng: "yes"\nh: yesno',
      { a: true, b: false, c: false, d: null, e: null, f: null, g: 'yes', h: 'yesno' },
    ],
    ['[0777, 0o17, 0x1F, 0b11, 08, 1_000, -5, +5, 1.5, 1e3, .5, 1.]', [511, 15, 31, 3, 8, 1000, -5, 5, 1.5, 1000, 0.5, 1]],
    [
      '[!!str 5, ! 5, !!int 5, !!float 5, !!bool on, !own 5, 2001-01-01, 10:30]',
      ['5', '5', 5, 5, true, '5', '2001-01-01', '10:30'],
    ],
    ['1: a\ntrue: b\n1.5: c', { 1: 'a', true: 'b', 1.5: 'c' }],
    [
      'a: &x {b: [1]}\nc: *x\nd: {<<: *x, e: 1}\nf: {b: 2, <<: [*x]}',
      { a: { b: [1] }, c: { b: [1] }, d: { b: [1], e: 1 }, f: { b: 2 } },
    ],
    [
      "a: |\n  text\n  more\nb: >-\n  one\n  line\nc: \"\\u0041\"\nd: 'it''s'",
      { a: 'text\nmore\n', b: 'one line', c: 'A', d: "it's" },
    ],
    ['# only\n--- # begins\na: 1\n---\nb: 2', { a: 1 }],
    ['%YAML 1.1\n---\na: 1\n...\n', { a: 1 }],
    ['', null],
    ['# nothing', null],
    ['[a: 1, b]', [{ a: 1 }, 'b']],
    ['"<<": 1', { '<<': 1 }],
  ])('reads %j', (text, value) => {
    expect(read(text)).toEqual(value);
  });

  it('keeps a member __proto__', () => {
    expect(Object.keys(read('__proto__: {a: 1}\nb: &x {__proto__: 1}\nc: *x') as object)).toEqual(['__proto__', 'b', 'c']);
    expect(({} as Record<string, unknown>).a).toBeUndefined();
  });

  it('takes what is just as deep as JSON may be, by aliases', () => {
    expect(Object.keys(read(deepByAliases(128)) as object)).toHaveLength(127);
  });

  it('copies what an alias stands for', () => {
    const { a, b } = read('a: &x {c: 1}\nb: *x') as { a: object; b: object };
    expect(a).toEqual(b);
    expect(a).not.toBe(b);
  });

  it.each([
    ['a: [', 'YAML: line 1: '],
    ['a: 1\n b: 2', 'YAML: line 1: '],
    ['a: b: c', 'YAML: line 1: '],
    ['a: "x', 'YAML: line 1: '],
    ['[a\nb: 1', 'YAML: line '],
    ['\tb: 1', 'YAML: line 1: '],
    ['a: *b', 'YAML: unknown anchor "b"'],
    ['a: &b [*b]', 'YAML: unknown anchor "b"'],
    ['? [a]\n: b', 'YAML: a key is not a string'],
    ['~: b', 'YAML: a key is not a string'],
    ['a: 9007199254740993', 'the number 9007199254740993 cannot be kept'],
    ['a: .inf', 'the number .inf cannot be kept'],
    ['a: 1e999', 'the number 1e999 cannot be kept'],
    ['a: !!int x', 'YAML: "x" is not a valid int'],
    ['a: !!binary eA==', 'YAML: !!binary is not supported'],
    ['<<: 5', 'YAML: only objects can be merged'],
  ])('refuses %j', (text, message) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'REFUSED', message: expect.stringContaining(message) }));
  });

  it('tells the members that occur more than once', () => {
    expect(duplicatesOf('a: 1\nb: [{c: 1, c: 2}]\na: 2\n')).toEqual(['b[0].c', 'a']);
    expect(duplicatesOf('a: 1\nb: 2')).toEqual([]);
  });

  it.each([
    ['deep lists', '['.repeat(200), 'nested deeper'],
    ['deep objects', '{a: '.repeat(200), 'nested deeper'],
    ['deep blocks', '- '.repeat(200), 'nested deeper'],
    ['deep keys', '? '.repeat(200), 'nested deeper'],
    ['unclosed deep keys', '{"a":'.repeat(100_000), 'nested deeper'],
    ['many elements', `[${'1,'.repeat(700_000)}]`, 'exceeds the limit'],
    ['many members', Array.from({ length: 70_000 }, (_, at) => `k${at}: 1`).join('\n'), 'exceeds the limit'],
    ['many comments', `a:\n${'#\n'.repeat(20_000)}  b`, 'lines between two values'],
    ['comments before a document', `${'#\n'.repeat(20_000)}---\na: 1`, ''],
    ['many objects by aliases', `a: &a [{}, {}, {}]\nb: [${'*a,'.repeat(60_000)}]`, 'exceeds the limit'],
    [
      'laughs',
      `a0: &a0 [x, x]\n${Array.from({ length: 40 }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at}, *a${at}]`).join('\n')}`,
      'exceeds',
    ],
    ['what is deep by aliases', deepByAliases(129), 'nested deeper'],
    ['what is deep by aliases in a list', `- - ${deepByAliases(127).replaceAll('\n', '\n    ')}`, 'nested deeper'],
    ['a long block', `a: |\n${'  x\n'.repeat(20_000)}`, 'YAML cannot have a string of more than 65536 characters'],
    ['a long folded text', `a: >\n${'  x\n\n'.repeat(20_000)}`, 'YAML cannot have a string'],
    ['a long text in lines', `a: x\n${'  x\n'.repeat(20_000)}`, 'YAML cannot have a string'],
    ['a long text with escapes', `a: "${'\\n'.repeat(40_000)}"`, 'YAML cannot have a string'],
    ['a long text with quotes', `a: '${"''".repeat(40_000)}'`, 'YAML cannot have a string'],
    ['long texts by aliases', `a: &a ${'x'.repeat(100_000)}\nb:\n${'- *a\n'.repeat(100)}`, 'aliases stand for more'],
  ])('limits %s', (_, text, message) => {
    if (message === '') expect(read(text)).toEqual({ a: 1 });
    else
      expect(() => read(text)).toThrow(expect.objectContaining({ code: 'REFUSED', message: expect.stringContaining(message) }));
  });

  it.each([
    ['block', undefined],
    ['flow', 'FLOW'],
  ] as const)('reads what is large in parts: %s', (_, type) => {
    const big = {
      list: Array.from({ length: 3_000 }, (_, at) => ({
        name: `n${at}`,
        sizes: [at, { at }],
        text: 'a\nb: "c"\n',
        none: null,
        empty: {},
        [`k-${at}`]: [],
      })),
      deep: { deeper: { deepest: Array.from({ length: 2_000 }, (_, at) => [`${at}`, 'x'.repeat(at % 50)]) } },
      last: 'end',
    };
    const document = new yaml.Document(big);
    if (type) (document.contents as unknown as { flow: boolean }).flow = true;
    const text = document.toString({ lineWidth: 100 });
    expect(text.length).toBeGreaterThan(150_000);
    const work = readYaml(bytesOf(text), { yaml });
    let steps = 0;
    for (;;) {
      const { done, value } = work.next();
      if (done) {
        expect(value).toEqual(big);
        break;
      }
      steps++;
    }
    expect(steps).toBeGreaterThan(300);
  });

  it('is as strict about what is large', () => {
    const items = Array.from({ length: 2_000 }, (_, at) => `value-${at}`);
    const broken = items.join(', ').replace('value-1000,', 'value-1000');
    expect(read(`[${items.join(', ')}]`)).toEqual(items);
    expect(read(`[${items.join(', ')},]`)).toEqual(items);
    expect(() => read(`[${items.join(',,')}]`)).toThrow('YAML: line 1');
    expect(() => read(`[,${items.join(',')}]`)).toThrow('YAML: line 1');
    expect(() => read(`["${items.join('" "')}"]`)).toThrow('YAML: line 1');
    expect((read(`[${broken}]`) as unknown[]).length).toBe(1_999);
    expect(() => read(`${items.map((each) => `${each}: 1`).join('\n')}\n bad: 1`)).toThrow('YAML: line 200');
  });

  it('keeps anchors of what is large', () => {
    const items = Array.from({ length: 2_000 }, (_, at) => `  - v${at}`).join('\n');
    const { a, b } = read(`a: &x\n${items}\nb: *x`) as { a: unknown[]; b: unknown[] };
    expect(a.length).toBe(2_000);
    expect(b).toEqual(a);
  });

  it('knows JSON', () => {
    expect([' {', '\n[', 'a', '', '- {'].map((each) => looksLikeJson(bytesOf(each)))).toEqual([true, true, false, false, false]);
  });
});

describe('YAML over HTTP', () => {
  const headers = { 'content-type': 'application/yaml', accept: 'application/yaml' };
  const type = 'apiVersion: example.com/v1, kind: Order';

  it('creates, updates and deletes, and answers in YAML if asked', async () => {
    const { call } = rig();
    const text = `${yaml.stringify(ORDER)}metadata: {name: a}\nspec: {item: "yes", count: 0x10}`;
    const created = await call('POST', ORDERS_PATH, text, headers);
    expect(created.code).toBe(201);
    expect(created.headers.get('content-type')).toBe('application/yaml');
    const order = yaml.parse(created.text) as { metadata: object };
    expect(order).toMatchObject({ kind: 'Order', metadata: { name: 'a' }, spec: { item: 'yes', count: 16 } });
    expect((await call('GET', `${ORDERS_PATH}/a`)).body).toEqual(order);
    expect((await call('PUT', `${ORDERS_PATH}/a`, yaml.stringify({ ...order, spec: { item: 'b' } }), headers)).code).toBe(200);
    const list = yaml.parse((await call('GET', ORDERS_PATH, undefined, headers)).text);
    expect(list).toEqual((await call('GET', ORDERS_PATH)).body);
    expect((await call('GET', `${ORDERS_PATH}?watch=1`, undefined, headers)).code).toBe(406);
    expect((await call('DELETE', `${ORDERS_PATH}/a`, 'propagationPolicy: Background', headers)).code).toBe(200);
    expect((await call('GET', ORDERS_PATH, undefined, headers)).text).toContain('items: []\n');
  });

  it('takes JSON for YAML, and a flow of YAML that looks like JSON', async () => {
    const { call } = rig();
    expect((await call('POST', ORDERS_PATH, JSON.stringify({ ...ORDER, metadata: { name: 'a' } }), headers)).code).toBe(201);
    expect((await call('POST', ORDERS_PATH, `{${type}, metadata: {name: b}}`, headers)).code).toBe(201);
    expect((await call('POST', ORDERS_PATH, `{${type}, metadata: {name: b}`, headers)).code).toBe(400);
    const strict = await call(
      'POST',
      `${ORDERS_PATH}?fieldValidation=Strict`,
      `{${type}, metadata: {name: c, name: d}}`,
      headers,
    );
    expect(strict.code).toBe(400);
    expect(strict.text).toContain('duplicate field');
  });

  it('writes what any reader understands', () => {
    const value = {
      words: [
        'yes',
        'No',
        'null',
        '',
        ' a',
        '1',
        '-1',
        '0x1',
        '1e3',
        '2026-01-01T00:00:00Z',
        'a: b',
        '#',
        'a\nb',
        '\u2028',
        'plain/text.1',
      ],
      nested: [[], {}, [[1]], [{ a: [{ b: null }], c: true }], { e: {} }, -1.5, false],
      'odd key: #': { __proto: 1, '1': 2, on: 3 },
      nothing: null,
    };
    expect(yaml.parse(atOnce(yamlOf(value)), { version: '1.1' })).toEqual(value);
    expect(read(atOnce(yamlOf(value)))).toEqual(value);
    expect(read(atOnce(yamlOf([value])))).toEqual([value]);
  });

  it('writes what indentation would make long as JSON', () => {
    let deep: unknown = Array(200_000).fill(1);
    for (let level = 0; level < 100; level++) deep = [deep];
    const value = { deep };
    const json = JSON.stringify(value);
    expect(atOnce(yamlOf(value))).toBe(`${json}\n`);
    expect(atOnce(yamlOf([value]))).toBe(`- ${json}\n`);
    expect(yaml.parse(`a:\n- ${JSON.stringify({ deep: [[1]] })}\n`)).toEqual({ a: [{ deep: [[1]] }] });
  });

  it('writes a list in pieces', () => {
    const items = [{ apiVersion: 'v1', kind: 'A', list: Array(20_000).fill(1) }] as unknown as KubernetesObject[];
    const { list } = choosePresentation('application/yaml', { subject: 'list', query: new URLSearchParams() } as never);
    const pieces = [...list({ listKind: 'AList', apiVersion: 'v1' } as never, { items, resourceVersion: '1' })];
    expect(pieces.length).toBeGreaterThan(20);
    expect(yaml.parse(Buffer.concat(pieces).toString()).items).toEqual(items);
    let nowMs = 0;
    const pace = { turn: () => undefined, pause: () => undefined };
    const slow = new PiecesSource(pieces, { pace, now: () => (nowMs += 10) });
    const chunks: Uint8Array[] = [];
    for (let chunk = slow.next(); chunk; chunk = slow.next()) chunks.push(chunk as Uint8Array);
    expect(Buffer.concat(chunks)).toEqual(Buffer.concat(pieces));
  });
});
