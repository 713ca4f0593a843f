import { describe, expect, it } from 'vitest';
import {
  CONFIG_MAPS,
  type ConfigMap,
  LEASES,
  type Lease,
  NAMESPACES,
  SECRETS,
  type Secret,
} from '../../src/apiserver/builtin.ts';
import { typed } from '../../src/apiserver/kinds/tables.ts';
import { nameCauses } from '../../src/apiserver/verbs/metadata.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

/** As what a server reads before it checks it. */
const read = <T>(kind: { group: string; version: string; kind: string }, object: T): T =>
  atOnce(typed({ ...kind, apiVersion: kind.group ? `${kind.group}/${kind.version}` : kind.version }, object)) as T;

const check = async (object: ConfigMap, old?: ConfigMap): Promise<string[]> => {
  const causes = await CONFIG_MAPS.validate?.(read(CONFIG_MAPS, object), old);
  return (causes ?? []).map(({ field, message, reason = '' }) => `${field} ${reason} ${message}`.slice(0, 60).trim());
};

describe('namespaces', () => {
  it('have the names of labels', async () => {
    expect(await NAMESPACES.validate?.({ metadata: { name: 'a-1' } }, undefined)).toEqual([]);
    const fault = (message: string): unknown => [{ field: 'metadata.name', message: expect.stringContaining(message) }];
    expect(nameCauses(NAMESPACES, { name: 'A' })).toEqual(fault('Invalid value: "A": '));
    expect(nameCauses(NAMESPACES, {})).toEqual(fault('Invalid value: "": a lowercase RFC 1123 label'));
  });
});

describe('secrets', () => {
  const causes = async (object: Secret, old?: Secret): Promise<unknown> => SECRETS.validate?.(object, old);
  const base64 = (text: string): string => Buffer.from(text).toString('base64');

  it.each<[type: string, data: Secret['data'], more?: object]>([
    ['tls', { 'tls.crt': '', 'tls.key': '' }],
    ['ssh-auth', { 'ssh-privatekey': 'AA==' }],
    ['basic-auth', { username: '' }],
    ['basic-auth', { password: '' }],
    ['service-account-token', {}, { annotations: { 'kubernetes.io/service-account.name': 'a' } }],
    ['dockercfg', { '.dockercfg': base64('null') }],
    ['other', { a: base64('x'.repeat(2 ** 20)) }],
  ])('TestValidateSecret: of type %s, with what it needs', async (type, data, metadata = {}) => {
    expect(await causes({ type: `kubernetes.io/${type}`, data, metadata })).toEqual([]);
  });

  it('TestSecretImmutableType, TestValidateDockerConfigSecret: what is wrong is named', async () => {
    const fault = (type: string): object => ({ field: 'type', message: `Invalid value: "${type}": field is immutable` });
    const long = 'x'.repeat(301);
    expect(await causes({}, {})).toEqual([]);
    expect(await causes({}, { type: 'a' })).toEqual([fault('')]);
    expect(await causes({ type: long }, {})).toEqual([fault(long.slice(1))]);
    const message = 'Invalid value: "<secret contents redacted>": expected a JSON object';
    const data = { '.dockercfg': base64('[]') };
    expect(await causes({ type: 'kubernetes.io/dockercfg', data })).toEqual([{ field: 'data[.dockercfg]', message }]);
  });

  it('TestValidateSecretUpdate: what is immutable stays as it is', async () => {
    const old = { data: { a: 'AA==' }, immutable: true };
    const fault = { message: 'Forbidden: field is immutable when `immutable` is set', reason: 'FieldValueForbidden' };
    expect(await causes(old, old)).toEqual([]);
    expect(await causes({ data: { a: 'AQ==' } }, old)).toEqual(['immutable', 'data'].map((field) => ({ field, ...fault })));
  });

  it('have columns and a field, even without a type', () => {
    expect(SECRETS.columns?.map(({ value }) => value({ data: { a: '' } }))).toEqual(['', 1, undefined]);
    expect([SECRETS.fields?.type?.({}), SECRETS.fields?.type?.({ type: 'a' })]).toEqual(['', 'a']);
  });
});

it.each([CONFIG_MAPS, SECRETS, NAMESPACES, LEASES])('each column of $plural is described', ({ columns = [] }) => {
  for (const { name, description } of columns) expect(description, name).toMatch(/\w\.$/);
});

