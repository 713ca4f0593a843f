// What clients send and ask for is bounded, and whose turn it is goes by tenant and address.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ResourceDefinition } from '../../src/apiserver/index.ts';
import { toPatch } from '../../src/apiserver/patch/patch.ts';
import { duplicateFields, MAX_KEYS, MAX_PARTS, parsingBody } from '../../src/apiserver/request/json.ts';
import { readDeleteOptions, readProtobuf } from '../../src/apiserver/request/protobuf.ts';
import { toKnownFields, unknownFields } from '../../src/apiserver/validation/field-check.ts';
import { compileSchema } from '../../src/apiserver/validation/object-schema.ts';
import { MAX_MATCHED_CHARS } from '../../src/apiserver/validation/patterns.ts';
import { metadataCauses } from '../../src/apiserver/verbs/metadata.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { preparing } from '../../src/storage/values.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { atOnce, FairQueue, requestPace, type Work } from '../../src/watch/fair-queue.ts';
import { ORDER, ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';
import { macrotask } from './support.ts';

const record = (count: number, value: unknown = ''): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, value]));
const list = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

describe('a selector', () => {
  test.each(['labelSelector', 'fieldSelector'])('%s has at most 256 requirements', async (name) => {
    const { call } = rig({ maxUrlBytes: 100_000, maxSelectorLength: 100_000 });
    const of = (count: number): string => list(count, (at) => (name === 'labelSelector' ? `!x${at}` : `spec.item!=${at}`)).join();
    const ask = (count: number): ReturnType<typeof call> =>
      call('GET', `${ORDERS_PATH}?${name}=${encodeURIComponent(of(count))}`);
    expect((await ask(256)).code).toBe(200);
    const refused = await ask(257);
    expect([refused.code, refused.body.message]).toEqual([400, `${name}: expected at most 256 requirements, got 257`]);
  });
});

describe('a body', () => {
  const create = (spec: unknown): Promise<number> =>
    rig()
      .call('POST', ORDERS_PATH, { metadata: { name: 'a' }, spec })
      .then(({ code }) => code);

  test('has so many members in one object, and no more', async () => {
    expect([await create(record(MAX_KEYS)), await create(record(MAX_KEYS + 1))]).toEqual([201, 413]);
  });

  test('has so many members, objects and lists in all, and no more', async () => {
    // Its apiVersion and kind, metadata, its name, spec, its list, and three objects and a list around them.
    const rest = 10;
    const objects = (count: number): object => ({ list: list(count, () => ({})) });
    expect([await create(objects(MAX_PARTS - rest)), await create(objects(MAX_PARTS - rest + 1))]).toEqual([201, 413]);
  });

  test('that patches an object does not make it any larger than twice that', async () => {
    const { call } = rig();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const codes: number[] = [];
    for (const name of ['one', 'two', 'three']) {
      codes.push((await call('PATCH', `${ORDERS_PATH}/a`, { spec: { [name]: list(100_000, () => ({})) } })).code);
    }
    expect(codes).toEqual([200, 200, 413]);
  });
});

test('of many small bodies that come in the same moment, a few are read at a stretch', async () => {
  const clock = new FakeClock();
  const { server } = rig({ clock });
  let [now, most] = [0, 0];
  const { parse } = JSON;
  JSON.parse = (text: string, ...rest: []) => {
    if (text.includes('{"name":"small')) {
      clock.advance(3);
      most = Math.max(most, ++now);
    }
    return parse(text, ...rest);
  };
  onTestFinished(() => void Object.assign(JSON, { parse }));
  const bodies = list(30, () => new TransformStream<Uint8Array>());
  const url = `http://127.0.0.1${ORDERS_PATH}`;
  const headers = { 'content-type': 'application/json' };
  const answers = bodies.map(({ readable: body }) =>
    server.fetch(new Request(url, { method: 'POST', headers, body, duplex: 'half' } as RequestInit)),
  );
  let isOver = false;
  const all = Promise.all(answers).finally(() => {
    isOver = true;
  });
  for (const _ of bodies) await macrotask();
  for (const [at, { writable }] of bodies.entries()) {
    const writer = writable.getWriter();
    void writer.write(new TextEncoder().encode(JSON.stringify({ ...ORDER, metadata: { name: `small${at}` } })));
    void writer.close();
    // As between two connections that have something to read.
    for (let step = 0; step < 200; step++) await Promise.resolve();
  }
  for (now = 0; !isOver; now = 0) await macrotask();
  expect((await all).map(({ status }) => status)).toEqual(Array(30).fill(201));
  expect(most).toBeLessThan(8);
});

