// What the options of a storage on etcd become, and what a selector's function that throws does.
import { describe, expect, it, onTestFinished } from 'vitest';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import { settingsOf } from '../../src/storage/etcd/options.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { systemClock } from '../../src/watch/clock.ts';
import { FakeEtcd } from './fake-etcd.ts';
import { ModelEtcd } from './model-etcd.ts';

const endpoints = ['http://a:2379'];
const of = (options: Partial<EtcdStorageOptions> = {}) => settingsOf({ endpoints, ...options });

describe('options', () => {
  it('have defaults', () => {
    expect(of()).toEqual({
      endpoints,
      root: '/watchmux/',
      user: undefined,
      password: undefined,
      tls: {},
      clock: systemClock,
      random: Math.random,
      requestTimeoutMs: 10_000,
      connectTimeoutMs: 3_000,
      keepAliveMs: 10_000,
      maxResponseBytes: 67_108_864,
      maxLeaseObjects: 1_000,
      onError: expect.any(Function),
    });
  });

  it('have smallest values', () => {
    for (const [name, least] of [
      ['requestTimeoutMs', 1],
      ['connectTimeoutMs', 1],
      ['keepAliveMs', 5_000],
      ['maxResponseBytes', 1],
      ['maxLeaseObjects', 1],
    ] as const) {
      expect(of({ [name]: least })).toMatchObject({ [name]: least });
      expect(() => of({ [name]: least - 1 })).toThrow(new RegExp(`^${name}: `));
    }
  });

  it.each([
    [{ endpoints: [] }, /^endpoints: expected an array of http\(s\) URLs/],
    [{ endpoints: ['ftp://a'] }, /^endpoints: expected http\(s\) URLs without a path/],
    [{ endpoints: ['xhttp://a'] }, /^endpoints: /],
    [{ endpoints: ['httpsx://a/'] }, /^endpoints: /],
    [{ user: 'a' }, /^user: expected a user together with a password/],
    [{ password: 'a' }, /^user: expected a user together with a password/],
    [{ tls: () => ({ pem: 'y' }) }, /pem/],
    [{ prefix: 7 }, /^prefix: expected a string/],
    [{ clock: {} }, /^clock: expected a Clock/],
    [{ random: 7 }, /^random: expected a function/],
    [{ onError: 7 }, /^onError: expected a function/],
    [{ tls: { ca: 'x', pem: 'y' } }, /pem/],
    [{ keepalive: 7 }, /keepalive/],
  ])('%j says what is wrong', (options, message) => {
    expect(() => of(options as never)).toThrow(message);
  });

  it('URLs are taken without their end, and both http and https', () => {
    expect(of({ endpoints: ['http://a:1/', 'https://b'] }).endpoints).toEqual(['http://a:1', 'https://b']);
  });

  it('TLS: texts and bytes, under the names that Node has', () => {
    const tls = { ca: 'CA', cert: Uint8Array.of(65), key: undefined, serverName: 'etcd' };
    expect(of({ tls }).tls).toEqual({ ca: 'CA', cert: Buffer.from('A'), servername: 'etcd' });
    expect(Buffer.isBuffer((of({ tls }).tls as { cert: unknown }).cert)).toBe(true);
    expect((of({ tls: () => tls }).tls as () => unknown)()).toEqual({ ca: 'CA', cert: Buffer.from('A'), servername: 'etcd' });
    expect(of({ tls: { key: 'K' } }).tls).toEqual({ key: 'K' });
  });

  it('user and password are taken together', () => {
    expect(of({ user: 'a', password: '' })).toMatchObject({ user: 'a', password: '' });
  });
});

describe('a function of a field', () => {
  async function open(options: Partial<EtcdStorageOptions>) {
    const etcd = await FakeEtcd.start(new ModelEtcd(new FakeClock()).answers);
    const storage = new EtcdStorage({ endpoints: [etcd.url], ...options });
    onTestFinished(async () => {
      await storage.close();
      await etcd.stop();
    });
    for (const name of ['a', 'b']) await storage.create(name, { metadata: { name } });
    return storage;
  }
  const fields = {
    spec: ({ metadata }: { metadata?: { name?: string | undefined } | undefined }) => {
      if (metadata?.name === 'a') throw new Error('no a');
      return 'x';
    },
  };

  it('that throws selects nothing, and the owner is told, whatever that does', async () => {
    for (const fails of [false, true]) {
      const seen: unknown[] = [];
      const onError = (error: unknown): void => {
        seen.push(String(error));
        if (fails) throw new Error('again');
      };
      const storage = await open({ fields, onError });
      const { items } = await storage.list({ fieldSelector: 'spec=x' });
      expect([items.map(({ metadata }) => metadata?.name), seen]).toEqual([['b'], ['Error: no a']]);
    }
  });

  it('that throws may be ignored', async () => {
    const storage = await open({ fields });
    expect((await storage.list({ fieldSelector: 'spec=x' })).items).toHaveLength(1);
  });

  it('a scope has those of the storage, or its own', async () => {
    const storage = await open({ fields });
    await expect(storage.scope('x/').list({ fieldSelector: 'spec=x' })).resolves.toMatchObject({ items: [] });
    const own = storage.scope('x/', { fields: { other: () => 'y' } });
    await expect(own.list({ fieldSelector: 'other=y' })).resolves.toMatchObject({ items: [] });
    await expect(own.list({ fieldSelector: 'spec=x' })).rejects.toMatchObject({ status: { code: 400 } });
    expect(() => storage.scope('x/', { field: {} } as never)).toThrow(/field/);
  });
});
