import { describe, expect, it } from 'vitest';
import { CONFIG_MAPS, LEASES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import * as protobuf from '../../src/apiserver/request/protobuf.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';

const { hasProtobuf, PROTOBUF } = protobuf;
const readDeleteOptions = (bytes: Uint8Array): unknown => atOnce(protobuf.readDeleteOptions(bytes));
const readProtobuf = (...of: Parameters<typeof protobuf.readProtobuf>): unknown => atOnce(protobuf.readProtobuf(...of));

const CONFIG_MAP = { group: '', version: 'v1', kind: 'ConfigMap' };
const NAMESPACE = { group: '', version: 'v1', kind: 'Namespace' };
const LEASE = { group: 'coordination.k8s.io', version: 'v1', kind: 'Lease' };

/** A field of bytes, or of a text. */
const f = (number: number, ...parts: (string | Uint8Array)[]): Uint8Array => {
  const bytes = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
};
const n = (number: number, value: number): Uint8Array => Buffer.from([...varint(number * 8), ...varint(value)]);
const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]);
const magic = Buffer.from([0x6b, 0x38, 0x73, 0]);
const envelope = (kind: string, ...object: Uint8Array[]): Uint8Array => envelopeOf('v1', kind, ...object);
const envelopeOf = (apiVersion: string, kind: string, ...object: Uint8Array[]): Uint8Array =>
  Buffer.concat([magic, f(1, f(1, apiVersion), f(2, kind)), f(2, ...object), f(3, ''), f(4, '')]);
/** A number below zero: ten bytes, as of 64 bits. */
const negative = (number: number, value: number): Uint8Array => {
  const bits = BigInt.asUintN(64, BigInt(value));
  const bytes = Array.from({ length: 10 }, (_, at) => Number((bits >> BigInt(7 * at)) & 127n) + (at < 9 ? 128 : 0));
  return Buffer.from([...varint(number * 8), ...bytes]);
};
const time = (number: number, seconds: number, nanos: number): Uint8Array => f(number, n(1, seconds), n(2, nanos));
const leaseOf = (...spec: Uint8Array[]): Uint8Array =>
  envelopeOf('coordination.k8s.io/v1', 'Lease', f(1, f(1, 'leader')), f(2, ...spec));

/** An entry of managedFields with this fieldsV1. */
const rawOf = (json: string): Uint8Array => f(17, f(7, f(1, json)));
const ENTRY = f(2, f(1, 'k'), f(2, 'v'));

