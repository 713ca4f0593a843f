// The helpers that write: what they send, how they meet with others' writes, and what they do not send.
import { describe, expect, it } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import type { ResourceClient } from '../../src/cache/resource-client.ts';
import {
  apply,
  createOrUpdate,
  ensureFinalizer,
  type Mutable,
  removeFinalizer,
  retryOnConflict,
  updateStatus,
} from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { ORDERS, type Order, rig } from './apiserver-rig.ts';

const METHODS = ['get', 'create', 'update', 'patch', 'delete'] as const;

/**
 * The orders of a server, and what was asked of them. `before` runs before the request of that place in the list, as one by another
 * client would.
 */
function world(before: Readonly<Record<number, (orders: ResourceClient<Order>) => unknown>> = {}) {
  const orders: ResourceClient<Order> = rig().server.resource<Order>('orders.example.com/v1').in('default');
  const asked: string[] = [];
  const client = Object.create(orders) as ResourceClient<Order>;
  for (const method of METHODS) {
    const call = orders[method].bind(orders) as (...args: unknown[]) => Promise<never>;
    const told = async (...args: unknown[]): Promise<never> => {
      const { subresource } = (args.at(-1) ?? {}) as { subresource?: string };
      const at = asked.push(subresource ? `${method} ${subresource}` : method) - 1;
      await before[at]?.(orders);
      return call(...args);
    };
    Object.defineProperty(client, method, { value: told });
  }
  for (const name of ['type', 'namespace'] as const) Object.defineProperty(client, name, { value: orders[name] });
  return { orders, client, asked };
}

const order = (more: object = {}): Order => ({ metadata: { name: 'one', ...more }, spec: { item: 'tea' } });
const label = (orders: ResourceClient<Order>): Promise<Order> => orders.patch('one', { metadata: { labels: { by: 'other' } } });

