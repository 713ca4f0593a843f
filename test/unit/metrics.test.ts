// The metrics of a hub, read by the grammar of Prometheus' text format:
// https://prometheus.io/docs/instrumenting/exposition_formats/
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import { type Metric, toText } from '../../src/watch/telemetry.ts';
import { exposition } from '../exposition.ts';
import { runs } from '../runs.ts';
import { FakeSink } from './fake-sink.ts';

describe('the metrics of a hub', () => {
  test('count what stats() counts, under the names that Prometheus expects', async () => {
    const hub = new Hub({ epoch: 'e', capacity: 2, overflow: 'drop-oldest' });
    const core = coreOf(hub);
    const sink = new FakeSink();
    core.open(sink, { transport: 'sse', address: 'a' });
    for (let i = 0; i < 3; i++) await hub.publish({ type: 'A', object: i });
    core.refuse({ reason: 'origin', status: {} as never, address: 'b' });
    hub.disconnect(() => true);
    core.open(new FakeSink(), { transport: 'websocket', address: 'a' });
    const { accepted, total, clients } = hub.stats();
    const families = exposition(hub.metrics());
    const value = (name: string, labels = {}): number | undefined =>
      families.get(name)?.samples.find((sample) => JSON.stringify(sample.labels) === JSON.stringify(labels))?.value;
    expect(value('watchmux_events_accepted_total')).toBe(accepted);
    expect(accepted).toBe(3);
    expect(value('watchmux_events_delivered_total')).toBe(total.delivered);
    expect(value('watchmux_events_dropped_total')).toBe(total.dropped);
    expect(value('watchmux_sent_bytes_total')).toBe(total.sentBytes);
    expect(value('watchmux_clients_opened_total')).toBe(2);
    expect(value('watchmux_clients_refused_total', { reason: 'origin' })).toBe(1);
    expect(value('watchmux_clients_cut_total', { reason: 'disconnected' })).toBe(1);
    expect(value('watchmux_clients', { transport: 'sse' })).toBe(0);
    expect(value('watchmux_clients', { transport: 'websocket' })).toBe(clients.length);
    for (const [name, { type }] of families) expect(type).toBe(name.endsWith('_total') ? 'counter' : 'gauge');
  });

  test('have a prefix of choice, which is checked', () => {
    const hub = new Hub();
    const names = [...exposition(hub.metrics({ prefix: 'orders_' })).keys()];
    expect(names).toContain('orders_clients');
    expect(names.filter((name) => !name.startsWith('orders_'))).toEqual([]);
    for (const prefix of ['', '1a', 'a-b', 'a b', 'a\n', 7 as unknown as string])
      expect(() => hub.metrics({ prefix })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  test('a histogram counts up, whatever has been counted', () => {
    const bounds = [0.1, 1, 10];
    const counts = fc.array(fc.nat(), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(fc.dictionary(fc.string(), counts, { maxKeys: 3 }), fc.double({ min: 0, noNaN: true }), (given, sum) => {
        const values = Object.fromEntries(Object.entries(given).map(([key, each]) => [key, { bounds, counts: each, sum }]));
        const value = { label: 'verb', values };
        const family = exposition(toText([{ name: 'x_seconds', type: 'histogram', help: 'x', value }])).get('watchmux_x_seconds');
        for (const [verb, each] of Object.entries(given)) {
          const last = family?.samples.find(({ labels }) => labels.verb === verb && labels.le === '+Inf');
          expect(last?.value).toBe(each.reduce((all, some) => all + some, 0));
        }
      }),
      { numRuns: runs(200) },
    );
  });

  test('keep the grammar whatever is in their texts, and say the same', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('\\', '"', '\n', 'n', '{', '}', ' ') }));
    const number = fc.oneof(fc.nat(), fc.double({ noNaN: true, min: 1 }));
    const metric: fc.Arbitrary<Metric> = fc.record({
      name: fc.constant('x_total'),
      type: fc.constant('counter' as const),
      help: text,
      value: fc.oneof(number, fc.record({ label: fc.constant('reason'), values: fc.dictionary(text, number) })),
    });
    fc.assert(
      fc.property(metric, (given) => {
        const family = exposition(toText([given])).get('watchmux_x_total');
        expect(family?.help).toBe(given.help);
        const values = typeof given.value === 'number' ? [[{}, given.value]] : Object.entries(given.value.values);
        const expected = values.map(([reason, value]) => ({ labels: typeof reason === 'string' ? { reason } : {}, value }));
        expect(family?.samples).toEqual(expected);
      }),
    );
  });
});