describe('configmaps', () => {
  it('TestValidateConfigMap: keys', async () => {
    const key = 'a'.repeat(253);
    expect(await check({ data: { a: '', 'A-b_c.d': '', '.x': '', [key]: '' } })).toEqual([]);
    for (const bad of ['', 'a b', 'a/b', '.', '..', '..a', `${key}a`, 'ä']) {
      expect(await check({ data: { [bad]: '' } }), bad).toHaveLength(1);
      expect(await check({ binaryData: { [bad]: '' } }), bad).toHaveLength(1);
    }
    expect(await check({ data: { a: '' }, binaryData: { a: '' } })).toEqual([
      'data[a]  Invalid value: "a": duplicate of key present in bin',
    ]);
  });

  it('keys and finalizers that are none say what one is', async () => {
    const causes = async (object: ConfigMap): Promise<unknown> => CONFIG_MAPS.validate?.(object, undefined);
    const long = 'a'.repeat(254);
    const form =
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    const [most, dots] = ['must be no more than 253 characters', "must not start with '..'"];
    for (const [key, ...problems] of [
      [long, most],
      ['a b', form],
      ['.', "must not be '.'"],
      ['..', "must not be '..'"],
      ['..a', dots],
      ['../a', form, dots],
      ['/'.repeat(254), most, form],
      ['\u00e9'.repeat(127), most, form],
    ] as const) {
      expect(await causes({ data: { [key]: '' } })).toEqual(
        problems.map((problem) => ({ field: `data[${key}]`, message: `Invalid value: "${key}": ${problem}` })),
      );
    }
    const finalizers = ['kubernetes', 'orphan', 'foregroundDeletion', 'x.io/y', 'mine', ''];
    const wrong = 'name is neither a standard finalizer name nor is it fully qualified';
    expect(await causes({ metadata: { finalizers } })).toEqual([
      { field: 'metadata.finalizers[4]', message: `Invalid value: "mine": ${wrong}` },
      { field: 'metadata.finalizers[5]', message: `Invalid value: "": ${wrong}` },
    ]);
    expect(await causes({ metadata: {} })).toEqual([]);
  });

  it('TestValidateConfigMap: at most one MiB, in bytes', async () => {
    const half = 2 ** 19;
    expect(await check({ data: { a: 'x'.repeat(half), b: 'x'.repeat(half) } })).toEqual([]);
    expect(await check({ data: { a: 'ä'.repeat(half) } })).toEqual([]);
    expect(await check({ data: { a: '😀'.repeat(half / 2) } })).toEqual([]);
    expect(await check({ data: { a: '€'.repeat(half) } })).toEqual([
      '[] FieldValueTooLong Too long: may not be more than 1048576',
    ]);
    expect(await check({ data: { a: 'ä'.repeat(half), b: 'x' } })).toHaveLength(1);
    expect(await check({ binaryData: { a: 'A'.repeat(2 ** 21) } })).toHaveLength(1);
    expect(await check({ binaryData: { a: Buffer.alloc(2 ** 20).toString('base64') } })).toEqual([]);
  });

  it('TestValidateConfigMapUpdate: what is immutable stays as it is', async () => {
    const old = { data: { a: '1', b: '2' }, immutable: true };
    expect(await check({ data: { b: '2', a: '1' }, immutable: true }, old)).toEqual([]);
    expect(await check({ data: { a: '2', b: '2' } }, old)).toHaveLength(2);
    expect(await check({ ...old, binaryData: { c: '' } }, old)).toHaveLength(1);
    expect(await check({ data: { a: '2' } }, { ...old, immutable: false })).toEqual([]);
  });

  it('data that is none is refused before it is looked at', async () => {
    for (const data of ['x', 1, [], { a: 1 }, { a: {} }, { a: 'x', b: 1 }]) {
      await expect(async () => check({ data } as unknown as ConfigMap), JSON.stringify(data)).rejects.toThrow(
        '400 BadRequest: ConfigMap in',
      );
    }
    await expect(async () => check({ immutable: 'x' } as unknown as ConfigMap)).rejects.toThrow(
      'immutable: expected true or false',
    );
    await expect(async () => check({ data: [] } as unknown as ConfigMap)).rejects.toThrow('data: expected an object of strings');
    for (const a of ['%', 'A', 'AA', 'AA=', 'AAAAA', 'AAAAAAA', 'AAA==', '%%%=', 'A=', 'AA==A'])
      await expect(async () => check({ binaryData: { a } }), a).rejects.toThrow('binaryData: expected base64');
    for (const a of ['', 'AA==', 'AAA=', '+/09', 'AAAAAA==']) expect(await check({ binaryData: { a } }), a).toEqual([]);
    await expect(check({ data: null, binaryData: { a: 'YQ==' } } as unknown as ConfigMap)).resolves.toEqual([]);
  });

  it('columns, and a short name', () => {
    expect(CONFIG_MAPS.shortNames).toEqual(['cm']);
    const cells = (object: object): unknown[] | undefined => CONFIG_MAPS.columns?.map(({ value }) => value(object));
    expect(cells({ data: { a: '' }, binaryData: { b: '' } })).toEqual([2, undefined]);
    const status = (object: object): unknown => NAMESPACES.columns?.[0]?.value(object);
    expect([status({}), status({ metadata: { deletionTimestamp: 'x' } }), status({ status: { phase: 'Odd' } })]).toEqual([
      ...['Active', 'Terminating', 'Odd'],
    ]);
  });
});

