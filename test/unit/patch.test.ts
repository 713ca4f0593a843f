import { describe, expect, it } from 'vitest';
import { toPatch, toPatchType } from '../../src/apiserver/patch/patch.ts';
import type { PatchType } from '../../src/cache/resource-client.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const [MERGE, JSON_PATCH, STRATEGIC] = ['merge', 'json', 'strategic'] as const;
const kind = { group: '', version: 'v1', kind: 'ConfigMap' };

const applyPatch = (current: object, patch: unknown, terms: Parameters<typeof toPatch>[1]): unknown =>
  atOnce(atOnce(toPatch(patch, terms))(current));

/** The status with which something is refused. */
function refusal(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    if (isWatchError(error, 'REFUSED')) return { code: error.status?.code, reason: error.status?.reason };
    throw error;
  }
  return undefined;
}

/** The words with which something is refused. */
function words(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    if (isWatchError(error, 'REFUSED')) return `${error.status?.code} ${error.status?.message}`;
    throw error;
  }
  return undefined;
}

/** An object in an object, so many times. */
const nested = (levels: number): object => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);

const apply = (type: Exclude<PatchType, 'apply'>, current: object, patch: unknown): unknown => {
  const before = JSON.stringify([current, patch]);
  try {
    return applyPatch(current as Record<string, unknown>, patch, { type, kind });
  } finally {
    expect(JSON.stringify([current, patch])).toBe(before);
  }
};

