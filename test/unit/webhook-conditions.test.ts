// Whether the conditions of a webhook hold. webhook-registrations.test.ts has those that are refused.
import { expect, it } from 'vitest';
import { doHold } from '../../src/apiserver/webhooks/conditions.ts';
import { setPace } from '../../src/watch/fair-queue.ts';

const holds = (expressions: readonly string[], more: object = {}, signal?: AbortSignal): Promise<boolean> => {
  const conditions = expressions.map((expression, at) => ({ name: `c${at}`, expression }));
  const variables = { object: { a: 1 }, oldObject: undefined, request: { name: 'x' }, ...more };
  return doHold(conditions, variables, { converted: new WeakMap(), signal });
};

it.each([
  [[], true],
  [['true'], true],
  [['false'], false],
  [['true', 'false'], false],
  [['object.a == 1', 'oldObject == null', 'request.name == "x"'], true],
  [['object.a == 2'], false],
  // One that fails does not count beside one that is false, before it or after it.
  [['object.b == 1', 'false'], false],
  [['false', 'object.b == 1'], false],
])('%j: %s', async (expressions, expected) => {
  expect(await holds(expressions)).toBe(expected);
});

it('sees all metadata of an object', async () => {
  const object = { metadata: { name: 'x', labels: { app: 'web' } } };
  expect(await holds(['object.metadata.labels.app == "web"'], { object })).toBe(true);
});

it('ends with its signal', async () => {
  const abort = new AbortController();
  const pace = {
    turn: () => undefined,
    pause: () => {
      abort.abort(new Error('enough'));
      return Promise.resolve();
    },
  };
  setPace(abort.signal, pace);
  await expect(holds(['true'], {}, abort.signal)).rejects.toThrow('enough');
});

it('says what has failed', async () => {
  const why = (name: string): string => `expression 'object.${name} == 1' resulted in error: no such key: ${name}`;
  await expect(holds(['object.b == 1'])).rejects.toThrow(new Error(why('b')));
  await expect(holds(['object.b == 1', 'true', 'object.c == 1'])).rejects.toThrow(new Error(`[${why('b')}, ${why('c')}]`));
});

it('says the beginning and the end of a long expression that has failed', async () => {
  const long = `object.b == "${'x'.repeat(50_000)}"`;
  const failed: Error = await holds([long]).then(
    () => new Error('none'),
    (error) => error as Error,
  );
  expect(failed.message.length).toBeLessThan(1_100);
  expect(failed.message).toMatch(/^expression 'object\.b == "x+\.\.\.x+"' resulted in error: no such key: b$/);
});

it('gives up what costs too much', async () => {
  const list = Array.from({ length: 100 }, (_, at) => at);
  const dear = 'object.l.all(a, object.l.all(b, object.l.all(c, a + b + c >= 0)))';
  await expect(holds([dear], { object: { l: list } })).rejects.toThrow(
    new Error(`expression '${dear}' resulted in error: operation cancelled: actual cost limit exceeded`),
  );
});
