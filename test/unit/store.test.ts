import { describe, expect, it } from 'vitest';
import { type DeletedFinalStateUnknown, Store } from '../../src/cache/index.ts';

interface Thing {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly resourceVersion?: string };
  readonly value?: string;
}
const thing = (name: string, value = '', resourceVersion = ''): Thing => ({ metadata: { name, resourceVersion }, value });
const inferred = (key: string, object: Thing): DeletedFinalStateUnknown<Thing> => ({
  type: 'Deleted',
  key,
  object,
  finalStateUnknown: true,
});

describe('a store', () => {
  it('TestCache: has what was added last, until it is deleted or replaced', () => {
    const store = new Store<Thing>();
    store.add(thing('a', 'old'));
    store.add(thing('b'));
    store.update(thing('a', 'new'));
    expect(store.get('a')?.value).toBe('new');
    expect(store.size).toBe(2);
    expect(store.keys()).toEqual(['a', 'b']);
    store.delete(thing('a', 'of no interest'));
    expect(store.get('a')).toBeUndefined();
    expect(store.list().map(({ metadata }) => metadata.name)).toEqual(['b']);
    store.replace([thing('x'), thing('y')], '7');
    expect(store.keys()).toEqual(['x', 'y']);
    expect(store.get('b')).toBeUndefined();
  });

  it('TestCacheWithTransformer: stores what transform returns, under the key of the original', () => {
    const store = new Store<Thing>({ transform: ({ value }) => ({ metadata: { name: 'renamed' }, value: `${value}!` }) });
    store.add(thing('a', '1'));
    store.replace([thing('a', '2'), thing('b', '3')], '1');
    store.update(thing('b', '4'));
    expect(store.keys()).toEqual(['a', 'b']);
    expect(store.list().map(({ value }) => value)).toEqual(['2!', '4!']);
  });

  it('TestKeyError: an object without a key is refused by every write, which changes nothing', () => {
    const store = new Store<Thing>();
    store.add(thing('a'));
    const bad = {} as Thing;
    const wrong = expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('object.metadata.name') });
    expect(() => store.add(bad)).toThrow(wrong);
    expect(() => store.update(bad)).toThrow(wrong);
    expect(() => store.delete(bad)).toThrow(wrong);
    expect(() => store.replace([thing('b'), bad], '9')).toThrow(wrong);
    expect(store.keys()).toEqual(['a']);
    expect(store.resourceVersion).toBe('');
    expect(() => new Store<Thing>({ keyOf: () => 7 as never }).add(thing('a'))).toThrow('keyOf: expected a string, got 7');
  });

  it('TestDeletionHandlingObjectToName: deletes what is not there without an error, and takes an inferred deletion by its key', () => {
    const store = new Store<Thing>();
    store.add(thing('a'));
    store.delete(thing('b'));
    store.delete(inferred('gone', thing('a')));
    expect(store.keys()).toEqual(['a']);
    store.delete(inferred('a', {} as Thing));
    expect(store.size).toBe(0);
  });

  it('takes an object that looks like an inferred deletion, but is none, for an object', () => {
    const store = new Store<{ key: unknown; finalStateUnknown: boolean }>({ keyOf: ({ key }) => `own ${key}` });
    store.add({ key: 'a', finalStateUnknown: true });
    store.delete({ key: 'a', finalStateUnknown: true });
    expect(store.size).toBe(0);
  });

  it('TestThreadSafeStoreRV: has the version of the last write that told one', () => {
    const store = new Store<Thing>();
    expect(store.resourceVersion).toBe('');
    store.add(thing('a', '', '1'));
    expect(store.resourceVersion).toBe('1');
    store.update(thing('a', '', '2'));
    expect(store.resourceVersion).toBe('2');
    store.update(thing('a'));
    expect(store.resourceVersion).toBe('2');
    store.delete(thing('a', '', '3'));
    expect(store.resourceVersion).toBe('3');
    store.replace([thing('a', '', '1')], '10');
    expect(store.resourceVersion).toBe('10');
    store.bookmark('11');
    expect(store.resourceVersion).toBe('11');
    store.delete(inferred('a', thing('a', '', '1')));
    expect(store.resourceVersion).toBe('11');
    expect(store.transaction([{ type: 'add', object: thing('b', '', '12') }])).toEqual([]);
    expect(store.resourceVersion).toBe('12');
  });

  it('keeps the last of several objects with one key of a list', () => {
    const store = new Store<Thing>();
    store.replace([thing('a', '1'), thing('b', '2'), thing('a', '3')], '1');
    expect(store.list().map(({ value }) => value)).toEqual(['3', '2']);
  });

  it('lists by namespace and by a filter', () => {
    const store = new Store<Thing>();
    const all = [
      { metadata: { name: 'a', namespace: 'x' }, value: '1' },
      { metadata: { name: 'b', namespace: 'x' }, value: '2' },
      { metadata: { name: 'c', namespace: 'y' }, value: '1' },
      { metadata: { name: 'd' }, value: '1' },
    ];
    store.replace(all, '1');
    const names = (options?: Parameters<typeof store.list>[0]): string =>
      store
        .list(options)
        .map(({ metadata }) => metadata.name)
        .join('');
    expect([names(), names({}), names({ namespace: undefined })]).toEqual(['abcd', 'abcd', 'abcd']);
    expect(names({ namespace: 'x' })).toBe('ab');
    expect(names({ namespace: '' })).toBe('d');
    expect(names({ namespace: 'z' })).toBe('');
    expect(names({ namespace: 'x', filter: ({ value }) => value === '1' })).toBe('a');
    expect(names({ filter: ({ value }) => value === '1' })).toBe('acd');
  });

  it('hands out arrays of its own', () => {
    const store = new Store<Thing>();
    store.add(thing('a'));
    store.list().push(thing('b'));
    store.keys().push('b');
    expect([store.keys(), store.list().length]).toEqual([['a'], 1]);
  });

  it('is not misled by names like __proto__', () => {
    const store = new Store<Thing>();
    expect([store.get('__proto__'), store.get('constructor')]).toEqual([undefined, undefined]);
    store.add(thing('__proto__', 'mine'));
    expect(store.get('__proto__')?.value).toBe('mine');
    expect(store.keys()).toEqual(['__proto__']);
  });

  it.each([
    ['nothing', undefined],
    ['a promise', Promise.resolve(thing('a'))],
  ])('refuses a transform that returns %s: nobody could tell the object from one that is not there', (_what, kept) => {
    const store = new Store<Thing>({ transform: ({ metadata }) => (metadata.name === 'b' ? (kept as never) : thing('kept')) });
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('transform: ') });
    store.add(thing('a'));
    expect(() => store.add(thing('b'))).toThrow(refused);
    expect(() => store.replace([thing('b')], '7')).toThrow(refused);
    expect([store.keys(), store.size, store.resourceVersion]).toEqual([['a'], 1, '']);
  });

  it('refuses to be changed by a function that it asks', () => {
    const store: Store<Thing> = new Store<Thing>({
      transform: (object) => {
        store.delete(object);
        return object;
      },
    });
    expect(() => store.add(thing('a'))).toThrow('a function that a store calls must not change that store');
    expect(store.size).toBe(0);
    store.delete(thing('a')); // no transform is asked: the refusal has not locked the store
  });

  it.each<[string, () => unknown, string]>([
    ['an unknown option', () => new Store({ keyof: String } as never), 'unknown option keyof: did you mean keyOf?'],
    ['a keyOf of no function', () => new Store({ keyOf: 'name' as never }), 'keyOf: expected a function, got "name"'],
    ['a transform of no function', () => new Store({ transform: 1 as never }), 'transform: expected a function, got 1'],
    ['a list that is none', () => new Store().replace({} as never, '1'), 'list: expected an iterable of objects, got Object {}'],
    ['no list', () => new Store().replace(undefined as never, '1'), 'list: expected an iterable of objects, got undefined'],
    [
      'an unknown option of list',
      () => new Store().list({ namespce: 'x' } as never),
      'unknown option namespce: did you mean namespace?',
    ],
  ])('refuses %s', (_, call, message) => {
    expect(call).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
  });
});