describe('the body of a deletion', () => {
  test.each([`${ORDERS_PATH}/a`, ORDERS_PATH])('is as long as its options need: %s', async (path) => {
    const { call } = rig();
    const least = JSON.stringify({ kind: 'DeleteOptions', more: '' }).length;
    const remove = (bytes: number): Promise<number> =>
      call('DELETE', path, { kind: 'DeleteOptions', more: 'x'.repeat(bytes - least) }).then(({ code }) => code);
    expect((await call('POST', ORDERS_PATH, { metadata: { name: 'a' } })).code).toBe(201);
    expect([await remove(65_537), (await call('GET', `${ORDERS_PATH}/a`)).code]).toEqual([413, 200]);
    expect([await remove(65_536), (await call('GET', `${ORDERS_PATH}/a`)).code]).toEqual([200, 404]);
  });
});

describe('metadata', () => {
  test.each([
    ['labels', record(4_096), record(4_097)],
    ['annotations', record(4_096), record(4_097)],
    ['finalizers', list(50_000, (at) => `a/${at}`), list(50_001, (at) => `a/${at}`)],
  ])('has so many %s, and no more', async (name, most, more) => {
    const { call } = rig();
    expect((await call('POST', ORDERS_PATH, { metadata: { name: 'a', [name]: most } })).code).toBe(201);
    const { code, body } = await call('POST', ORDERS_PATH, { metadata: { name: 'b', [name]: more } });
    expect([code, body.details.causes]).toEqual([
      422,
      [expect.objectContaining({ field: `metadata.${name}`, reason: 'FieldValueTooMany' })],
    ]);
  });

  test('has 256 KiB of labels, and no more', async () => {
    const { call } = rig();
    const labels = (count: number): object =>
      Object.fromEntries(
        list(count, (at) => [`${'p'.repeat(60)}.${'q'.repeat(60)}/${String(at).padStart(7, '0')}`, 'v'.repeat(63)]),
      );
    const each = 129 + 63;
    const most = Math.floor(262_144 / each);
    expect((await call('POST', ORDERS_PATH, { metadata: { name: 'a', labels: labels(most) } })).code).toBe(201);
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'b', labels: labels(most + 1) } });
    expect(body.details.causes).toEqual([
      { reason: 'FieldValueTooLong', field: 'metadata.labels', message: 'Too long: may not be more than 262144 bytes' },
    ]);
  });
});