describe('built-in kinds in protobuf', () => {
  it('a ConfigMap', () => {
    const metadata = f(
      1,
      ...[f(1, 'a'), f(2, ''), f(3, 'default'), f(4, ''), f(5, ''), f(6, ''), n(7, 0), f(8, '')],
      ...[f(11, f(1, 'x'), f(2, 'y')), f(12, f(1, 'p'), f(2, '')), f(14, 'one'), f(14, 'two')],
      f(13, f(1, 'Order'), f(3, 'o'), f(4, 'u'), f(5, 'x.io/v1'), n(6, 1)),
      f(16, 'the name of a cluster is passed over'),
    );
    const entries = [f(2, f(1, 'k'), f(2, 'vé')), f(2, f(1, 'empty')), f(3, f(1, 'b'), f(2, Buffer.from([0, 255])))];
    expect(readProtobuf(envelope('ConfigMap', metadata, ...entries, n(4, 1)), CONFIG_MAP)).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        ...{ name: 'a', namespace: 'default', labels: { x: 'y' }, annotations: { p: '' }, finalizers: ['one', 'two'] },
        ownerReferences: [{ kind: 'Order', name: 'o', uid: 'u', apiVersion: 'x.io/v1', controller: true }],
      },
      data: { k: 'vé', empty: '' },
      binaryData: { b: 'AP8=' },
      immutable: true,
    });
  });

  it('a Namespace, with times', () => {
    const object = readProtobuf(
      envelope('Namespace', f(1, f(1, 'n'), f(8, n(1, 1_700_000_000))), f(2), f(3, f(1, ''))),
      NAMESPACE,
    );
    expect(object).toEqual({
      ...{ apiVersion: 'v1', kind: 'Namespace', spec: {}, status: {} },
      metadata: { name: 'n', creationTimestamp: '2023-11-14T22:13:20Z' },
    });
  });

  it('a Lease, with microseconds, and with what is zero or empty', () => {
    const times = [time(3, 1_700_000_000, 1_234_999), time(4, 1_700_000_001, 0)];
    const spec = [f(1, 'me'), n(2, 15), ...times, n(5, 0), f(9, 'what is unknown is passed over')];
    expect(readProtobuf(leaseOf(...spec), LEASE)).toEqual({
      ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'leader' } },
      spec: {
        ...{ holderIdentity: 'me', leaseDurationSeconds: 15, leaseTransitions: 0 },
        ...{ acquireTime: '2023-11-14T22:13:20.001234Z', renewTime: '2023-11-14T22:13:21.000000Z' },
      },
    });
    // Who releases a Lease says that nobody holds it, and a time of zero is none.
    const released = readProtobuf(leaseOf(f(1, ''), n(2, 1), time(3, 0, 0), f(4)), LEASE) as { spec: object };
    expect(Object.keys(released.spec)).toEqual(['holderIdentity', 'leaseDurationSeconds']);
    expect(released.spec).toEqual({ holderIdentity: '', leaseDurationSeconds: 1 });
  });

  it('numbers have a sign, and may have 64 bits', () => {
    const duration = (bytes: Uint8Array): unknown =>
      (readProtobuf(leaseOf(bytes), LEASE) as { spec: { leaseDurationSeconds: number } }).spec.leaseDurationSeconds;
    for (const value of [-1, -300, -(2 ** 31), -(2 ** 53)]) expect(duration(negative(2, value))).toBe(value);
    for (const value of [0, 127, 128, 2 ** 28 - 1, 2 ** 28, 2 ** 31, 2 ** 32, 2 ** 35 + 1, 2 ** 53 - 1]) {
      expect(duration(n(2, value))).toBe(value);
    }
  });

  it('a number of more than ten bytes is refused', () => {
    const number = (count: number): Uint8Array => Buffer.from([...varint(7 * 8), ...Array(count).fill(0x80), 0]);
    const read = (count: number): unknown => readProtobuf(envelope('ConfigMap', f(1, number(count))), CONFIG_MAP);
    expect(read(9)).toMatchObject({ kind: 'ConfigMap' });
    expect(() => read(10)).toThrow('a number is too long');
  });

  it('what is none says why', () => {
    const read = (...object: Uint8Array[]): unknown => readProtobuf(envelope('ConfigMap', ...object), CONFIG_MAP);
    const refused = (why: string): string => `the body is not protobuf of this kind: ${why}`;
    expect(() => read(Buffer.from([2, 0]))).toThrow(refused('a field has no number'));
    expect(() => read(n(1, 5))).toThrow(refused('metadata has another type'));
    expect(() => read(f(1, f(7, 'x')))).toThrow(refused('generation has another type'));
    expect(() => read(f(1, f(1, Buffer.from([0xff]))))).toThrow(refused('a text is not UTF-8'));
    expect(() => read(Buffer.from([0x3b]))).toThrow(refused('it has an unknown type of value'));
    const ended = refused('it ends within a value');
    // Of lengths that are more than is there: a text, an unknown field, one that is behind others, one below zero.
    const lengths = [
      [0x12, 5, 0x61],
      [0x7a, 1],
      [0x7a, 3, 1, 2],
      [...f(15, 'abc'), 0x7a, 5, 1],
      [0x7a, ...negative(0, -1).slice(1)],
    ];
    // And numbers of 64 and of 32 bits.
    for (const short of [...lengths, [0x79, ...Array(7).fill(1)], [0x7d, 1, 2, 3]])
      expect(() => read(Buffer.from(short)), short.join()).toThrow(ended);
  });

  it('unknown fields of any type are passed over', () => {
    const unknown = [n(15, 300), f(15, 'abc'), Buffer.from([0x79, ...Array(8).fill(9)]), Buffer.from([0x7d, 9, 9, 9, 9])];
    for (const field of unknown) {
      const object = readProtobuf(envelope('ConfigMap', field, f(1, field, f(1, 'a'))), CONFIG_MAP);
      expect(object, field.join()).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } });
    }
  });

  it('the options of a deletion', () => {
    const preconditions = f(2, f(1, 'u'), f(2, '7'));
    const options = [n(1, 30), preconditions, n(3, 1), f(4, 'Background'), f(5, 'All'), n(6, 0)];
    expect(readDeleteOptions(envelope('DeleteOptions', ...options))).toEqual({
      ...{ apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 30, propagationPolicy: 'Background', dryRun: ['All'] },
      preconditions: { uid: 'u', resourceVersion: '7' },
      orphanDependents: true,
    });
    expect(readDeleteOptions(envelope('DeleteOptions', negative(1, -1)))).toMatchObject({ gracePeriodSeconds: -1 });
    expect(readDeleteOptions(envelope('DeleteOptions'))).toEqual({ apiVersion: 'v1', kind: 'DeleteOptions' });
  });

  it('a key __proto__ is a key, and large bytes are no trouble', () => {
    const big = Buffer.alloc(300_000, 7);
    const object = readProtobuf(
      envelope('ConfigMap', f(2, f(1, '__proto__'), f(2, 'x')), f(3, f(1, 'b'), f(2, big))),
      CONFIG_MAP,
    ) as {
      data: object;
      binaryData: { b: string };
    };
    expect(JSON.stringify(object.data)).toBe('{"__proto__":"x"}');
    expect(Buffer.from(object.binaryData.b, 'base64').equals(big)).toBe(true);
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['JSON', Buffer.from('{"kind":"ConfigMap"}')],
    ['an end within a number', Buffer.concat([magic, Buffer.from([0x80])])],
    ['a number that does not end', Buffer.concat([magic, Buffer.alloc(20, 0x80)])],
    ['a length beyond the end', Buffer.concat([magic, Buffer.from([0x0a, 200, 1])])],
    ['a length of 2^60', Buffer.concat([magic, Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f])])],
    ['a length below zero', Buffer.concat([magic, Buffer.from([0x0a]), negative(0, -1).subarray(1)])],
    ['a field below zero', Buffer.concat([magic, negative(0, -8).subarray(1), Buffer.from([0])])],
    ['a field 0', Buffer.concat([magic, Buffer.from([0, 0])])],
    ['an unknown type of value', Buffer.concat([magic, Buffer.from([0x3b])])],
    ['a fixed value beyond the end', Buffer.concat([magic, Buffer.from([0x39, 1])])],
    ['another type than described', Buffer.concat([magic, n(1, 1)])],
    ['a text that is not UTF-8', envelope('ConfigMap', f(1, f(1, Buffer.from([0xff]))))],
  ])('%s is refused with 400', (_, bytes) => {
    expect(() => readProtobuf(bytes, CONFIG_MAP)).toThrow('400 BadRequest: the body is not protobuf');
  });

  it.each([
    ['managed fields that are deep', (): Uint8Array[] => [rawOf(`${'{"f:a":'.repeat(129)}1${'}'.repeat(129)}`)], '400', 'deeper'],
    ['managed fields that are no JSON', (): Uint8Array[] => [rawOf('{')], '400', 'not JSON'],
    ['many parts of managed fields', (): Uint8Array[] => [rawOf(`[${'{},'.repeat(60_000)}{}]`)], '', ''],
    ['more of them', (): Uint8Array[] => Array(2).fill(rawOf(`[${'{},'.repeat(60_000)}{}]`)), '413', 'exceeds the limit'],
    ['many entries', (): Uint8Array[] => Array(110_000).fill(f(17, '')), '413', 'exceeds the limit'],
  ])('%s are limited as in JSON', (_, metadata, code, why) => {
    const read = (): unknown => readProtobuf(envelope('ConfigMap', f(1, Buffer.concat(metadata()))), CONFIG_MAP);
    if (code === '') expect(read).not.toThrow();
    else expect(read).toThrow(new RegExp(`^${code} .*${why}`));
  });

  it('an entry of a map is one part, and the limit holds for them too', () => {
    const read = (texts: number, bytes: number): unknown => {
      const entries = [...Array(texts).fill(ENTRY), ...Array(bytes).fill(f(3, ENTRY.subarray(2)))];
      return readProtobuf(envelope('ConfigMap', Buffer.concat(entries)), CONFIG_MAP);
    };
    expect(() => read(50_000, 50_000)).not.toThrow();
    expect(() => read(51_500, 51_500)).toThrow('413 ');
    // As one object of JSON.
    expect(() => read(65_536, 0)).not.toThrow();
    expect(() => read(65_537, 0)).toThrow('413 ');
  });

  it('other kinds are sent as JSON', () => {
    expect([CONFIG_MAP, NAMESPACE, LEASE].map(hasProtobuf)).toEqual([true, true, true]);
    expect(
      [
        { ...CONFIG_MAP, group: 'x.io' },
        { ...CONFIG_MAP, kind: 'constructor' },
      ].map(hasProtobuf),
    ).toEqual([false, false]);
  });

  it.each([
    ['a time after the year 9999', f(4, n(1, 253_402_300_800))],
    ['a time before the year 0', f(4, negative(1, -62_167_219_201))],
    ['a time that no calendar has', f(4, n(1, 2 ** 53 - 1))],
    ['a second of more than 10^9 nanoseconds', time(4, 1, 1_000_000_000)],
    ['negative nanoseconds', f(4, negative(2, -1))],
  ])('%s is refused with 400', (_, bytes) => {
    expect(() => readProtobuf(leaseOf(bytes), LEASE)).toThrow('400 BadRequest: the body is not protobuf of this kind: a time');
  });
});