describe('createOrUpdate', () => {
  const count = (draft: Mutable<Order>): void => {
    draft.spec = { ...draft.spec, count: 3 };
  };

  it('creates, then leaves alone, then updates', async () => {
    const { client, asked } = world();
    const desired = order();
    const created = await createOrUpdate(client, desired, count);
    expect(created).toMatchObject({
      result: 'created',
      object: { metadata: { generation: 1 }, spec: { item: 'tea', count: 3 } },
    });
    expect(desired).toEqual(order());
    expect((await createOrUpdate(client, desired, count)).result).toBe('unchanged');
    const updated = await createOrUpdate(client, desired, async (draft) => {
      draft.spec = { item: 'milk' };
    });
    expect(updated).toMatchObject({ result: 'updated', object: { metadata: { generation: 2 }, spec: { item: 'milk' } } });
    expect(asked).toEqual(['get', 'create', 'get', 'get', 'update']);
  });

  it('looks into a cache first', async () => {
    const { client, orders, asked } = world();
    const { object } = await createOrUpdate(client, order(), count);
    asked.length = 0;
    const cached = (key: string): Order | undefined => (key === 'default/one' ? object : undefined);
    expect(await createOrUpdate(client, order(), count, { cached })).toEqual({ result: 'unchanged', object });
    expect(asked).toEqual([]);
    await label(orders);
    const result = await createOrUpdate(
      client,
      order(),
      (draft) => {
        draft.spec = { count: 4 };
      },
      { cached },
    );
    expect(result.object).toMatchObject({ metadata: { labels: { by: 'other' } }, spec: { count: 4 } });
    expect(asked).toEqual(['update', 'get', 'update']);
  });

  it('meets with one that creates, changes or deletes it meanwhile', async () => {
    const racing = world({ 1: (orders) => orders.create(order({ labels: { by: 'other' } })) });
    expect(await createOrUpdate(racing.client, order(), count)).toMatchObject({
      result: 'updated',
      object: { metadata: { labels: { by: 'other' } }, spec: { count: 3 } },
    });
    expect(racing.asked).toEqual(['get', 'create', 'get', 'update']);
    const losing = world({ 1: (orders) => orders.delete('one') });
    await losing.orders.create(order());
    expect((await createOrUpdate(losing.client, order(), count)).result).toBe('created');
    expect(losing.asked).toEqual(['get', 'update', 'get', 'create']);
  });

  it('gives up after ten conflicts, with one', async () => {
    const { client, orders, asked } = world(Object.fromEntries(Array.from({ length: 30 }, (_, at) => [at, bump])));
    await orders.create(order());
    const error = await createOrUpdate(client, order(), count).catch((reason: unknown) => reason);
    expect(isWatchError(error, 'REFUSED') && error.status?.reason).toBe('Conflict');
    expect((error as Error).message).toContain('gave up after 10 attempts: 409');
    expect(asked).toHaveLength(20);
    function bump(by: ResourceClient<Order>): Promise<Order> {
      return by.patch('one', { metadata: { annotations: { at: String(asked.length) } } });
    }
  });

  it('tells if the server has not written the status, which has a path of its own', async () => {
    const { client, orders, asked } = world();
    const both = (draft: Mutable<Order>): void => {
      count(draft);
      draft.status = { phase: 'Done' };
    };
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^default\/one: .*use updateStatus$/) };
    await expect(createOrUpdate(client, order(), both)).rejects.toMatchObject(refusal);
    await expect(createOrUpdate(client, order(), both)).rejects.toMatchObject(refusal);
    expect(await orders.get('one')).toMatchObject({ spec: { item: 'tea', count: 3 } });
    expect(asked).toEqual(['get', 'create', 'get', 'update']);
    // It is no change to keep what is there, and a kind without this path has its status written with the rest.
    await updateStatus(orders, await orders.get('one'), (draft) => {
      draft.status = { phase: 'Done' };
    });
    expect((await createOrUpdate(client, order(), both)).result).toBe('unchanged');
    const plain = new ApiServer({ storage: new MemoryStorage(), resources: [{ ...ORDERS, status: false }] });
    const whole = plain.resource<Order>('orders.example.com/v1').in('default');
    for (const result of ['created', 'unchanged'])
      expect(await createOrUpdate(whole, order(), both)).toMatchObject({ result, object: { status: { phase: 'Done' } } });
  });

  it('refuses a mutation of name or namespace, and passes on what a mutation throws', async () => {
    const { client, asked } = world();
    const renamed = createOrUpdate(client, order(), (draft) => {
      draft.metadata = { name: 'two' };
    });
    await expect(renamed).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('default/one') });
    const thrown = refused(409, 'Conflict', 'of something else');
    const failed = createOrUpdate(client, order(), () => Promise.reject(thrown));
    await expect(failed).rejects.toBe(thrown);
    expect(asked).toEqual(['get', 'get']);
  });
});

describe('updateStatus', () => {
  const done = (draft: Mutable<Order>): void => {
    draft.status = { phase: 'Done' };
  };

  it('writes the status and nothing else, once', async () => {
    const { client, asked } = world();
    const created = await client.create(order());
    const written = await updateStatus(client, created, done);
    expect(written).toMatchObject({ metadata: { name: 'one' }, spec: { item: 'tea' }, status: { phase: 'Done' } });
    expect(created).not.toHaveProperty('status');
    expect(await updateStatus(client, written, done)).toBe(written);
    expect(asked).toEqual(['create', 'update status']);
  });

  it.each<[member: string, change: (draft: Mutable<Order>) => void]>([
    ['spec', (draft) => Object.assign(draft.spec ?? {}, { item: 'changed' })],
    ['spec', (draft) => void delete draft.spec],
    ['more', (draft) => Object.assign(draft, { more: 1 })],
    ['metadata.labels', ({ metadata }) => Object.assign(metadata ?? {}, { labels: { a: 'b' } })],
    ['metadata.name', ({ metadata }) => Object.assign(metadata ?? {}, { annotations: {}, name: 'other' })],
  ])('refuses a change of %s, which would not be written', async (member, change) => {
    const { client, asked } = world();
    const created = await client.create(order());
    const update = updateStatus(client, created, (draft) => {
      draft.status = { phase: 'Done' };
      change(draft);
    });
    await expect(update).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: `default/one: updateStatus writes nothing but the status, and \`mutate\` has changed ${member}`,
    });
    expect(asked).toEqual(['create']);
  });

  it('takes what a server sees as no change', async () => {
    const { client } = world();
    const created = await client.create(order());
    const written = await updateStatus(client, created, (draft) => {
      Object.assign(draft, { more: undefined, metadata: { ...draft.metadata, labels: {} }, status: { phase: 'Done' } });
    });
    expect(written.status).toEqual({ phase: 'Done' });
  });

  it('mutates what is newer', async () => {
    const { client, orders, asked } = world();
    const created = await orders.create(order());
    await orders.subresource('status').patch('one', { status: { phase: 'A' } });
    const seen: unknown[] = [];
    const written = await updateStatus(client, created, (draft) => {
      seen.push(draft.status?.phase);
      draft.status = { phase: `${draft.status?.phase}B` };
    });
    expect([seen, written.status]).toEqual([[undefined, 'A'], { phase: 'AB' }]);
    expect(asked).toEqual(['update status', 'get', 'update status']);
    // Without a version, an update would win over everything.
    expect((await updateStatus(client, order(), () => {})).status).toEqual({ phase: 'AB' });
  });

  it('does not write to another object of the same name', async () => {
    const { client, orders } = world();
    const created = await orders.create(order());
    await orders.delete('one');
    await expect(updateStatus(client, created, done)).rejects.toMatchObject({ status: { code: 404 } });
    await orders.create(order());
    await expect(updateStatus(client, created, done)).rejects.toMatchObject({ status: { code: 404 } });
    expect(await orders.get('one')).not.toHaveProperty('status');
  });
});

