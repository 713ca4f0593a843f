// The bytes of events: made once for all who read them, and not kept beside those of the objects.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { PlainEvents } from '../../src/apiserver/http/event-encoder.ts';
import { LINE } from '../../src/bridge/events/forms.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import type { StorageEvent } from '../../src/storage/storage.ts';

const info = { apiVersion: 'v1', kind: 'Thing' };
type Event = StorageEvent<KubernetesObject>;

const eventOf = (name: string, spec: string): Event => ({
  type: 'MODIFIED',
  object: { metadata: { name, resourceVersion: '7' }, spec } as KubernetesObject,
});

test('a batch is cut into slices, each of which begins where the last one ended', () => {
  const events = new PlainEvents(info);
  const batch = ['a', 'b', 'c', 'd'].map((name) => eventOf(name, name.repeat(100_000)));
  const lines: string[] = [];
  const ends: number[] = [];
  for (let from = 0; from < batch.length; ) {
    const { bytes, to } = events.slice(batch, from, LINE);
    lines.push(...new TextDecoder().decode(bytes).trimEnd().split('\n'));
    ends.push(to);
    from = to;
  }
  expect(ends).toEqual([2, 4]);
  expect(lines.map((line) => JSON.parse(line))).toEqual(batch);
});

test('an event that is longer than a slice comes alone', () => {
  const events = new PlainEvents(info);
  const batch = [eventOf('a', 'x'.repeat(300_000)), eventOf('b', 'y')];
  expect([events.slice(batch, 0, LINE).to, events.slice(batch, 1, LINE).to]).toEqual([1, 2]);
});

test('who reads the same batch gets the same bytes; those of an event are forgotten after the turn', async () => {
  const events = new PlainEvents(info);
  const made = (events as unknown as { envelopes: ReadonlyMap<Event, unknown> }).envelopes;
  const event = eventOf('a', 'x');
  const batch = [event];
  const slice = events.slice(batch, 0, LINE);
  expect(events.slice(batch, 0, LINE)).toBe(slice);
  expect(events.slice([event], 0, LINE)).toEqual(slice);
  expect([...made.keys()]).toEqual([event]);
  await setImmediate();
  expect(made.size).toBe(0);
});