describe('merge patch', () => {
  // Appendix A of RFC 7386, those whose target and patch are objects.
  it.each([
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    // Upstream's evanphx/json-patch differs from the RFC here.
    ['{"a":[{"b":"c"}]}', '{"a":[{"b":null,"c":[{"d":null,"e":1}]},null]}', '{"a":[{"c":[{"e":1}]},null]}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ])('%s and %s: %s', (current, patch, result) => {
    expect(JSON.stringify(apply(MERGE, JSON.parse(current), JSON.parse(patch)))).toBe(result);
  });

  it('takes lists as they are and directives as names, whatever the kind', () => {
    const current = { metadata: { finalizers: ['a'] } };
    const patch = { metadata: { finalizers: ['b'] }, data: { $patch: 'replace' } };
    expect(apply(MERGE, current, patch)).toEqual(patch);
    const order = { group: 'example.com', version: 'v1', kind: 'Order' };
    expect(applyPatch(current, patch, { type: MERGE, kind: order })).toEqual(patch);
  });

  it('__proto__ and constructor are names like any other', () => {
    const patch = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
    const result = apply(MERGE, {}, patch);
    expect(JSON.stringify(result)).toBe(JSON.stringify(patch));
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
  });

  it('refuses what is no object, and what is nested too deep', () => {
    expect(refusal(() => apply(MERGE, {}, []))).toEqual({ code: 400, reason: 'BadRequest' });
    expect(refusal(() => apply(MERGE, {}, 1))).toEqual({ code: 400, reason: 'BadRequest' });
    const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`);
    expect(refusal(() => applyPatch({}, deep, { type: MERGE, kind }))).toEqual({ code: 400, reason: 'BadRequest' });
  });
});

describe('what a patch may be', () => {
  it('is said of one that is none', () => {
    expect(words(() => apply(MERGE, {}, []))).toBe('400 error decoding patch: a merge patch must be an object');
    expect(words(() => apply(STRATEGIC, {}, null))).toBe('400 error decoding patch: a strategic patch must be an object');
    expect(words(() => apply(JSON_PATCH, {}, {}))).toBe('400 error decoding patch: a JSON patch must be a list of operations');
    const rejected = '422 the server rejected our request due to an error in our request: ';
    expect(words(() => apply(JSON_PATCH, {}, [{ op: 'test', path: '/a', value: 1 }]))).toBe(`${rejected}there is no "a"`);
    expect(words(() => apply(JSON_PATCH, {}, [{ op: 'x' }, 1]))).toBe('400 error decoding patch: operation 1 is not an object');
    expect(words(() => apply(JSON_PATCH, {}, [{ op: [] }]))).toBe('400 error decoding patch: op of operation 0 is not a string');
    expect(words(() => apply(JSON_PATCH, {}, [null]))).toBe(`${rejected}the path of operation 0 is not a JSON pointer`);
    expect(words(() => apply(JSON_PATCH, {}, [{ op: 'add', path: '', value: [] }]))).toBe(
      '422 the result of the patch is not an object',
    );
  });

  it('has a limit in depth, in operations, and in what these copy', () => {
    const deep = '400 the patch is nested more than 200 deep';
    for (const type of [MERGE, STRATEGIC]) {
      expect(apply(type, {}, nested(200))).toEqual(nested(200));
      expect(words(() => apply(type, {}, nested(201)))).toBe(deep);
    }
    expect(words(() => apply(JSON_PATCH, {}, [{ op: 'test', path: '', value: nested(200) }]))).toBe(deep);
    expect(words(() => apply(JSON_PATCH, nested(201), [{ op: 'copy', from: '', path: '/b' }]))).toBe(deep);
    const tests = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '', value: {} }));
    expect(apply(JSON_PATCH, {}, tests.slice(1))).toEqual({});
    expect(words(() => apply(JSON_PATCH, {}, tests))).toBe(
      '413 The allowed maximum operations in a JSON patch is 10000, got 10001',
    );
    const text = { a: 'x'.repeat(2 ** 20 - 2) }; // with its quotes, a third of what may be copied
    const copies = ['/b', '/c', '/d', '/e'].map((path) => ({ op: 'copy', from: '/a', path }));
    expect(Object.keys(apply(JSON_PATCH, text, copies.slice(1)) as object)).toEqual(['a', 'c', 'd', 'e']);
    expect(words(() => apply(JSON_PATCH, text, copies))).toContain('copies more than 3145728 characters');
  });

  it('is read once, and applied as often as it takes', () => {
    const patch = atOnce(toPatch([{ op: 'add', path: '/list/-', value: 1 }], { type: JSON_PATCH, kind }));
    expect([atOnce(patch({ list: [] })), atOnce(patch({ list: [0] }))]).toEqual([{ list: [1] }, { list: [0, 1] }]);
    expect(words(() => atOnce(toPatch([{ op: 'add', path: 'a' }], { type: JSON_PATCH, kind })))).toContain(
      'is not a JSON pointer',
    );
  });
});

describe('JSON patch', () => {
  it('applies, or says 422; a list of too many operations is 413, anything else than a list 400', () => {
    expect(apply(JSON_PATCH, { a: 1 }, [{ op: 'replace', path: '/a', value: 2 }])).toEqual({ a: 2 });
    expect(refusal(() => apply(JSON_PATCH, { a: 1 }, [{ op: 'test', path: '/a', value: 2 }]))).toEqual({
      code: 422,
      reason: 'Invalid',
    });
    expect(refusal(() => apply(JSON_PATCH, { a: 1 }, [{ op: 'foo', path: '/a' }]))).toEqual({ code: 422, reason: 'Invalid' });
    expect(refusal(() => apply(JSON_PATCH, { a: 1 }, {}))).toEqual({ code: 400, reason: 'BadRequest' });
    const many = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: 1 }));
    const options = { type: JSON_PATCH, kind } as const;
    expect(applyPatch({ a: 1 }, many.slice(1), options)).toEqual({ a: 1 });
    expect(refusal(() => applyPatch({ a: 1 }, many, options))).toEqual({ code: 413, reason: 'RequestEntityTooLarge' });
  });

  it('what comes out is an object, and not too deep, level by level', () => {
    expect(refusal(() => apply(JSON_PATCH, {}, [{ op: 'replace', path: '', value: 1 }]))).toEqual({
      code: 422,
      reason: 'Invalid',
    });
    const deep = Array.from({ length: 500 }, (_, at) => ({ op: 'add', path: '/a'.repeat(at + 1), value: {} }));
    expect(refusal(() => applyPatch({}, deep, { type: JSON_PATCH, kind }))).toEqual({ code: 400, reason: 'BadRequest' });
  });
});

describe('strategic merge patch', () => {
  const merge = (current: object, patch: unknown): unknown => apply(STRATEGIC, current, patch);
  const meta = (metadata: object): { metadata: object } => ({ metadata });

  it('merges objects, and replaces lists of which nothing else is known', () => {
    expect(merge({ data: { a: '1', b: '2' } }, { data: { b: null, c: '3' } })).toEqual({ data: { a: '1', c: '3' } });
    expect(merge({ spec: { list: [1, 2] } }, { spec: { list: [3] } })).toEqual({ spec: { list: [3] } });
    expect(words(() => merge({ data: {} }, { data: { $patch: 'merge', a: '1' } }))).toBe('400 unknown patch type: "merge"');
  });

  it('$patch: replace and delete', () => {
    expect(merge({ data: { a: '1' } }, { data: { $patch: 'replace', b: '2' } })).toEqual({ data: { b: '2' } });
    expect(merge({ data: { a: '1' } }, { data: { $patch: 'delete' } })).toEqual({ data: {} });
    expect(refusal(() => merge({ data: {} }, { data: { $patch: 'foo' } }))).toEqual({ code: 400, reason: 'BadRequest' });
  });

  it('of what was not there, objects with $patch and directives are left out, at any depth, as upstream', () => {
    for (const $patch of ['replace', 'delete', 'foo', 5]) expect(merge({}, { data: { $patch, a: '1' } })).toStrictEqual({});
    expect(merge({ data: 'text' }, { data: { $patch: 'replace', a: '1' } })).toStrictEqual({});
    expect(merge({}, { data: { $patch: null, a: '1' } })).toEqual({ data: { a: '1' } });
    const inner = { b: { $patch: 'replace', c: 1 }, d: [{ $patch: 'delete' }, { e: null, f: [{ $patch: 'x' }] }, null, 1] };
    expect(merge({}, { data: inner })).toStrictEqual({ data: { d: [{ f: [] }, null, 1] } });
    const directed = { $retainKeys: 'b', '$setElementOrder/f': [1], '$deleteFromPrimitiveList/f': [1], f: [2], $other: 1 };
    expect(merge({}, { data: directed })).toStrictEqual({ data: { f: [2], $other: 1 } });
  });

  it('$retainKeys removes what it does not name, and must name what the patch sets', () => {
    expect(merge({ data: { a: '1', b: '2' } }, { data: { $retainKeys: ['b', 'c'], c: '3' } })).toEqual({
      data: { b: '2', c: '3' },
    });
    expect(refusal(() => merge({ data: {} }, { data: { $retainKeys: ['b'], c: '3' } }))).toEqual({
      code: 400,
      reason: 'BadRequest',
    });
    expect(refusal(() => merge({ data: {} }, { data: { $retainKeys: 'b', b: '3' } }))).toEqual({
      code: 400,
      reason: 'BadRequest',
    });
  });

  it('finalizers are a set: added, taken out, ordered', () => {
    const current = meta({ finalizers: ['a', 'b', 'c'] });
    expect(merge(current, meta({ finalizers: ['c', 'd'] }))).toEqual(meta({ finalizers: ['a', 'b', 'c', 'd'] }));
    expect(merge(current, meta({ '$deleteFromPrimitiveList/finalizers': ['b'] }))).toEqual(meta({ finalizers: ['a', 'c'] }));
    const patch = { '$setElementOrder/finalizers': ['d', 'c', 'a'], finalizers: ['d'] };
    expect(merge(current, meta(patch))).toEqual(meta({ finalizers: ['d', 'b', 'c', 'a'] }));
    expect(merge(meta({}), meta({ '$deleteFromPrimitiveList/finalizers': ['b'] }))).toEqual(meta({}));
    expect(merge(current, meta({ finalizers: null }))).toEqual(meta({}));
    expect(refusal(() => merge(current, meta({ '$deleteFromPrimitiveList/finalizers': 'b' })))).toMatchObject({ code: 400 });
    expect(refusal(() => merge(current, meta({ '$setElementOrder/finalizers': 'b' })))).toMatchObject({ code: 400 });
    expect(refusal(() => merge(current, meta({ finalizers: [{}] })))).toMatchObject({ code: 422 });
    expect(refusal(() => merge(current, meta({ finalizers: 'a' })))).toEqual({ code: 422, reason: 'Invalid' });
  });

  it('ownerReferences are merged by uid', () => {
    const current = meta({
      ownerReferences: [
        { uid: '1', name: 'a', controller: true },
        { uid: '2', name: 'b' },
      ],
    });
    const refs = (...ownerReferences: object[]): object => meta({ ownerReferences });
    expect(merge(current, refs({ uid: '1', name: 'x' }, { uid: '3', name: 'c' }))).toEqual(
      refs({ uid: '1', name: 'x', controller: true }, { uid: '3', name: 'c' }, { uid: '2', name: 'b' }),
    );
    expect(merge(current, refs({ uid: '1', $patch: 'delete' }))).toEqual(refs({ uid: '2', name: 'b' }));
    expect(merge(current, refs({ $patch: 'replace' }, { uid: '9' }))).toEqual(refs({ uid: '9' }));
    const order = { '$setElementOrder/ownerReferences': [{ uid: '2' }, { uid: '1' }] };
    expect(merge(current, meta(order))).toEqual(refs({ uid: '2', name: 'b' }, { uid: '1', name: 'a', controller: true }));
    expect(refusal(() => merge(current, refs({ name: 'x' })))).toMatchObject({ code: 400 });
    expect(refusal(() => merge(current, refs(['x'])))).toMatchObject({ code: 422 });
  });

  it('a set has each value once, and what a patch names is in the order of the patch', () => {
    const current = meta({ finalizers: ['a', 'b', 'a'] });
    expect(merge(current, meta({ finalizers: ['b', 'c', 'c'] }))).toEqual(meta({ finalizers: ['a', 'b', 'c'] }));
    const twice = { finalizers: ['b', 'a', 'b'], '$deleteFromPrimitiveList/finalizers': ['a'] };
    expect(merge(meta({}), meta(twice))).toEqual(meta({ finalizers: ['b', 'b'] })); // one that was not there is what is sent
    const patch = { finalizers: ['d'], '$deleteFromPrimitiveList/finalizers': ['b', 'd'] };
    expect(merge(current, meta(patch))).toEqual(meta({ finalizers: ['a'] }));
    expect(merge(meta({ finalizers: ['a'] }), meta({ '$deleteFromPrimitiveList/finalizers': ['a'] }))).toEqual(
      meta({ finalizers: [] }),
    );
    expect(merge(meta({ finalizers: 'no list' }), meta({ finalizers: ['a'] }))).toEqual(meta({ finalizers: ['a'] }));
    expect(words(() => merge(current, meta({ '$deleteFromPrimitiveList/finalizers': [{}] })))).toBe(
      '422 a set has plain values only',
    );
  });

  it('a list that was not there is there; one of nothing is not', () => {
    expect(merge(meta({}), meta({ finalizers: ['a'] }))).toEqual(meta({ finalizers: ['a'] }));
    expect(JSON.stringify(merge(meta({}), meta({ finalizers: [] })))).toBe('{"metadata":{}}');
    expect(merge(meta({}), meta({ finalizers: [] }))).toStrictEqual(meta({}));
    expect(merge(meta({}), meta({ '$deleteFromPrimitiveList/finalizers': ['a'] }))).toStrictEqual(meta({}));
  });

  it('names with a slash are names, and null removes whatever a directive says', () => {
    const labels = { 'example.com/a': 'x', a: 'y' };
    expect(merge(meta({ labels }), meta({ labels: { 'example.com/a': 'z' } }))).toEqual(
      meta({ labels: { 'example.com/a': 'z', a: 'y' } }),
    );
    const removed = { list: null, '$setElementOrder/list': ['a'] };
    expect(merge({ data: { list: ['a'], b: 1 } }, { data: removed })).toStrictEqual({ data: { b: 1 } });
  });

  it('what the order does not name stays before those that it was before', () => {
    const ordered = (there: readonly string[], order: readonly string[], finalizers: readonly string[] = []): unknown =>
      merge(meta({ finalizers: there }), meta({ finalizers, '$setElementOrder/finalizers': order }));
    expect(ordered(['a', 'b', 'c', 'd'], ['d', 'b'])).toEqual(meta({ finalizers: ['a', 'c', 'd', 'b'] }));
    expect(ordered(['a', 'b', 'c'], ['a', 'b'])).toEqual(meta({ finalizers: ['a', 'b', 'c'] }));
    expect(ordered(['x', 'a'], ['a', 'n'], ['n'])).toEqual(meta({ finalizers: ['x', 'a', 'n'] }));
    expect(ordered(['a', 'x'], ['b', 'a', 'x', 'b'])).toEqual(meta({ finalizers: ['a', 'x'] }));
    expect(ordered(['a', 'x'], ['x', 'a', 'x'])).toEqual(meta({ finalizers: ['x', 'a'] }));
    expect(ordered(['a'], [], ['n', 'm'])).toEqual(meta({ finalizers: ['n', 'm', 'a'] }));
    expect(ordered(['a'], ['n', 'b', 'm'], ['n', 'm'])).toEqual(meta({ finalizers: ['n', 'm', 'a'] }));
    expect(ordered([], ['a'])).toEqual(meta({ finalizers: [] }));
  });

  it('directives about a list that is not merged, or about none, do nothing', () => {
    const patch = { data: { '$setElementOrder/list': ['b'], '$deleteFromPrimitiveList/list': ['a'] } };
    expect(merge({ data: { list: ['a', 'b'] } }, patch)).toEqual({ data: { list: ['a', 'b'] } });
    expect(merge(meta({}), meta({ '$setElementOrder/finalizers': ['b'] }))).toEqual(meta({}));
  });

  it('an order must have what is patched, in that order, and the key of each element', () => {
    const current = meta({ finalizers: ['a'], ownerReferences: [{ uid: '1' }] });
    const said = (name: string, given: unknown, order: unknown): unknown =>
      words(() => merge(current, meta({ [name]: given, [`$setElementOrder/${name}`]: order })));
    const other = '400 the patch of metadata.finalizers has another order than its setElementOrder list';
    for (const order of [['n', 'a'], ['m'], ['m', 'n'], [null]]) expect(said('finalizers', ['n', 'm'], order)).toBe(other);
    const [one, two] = [{ uid: '1' }, { uid: '2' }];
    expect(said('ownerReferences', [two, one], [one, two])).toBe(other.replace('finalizers', 'ownerReferences'));
    const keyless = '400 the setElementOrder list of metadata.ownerReferences has elements without the merge key';
    for (const order of [[{}], ['1'], [one, null]]) expect(said('ownerReferences', [], order)).toBe(keyless);
    const directed = [{ $patch: 'delete', uid: '1' }, two];
    // What is removed and added again is where it is added.
    const again = [{ $patch: 'delete', uid: '3' }, one, { uid: '3' }];
    expect(merge(current, meta({ ownerReferences: again }))).toEqual(
      meta({ finalizers: ['a'], ownerReferences: again.slice(1) }),
    );
    const three = meta({ ownerReferences: [{ uid: '0' }, one, { uid: '3' }] });
    const moved = [{ uid: '3' }, one, { $patch: 'delete', uid: '3' }];
    expect(merge(three, meta({ ownerReferences: moved }))).toEqual(meta({ ownerReferences: [{ uid: '3' }, { uid: '0' }, one] }));
    const patch = { ownerReferences: directed, '$setElementOrder/ownerReferences': [two] };
    expect(merge(current, meta(patch))).toEqual(meta({ finalizers: ['a'], ownerReferences: [two] }));
  });

  it('says what is wrong', () => {
    const current = meta({ finalizers: ['a'], ownerReferences: [{ uid: '1' }] });
    expect(words(() => merge({}, { $patch: 'foo' }))).toBe('400 unknown patch type: "foo"');
    expect(words(() => merge({}, { $patch: null }))).toBe('400 unknown patch type: null');
    expect(words(() => merge({}, { $patch: 'x'.repeat(900) }))).toBe(`400 unknown patch type: "${'x'.repeat(199)}`);
    expect(words(() => merge({}, { $retainKeys: [1] }))).toBe('400 invalid patch format of retainKeys');
    expect(words(() => merge({}, { $retainKeys: ['a'], b: 1 }))).toBe('400 invalid patch format of retainKeys');
    expect(words(() => merge(current, meta({ finalizers: 'b' })))).toBe('422 metadata.finalizers is not a list');
    expect(words(() => merge(current, meta({ '$deleteFromPrimitiveList/finalizers': 'b' })))).toBe(
      '400 invalid patch format of primitive list',
    );
    expect(words(() => merge(current, meta({ '$setElementOrder/finalizers': {} })))).toBe(
      '400 invalid patch format of setElementOrder list',
    );
    expect(words(() => merge(current, meta({ ownerReferences: [null] })))).toBe(
      '422 an element of metadata.ownerReferences is not an object',
    );
    expect(words(() => merge(current, meta({ ownerReferences: [{ name: 'x' }] })))).toBe(
      '400 map: {"name":"x"} does not contain declared merge key: uid',
    );
  });

  it('$retainKeys keeps what it names, whatever else the patch removes or directs', () => {
    const current = { data: { a: '1', b: '2', c: '3' } };
    expect(merge(current, { data: { $retainKeys: ['a', 'b'], b: null, c: null } })).toEqual({ data: { a: '1' } });
    expect(merge(current, { data: { $retainKeys: [] } })).toEqual({ data: {} });
    expect(merge(current, { data: { $retainKeys: ['a', 'toString'] } })).toEqual({ data: { a: '1' } });
  });

  it('a member of the wrong kind is replaced, and what is removed may be absent', () => {
    expect(merge({ data: 'text' }, { data: { a: '1' } })).toEqual({ data: { a: '1' } });
    expect(merge({ data: ['a'] }, { data: { a: '1' } })).toEqual({ data: { a: '1' } });
    expect(merge({ data: { a: '1' } }, { data: 'text' })).toEqual({ data: 'text' });
    expect(merge({}, { data: null, other: { a: null } })).toEqual({ other: {} });
    expect(merge({ data: { a: '1' } }, { $patch: 'replace', other: 1 })).toEqual({ other: 1 });
    expect(merge({ data: { a: '1' } }, { $patch: 'delete', other: 1 })).toEqual({});
  });

  it('elements of a merged list: those without a key stay, of two with one key the first is merged and both are deleted', () => {
    const list = ['text', { name: 'no key' }, { uid: '1', name: 'a' }, { uid: '1', name: 'b' }];
    const refs = (ownerReferences: readonly unknown[]): object => meta({ ownerReferences });
    expect(merge(refs(list), refs([{ uid: '1', name: 'c' }]))).toEqual(
      refs(['text', { name: 'no key' }, { uid: '1', name: 'c' }, { uid: '1', name: 'b' }]),
    );
    expect(merge(refs(list), refs([{ uid: '1', $patch: 'delete' }]))).toEqual(refs(['text', { name: 'no key' }]));
    expect(merge(refs(list), refs([{ uid: '9', $patch: 'delete' }]))).toEqual(refs(list));
    expect(
      merge(
        refs(list),
        refs([
          { uid: '2', a: 1 },
          { uid: '2', b: 2 },
        ]),
      ),
    ).toEqual(refs([{ uid: '2', a: 1, b: 2 }, ...list]));
    const again = [
      { uid: '1', $patch: 'delete' },
      { uid: '1', name: 'new' },
    ];
    expect(merge(refs(list), refs(again))).toEqual(refs([{ uid: '1', name: 'new' }, 'text', { name: 'no key' }]));
    expect(merge(refs(list), refs([{ $patch: 'replace', uid: '3' }, { uid: '4' }]))).toEqual(refs([{ uid: '4' }]));
    expect(words(() => merge(refs(list), refs([{ uid: '4', $patch: 'merge' }])))).toBe('400 unknown patch type: "merge"');
    expect(words(() => merge(refs(list), refs([{ $patch: 'delete' }])))).toBe(
      '400 map: {"$patch":"delete"} does not contain declared merge key: uid',
    );
    const order = { '$setElementOrder/ownerReferences': [{ uid: '1' }, { uid: '0' }] };
    expect(merge(refs(['text', { uid: '0' }, { uid: '1' }]), meta(order))).toEqual(refs(['text', { uid: '1' }, { uid: '0' }]));
  });

  it('a new element is what it is, with its nulls; of a new list, nulls and directives are left out', () => {
    const refs = (...ownerReferences: readonly unknown[]): object => meta({ ownerReferences });
    const added = { uid: '2', x: null, y: [{ z: null }] };
    expect(merge(refs({ uid: '1' }), refs(added))).toEqual(refs(added, { uid: '1' }));
    expect(merge(refs({ uid: '1' }), refs({ uid: '1', x: null }))).toEqual(refs({ uid: '1' }));
    expect(merge(refs({ uid: '1' }), refs({ $patch: 'replace' }, added))).toEqual(refs(added));
    const fresh = [added, { uid: '3', $patch: 'merge' }, { $patch: 'foo' }, { name: 'no key', x: null }, null];
    expect(merge(meta({}), refs(...fresh))).toEqual(refs({ uid: '2', y: [{}] }, { name: 'no key' }, null));
    expect(merge({}, { list: [...fresh, ['x', null]] })).toEqual({
      list: [{ uid: '2', y: [{}] }, { name: 'no key' }, null, ['x', null]],
    });
    expect(merge({ list: [] }, { list: fresh })).toEqual({ list: fresh });
  });

  it('a new element of a list of a kind that is defined has no nulls: nothing would take them away later', () => {
    const items = { type: 'object', properties: { name: { type: 'string' } } };
    const list = { type: 'array', items, 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': 'name' };
    const defined = { group: 'apps', version: 'v1', kind: 'Deployment', schema: { type: 'object', properties: { list } } };
    const patch = { list: [{ name: 'b', x: null, y: { z: null } }] };
    expect(applyPatch({ list: [{ name: 'a' }] }, patch, { type: STRATEGIC, kind: defined })).toEqual({
      list: [{ name: 'b', y: {} }, { name: 'a' }],
    });
  });

  it('conditions of a namespace are merged by type', () => {
    const conditions = (...list: object[]): Record<string, unknown> => ({ status: { conditions: list } });
    const current = conditions({ type: 'A', status: 'True' });
    const patch = conditions({ type: 'A', status: 'False' }, { type: 'B' });
    expect(applyPatch(current, patch, { type: STRATEGIC, kind: { ...kind, kind: 'Namespace' } })).toEqual(patch);
  });

  it('__proto__ is a name like any other', () => {
    const result = merge(JSON.parse('{"data":{}}'), JSON.parse('{"data":{"__proto__":"a"},"__proto__":{"x":{}}}'));
    expect(JSON.stringify(result)).toBe('{"data":{"__proto__":"a"},"__proto__":{"x":{}}}');
  });
});

describe('toPatchType', () => {
  it('says which languages a kind takes', () => {
    const two = 'application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml';
    const order = { group: 'example.com', version: 'v1', kind: 'Order' };
    const said = (what: string, taken: string): string => `415 ${what} - accepted media types include: ${taken}`;
    const unknown = 'the body of the request was in an unknown format';
    expect(words(() => toPatchType('text/plain', order))).toBe(said(unknown, two));
    const three = two.replace(', application/apply', ', application/strategic-merge-patch+json, application/apply');
    expect(words(() => toPatchType('text/plain', kind))).toBe(said(unknown, three));
    expect(words(() => atOnce(toPatch({}, { type: STRATEGIC, kind: order })))).toBe(said(unknown, two));
  });

  it('knows four languages; one of built-in kinds only for these', () => {
    const order = { group: 'example.com', version: 'v1', kind: 'Order' };
    expect(toPatchType('application/merge-patch+json', order)).toBe(MERGE);
    expect(toPatchType('application/json-patch+json', order)).toBe(JSON_PATCH);
    const strategic = 'application/strategic-merge-patch+json';
    expect(toPatchType(strategic, kind)).toBe(STRATEGIC);
    const refused = { code: 415, reason: 'UnsupportedMediaType' };
    for (const other of [order, { ...kind, group: 'x.io' }, { ...kind, kind: 'constructor' }]) {
      expect(refusal(() => toPatchType(strategic, other))).toEqual(refused);
      expect(refusal(() => applyPatch({}, {}, { type: STRATEGIC, kind: other }))).toEqual(refused);
    }
    expect(toPatchType('application/apply-patch+yaml', order)).toBe('apply');
    for (const type of ['application/apply-patch+cbor', 'application/json', 'constructor', '']) {
      expect(refusal(() => toPatchType(type, kind))).toEqual(refused);
    }
  });
});
