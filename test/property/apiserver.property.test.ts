// Any sequence of verbs, against a model that is obviously right: what is answered, what is there, what a watch tells. Each step is
// done in process and over HTTP, on two servers, which must answer the same.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ApiServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { runs } from '../runs.ts';
import { ORDERS, ORDERS_PATH, type Order } from '../unit/apiserver-rig.ts';

const RUNS = runs(300);
const timeout = 30_000 + RUNS * 100;

/** One verb on one object. The version is what is sent with it, where one is. */
interface Step {
  readonly verb: 'create' | 'put' | 'patch' | 'status' | 'delete' | 'hold' | 'free';
  readonly name: string;
  readonly count: number;
  readonly version: 'none' | 'current' | 'old';
}

const step: fc.Arbitrary<Step> = fc.record({
  verb: fc.constantFrom('create', 'create', 'put', 'patch', 'status', 'delete', 'hold', 'free'),
  name: fc.constantFrom('a', 'a', 'a', 'a', 'b', 'b', 'Bad_'),
  count: fc.constantFrom(-1, 0, 1, 2, 3),
  version: fc.constantFrom('none', 'current', 'old'),
});

/** What there is, as a model knows it. */
interface Known {
  count: number;
  phase: string | undefined;
  generation: number;
  held: boolean;
  deleted: boolean;
}

const FINALIZER = 'example.com/held';

/** What a step does to the model. Returns the code that is answered. */
function expected(model: Map<string, Known>, given: Step): number {
  const known = model.get(given.name);
  if (given.verb === 'create') {
    if (given.name === 'Bad_' || given.count < 0) return 422;
    if (known) return 409;
    model.set(given.name, { count: given.count, phase: undefined, generation: 1, held: false, deleted: false });
    return 201;
  }
  if (!known) return 404;
  if (given.verb === 'delete') {
    if (!known.held) model.delete(given.name);
    else if (!known.deleted) {
      known.deleted = true;
      known.generation++;
    }
    return 200;
  }
  if (given.verb === 'hold') {
    known.held = true;
    return 200;
  }
  if (given.verb === 'free') {
    known.held = false;
    if (known.deleted) model.delete(given.name);
    return 200;
  }
  if (given.version === 'old') return 409;
  if (given.verb === 'status') {
    known.phase = `${given.count}`;
    return 200;
  }
  if (given.count < 0) return 422;
  if (given.count !== known.count) known.generation++;
  known.count = given.count;
  return 200;
}

/** The same steps by one way. */
interface Way {
  run(given: Step, current: Order | undefined): Promise<{ code: number; body: unknown }>;
}

const asSent = (given: Step, current: Order | undefined): Order => {
  const { finalizers } = current?.metadata ?? {};
  const resourceVersion = { none: undefined, current: current?.metadata?.resourceVersion, old: '1' }[given.version];
  const metadata = { name: given.name, ...(finalizers && { finalizers }), ...(resourceVersion && { resourceVersion }) };
  const type = { apiVersion: 'example.com/v1', kind: 'Order' };
  return { ...type, metadata, spec: { count: given.count }, status: { phase: `${given.count}` } };
};

function overHttp(server: ApiServer): Way {
  const call = async (method: string, path: string, body?: unknown): Promise<{ code: number; body: unknown }> => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const init = { method, ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': type } }) };
    const response = await server.fetch(new Request(`http://a${ORDERS_PATH}${path}`, init));
    return { code: response.status, body: await response.json() };
  };
  return {
    run: (given, current) => {
      const at = `/${given.name}`;
      if (given.verb === 'delete') return call('DELETE', at);
      if (given.verb === 'hold') return call('PATCH', at, { metadata: { finalizers: [FINALIZER] } });
      if (given.verb === 'free') return call('PATCH', at, { metadata: { finalizers: null } });
      const sent = asSent(given, current);
      if (given.verb === 'create') return call('POST', '', { ...sent, metadata: { name: given.name } });
      if (given.verb === 'put') return call('PUT', at, sent);
      const { status, ...rest } = sent;
      return given.verb === 'status' ? call('PUT', `${at}/status`, sent) : call('PATCH', at, rest && { ...rest, status });
    },
  };
}