describe('what mutate returns', () => {
  it.each<[what: string, mutate: (draft: Mutable<Order>) => unknown]>([
    ['an object', (draft) => ({ ...draft, status: { phase: 'Done' } })],
    ['a promise of one', async (draft) => ({ ...structuredClone(draft), spec: { item: 'milk' } })],
  ])('is refused if it is %s, which would not be written', async (_, mutate) => {
    const { client, orders, asked } = world();
    const created = await orders.create(order());
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('mutate: expected changes of its argument') };
    await expect(updateStatus(client, created, mutate)).rejects.toMatchObject(refusal);
    await expect(createOrUpdate(client, order(), mutate)).rejects.toMatchObject(refusal);
    expect(asked).toEqual(['get']);
  });

  it.each<[what: string, of: (draft: Mutable<Order>, status: { phase: string }) => unknown]>([
    ['the draft', (draft) => draft],
    ['a part that it has assigned', (_, status) => status],
    ['a template', () => ({ metadata: { labels: { a: 'b' } }, spec: {} })],
    ['another object', () => ({ metadata: { name: 'other' } })],
    ['null', () => null],
  ])('does not matter if it is %s', async (_, of) => {
    const { client, orders } = world();
    const written = await updateStatus(client, await orders.create(order()), (draft) => {
      const status = { phase: 'Done' };
      draft.status = status;
      return of(draft, status);
    });
    expect(written.status).toEqual({ phase: 'Done' });
  });
});

