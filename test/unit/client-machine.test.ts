// How the client's state machine handles versions and ends of connections.
import { describe, expect, test } from 'vitest';
import { ClientMachine, ENDED, LOST, toFailure } from '../../src/bridge/client/machine.ts';

const options = { minMs: 1, maxMs: 9, factor: 2, maxAttempts: 9, reconnectOnEnd: true, random: (): number => 1 };

describe('a version', () => {
  test.each([
    ['ab12.9', 'ab12.10', 'next'],
    ['ab12.9', 'ab12.9', 'known'],
    ['ab12.9', 'ab12.09', 'known'],
    ['ab12.10', 'ab12.9', 'known'],
    ['ab12.9', 'xb12.10', 'foreign'],
    ['ab12.9', 'ab1x.10', 'foreign'],
    ['a.b.9', 'a.b.10', 'next'],
    ['a.b.9', 'a.c.10', 'foreign'],
    ['ab12.9', 'ab12.8x', 'next'],
    ['ab12.9x', 'ab12.8', 'next'],
    ['9', '8', 'next'],
    ['9', '9', 'known'],
    [undefined, 'ab12.1', 'next'],
    ['ab12.9', undefined, 'next'],
  ] as const)('after %s, %s is %s', (last, version, order) => {
    const machine = new ClientMachine(options, last);
    expect(machine.accept(version)).toBe(order);
    expect(machine.position).toBe(order === 'next' ? (version ?? last) : last);
  });
});

test('within a folded batch, which would come again, a full queue closes the connection only if there is no room at all', () => {
  const machine = new ClientMachine(options, 'e.1');
  machine.connect();
  machine.opened();
  machine.accept(undefined);
  expect([machine.full(), machine.state]).toEqual([false, 'open']);
  expect([machine.full(true), machine.state]).toEqual([true, 'waiting']);
  machine.connect();
  machine.opened();
  expect(machine.full()).toBe(true);
});

test('a full queue closes the connection only from a known position, and only in state open', () => {
  const [known, nowhere] = [new ClientMachine(options, 'e.1'), new ClientMachine(options)];
  expect(known.full()).toBe(false);
  for (const machine of [known, nowhere]) {
    machine.connect();
    expect([machine.full(), machine.state]).toEqual([false, 'connecting']);
    machine.opened();
  }
  expect([nowhere.full(), nowhere.state]).toEqual([false, 'open']);
  expect([known.full(), known.state]).toEqual([true, 'waiting']);
});

test.each([
  [200, 503, 'ServiceUnavailable'],
  [404, 404, 'Unknown'],
  [410, 410, 'Expired'],
  [503, 503, 'ServiceUnavailable'],
])('the failure of %i is a Status of %i, %s', (code, expected, reason) => {
  expect(toFailure(code, 'why')).toMatchObject({ code: expected, reason, message: 'why' });
  expect(toFailure(code).message).toBe('');
});

test('a delay is a number after any count of failures, also if it is 0', () => {
  const delays = new Set<number | undefined>();
  const machine = new ClientMachine({ ...options, minMs: 0, maxAttempts: Infinity }, 'e.1');
  for (let i = 0; i < 1_100; i++) delays.add(machine.over({ code: LOST, error: toFailure(LOST) })?.delayMs);
  expect([...delays]).toEqual([0]);
});

describe('a start over after a 410', () => {
  const expired = { code: 410, error: toFailure(410) };
  const lost = { code: LOST, error: toFailure(LOST) };
  const machineAt = (position: string): ClientMachine =>
    new ClientMachine({ ...options, minMs: 4, maxMs: 99, onExpired: 'restart' }, position);

  test('is at once, whatever failed before', () => {
    const machine = machineAt('e.1');
    expect([lost, lost, expired].map((end) => machine.over(end)?.delayMs)).toEqual([4, 8, 0]);
    expect([machine.position, machine.failures]).toEqual([undefined, 3]);
  });

  test('waits as long as the server asks for, and no longer', () => {
    expect(machineAt('e.1').over({ ...expired, hintMs: 7_000 })?.delayMs).toBe(7_000);
  });

  test('that ends with a 410 again waits, also if an event came in between', () => {
    const machine = machineAt('e.1');
    const delays = [machine.over(expired)?.delayMs];
    for (const version of [undefined, undefined, 'f.1', 'g.1']) {
      machine.connect();
      machine.opened();
      if (version) machine.accept(version);
      delays.push(machine.over(expired)?.delayMs);
    }
    expect(delays).toEqual([0, 8, 16, 4, 4]);
  });

  test('is at once again after another end, and after a connection that lasted', () => {
    const machine = machineAt('e.1');
    expect([expired, lost, expired, expired].map((end) => machine.over(end)?.delayMs)).toEqual([0, 8, 0, 32]);
    machine.lasted();
    expect([expired, { ...expired, code: ENDED }].map((end) => machine.over(end)?.delayMs)).toEqual([0, 8]);
  });

  test('is not at once where no server has answered 410: the connection broke before there was a version', () => {
    const machine = new ClientMachine({ ...options, minMs: 4, maxMs: 99, onExpired: 'restart' });
    machine.connect();
    machine.opened();
    expect(machine.over(lost)).toMatchObject({ delayMs: 4, notice: true, error: { code: 410 } });
  });
});

test.each([
  [
    'once its attempts are spent, a regular end is reported',
    2,
    { error: toFailure(LOST, 'ended after maxAttempts'), notice: true },
  ],
  ['without any attempt, a regular end is the end', 0, { error: undefined, notice: false }],
])('%s', (_, maxAttempts, last) => {
  const machine = new ClientMachine({ ...options, maxAttempts }, 'e.1');
  const end = (): unknown => {
    machine.connect();
    machine.opened();
    return machine.over({ code: ENDED, error: toFailure(ENDED) });
  };
  for (let at = 0; at < maxAttempts; at++)
    expect([end(), machine.state]).toMatchObject([{ delayMs: expect.any(Number) }, 'waiting']);
  expect([end(), machine.state]).toEqual([last, 'closed']);
});