describe('a schema', () => {
  const checks = async (spec: object, value: unknown): Promise<string | undefined> => {
    const validate = await compileSchema({ type: 'object', properties: { spec } } as never);
    return atOnce(validate({ metadata: { name: 'a' }, spec: value } as KubernetesObject))[0]?.message;
  };

  test('has patterns that take linear time', async () => {
    const pattern = '^([a-z0-9]+-?)+$';
    expect(await checks({ type: 'string', pattern }, 'a-b-c')).toBeUndefined();
    // With backtracking, this would take longer than the sun will shine.
    expect(await checks({ type: 'string', pattern }, `${'a'.repeat(10_000)}!`)).toMatch(/^Invalid value: "aaa/);
    expect(
      await checks({ patternProperties: { [pattern]: { type: 'string' } } }, { [`${'a'.repeat(10_000)}!`]: 1, b: 'x' }),
    ).toBeUndefined();
    expect(await checks({ patternProperties: { [pattern]: { type: 'string' } } }, { b: 1 })).toMatch(/must be of type string/);
  });

  test('has patterns for texts of so many characters, and no more', async () => {
    const spec = { type: 'string', pattern: '^a*$' };
    expect(await checks(spec, 'a'.repeat(MAX_MATCHED_CHARS))).toBeUndefined();
    const refused = checks(spec, 'a'.repeat(MAX_MATCHED_CHARS + 1));
    await expect(refused).rejects.toMatchObject({
      code: 'REFUSED',
      status: { code: 422, message: /^Too long: a string of 262145 / },
    });
  });

  test('tells patterns apart, and takes those of JavaScript that RE2 has', async () => {
    const both = { properties: { a: { type: 'string', pattern: '^\\d+$' }, b: { type: 'string', pattern: '^[^\\d]+$' } } };
    expect(await checks(both, { a: '1', b: 'x' })).toBeUndefined();
    expect([await checks(both, { a: 'x' }), await checks(both, { b: '1' })]).toEqual([
      expect.stringContaining('spec.a in body'),
      expect.stringContaining('spec.b in body'),
    ]);
    expect(await checks({ type: 'string', pattern: '^\\u0041\\/\\p{L}$' }, 'A/é')).toBeUndefined();
  });

  test.each(['(?=a)b', '(a)\\1', 'a(?<!b)', '('])('is refused for the pattern %s', async (pattern) => {
    const refused = checks({ type: 'string', pattern }, 'a');
    await expect(refused).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(JSON.stringify(pattern)),
    });
  });

  test('compares items that must differ by what they are', async () => {
    const unique = { type: 'array', uniqueItems: true };
    expect(await checks(unique, [1, '1', { a: 1, b: [2] }, { a: 1, b: [3] }, [], {}, null])).toBeUndefined();
    expect(
      await checks(unique, [
        { a: 1, b: { c: 1, d: 2 } },
        { b: { d: 2, c: 1 }, a: 1 },
      ]),
    ).toMatch(/shouldn't contain duplicates$/);
    expect(await checks({ type: 'array', uniqueItems: false }, [1, 1])).toBeUndefined();
    expect(await checks(unique, [...list(50_000, (at) => ({ at })), { at: 7 }])).toMatch(/shouldn't contain duplicates$/);
  });
});

describe('work on what is large may be interrupted', () => {
  const wide = record(60_000, '1');
  const bytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
  const patched = (patch: unknown, type: 'merge' | 'json' | 'strategic'): Work<unknown> =>
    (function* () {
      const apply = yield* toPatch(patch, { type, kind: { group: '', version: 'v1', kind: 'ConfigMap' } });
      return yield* apply({ metadata: {}, data: wide });
    })();
  const field = (tag: number, content: readonly number[]): number[] => {
    const size: number[] = [];
    for (let left = content.length; left > 0; left = Math.floor(left / 128)) size.push((left % 128) + (left < 128 ? 0 : 128));
    return [tag, ...size].concat(content);
  };
  /** An object of these fields in its envelope. */
  const protobuf = (fields: readonly (readonly number[])[]): Uint8Array =>
    Uint8Array.from([0x6b, 0x38, 0x73, 0].concat(field(0x12, fields.flat())));
  const CONFIG_MAP = { group: '', version: 'v1', kind: 'ConfigMap' };
  const schema = { properties: { list: { items: { properties: { a: {} } } } } };
  test.each<[name: string, work: () => Work<unknown>, pauses: number]>([
    ['a body', () => parsingBody(bytes({ wide, same: list(40_000, () => ({})) }), { again: () => {} }), 60],
    ['a search for what comes twice', () => duplicateFields(JSON.stringify(wide)), 10],
    ['a merge patch', () => patched({ data: wide }, 'merge'), 600],
    ['a strategic merge patch', () => patched({ data: { ...wide, $retainKeys: Object.keys(wide) } }, 'strategic'), 1_000],
    [
      'a strategic merge patch of a set',
      () => patched({ metadata: { finalizers: list(50_000, (at) => `a/${at}`) } }, 'strategic'),
      900,
    ],
    [
      'a strategic merge patch of a list with keys',
      () => patched({ metadata: { ownerReferences: list(20_000, (at) => ({ uid: `${at}` })) } }, 'strategic'),
      400,
    ],
    [
      'a JSON patch',
      () =>
        patched(
          list(10_000, () => ({ op: 'test', path: '/data/k1', value: '1' })),
          'json',
        ),
      70,
    ],
    ['a copy of much', () => patched([{ op: 'copy', from: '/data', path: '/more' }], 'json'), 200],
    ['metadata', () => metadataCauses({ finalizers: list(50_000, (at) => `a/${at}`), labels: record(4_096) } as never), 100],
    ['fields', () => unknownFields(toKnownFields(schema), { list: list(50_000, () => ({ b: 1 })) }), 150],
    ['a body in protobuf', () => readProtobuf(protobuf(list(20_000, () => [0x12, 0])), CONFIG_MAP), 70],
    [
      'bytes in protobuf',
      () =>
        readProtobuf(
          protobuf([
            field(
              0x1a,
              field(
                0x12,
                list(200_000, () => 7),
              ),
            ),
          ]),
          CONFIG_MAP,
        ),
      20,
    ],
    ['options in protobuf', () => readDeleteOptions(protobuf(list(20_000, () => [0x2a, 0]))), 70],
    ['a value that is prepared', () => preparing({ metadata: { name: 'a' }, spec: wide } as KubernetesObject), 30],
  ])('%s', (_, work, pauses) => {
    let seen = 0;
    for (const running = work(); !running.next().done; ) seen++;
    expect(seen).toBeGreaterThanOrEqual(pauses);
  });
});

describe('the turns of requests', () => {
  /** Turns of the event loop by hand, and a clock that stands. */
  function queue(): { queue: FairQueue; clock: FakeClock; turn: () => Promise<void> } {
    const clock = new FakeClock();
    let turns: (() => void)[] = [];
    const made = new FairQueue({ now: () => clock.now(), turn: (callback) => void turns.push(callback) });
    const turn = async (): Promise<void> => {
      const due = turns;
      turns = [];
      for (const each of due) {
        each();
        await Promise.resolve();
      }
    };
    return { queue: made, clock, turn };
  }
  const of = (tenant: string, address: string = ''): { tenant: string; address: string } => ({ tenant, address });

  test('need not be waited for while little has been done', async () => {
    const { queue: fair, clock, turn } = queue();
    expect([fair.turn(of('a')), fair.pause(of('a'))]).toEqual([undefined, undefined]);
    clock.advance(5);
    expect([fair.turn(of('a')) === undefined, fair.pause(of('b')) === undefined, fair.size]).toEqual([false, false, 2]);
    for (let at = 0; at < 4; at++) await turn();
    expect([fair.size, fair.turn(of('a'))]).toEqual([0, undefined]);
  });

  test('twenty of one tenant do not stand before one of another, nor twenty of one address', async () => {
    const { queue: fair, clock, turn } = queue();
    const served: string[] = [];
    const ask = (tenant: string, address: string = ''): void => {
      void fair.turn(of(tenant, address))?.then(() => {
        served.push(tenant + address);
        clock.advance(60);
      });
    };
    fair.turn(of('x'));
    clock.advance(5);
    for (let at = 0; at < 20; at++) ask('a', '1');
    ask('a', '2');
    ask('b');
    for (let at = 0; at < 4; at++) await turn();
    expect(served).toEqual(['a1', 'b', 'a2', 'a1']);
    for (let at = 0; at < 30; at++) await turn();
    expect([served.length, fair.size]).toEqual([22, 0]);
  });

  test('go by the tenant and the address of a request, which its signal leads to', async () => {
    const paces: unknown[] = [];
    const list = ({ signal }: { signal: AbortSignal }): Promise<object> => {
      paces.push(requestPace(signal));
      return Promise.resolve({ items: [], resourceVersion: '1' });
    };
    const { call } = rig({
      ...{ authenticate: () => 'mine' as never, clientAddress: () => '10.0.0.1', cache: false },
      resources: [ORDERS as ResourceDefinition],
      storage: { scope: () => ({ scope: () => ({ list }) }) } as never,
    });
    expect((await call('GET', ORDERS_PATH)).code).toBe(200);
    expect(paces).toMatchObject([{ tenant: 'mine', address: '10.0.0.1' }]);
  });
});