describe('finalizers', () => {
  const MINE = 'example.com/mine';

  it('are added and removed once', async () => {
    const { client, asked } = world();
    const created = await client.create(order());
    const added = await ensureFinalizer(client, created, MINE);
    expect(added).toMatchObject({ result: 'added', object: { metadata: { finalizers: [MINE] } } });
    if (!added.object) throw new Error('gone');
    expect(await ensureFinalizer(client, added.object, MINE)).toEqual({ result: 'unchanged', object: added.object });
    // The state before: the server says otherwise.
    expect(await ensureFinalizer(client, created, MINE)).toEqual({ result: 'unchanged', object: added.object });
    const removed = await removeFinalizer(client, added.object, MINE);
    expect(removed.result).toBe('removed');
    expect(removed.object?.metadata?.finalizers ?? []).toEqual([]);
    expect(await removeFinalizer(client, created, MINE)).toEqual({ result: 'unchanged', object: created });
    expect(asked).toEqual(['create', 'patch', 'patch', 'get', 'patch']);
  });

  it('are kept if others set them, whatever else changes', async () => {
    const { client, orders, asked } = world({
      0: label,
      1: (by) => by.patch('one', { metadata: { finalizers: ['a/b', MINE] } }),
    });
    const created = await orders.create(order());
    const added = await ensureFinalizer(client, created, MINE);
    expect(added.object?.metadata).toMatchObject({ finalizers: [MINE], labels: { by: 'other' } });
    const removed = await removeFinalizer(client, added.object as Order, MINE);
    expect(removed.object?.metadata?.finalizers).toEqual(['a/b']);
    expect(asked).toEqual(['patch', 'patch', 'get', 'patch']);
  });

  it('are not added to what is being deleted, and the last one lets it go', async () => {
    const { client, orders } = world({ 0: (by) => by.delete('one') });
    const created = await orders.create(order({ finalizers: ['a/b'] }));
    const late = await ensureFinalizer(client, created, MINE);
    expect(late).toMatchObject({ result: 'deleting', object: { metadata: { finalizers: ['a/b'] } } });
    expect(await ensureFinalizer(client, late.object as Order, MINE)).toEqual(late);
    expect((await removeFinalizer(client, created, 'a/b')).result).toBe('removed');
    expect(await removeFinalizer(client, created, 'a/b')).toEqual({ result: 'gone', object: undefined });
    await orders.create(order({ finalizers: ['a/b'] }));
    expect(await removeFinalizer(client, created, 'a/b')).toEqual({ result: 'gone', object: undefined });
    expect(await ensureFinalizer(client, created, MINE)).toEqual({ result: 'gone', object: undefined });
    expect((await orders.get('one')).metadata?.finalizers).toEqual(['a/b']);
  });

  it('pass on a refusal that is not about others', async () => {
    const { client, orders, asked } = world();
    const created = await orders.create(order());
    await expect(ensureFinalizer(client, created, 'not valid/')).rejects.toMatchObject({ status: { code: 422 } });
    expect(asked).toEqual(['patch', 'get']);
  });
});

describe('apply', () => {
  it('adds name and namespace, and takes over fields', async () => {
    const { client } = world();
    const applied = await apply(client, { metadata: { name: 'one' }, spec: { item: 'tea' } }, { fieldManager: 'me' });
    expect(applied).toMatchObject({ kind: 'Order', apiVersion: 'example.com/v1', metadata: { namespace: 'default' } });
    const taken = { metadata: { name: 'one' }, spec: { item: 'milk' } };
    expect((await apply(client, taken, { fieldManager: 'you' })).spec?.item).toBe('milk');
    const mine = apply(client, { metadata: { name: 'one' }, spec: { item: 'tea' } }, { fieldManager: 'me', force: false });
    await expect(mine).rejects.toMatchObject({ status: { code: 409 } });
  });

  it('says where the object is', async () => {
    const sent: unknown[] = [];
    const patch = async (...args: unknown[]): Promise<never> => sent.push(args) as never;
    const client = { type: { version: 'v1', plural: 'pods', namespaced: true }, namespace: 'default', patch } as never;
    await apply(client, { metadata: { name: 'one', labels: {} } }, { fieldManager: 'me', force: undefined, dryRun: true });
    const metadata = { name: 'one', namespace: 'default', labels: {} };
    expect(sent).toEqual([['default/one', { metadata }, { fieldManager: 'me', force: true, dryRun: true, type: 'apply' }]]);
  });

  it('needs a name and a manager', async () => {
    const { client } = world();
    await expect(apply(client, {}, { fieldManager: 'me' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(apply(client, order(), { fieldManager: '' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

describe('retryOnConflict', () => {
  it('does work again after a conflict, and after nothing else', async () => {
    const conflict = refused(409, 'Conflict', 'x');
    const tries: number[] = [];
    const once = (attempt: number): string => {
      tries.push(attempt);
      if (attempt === 1) throw conflict;
      return 'done';
    };
    expect(await retryOnConflict(once)).toBe('done');
    expect(tries).toEqual([1, 2]);
    const exists = refused(409, 'AlreadyExists', 'x');
    await expect(retryOnConflict(() => Promise.reject(exists))).rejects.toBe(exists);
  });

  it('ends with its signal', async () => {
    const controller = new AbortController();
    const work = (): never => {
      controller.abort(new Error('enough'));
      throw refused(409, 'Conflict', 'x');
    };
    await expect(retryOnConflict(work, { signal: controller.signal })).rejects.toThrow('enough');
  });
});

it('options that do not exist are refused', async () => {
  const { client } = world();
  const options = { subresource: 'status' } as object;
  await expect(updateStatus(client, order(), () => {}, options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(ORDERS.status).toBe(true);
});
