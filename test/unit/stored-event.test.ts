// Events about objects that are stored already. test/property/reparse.property.test.ts compares with JSON.parse.
import { describe, expect, it, vi } from 'vitest';
import { eventCodec } from '../../src/cache/http/answer.ts';
import { Reparser, readStored } from '../../src/cache/http/reparse.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const read = (text: string, known: unknown): unknown => new Reparser(bytes(text)).value(known, 0);
const event = (object: unknown, type = 'MODIFIED'): string => JSON.stringify({ type, object });

const POD = {
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: { name: 'a', namespace: 'n', resourceVersion: '1', labels: { app: 'x' } },
  spec: { containers: [{ name: 'main', args: ['-v'] }, { name: 'other' }], priority: 0, hostNetwork: false, volumes: null },
};
type Pod = typeof POD;

describe('an event about a stored object', () => {
  const readPod = (object: unknown): Pod => readStored(bytes(event(object)), () => POD)?.object as Pod;

  it('gives the same object again if nothing differs', () => {
    expect(readPod(structuredClone(POD))).toBe(POD);
  });

  it.each<[string, unknown, string[]]>([
    ['what is stored', structuredClone(POD), []],
    ['another number', { ...POD, spec: { ...POD.spec, priority: 12 } }, ['12']],
    ['another literal', { ...POD, spec: { ...POD.spec, hostNetwork: true } }, ['true']],
    ['a text with an escape', { ...POD, kind: 'a"b' }, ['"a\\"b"']],
    ['a short text', { ...POD, kind: 'Pods' }, []],
    ['a long text', { ...POD, kind: 'p'.repeat(200) }, [`"${'p'.repeat(200)}"`]],
  ])('parses of %s only what is new', (_, object, parsed) => {
    const frame = bytes(event(object));
    const parse = vi.spyOn(JSON, 'parse');
    const got = readStored(frame, () => POD)?.object;
    const texts = parse.mock.calls.map(([text]) => text);
    parse.mockRestore();
    expect([got, texts]).toEqual([object, parsed]);
  });

  it.each([0, 7, 10, 99, 123_456_789, 9_007_199_254_740])('knows the number %i again without parsing it', (number) => {
    const parse = vi.spyOn(JSON, 'parse');
    const known = { first: number, list: [number, number], last: number };
    const same = read(`{"first":${number},"list":[${number},${number}],"last":${number}}`, known);
    const calls = parse.mock.calls.length;
    parse.mockRestore();
    expect([same === known, calls]).toEqual([true, 0]);
    for (const text of [`${number}.0`, `${number}e0`, `${number}E0`]) expect(read(`[${text}]`, [number])).toEqual([number]);
    expect(() => read(`[0${number}]`, [number])).toThrow(SyntaxError);
  });

  it('makes only what differs', () => {
    const next = structuredClone(POD);
    next.metadata.resourceVersion = '2';
    (next.spec.containers[1] as { name: string }).name = 'changed';
    const object = readPod(next);
    expect(object).toStrictEqual(next);
    expect(object.metadata.labels).toBe(POD.metadata.labels);
    expect(object.spec.containers[0]).toBe(POD.spec.containers[0]);
    expect(POD.metadata.resourceVersion).toBe('1');
  });

  it('shares what stays where members come, go, and change places', () => {
    const { labels, ...metadata } = POD.metadata;
    const next = { ...POD, spec: { added: 1, ...POD.spec }, metadata: { labels, ...metadata } };
    const object = readPod(next);
    expect(JSON.stringify(object)).toBe(JSON.stringify(next));
    expect(object.spec.containers).toBe(POD.spec.containers);
    expect(object.metadata.labels).toBe(POD.metadata.labels);
  });

  it('asks for it by name and namespace, wherever those stand', () => {
    const asked: string[][] = [];
    const ask = (object: unknown): unknown => readStored(bytes(event(object)), (...names) => void asked.push(names));
    expect(ask(POD)).toBeUndefined();
    ask({ spec: { metadata: { name: 'no' }, x: '"}\\' }, metadata: { labels: { name: 'no' }, namespace: 'n\u00e9', name: 'b' } });
    ask({ metadata: { name: 'c' } });
    expect(asked).toEqual([
      ['a', 'n'],
      ['b', 'né'],
      ['c', ''],
    ]);
  });

  it.each([
    ['without a name', { metadata: {} }],
    ['without metadata', {}],
    ['that is no object', 'x'],
    ['whose metadata is no object', { metadata: 1 }],
  ])('leaves one to others %s', (_, object) => {
    expect(
      readStored(bytes(event(object)), () => {
        throw new Error('asked');
      }),
    ).toBeUndefined();
  });

  it.each([
    ['white space', event(POD).replace(',', ', ')],
    ['another member first', `{"object":${JSON.stringify(POD)},"type":"ADDED"}`],
    ['a third member', event(POD).replace(/\}$/, ',"x":1}')],
    ['more behind it', `${event(POD)} `],
    ['no type', event(POD).replace('"MODIFIED"', '1')],
    ['no end', event(POD).slice(0, -1)],
    ['a member __proto__', event(POD).replace('"kind"', '"__proto__"')],
  ])('leaves one to others with %s', (_, frame) => {
    expect(readStored(bytes(frame), () => POD)).toBeUndefined();
  });

  it('lets an error of the lookup through', () => {
    const error = new RangeError('mine');
    const lookup = (): never => {
      throw error;
    };
    expect(() => readStored(bytes(event(POD)), lookup)).toThrow(error);
  });
});