function inProcess(server: ApiServer): Way {
  const orders = server.resource<Order>('orders.example.com/v1').in('default');
  const told = async (done: Promise<unknown>, code: number): Promise<{ code: number; body: unknown }> => {
    try {
      return { code, body: await done };
    } catch (error) {
      if (!isWatchError(error) || !error.status) throw error;
      return { code: error.status.code, body: error.status };
    }
  };
  return {
    run: (given, current) => {
      if (given.verb === 'delete') return told(orders.delete(given.name), 200);
      if (given.verb === 'hold') return told(orders.patch(given.name, { metadata: { finalizers: [FINALIZER] } }), 200);
      if (given.verb === 'free') return told(orders.patch(given.name, { metadata: { finalizers: null } }), 200);
      const sent = asSent(given, current);
      if (given.verb === 'create') return told(orders.create({ ...sent, metadata: { name: given.name } }), 201);
      if (given.verb === 'put') return told(orders.update(sent), 200);
      if (given.verb === 'status') return told(orders.update(sent, { subresource: 'status' }), 200);
      return told(orders.patch(given.name, sent), 200);
    },
  };
}

const start = (cache: boolean): ApiServer => {
  let uids = 0;
  const options = { now: () => 1_000, random: () => 0.5, uid: () => `uid-${++uids}`, cache };
  return new ApiServer({ storage: new MemoryStorage(), resources: [ORDERS as ResourceDefinition], ...options });
};

function shownOf(order: Order): Known {
  const { metadata, spec, status } = order;
  return {
    count: spec?.count ?? Number.NaN,
    phase: status?.phase,
    generation: metadata?.generation ?? 0,
    held: metadata?.finalizers?.includes(FINALIZER) ?? false,
    deleted: metadata?.deletionTimestamp !== undefined,
  };
}

test(
  'any sequence of verbs is answered as the model says, in process and over HTTP, and a watch tells all of it',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25, size: 'max' }), fc.boolean(), async (steps, cache) => {
        const [one, other] = [start(cache), start(!cache)];
        const ways = [overHttp(one), inProcess(other)] as const;
        const orders = other.resource<Order>('orders.example.com/v1');
        const watch = await orders.watch({ sendInitialEvents: true });
        const model = new Map<string, Known>();
        for (const given of steps) {
          const current = (await orders.list()).items.find(({ metadata }) => metadata?.name === given.name);
          const code = expected(model, given);
          const [wire, local] = [await ways[0].run(given, current), await ways[1].run(given, current)];
          expect([given, wire.code]).toEqual([given, code]);
          expect(local.code).toBe(code);
          // A deletion says nothing in process, and Success over a wire.
          if (local.body !== undefined) expect(JSON.parse(JSON.stringify(local.body))).toEqual(wire.body);
          const { items, resourceVersion } = await orders.list();
          expect(new Map(items.map((item) => [item.metadata?.name, shownOf(item)]))).toEqual(model);
          expect(resourceVersion).toMatch(/^\d+$/);
        }
        const list = await orders.list();
        const folded = new Map<string, Order>();
        for (let at = ''; at !== list.resourceVersion && steps.length > 0; ) {
          const { value } = await watch.next();
          if (value === undefined || value.type === 'ERROR') throw new Error('the watch has ended');
          at = value.object.metadata?.resourceVersion ?? '';
          if (value.type === 'DELETED') folded.delete(value.object.metadata?.name ?? '');
          else if (value.type !== 'BOOKMARK') folded.set(value.object.metadata?.name ?? '', value.object);
        }
        if (steps.length > 0)
          expect([...folded.values()].sort((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1))).toEqual(
            list.items,
          );
        await Promise.all([one.shutdown(), other.shutdown()]);
      }),
      { numRuns: RUNS },
    );
  },
  timeout,
);
