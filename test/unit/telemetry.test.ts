// A telemetry that fails, whatever it is: nobody who is served, or is sent to, hears of it.
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { Hub } from '../../src/bridge/http.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { type Telemetry, toTelemetry } from '../../src/watch/telemetry.ts';
import { ORDERS } from './apiserver-rig.ts';

const fault = (): never => {
  throw new Error('no disk');
};
const rejected = async (): Promise<never> => fault();
const sound: Telemetry = {
  ...{ observe: () => () => {}, record: () => {} },
  serve: (_, work) => work(() => {}),
  send: (_, __, work) => work({}),
  reconcile: (_, work) => work(() => {}),
};
const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): void => void unhandled.push(error);
process.on('unhandledRejection', onUnhandled);
afterAll(() => void process.off('unhandledRejection', onUnhandled));
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
afterEach(async () => {
  await turn();
  expect(unhandled.splice(0)).toEqual([]);
});

describe.each<[string, Partial<Record<keyof Telemetry, unknown>>]>([
  ['serve throws', { serve: fault }],
  ['serve rejects', { serve: rejected }],
  ['serve does nothing', { serve: async () => undefined }],
  [
    'serve answers with something else',
    { serve: async (_: unknown, work: (tell: unknown) => Promise<unknown>) => void (await work(fault)) },
  ],
  [
    'serve works twice',
    { serve: (_: unknown, work: (tell: unknown) => Promise<unknown>) => work(fault).then(() => work(rejected)) },
  ],
  ['what serve is told of throws', { serve: (_: unknown, work: (tell: unknown) => Promise<unknown>) => work(fault) }],
  ['what serve is told of rejects', { serve: (_: unknown, work: (tell: unknown) => Promise<unknown>) => work(rejected) }],
  [
    'serve fails once it is done',
    { serve: (_: unknown, work: (tell: unknown) => Promise<unknown>) => work(() => {}).then(fault) },
  ],
  ['observe throws', { observe: fault }],
  ['observe rejects', { observe: rejected }],
  ['observe cannot be ended', { observe: () => fault }],
])('if %s', (what, broken) => {
  test('an API server answers each request once, and ends', async () => {
    const onError = vi.fn();
    const storage = new MemoryStorage();
    const telemetry = { ...sound, ...broken } as Telemetry;
    const server = new ApiServer({ storage, resources: [ORDERS], telemetry, onError });
    for (let at = 0; at < 2; at++) {
      const response = await server.fetch(new Request('http://h.example/apis/example.com/v1/namespaces/default/orders'));
      expect([response.status, (await response.json()).kind]).toEqual([200, 'OrderList']);
    }
    expect(server.stats.requests).toEqual({ 200: 2 });
    await server.shutdown();
    await storage.close();
    await turn();
    const isQuiet = what === 'serve does nothing';
    expect(onError.mock.calls.map(([error]) => (error as Error).message)).toEqual(
      isQuiet ? [] : ['telemetry failed; further failures are not reported'],
    );
  });
});

test.each<[string, unknown]>([
  ['throws', fault],
  ['rejects', rejected],
  ['cannot be ended', () => fault],
])('a hub is created, and ends, if observe %s', async (_, observe) => {
  const onError = vi.fn();
  const hub = new Hub({ telemetry: { ...sound, observe } as Telemetry, onError });
  await hub.shutdown();
  await turn();
  expect(onError.mock.calls).toEqual([[expect.objectContaining({ cause: new Error('no disk') }), { during: 'telemetry' }]]);
});

test('what work throws is thrown, and is no failure of the telemetry', async () => {
  const failed = vi.fn();
  const own = new Error('mine');
  const telemetry = toTelemetry({ ...sound, record: rejected as never }, failed) as Telemetry;
  const start = { controller: 'c', namespace: 'n', name: 'a', attempt: 1 };
  await expect(telemetry.reconcile(start, () => Promise.reject(own))).rejects.toBe(own);
  await expect(telemetry.send('GET', new URL('http://h.example/'), () => Promise.reject(own))).rejects.toBe(own);
  await turn();
  expect(failed).not.toHaveBeenCalled();
  telemetry.record('any', 1, {});
  await turn();
  expect(failed).toHaveBeenCalledTimes(1);
});

test('what is no telemetry is refused', () => {
  expect(() => toTelemetry({} as Telemetry, () => {})).toThrow(/^telemetry: .*an OpenTelemetry/);
});
