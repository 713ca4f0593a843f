// Predicates, and questions about refusals: what each says of every event, and of every error.
import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/object.ts';
import {
  allOf,
  annotationsChanged,
  anyOf,
  deletionStarted,
  generationChanged,
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isInvalid,
  isNotFound,
  isTooManyRequests,
  labelsChanged,
  not,
  statusChanged,
  type When,
} from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { expired, refused } from '../../src/storage/statuses.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { type Order, rig } from './apiserver-rig.ts';

const OLD: Order = {
  metadata: { name: 'a', resourceVersion: '1', generation: 1, labels: { a: '1' }, annotations: {} },
  status: { phase: 'A' },
};
const DELETING: Order = { ...OLD, metadata: { ...OLD.metadata, generation: 2, deletionTimestamp: '2026-01-01T00:00:00Z' } };
const EVENTS: Readonly<Record<string, readonly [Order | undefined, Order | undefined]>> = {
  added: [undefined, OLD],
  addedDeleting: [undefined, DELETING],
  deleted: [OLD, undefined],
  resync: [OLD, OLD],
  version: [OLD, { ...OLD, metadata: { ...OLD.metadata, resourceVersion: '2' } }],
  noAnnotations: [OLD, { ...OLD, metadata: { ...OLD.metadata, annotations: undefined } }],
  generation: [OLD, { ...OLD, metadata: { ...OLD.metadata, generation: 2 } }],
  labels: [OLD, { ...OLD, metadata: { ...OLD.metadata, labels: { a: '2' } } }],
  annotations: [OLD, { ...OLD, metadata: { ...OLD.metadata, annotations: { a: '1' } } }],
  status: [OLD, { ...OLD, status: { phase: 'B' } }],
  deletion: [OLD, DELETING],
  deleting: [DELETING, { ...DELETING, status: { phase: 'B' } }],
};

/** The names of the events that pass. */
function passing(when: When<Order>): string[] {
  const typeOf = (old: unknown, object: unknown) => (old ? (object ? 'MODIFIED' : 'DELETED') : 'ADDED');
  return Object.keys(EVENTS).filter((name) => {
    const [old, object] = EVENTS[name] ?? [];
    return when(old, object, typeOf(old, object));
  });
}

const ALWAYS = ['added', 'addedDeleting', 'deleted'];

describe('predicates', () => {
  it.each<[string, When<object>, readonly string[]]>([
    ['generationChanged', generationChanged, [...ALWAYS, 'generation', 'deletion']],
    ['labelsChanged', labelsChanged, [...ALWAYS, 'labels']],
    ['annotationsChanged', annotationsChanged, [...ALWAYS, 'annotations']],
    ['statusChanged', statusChanged, [...ALWAYS, 'status', 'deleting']],
    ['deletionStarted', deletionStarted, ['addedDeleting', 'deleted', 'deletion']],
    ['anyOf', anyOf(labelsChanged, statusChanged), [...ALWAYS, 'labels', 'status', 'deleting']],
    ['allOf', allOf(generationChanged, deletionStarted), ['addedDeleting', 'deleted', 'deletion']],
    ['anyOf of nothing', anyOf(), []],
    ['allOf of nothing', allOf(), Object.keys(EVENTS)],
    ['not', not(generationChanged), Object.keys(EVENTS).filter((name) => ![...ALWAYS, 'generation', 'deletion'].includes(name))],
  ])('%s', (_, when, names) => {
    expect(passing(when)).toEqual(names);
  });

  it('mix with those of a kind', () => {
    const isNew: When<Order> = (_, object) => object?.status?.phase === 'B';
    expect(passing(allOf(statusChanged, isNew))).toEqual(['status', 'deleting']);
    const named: When<KubernetesObject> = (_, object) => object?.metadata?.name === 'a';
    expect(passing(allOf<Order>(named, not(isNew), deletionStarted))).toEqual(['addedDeleting', 'deletion']);
  });
});

const QUESTIONS = { isNotFound, isConflict, isAlreadyExists, isForbidden, isExpired, isInvalid, isTooManyRequests };

/** The questions to which an error answers yes. */
const answers = (error: unknown): string[] => Object.entries(QUESTIONS).flatMap(([name, ask]) => (ask(error) ? [name] : []));

describe('refusals', () => {
  it('of a server in process, and of a storage', async () => {
    const { server } = rig();
    const storage = new MemoryStorage();
    const orders = server.resource<Order>('orders.example.com/v1').in('default');
    const created = await orders.create({ metadata: { name: 'a' } });
    const changed = await orders.patch('a', { spec: { count: 1 } });
    const reasonOf = async (asked: Promise<unknown>): Promise<string[]> => answers(await asked.catch((error: unknown) => error));
    expect(await reasonOf(orders.get('b'))).toEqual(['isNotFound']);
    expect(await reasonOf(orders.update(created))).toEqual(['isConflict']);
    expect(await reasonOf(orders.create({ metadata: { name: 'a' } }))).toEqual(['isAlreadyExists']);
    expect(await reasonOf(orders.update({ ...changed, spec: { count: -1 } }))).toEqual(['isInvalid']);
    expect(await reasonOf(orders.watch({ resourceVersion: '99999999' }))).toEqual(['isExpired']);
    expect(await reasonOf(storage.update('a', (object) => object))).toEqual(['isNotFound']);
    await storage.create('a', {});
    expect(await reasonOf(storage.create('a', {}))).toEqual(['isAlreadyExists']);
  });

  it.each<[string, unknown, readonly string[]]>([
    ['403', refused(403, 'Forbidden', 'x'), ['isForbidden']],
    ['410', expired('1', '2'), ['isExpired']],
    ['410 of upstream', refused(410, 'Gone', 'x'), ['isExpired']],
    ['429', refused(429, 'TooManyRequests', 'x'), ['isTooManyRequests']],
    ['a reason of its own', refused(409, 'Busy', 'x'), ['isConflict']],
    ['a cause', new Error('copying failed', { cause: new Error('b', { cause: refused(404, 'NotFound', 'x') }) }), ['isNotFound']],
    ['the cause of an error that says what it is', new WatchError('TIMEOUT', 'x', { cause: refused(404, 'NotFound', 'x') }), []],
    [
      'a plain object of another copy of the package',
      { name: 'WatchError', code: 'REFUSED', status: { code: 404 } },
      ['isNotFound'],
    ],
    ['no Status', new WatchError('REFUSED', 'x'), []],
    ['another library', Object.assign(new Error('x'), { code: 404 }), []],
  ])('%s', (_, error, names) => {
    expect(answers(error)).toEqual(names);
  });

  it('nothing that is thrown makes them throw', () => {
    const cycle: { cause?: unknown } = {};
    cycle.cause = cycle;
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    for (const thrown of [undefined, null, 0, 'x', Symbol('x'), {}, () => {}, Object.create(null), cycle, proxy]) {
      expect(answers(thrown)).toEqual([]);
    }
  });
});
