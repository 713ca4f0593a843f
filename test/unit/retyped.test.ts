// What is sent of an event whose type or version has changed: everything else stays as it was written.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Envelope, envelopeOf, retyped } from '../../src/bridge/events/envelope.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { toStatus, type WatchEvent } from '../../src/watch/event.ts';
import { runs } from '../runs.ts';
import { connect, FakeSink, turn } from './fake-sink.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const withType = (json: string, type: string): string => decoder.decode(retyped(encoder.encode(json), type));

describe('another type', () => {
  test.each([
    ['{"type":"ADDED","object":1}', '{"type":"MODIFIED","object":1}'],
    [
      '{ "object" : {"type":"ADDED"}, "type" : "ADDED" , "more":[{"type":"x"}] }',
      '{ "object" : {"type":"ADDED"}, "type" : "MODIFIED" , "more":[{"type":"x"}] }',
    ],
    ['{"t\\u0079pe":"ADDED","object":"type"}', '{"t\\u0079pe":"MODIFIED","object":"type"}'],
    ['{"type":"x","object":1.0,"type":"ADDED"}', '{"type":"x","object":1.0,"type":"MODIFIED"}'],
    ['{"type":7,"object":"}\\"{","type":"ADDED"}', '{"type":7,"object":"}\\"{","type":"MODIFIED"}'],
    [
      '{"object":["type","ADDED"],"kind":"type","type":"\\u0041DDED"}',
      '{"object":["type","ADDED"],"kind":"type","type":"MODIFIED"}',
    ],
    ['{"object":1}', '{"object":1}'],
  ])('of %s gives %s', (json, expected) => {
    expect(withType(json, 'MODIFIED')).toBe(expected);
  });

  test('of any event changes nothing else', () => {
    const more = fc.dictionary(fc.string(), fc.jsonValue());
    const space = fc.constantFrom(0, 1, 2);
    fc.assert(
      fc.property(
        fc.jsonValue(),
        more,
        more,
        fc.tuple(fc.string(), fc.string()),
        space,
        (object, before, after, types, spaces) => {
          const [type, next] = types;
          const toJson = (name: string): string => JSON.stringify({ ...before, object, ...after, type: name }, null, spaces);
          expect(withType(toJson(type), next)).toBe(toJson(next));
        },
      ),
      { numRuns: runs(1_500) },
    );
  });
});

describe('an event from another hub, passed on as text', () => {
  const json = '{"type":"ADDED","object":1,"resourceVersion":"other.7"}';
  const event = JSON.parse(json) as WatchEvent;
  const versionIn = (envelope: Envelope): unknown => JSON.parse(decoder.decode(envelope.bytes)).resourceVersion;

  test('has the version of this hub; without one, it has none', () => {
    const envelope = new Envelope(event, { sequence: 3, version: 'e.3', json });
    expect(versionIn(envelope)).toBe('e.3');
    const without = envelope.relabelled(undefined);
    expect([without.version, versionIn(without)]).toEqual([undefined, '']);
    expect(decoder.decode(without.relabelled('e.3').bytes)).toBe(decoder.decode(envelope.bytes));
    const copy = envelopeOf({ ...envelope, type: 'MODIFIED' });
    expect(decoder.decode(copy.relabelled(undefined).bytes)).toBe(
      json.replace('ADDED', 'MODIFIED').replace(/}$/, ',"resourceVersion":""}'),
    );
  });

  test('needs no such member if its text has none', () => {
    const own = { type: 'ADDED', object: 1 };
    const envelope = new Envelope(own, { sequence: 3, version: 'e.3', json: JSON.stringify(own) });
    expect(decoder.decode(envelope.relabelled(undefined).bytes)).toBe('{"type":"ADDED","object":1}');
  });
});

describe('a client of a hub that folds', () => {
  /** What the client gets of events that come while it has no room. */
  const foldedFrom = async (...events: [WatchEvent, string?][]): Promise<string[]> => {
    const hub = new Hub({ epoch: 'e', overflow: 'coalesce' });
    const sink = connect(hub, new FakeSink());
    sink.stall();
    await hub.publish({ type: 'ADDED', object: 'first' });
    await turn();
    for (const [event, json] of events) await hub.publish(event, json);
    sink.resume();
    await turn();
    await hub.shutdown();
    return sink.text.trimEnd().split('\n').slice(1);
  };
  const change = (type: string, more: string): [WatchEvent, string] => {
    const json = `{ "object":{"metadata":{"name":"a"},"id":12345678901234567890,"x":1.0},"type":"${type}"${more}}`;
    return [JSON.parse(json) as WatchEvent, json];
  };

  test('gets the text as it was written, with the type of the net change', async () => {
    const [added, modified] = [change('ADDED', ''), change('MODIFIED', ',"more":[1e2]')];
    expect(await foldedFrom(added, modified)).toEqual([
      '{ "object":{"metadata":{"name":"a"},"id":12345678901234567890,"x":1.0},"type":"ADDED","more":[1e2],"resourceVersion":"e.3"}',
    ]);
    expect(await foldedFrom(change('DELETED', ''), added)).toEqual([
      '{ "object":{"metadata":{"name":"a"},"id":12345678901234567890,"x":1.0},"type":"MODIFIED","resourceVersion":"e.3"}',
    ]);
  });

  test('gets an ERROR of the application with its version, between what came before it and what came after', async () => {
    const named = (type: string, name: string): [WatchEvent] => [{ type, object: { metadata: { name } } }];
    const object = toStatus({ code: 410, reason: 'Expired', message: 'of the application' });
    const lines = await foldedFrom(
      named('ADDED', 'a'),
      named('MODIFIED', 'a'),
      [{ type: 'ERROR', object }],
      named('ADDED', 'a'),
      named('ADDED', 'b'),
      named('MODIFIED', 'a'),
    );
    expect(lines.map((line) => JSON.parse(line)).map(({ type, resourceVersion }) => [type, resourceVersion])).toEqual([
      ['ADDED', undefined],
      ['ERROR', 'e.4'],
      ['ADDED', undefined],
      ['ADDED', 'e.7'],
    ]);
  });
});
