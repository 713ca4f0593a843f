import { describe, expect, it, vi } from 'vitest';
import { Indexer } from '../../src/cache/index.ts';

interface Pod {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly users?: readonly string[];
}
const pod = (name: string, ...users: string[]): Pod => ({ metadata: { name }, users });
const byUser = (object: Pod): readonly string[] => object.users ?? [];
const names = (pods: readonly Pod[]): string => pods.map(({ metadata }) => metadata.name).join(' ');

describe('an indexer', () => {
  it('TestGetIndexFuncValues: tells the values that some object has', () => {
    const indexer = new Indexer({ indexers: { user: byUser } });
    for (const each of [pod('a', 'ernie'), pod('b', 'ernie', 'bert'), pod('c', 'elmo')]) indexer.add(each);
    expect(indexer.indexValues('user').sort()).toEqual(['bert', 'elmo', 'ernie']);
    indexer.delete(pod('c'));
    expect(indexer.indexValues('user').sort()).toEqual(['bert', 'ernie']);
  });

  it('TestMultiIndexKeys: an update moves an object between values; a value without objects vanishes', () => {
    const indexer = new Indexer({ indexers: { user: byUser } });
    for (const each of [pod('one', 'ernie', 'bert'), pod('two', 'bert', 'oscar'), pod('tre', 'ernie', 'elmo')]) indexer.add(each);
    const table = (): Record<string, string> =>
      Object.fromEntries(indexer.indexValues('user').map((value) => [value, indexer.indexKeys('user', value).join(' ')]));
    expect(table()).toEqual({ ernie: 'one tre', bert: 'one two', oscar: 'two', elmo: 'tre' });
    expect(names(indexer.byIndex('user', 'bert'))).toBe('one two');
    indexer.delete(pod('tre'));
    expect(table()).toEqual({ ernie: 'one', bert: 'one two', oscar: 'two' });
    indexer.update(pod('two', 'oscar', 'cookie'));
    expect(table()).toEqual({ ernie: 'one', bert: 'one', oscar: 'two', cookie: 'two' });
    expect(indexer.indexKeys('user', 'elmo')).toEqual([]);
  });

  it('TestIndex: finds the objects that share a value with one, each once, whether that is stored or not', () => {
    const indexer = new Indexer({ indexers: { user: byUser } });
    for (const each of [pod('a', 'x', 'y'), pod('b', 'y', 'x'), pod('c', 'z')]) indexer.add(each);
    expect(names(indexer.index('user', pod('elsewhere', 'x', 'y')))).toBe('a b');
    expect(names(indexer.index('user', pod('elsewhere')))).toBe('');
  });

  it('TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex: the value of a deleted object is gone', () => {
    const indexer = new Indexer({ indexers: { all: () => ['the value'] } });
    indexer.add(pod('a'));
    expect(indexer.indexValues('all')).toEqual(['the value']);
    indexer.delete(pod('a'));
    expect(indexer.indexValues('all')).toEqual([]);
  });

  it('TestThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex: the value stays while another object has it', () => {
    const indexer = new Indexer({ indexers: { all: () => ['the value'] } });
    indexer.add(pod('a'));
    indexer.add(pod('b'));
    indexer.delete(pod('a'));
    expect(indexer.indexKeys('all', 'the value')).toEqual(['b']);
  });

  it('TestThreadSafeStoreIndexingFunctionsWithMultipleValues: follows objects whose values change', () => {
    const indexer = new Indexer({ indexers: { user: byUser } });
    const users = ['foo', 'bar'];
    indexer.add(pod('a', ...users));
    expect([indexer.indexKeys('user', 'foo'), indexer.indexKeys('user', 'bar')]).toEqual([['a'], ['a']]);
    indexer.add(pod('a', 'foo', 'foo'));
    expect([indexer.indexKeys('user', 'foo'), indexer.indexKeys('user', 'bar')]).toEqual([['a'], []]);
    indexer.add(pod('a'));
    expect(indexer.indexValues('user')).toEqual([]);
  });

  it('TestCacheTransactionShouldIndexErrors: a transaction tells which changes failed, and applies the others', () => {
    const cause = new Error('no user');
    const indexer = new Indexer<Pod>({
      indexers: {
        user: (object) => {
          if (!object.users) throw cause;
          return object.users;
        },
      },
    });
    const failed = indexer.transaction([
      { type: 'add', object: pod('a', 'x') },
      { type: 'add', object: { metadata: { name: 'b' } } },
      { type: 'update', object: {} as Pod },
      { type: 'update', object: pod('c', 'x') },
      { type: 'delete', object: pod('a') },
    ]);
    expect(failed).toEqual([
      { at: 1, error: cause },
      { at: 2, error: expect.objectContaining({ code: 'INVALID_ARGUMENT' }) },
    ]);
    expect([indexer.keys(), indexer.indexKeys('user', 'x')]).toEqual([['c'], ['c']]);
  });

  describe('with an index function that throws', () => {
    const broken = new Error('broken');
    const open = (): Indexer<Pod> =>
      new Indexer<Pod>({
        indexers: {
          user: byUser,
          odd: ({ metadata }) => {
            if (metadata.name.startsWith('bad')) throw broken;
            return [metadata.name];
          },
        },
      });

    it('throws its error from that one write, which changes nothing', () => {
      const indexer = open();
      indexer.add(pod('a', 'x'));
      expect(() => indexer.add(pod('bad', 'x'))).toThrow(broken);
      expect(() => indexer.replace([pod('b', 'y'), pod('bad', 'y')], '9')).toThrow(broken);
      expect([indexer.keys(), indexer.indexValues('user'), indexer.indexValues('odd')]).toEqual([['a'], ['x'], ['a']]);
      expect(indexer.resourceVersion).toBe('');
      indexer.update(pod('a', 'z'));
      expect(indexer.indexValues('user')).toEqual(['z']);
    });

    it('is not asked when an object is removed', () => {
      let fails = false;
      const indexer = new Indexer<Pod>({
        indexers: {
          user: (object) => {
            if (fails) throw broken;
            return byUser(object);
          },
        },
      });
      indexer.add(pod('a', 'x'));
      fails = true;
      indexer.delete(pod('a', 'y'));
      expect(indexer.indexValues('user')).toEqual([]);
    });

    it.each<[unknown, string]>([
      [undefined, 'index own: expected an array of strings, got undefined'],
      ['x', 'index own: expected an array of strings, got "x"'],
      [[undefined], 'index own: expected a string, got undefined'],
    ])('refuses %j as its result', (result, message) => {
      const indexer = new Indexer<Pod>({ indexers: { own: () => result as string[] } });
      expect(() => indexer.add(pod('a'))).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
      expect(indexer.size).toBe(0);
    });
  });

  it('keeps its values when the array of an index function changes later', () => {
    const users = ['x'];
    const indexer = new Indexer<Pod>({ indexers: { user: () => users } });
    indexer.add(pod('a'));
    users[0] = 'y';
    indexer.delete(pod('a'));
    expect(indexer.indexValues('user')).toEqual([]);
  });

  it('adds indexes while objects are stored; all of them or none', () => {
    const indexer = new Indexer({ indexers: { user: byUser } });
    indexer.add(pod('a', 'x'));
    const more = indexer.addIndexers({ length: ({ metadata }: Pod) => [`${metadata.name.length}`] });
    expect(more.indexKeys('length', '1')).toEqual(['a']);
    more.add(pod('bb', 'x'));
    expect(more.indexKeys('length', '2')).toEqual(['bb']);
    const fail = (): never => {
      throw new Error('broken');
    };
    expect(() => more.addIndexers({ fine: () => [], broken: fail })).toThrow('broken');
    expect(() => more.addIndexers({ other: () => [], user: byUser })).toThrow(
      'indexers: expected a name that no index has yet, got "user"',
    );
    expect(more.indexNames).toEqual(['user', 'length']);
    more.add(pod('c', 'x'));
  });

  it('examines nothing again that a list leaves as it is', () => {
    let asked = 0;
    const indexer = new Indexer<Pod>({
      indexers: {
        user: (object) => {
          asked++;
          return byUser(object);
        },
      },
    });
    const [a, b, c] = [pod('a', 'x'), pod('b', 'x'), pod('c', 'y')];
    indexer.replace([a, b], '1');
    expect(asked).toBe(2);
    indexer.replace([b, c], '2');
    expect(asked).toBe(3);
    expect([indexer.indexKeys('user', 'x'), indexer.indexKeys('user', 'y')]).toEqual([['b'], ['c']]);
    indexer.replace([pod('b', 'z'), b], '3'); // the last one counts, and it is the stored one
    expect(indexer.indexValues('user')).toEqual(['x']);
  });

  it('lists a namespace without looking at the others', () => {
    const indexer = new Indexer<Pod>();
    const at = (namespace: string, name: string): Pod => ({ metadata: { namespace, name } });
    indexer.replace([at('x', 'a'), at('y', 'b'), pod('c')], '1');
    expect(names(indexer.list({ namespace: 'x' }))).toBe('a');
    indexer.add(at('x', 'd'));
    indexer.delete(at('x', 'a'));
    expect(names(indexer.list({ namespace: 'x' }))).toBe('d');
    expect(names(indexer.list({ namespace: '' }))).toBe('c');
    expect(indexer.indexNames).toEqual([]);
    let looks = 0;
    indexer.list({
      namespace: 'x',
      filter: () => {
        looks++;
        return true;
      },
    });
    expect(looks).toBe(1);
  });

  it('costs a read its result, not the size of the store', () => {
    const indexer = new Indexer({ indexers: { user: byUser } });
    for (let i = 0; i < 1_000; i++) indexer.add(pod(`p${i}`, i < 3 ? 'few' : 'many'));
    const get = vi.spyOn(indexer, 'get');
    expect(names(indexer.byIndex('user', 'few'))).toBe('p0 p1 p2');
    expect(get).toHaveBeenCalledTimes(3);
  });

  it('lets index functions read, and refuses their writes', () => {
    const indexer: Indexer<Pod> = new Indexer<Pod>({
      indexers: { peers: () => indexer.list({ namespace: 'x' }).map(({ metadata }) => metadata.name) },
    });
    const at = (name: string): Pod => ({ metadata: { namespace: 'x', name } });
    indexer.add(at('a'));
    indexer.add(at('b'));
    expect(indexer.indexKeys('peers', 'a')).toEqual(['x/b']);
    const writes: (() => void)[] = [
      () => indexer.add(at('c')),
      () => indexer.delete(at('a')),
      () => indexer.replace([], '1'),
      () => indexer.addIndexers({ more: () => [] }),
    ];
    indexer.addIndexers({ writer: () => [] });
    for (const [at, write] of writes.entries()) {
      const added = (): unknown =>
        indexer.addIndexers({
          [`try ${at}`]: () => {
            write();
            return [];
          },
        });
      expect(added).toThrow('a function that a store calls must not change that store');
    }
    expect(indexer.keys()).toEqual(['x/a', 'x/b']);
  });

  it.each<[string, () => unknown, string]>([
    [
      'an unknown index',
      () => new Indexer<Pod>({ indexers: { a: byUser, b: byUser } }).byIndex('c', 'x'),
      'index: expected one of a, b, got "c"',
    ],
    [
      'an index if there is none',
      () => new Indexer<Pod>().indexKeys('c', 'x'),
      'index: expected one of none: there is no index, got "c"',
    ],
    [
      'an index of a name of Object',
      () => new Indexer<Pod>().indexValues('constructor'),
      'index: expected one of none: there is no index, got "constructor"',
    ],
    [
      'an index that is no function',
      () => new Indexer<Pod>({ indexers: { a: 'b' as never } }),
      'indexers.a: expected a function, got "b"',
    ],
    [
      'an index of undefined',
      () => new Indexer<Pod>({ indexers: { a: undefined as never } }),
      'indexers.a: expected a function, got null',
    ],
    [
      'indexers of no object',
      () => new Indexer<Pod>({ indexers: 7 as never }),
      'indexers: expected an object of functions, got 7',
    ],
    [
      'indexers in a list',
      () => new Indexer<Pod>({ indexers: [] as never }),
      'indexers: expected an object of functions, got Array {}',
    ],
    ['an unknown option', () => new Indexer<Pod>({ indexes: {} } as never), 'unknown option indexes: did you mean indexers?'],
  ])('refuses %s', (_, call, message) => {
    expect(call).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
  });
});