describe('reading what is known', () => {
  it.each<[string, unknown, unknown]>([
    ['0', -0, 0],
    ['-0', 0, -0],
    ['10', 1, 10],
    ['1.5', 1, 1.5],
    ['1E2', 1, 100],
    ['1e2', 100, 100],
    ['9007199254740993', 9007199254740992, 9007199254740992],
    ['true', false, true],
    ['null', 'null', null],
    ['"a"', 'ab', 'a'],
    ['"\\u0061"', 'a', 'a'],
    ['"a\\"\\\\"', 'a"\\', 'a"\\'],
    ['"\\n"', '\\n', '\n'],
    ['"\\b"', '\\b', '\b'],
    ['{"constructor":1}', {}, { constructor: 1 }],
    ['{"toString":{}}', { a: 1 }, { toString: {} }],
    ['{"a":1,"a":2}', { a: 1 }, { a: 2 }],
    ['{"\\u0061":1}', { a: 1 }, { a: 1 }],
    ['[]', [1], []],
    ['[1,[2]]', [1], [1, [2]]],
    ['{}', [], {}],
    ['[]', {}, []],
    [`"${'x'.repeat(500)}"`, '', 'x'.repeat(500)],
  ])('%s beside %j', (text, known, expected) => {
    expect(read(text, known)).toStrictEqual(expected);
  });

  it.each<[string, unknown]>([
    ['{"a":01}', { a: 1 }],
    ['{"a":00}', { a: 0 }],
    ['{"a":truex}', { a: true }],
    ['{"a":"\t"}', { a: '\t' }],
    ['{"a" "b"}', { a: 'b' }],
    ['{"a":1]', { a: 1 }],
    ['[1,]', [1]],
    ['[1}', [1]],
    ['{"a":1,}', { a: 1 }],
    ['{"b":1,}', { a: 1 }],
    ['{,"a":1}', { a: 1 }],
    ['{"a":}', { a: 1 }],
    ['[[1}]', []],
    ['"a', 'a'],
    ['"a', 'b'],
    ['', 1],
    ['{"a":\ufeff1}', { a: 0 }],
    ['\ufeff1', 0],
  ])('refuses %s beside %j', (text, known) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(() => read(text, known)).toThrow();
  });

  it('reads each byte a few times, however deep the differences are', () => {
    const nested = (name: string): string => {
      const [before, after] = ['{"a":', `,"${name}":1}`];
      return `${before.repeat(90)}{}${after.repeat(90)}`;
    };
    // Restarting an object for each difference would take 2^90 steps.
    expect(read(nested('y'), JSON.parse(nested('x')))).toEqual(JSON.parse(nested('y')));
    const fewer = nested('x').replaceAll(',"x":1', '');
    expect(read(fewer, JSON.parse(nested('x')))).toEqual(JSON.parse(fewer));
    expect(read(nested('x'), JSON.parse(fewer))).toEqual(JSON.parse(nested('x')));
  });

  it('knows members that were named __proto__', () => {
    const known = JSON.parse('{"__proto__":1,"a":1}');
    expect(read('{"__proto__":1,"a":1}', known)).toBe(known);
    for (const text of ['{"__proto__":2,"a":1}', '{"__proto__":{"a":2},"a":1}', '{"__proto__":1}', '{"__proto__":1,"b":1}']) {
      let value: unknown;
      try {
        value = read(text, known);
      } catch {
        continue; // left to others
      }
      expect(value).toStrictEqual(JSON.parse(text));
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    }
  });

  it('does not run out of stack', () => {
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    let depth = 0;
    for (let value = read(deep, JSON.parse(deep)); Array.isArray(value); value = value[0]) depth++;
    expect(depth).toBe(5_000);
    const hostile = `${'['.repeat(1_000_000)}`;
    expect(readStored(bytes(event(POD).replace('"Pod"', hostile)), () => POD)).toBeUndefined();
  });
});

describe('the codec of a watch', () => {
  const codec = eventCodec<Pod>((name) => (name === 'a' ? POD : undefined));

  it('reads with what is stored, and without it', () => {
    expect(codec.decode(bytes(event(POD)))?.object).toBe(POD);
    expect(codec.decode(bytes(event({ metadata: { name: 'b' } }, 'ADDED')))).toEqual({
      type: 'ADDED',
      object: { metadata: { name: 'b' } },
    });
  });

  it('asks for less behind many new objects, until one is stored', () => {
    const asked: string[] = [];
    const own = eventCodec<Pod>((name) => {
      asked.push(name);
      return name === 'a' ? POD : undefined;
    });
    const fresh = (count: number): void => {
      for (let i = 0; i < count; i++) own.decode(bytes(event({ metadata: { name: `new-${i}` } }, 'ADDED')));
    };
    fresh(200);
    expect(asked.length).toBeLessThan(25);
    let made = 0;
    while (own.decode(bytes(event(POD)))?.object !== POD) made++;
    expect(made).toBeLessThan(16);
    asked.length = 0;
    for (let i = 0; i < 10; i++) expect(own.decode(bytes(event(POD)))?.object).toBe(POD);
    expect(asked.length).toBe(10);
  });

  it('refuses the same as ever', () => {
    expect(() => codec.decode(bytes(event(POD, 'MOVED')))).toThrow('unknown type');
    expect(() => codec.decode(bytes(event(POD).replace('false', 'fals')))).toThrow('not JSON');
  });
});
