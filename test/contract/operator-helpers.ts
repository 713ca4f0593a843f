// What the helpers of `watchmux/operator` do, and what they take for granted about servers, by running it: against an API server in
// process, and against a kube-apiserver.
import { expect } from 'vitest';
import type { ResourceClient } from '../../src/cache/resource-client.ts';
import {
  apply,
  createOrUpdate,
  ensureFinalizer,
  equals,
  generationChanged,
  isAlreadyExists,
  isConflict,
  isExpired,
  isInvalid,
  isNotFound,
  removeFinalizer,
  updateStatus,
} from '../../src/operator/index.ts';
import type { Order, ResourceCase } from './resource-client.ts';

const errorOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'none',
    (error: unknown) => error,
  );
const named = (name: string, more: object = {}): Order => ({ metadata: { name, ...more }, spec: { count: 1 } });
const FINALIZERS = [1, 2, 3, 4].map((each) => `example.com/f${each}`);

export const OPERATOR_HELPERS_CONTRACT: readonly ResourceCase[] = [
  {
    name: 'refusals are told apart',
    run: async (all) => {
      const orders = all.in('default');
      const created = await orders.create(named('refused'));
      await orders.patch('refused', { spec: { count: 2 } });
      expect(isNotFound(await errorOf(orders.get('nowhere')))).toBe(true);
      expect(isConflict(await errorOf(orders.update(created)))).toBe(true);
      expect(isAlreadyExists(await errorOf(orders.create(named('refused'))))).toBe(true);
      expect(isInvalid(await errorOf(orders.create(named('NOT VALID'))))).toBe(true);
      expect(isExpired(await errorOf(orders.list({ limit: 1, continue: 'x' })))).toBe(false);
      await orders.delete('refused');
    },
  },
  {
    name: 'equals takes for the same what is the same to a server',
    run: async (all) => {
      const orders = all.in('default');
      const empty = { labels: {}, annotations: {}, finalizers: [], ownerReferences: [], generateName: '' };
      const created = await orders.create(named('equal', empty));
      for (const name of Object.keys(empty)) expect(created.metadata).not.toHaveProperty(name);
      expect(equals({ ...created, metadata: { ...created.metadata, ...empty } }, created)).toBe(true);
      // What differs by empty values differs: the server has it as it was sent.
      const written = await orders.update({ ...created, status: { phase: '' } }, { subresource: 'status' });
      expect(written.status).toEqual({ phase: '' });
      expect(equals(written.status, {})).toBe(false);
      // A write of the same is none.
      expect(await orders.update({ ...written, metadata: { ...written.metadata, ...empty } })).toEqual(written);
      // Null is left out, or refused: it never makes a difference.
      const nulled = await orders
        .update({ ...written, spec: { count: 1, replicas: null } as never })
        .catch((error: unknown) => error);
      expect(isInvalid(nulled) || equals(nulled, written)).toBe(true);
      await orders.delete('equal');
    },
  },
  {
    name: 'finalizers of several writers, and a deletion',
    run: async (all) => {
      const orders = all.in('default');
      const created = await orders.create(named('held'));
      const added = await Promise.all(FINALIZERS.map((name) => ensureFinalizer(orders, created, name)));
      expect(added.map(({ result }) => result)).toEqual(FINALIZERS.map(() => 'added'));
      const held = await orders.get('held');
      expect([...(held.metadata?.finalizers ?? [])].sort()).toEqual(FINALIZERS);
      const deleted = (await orders.delete('held')) as Order;
      expect(generationChanged(held, deleted, 'MODIFIED')).toBe(true);
      const late = await ensureFinalizer(orders, held, 'example.com/late');
      expect(late).toMatchObject({ result: 'deleting', object: { metadata: { deletionTimestamp: expect.any(String) } } });
      const removed = await Promise.all(FINALIZERS.map((name) => removeFinalizer(orders, held, name)));
      expect(removed.map(({ result }) => result)).toEqual(FINALIZERS.map(() => 'removed'));
      expect(await removeFinalizer(orders, held, FINALIZERS[0] as string)).toEqual({ result: 'gone', object: undefined });
      const again = await orders.create(named('held', { finalizers: FINALIZERS.slice(0, 1) }));
      expect((await removeFinalizer(orders, held, FINALIZERS[0] as string)).result).toBe('gone');
      expect(isInvalid(await errorOf(ensureFinalizer(orders, again, 'not valid/')))).toBe(true);
      expect((await removeFinalizer(orders, again, FINALIZERS[0] as string)).result).toBe('removed');
      await orders.delete('held');
    },
  },
  {
    name: 'statuses and objects of several writers',
    run: async (all) => {
      const orders = all.in('default');
      const writers = [1, 2, 3, 4];
      const results = await Promise.all(
        writers.map(() =>
          createOrUpdate(orders, named('shared'), (draft) => {
            draft.spec = { count: (draft.spec?.count ?? 0) + 1 };
          }),
        ),
      );
      expect(results.map(({ result }) => result).sort()).toEqual(['created', 'updated', 'updated', 'updated']);
      const shared = await orders.get('shared');
      expect(shared.spec).toEqual({ count: 5 });
      const count = (): Promise<Order> =>
        updateStatus(orders, shared, (draft) => {
          draft.status = { phase: `${draft.status?.phase ?? ''}I` };
        });
      await Promise.all(writers.map(count));
      const counted = await orders.get('shared');
      expect(counted.status).toEqual({ phase: 'IIII' });
      expect((await createOrUpdate(orders, named('shared'), () => {})).object).toEqual(counted);
      await orders.delete('shared');
      expect(isNotFound(await errorOf(count()))).toBe(true);
    },
  },
  {
    name: 'apply says where the object is, and takes over fields',
    run: async (all: ResourceClient<Order>) => {
      const orders = all.in('default');
      const applied = await apply(orders, named('applied'), { fieldManager: 'me' });
      expect(applied).toMatchObject({ kind: 'Order', metadata: { namespace: 'default' }, spec: { count: 1 } });
      const other = { metadata: { name: 'applied' }, spec: { count: 2 } };
      expect((await apply(orders, other, { fieldManager: 'you' })).spec).toEqual({ count: 2 });
      expect(isConflict(await errorOf(apply(orders, named('applied'), { fieldManager: 'me', force: false })))).toBe(true);
      const gone = await apply(all, { metadata: { name: 'applied', namespace: 'default' } }, { fieldManager: 'you' });
      expect(gone.spec?.count).toBeUndefined();
      await orders.delete('applied');
    },
  },
];