describe('leases', () => {
  const causes = async (spec: unknown): Promise<string[]> =>
    ((await LEASES.validate?.(read(LEASES, { spec } as Lease), undefined)) ?? []).map(
      ({ field, message }) => `${field} ${message}`,
    );

  it('TestValidateLeaseSpec: a duration and a count that can be', async () => {
    const time = '2026-01-02T03:04:05.000006Z';
    const whole = { holderIdentity: 'a', leaseDurationSeconds: 1, acquireTime: time, renewTime: time, leaseTransitions: 0 };
    for (const spec of [undefined, null, {}, whole, { ...whole, holderIdentity: '', other: [] }]) {
      expect(await causes(spec), JSON.stringify(spec)).toEqual([]);
    }
    expect(await causes({ leaseDurationSeconds: 0, leaseTransitions: -1 })).toEqual([
      'spec.leaseDurationSeconds Invalid value: 0: must be greater than 0',
      'spec.leaseTransitions Invalid value: -1: must be greater than or equal to 0',
    ]);
  });

  it('a spec that no client could read is refused', async () => {
    const bad: readonly unknown[] = [
      ...['x', 1, []],
      ...[{ holderIdentity: 1 }, { holderIdentity: {} }],
      ...[{ leaseDurationSeconds: '1' }, { leaseDurationSeconds: 1.5 }, { leaseTransitions: 2 ** 31 }],
      ...[{ renewTime: 1 }, { renewTime: 'now' }, { acquireTime: '2026-13-01T00:00:00Z' }],
    ];
    for (const spec of bad) {
      await expect(() => causes(spec), JSON.stringify(spec)).rejects.toThrow('400 BadRequest: Lease in version "v1"');
    }
  });

  it('says what could not be read', async () => {
    const said = (spec: unknown): Promise<unknown> => causes(spec).catch((error: Error) => error.message);
    const start = '400 BadRequest: Lease in version "v1" cannot be handled as a Lease: ';
    for (const [spec, why] of [
      ['x', 'spec: expected an object'],
      [{ holderIdentity: 1 }, 'spec.holderIdentity: expected a text'],
      [{ leaseDurationSeconds: '1' }, 'spec.leaseDurationSeconds: expected a whole number'],
      [{ leaseTransitions: -(2 ** 31) - 1 }, 'spec.leaseTransitions: expected a whole number'],
      [{ acquireTime: '2026-01-02' }, 'spec.acquireTime: expected a time'],
      [{ renewTime: '2026-13-02T03:04:05Z' }, 'spec.renewTime: expected a time'],
      [{ renewTime: '2026-01-02T03:04:05Z' }, 'spec.renewTime: expected a time'],
      [{ renewTime: ['2026-01-02T03:04:05Z'] }, 'spec.renewTime: expected a time'],
    ] as const) {
      expect(await said(spec)).toBe(start + why);
    }
    expect(
      await said({ leaseDurationSeconds: 2 ** 31 - 1, leaseTransitions: null, acquireTime: '2026-01-02T03:04:05.123456+01:00' }),
    ).toEqual([]);
  });

  it('columns', () => {
    const cells = (object: Lease): unknown[] | undefined => LEASES.columns?.map(({ value }) => value(object));
    expect(cells({ metadata: { creationTimestamp: 'then' }, spec: { holderIdentity: 'me' } })).toEqual(['me', 'then']);
    expect(cells({})).toEqual([undefined, undefined]);
  });
});
