// `connected` of a reflector's state: whether its source does what it is asked for, as a page shows it.
import { describe, expect, test } from 'vitest';
import { Informer } from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { settle } from './faulty-source.ts';
import { type Pod as Plain, pod as plain } from './informer-support.ts';
import { bookmark, change, errorEvent, Rig, refusal, ScriptedWatch } from './reflector-rig.ts';

describe('a source', () => {
  test('is connected from its first answer on, until a request fails, and again from the next answer on', async () => {
    const told: string[] = [];
    const rig: Rig = new Rig({
      onStateChange: ({ phase, connected, failures }) => told.push(`${phase} ${connected} ${failures}`),
    });
    rig.source.toList = [refusal(503)];
    expect(rig.reflector.state.connected).toBe(false);
    await rig.start();
    await rig.pass(800);
    expect(told.splice(0)).toEqual([
      'listing false 0',
      'waiting false 1',
      'listing false 1',
      'listing true 1',
      'watching true 1',
    ]);
    rig.source.toWatch = [refusal(503)];
    rig.source.last.push(change('ADDED', 'a', '2'));
    await settle();
    rig.source.last.finish();
    await settle();
    await rig.pass(1_000);
    expect(told.splice(0)).toEqual(['waiting true 1', 'watching true 1', 'waiting false 2']); // an end alone says nothing
    await rig.pass(1_600);
    expect(told.splice(0)).toEqual(['listing false 2', 'listing true 2', 'watching true 2']); // failures stay, it is connected
    await rig.stop();
    expect(told).toEqual(['stopped false 2']);
    expect(rig.reflector.state.connected).toBe(false);
  });

  test.each([
    ['an ERROR', (rig: Rig) => rig.source.last.push(errorEvent(500, 'Other')), false],
    ['an end at once', (rig: Rig) => rig.source.last.finish(), false],
    ['a change', (rig: Rig) => rig.source.last.push(change('ADDED', 'a', '2')), true],
    ['a BOOKMARK', (rig: Rig) => rig.source.last.push(bookmark('2')), true],
    ['an event that cannot be read', (rig: Rig) => rig.source.last.push({ type: 'NEW', object: {} } as never), true],
    [
      'a store that throws',
      (rig: Rig) => {
        rig.store.error = new Error('full');
        rig.source.last.push(change('ADDED', 'a', '2'));
      },
      true,
    ],
  ])('after %s', async (_, happens, connected) => {
    const rig = new Rig();
    await rig.start();
    happens(rig);
    await settle();
    expect(rig.reflector.state.connected).toBe(connected);
    await rig.stop();
  });

  test('is connected while it streams its state, and not while it is taken for dead', async () => {
    const rig = new Rig({ streamingList: true, idleTimeoutMs: 20_000 });
    rig.source.toWatch = [new ScriptedWatch([change('ADDED', 'a', '1')]), refusal(503)];
    await rig.start();
    expect(rig.reflector.state).toMatchObject({ phase: 'listing', connected: true });
    rig.source.last.push(bookmark('1', 'true'));
    await settle();
    await rig.pass(19_999);
    expect(rig.reflector.state).toMatchObject({ phase: 'watching', connected: true });
    await rig.pass(1);
    expect(rig.reflector.state.connected).toBe(false);
    await rig.stop();
  });
});

test('an informer has it, too', async () => {
  const clock = new FakeClock();
  const source = new FakeListWatcher<Plain>({ objects: [plain('a', 1)] });
  const informer = new Informer<Plain>(source, { clock });
  expect(informer.state.connected).toBe(false);
  void informer.run();
  await informer.synced;
  expect(informer.state.connected).toBe(true);
  await informer.stop();
  expect(informer.state.connected).toBe(false);
});
