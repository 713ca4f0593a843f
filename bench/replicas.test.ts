// The workload `replicas`: what its load counts, and what it detects.
import { expect, test } from 'vitest';
import { EventCounter } from './replicas/hearer.ts';

const line = (json: string): string => `${(json.length + 1).toString(16)}\r\n${json}\n\r\n`;

test('events are counted wherever the bytes are cut, and the last one is kept', () => {
  const events = ['{"a":1}', '{"bb":22}', '{"ccc":333}'];
  const bytes = Buffer.from(events.map(line).join(''));
  for (let size = 1; size <= bytes.length; size++) {
    const counter = new EventCounter();
    for (let at = 0; at < bytes.length; at += size) counter.read(bytes.subarray(at, at + size));
    expect([counter.count, counter.last.toString()]).toEqual([3, '{"ccc":333}']);
  }
});

test('several events in one chunk of HTTP are as many events', () => {
  const counter = new EventCounter();
  counter.read(Buffer.from(`10\r\n{"a":1}\n{"b":2}\n\r\n`));
  expect([counter.count, counter.last.toString()]).toEqual([2, '{"b":2}']);
});
