// The sequence numbers of events that user code publishes while another event is being published.
import { describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { added, connect, turn } from './fake-sink.ts';
import { fate } from './support.ts';

describe('a reentrant publish', () => {
  test('from toJSON does not overtake the event that is being encoded, nor get its number', async () => {
    const hub = new Hub({ epoch: 'e' });
    const sink = connect(hub);
    const said: unknown[] = [];
    const toJSON = (): string => {
      said.push(hub.tryPublish(added('inner')), fate(hub.publish(added('later'))));
      return 'outer';
    };
    await hub.publish(added({ toJSON }));
    expect(said).toMatchObject([false, { state: 'pending' }]);
    for (let i = 0; i < 3; i++) await turn();
    expect(said).toMatchObject([false, { state: 'resolved' }]);
    expect(sink.objects).toEqual(['outer', 'later']);
    expect(sink.versions).toEqual(['e.1', 'e.2']);
  });

  test('from a filter that is called for an event does not get that event’s number', async () => {
    const hub = new Hub({ epoch: 'e', capacity: 16, overflow: 'drop-newest' });
    const witness = connect(hub);
    const said: unknown[] = [];
    let publishing = false;
    const filter = (): boolean => {
      // The sink is stalled: it is asked when its client has fallen behind, in the middle of a publish.
      if (publishing && said.length === 0) said.push(hub.tryPublish(added('inner')), fate(hub.publish(added('later'))));
      return true;
    };
    const slow = connect(hub, undefined, { options: { filter } });
    slow.stall();
    hub.tryPublish(added(0));
    await turn();
    for (let i = 1; i < 100; i++) {
      publishing = true;
      hub.tryPublish(added(i));
      publishing = false;
    }
    expect(said).toMatchObject([false, { state: 'pending' }]);
    for (let i = 0; i < 3; i++) await turn();
    expect(said).toMatchObject([false, { state: 'resolved' }]);
    expect(witness.versions).toEqual(Array.from({ length: 101 }, (_, i) => `e.${i + 1}`));
    expect(witness.objects.at(-1)).toBe('later');
  });
});

test.each([100, 2 ** 31, Number.MAX_SAFE_INTEGER])(
  'with a queue of %i, a short burst is one write per client',
  async (capacity) => {
    const hub = new Hub({ capacity });
    const [sink, own] = [connect(hub), connect(hub, undefined, { options: { capacity } })];
    for (let i = 0; i < 10; i++) hub.tryPublish(added(i));
    await turn();
    expect([sink, own].map(({ objects, writes }) => [objects.length, writes.length])).toEqual([
      [10, 1],
      [10, 1],
    ]);
  },
);

describe('an event’s own JSON text', () => {
  test.each([
    ['{"type":"ADDED","object":1}', '{"type":"ADDED","object":1,"resourceVersion":"e.1"}\n'],
    [' {\n"object" : 1, "type":"ADDED" }\n', ' { "object" : 1, "type":"ADDED" ,"resourceVersion":"e.1"}\n'],
    ['{"type":"ADDED","object":{}}', '{"type":"ADDED","object":{},"resourceVersion":"e.1"}\n'],
  ])('%j is sent as it is, on one line, with the version as its last member', async (json, sent) => {
    const hub = new Hub({ epoch: 'e' });
    const sink = connect(hub);
    await hub.publish(added(1), json);
    await turn();
    expect(sink.text).toBe(sent);
  });

  test.each(['', '{', '{}', ' { } ', '{"type":"ADDED"', '[{"type":"ADDED"}]', '"}"', 'null'])('%j is refused', async (json) => {
    const hub = new Hub({ epoch: 'e' });
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('json') };
    await expect(hub.publish(added(1), json)).rejects.toMatchObject(refusal);
    expect(() => hub.tryPublish(added(1), json)).toThrow(expect.objectContaining(refusal));
    expect(hub.version).toBe('e.0');
  });
});