describe('protobuf over the wire', () => {
  const send = async (server: ReturnType<typeof rig>['server'], method: string, path: string, body: Uint8Array) => {
    const init = { method, body: Buffer.from(body), headers: { 'content-type': PROTOBUF } };
    const response = await server.fetch(new Request(`http://127.0.0.1${path}`, init));
    return { code: response.status, body: await response.json() };
  };
  const resources = [CONFIG_MAPS, LEASES, ORDERS] as ResourceDefinition[];
  const MAPS = '/api/v1/namespaces/default/configmaps';

  it('a deletion with its preconditions, of any kind, of one and of many', async () => {
    const { server, call } = rig({ resources });
    for (const path of [MAPS, ORDERS_PATH]) {
      const { body: made } = await call('POST', path, { metadata: { name: 'a' } });
      const only = (uid: string): Uint8Array => envelope('DeleteOptions', f(2, f(1, uid)));
      expect(await send(server, 'DELETE', `${path}/a`, only('another'))).toMatchObject({ code: 409 });
      expect(await send(server, 'DELETE', `${path}/a`, envelope('DeleteOptions', f(5, 'All')))).toMatchObject({ code: 200 });
      expect(await call('GET', `${path}/a`)).toMatchObject({ code: 200 });
      expect(await send(server, 'DELETE', `${path}/a`, only(made.metadata.uid))).toMatchObject({ code: 200 });
      await call('POST', path, { metadata: { name: 'b' } });
      expect(await send(server, 'DELETE', path, envelope('DeleteOptions'))).toMatchObject({ code: 200 });
      expect((await call('GET', path)).body.items).toEqual([]);
    }
    await server.shutdown();
  });

  it('options that are none are refused, as in JSON', async () => {
    const { server, call } = rig({ resources });
    await call('POST', MAPS, { metadata: { name: 'a' } });
    for (const [expected, options] of [
      [400, envelope('ConfigMap')],
      [422, envelope('DeleteOptions', f(4, 'Sideways'))],
      [422, envelope('DeleteOptions', f(5, 'Some'))],
      [400, envelope('DeleteOptions', f(1, 'x'))],
      [400, envelope('DeleteOptions').subarray(0, 4)],
      [400, magic.subarray(0, 3)],
    ] as const) {
      expect(await send(server, 'DELETE', `${MAPS}/a`, options)).toMatchObject({ code: expected });
    }
    const { code } = await call('DELETE', `${MAPS}/a`, 'x', { 'content-type': 'text/plain' });
    expect([code, (await call('GET', `${MAPS}/a`)).code]).toEqual([415, 200]);
    // Any number of seconds is one, as to a kube-apiserver.
    const long = envelope('DeleteOptions', n(1, 2 ** 40));
    expect(await send(server, 'DELETE', `${MAPS}/a`, long)).toMatchObject({ code: 200 });
    await server.shutdown();
  });

  it('a Lease is created and renewed as an elector does, and a bad one refused', async () => {
    const { server, call } = rig({ resources });
    const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
    const spec = [f(1, 'me'), n(2, 15), time(3, 1_700_000_000, 0), time(4, 1_700_000_000, 0), n(5, 0)];
    const created = await send(server, 'POST', path, leaseOf(...spec));
    expect(created).toMatchObject({ code: 201 });
    const metadata = f(1, f(1, 'leader'), f(6, created.body.metadata.resourceVersion));
    const renewed = envelopeOf('coordination.k8s.io/v1', 'Lease', metadata, f(2, ...spec, time(4, 1_700_000_002, 7_000)));
    expect(await send(server, 'PUT', `${path}/leader`, renewed)).toMatchObject({
      code: 200,
      body: {
        spec: { acquireTime: '2023-11-14T22:13:20.000000Z', renewTime: '2023-11-14T22:13:22.000007Z', leaseTransitions: 0 },
      },
    });
    expect(await send(server, 'PUT', `${path}/leader`, leaseOf(f(1, 'me'), negative(2, -1)))).toMatchObject({ code: 422 });
    expect((await call('GET', `${path}/leader`)).body.spec.leaseDurationSeconds).toBe(15);
    await server.shutdown();
  });
});
