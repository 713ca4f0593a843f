// Where a cacher finds things: in its indexes, in the row of what is due, and among the objects that it has.
import { describe, expect, test } from 'vitest';
import { collectionOf, toSettings } from '../../src/storage/cacher/engine.ts';
import { StateEntry } from '../../src/storage/collection/change-log.ts';
import { Indexes } from '../../src/storage/collection/router.ts';
import type { SortedMap } from '../../src/storage/collection/sorted-map.ts';
import type { Field } from '../../src/storage/collection/view.ts';
import { toStatus } from '../../src/watch/event.ts';
import { type Pod, pod } from './faulty-storage.ts';

const entry = (key: string, node: string): StateEntry<Pod> => new StateEntry(key, pod(key, { node }), 0);
const field = (prefix: string = ''): Field & { calls: string[] } => {
  const calls: string[] = [];
  const read = (object: Pod): string | undefined => {
    calls.push(`${object.metadata?.namespace}/${object.metadata?.name}`);
    return object.spec?.node === 'bad' ? undefined : object.spec?.node;
  };
  return { prefix, read, calls };
};

describe('an index', () => {
  const keys = (found: SortedMap<StateEntry<Pod>>): string => Array.from(found.values(), ({ key }) => key).join(' ');

  test('has what it was made of, in the order of the keys, and nothing for a value that no object has', () => {
    const indexes = new Indexes<Pod>();
    const node = field();
    const all = (): StateEntry<Pod>[] => [entry('x/c', 'n1'), entry('x/a', 'n1'), entry('x/b', 'n2'), entry('x/d', 'bad')];
    expect(keys(indexes.find({ field: node, value: 'n1' }, all))).toBe('x/a x/c');
    expect(keys(indexes.find({ field: node, value: 'n9' }, all))).toBe('');
    expect(node.calls).toEqual(['x/c', 'x/a', 'x/b', 'x/d']); // once: it is kept
    indexes.clear();
    expect(keys(indexes.find({ field: node, value: 'n1' }, () => []))).toBe('');
  });

  test('follows changes, of its own prefix only', () => {
    const indexes = new Indexes<Pod>();
    const node = field('x/');
    const other = entry('y/a', 'n1');
    const [before, after] = [entry('x/a', 'n1'), entry('x/a', 'n2')];
    const find = (value: string): string => keys(indexes.find({ field: node, value }, () => [before, other]));
    expect([find('n1'), find('n2')]).toEqual(['x/a', '']);
    indexes.changed(other, undefined);
    indexes.changed(undefined, other);
    indexes.changed(before, after);
    expect([find('n1'), find('n2')]).toEqual(['', 'x/a']);
    indexes.changed(after, undefined);
    indexes.changed(undefined, entry('x/b', 'n2'));
    expect(find('n2')).toBe('x/b');
    indexes.changed(entry('x/c', 'bad'), undefined);
    indexes.changed(entry('x/d', 'none yet'), undefined);
    indexes.changed(entry('x/b', 'n2'), entry('x/b', 'bad'));
    expect(find('n2')).toBe('');
    expect(node.calls).not.toContain('y/a');
  });
});

describe('the objects of the state', () => {
  const named = (name: string, n: number = 0): Pod => ({ ...pod(`x/${name}`, { n }) });

  test.each<[string, Pod[], boolean]>([
    ['themselves', [named('a'), named('b')], true],
    ['in another order', [named('b'), named('a')], true],
    ['fewer', [named('a')], false],
    ['more', [named('a'), named('b'), named('c')], false],
    ['the last of which is another', [named('a'), named('b', 1)], false],
    ['the first of which is another', [named('a', 1), named('b')], false],
    ['with another name', [named('a'), named('c')], false],
    ['none', [], false],
  ])('are compared with a list: %s', (_, objects, expected) => {
    const entries = (pods: readonly Pod[]): { key: string; object: Pod }[] => {
      return pods.map((object) => ({ key: `x/${object.metadata?.name}`, object }));
    };
    const collection = collectionOf(toSettings<Pod>({}));
    collection.replace(entries([named('a'), named('b')]), '5', toStatus({ code: 410, reason: 'Expired', message: 'lost' }));
    expect(collection.isJust(entries(objects))).toBe(expected);
  });
});
