import { describe, expect, it } from 'vitest';
import { checkSerial, type QueueStep } from '../../src/testing/checkers/check-serial.ts';
import { WORDED } from './build.ts';

/** `add a`, `get a`, `done a`, `delay a`, `shutdown`, `drained`; `get a 2` by worker 2. */
const history = (text: string): QueueStep<string>[] =>
  text.split(', ').map((line) => {
    const [step, key, worker] = line.split(' ');
    return { step, ...(key && { key }), ...(worker && { worker }) } as QueueStep<string>;
  });
const check = (text: string): string | undefined => checkSerial({ steps: history(text) })?.message;

describe('Serial', () => {
  it.each([
    'add a, get a 1, done a, shutdown, drained',
    'add a, add a, get a, done a, add a, get a, add a, done a, get a, done a, shutdown, drained',
    'add a, add b, get a 1, get b 2, done b, done a, shutdown, drained',
    'delay a, shutdown, drained',
    'delay a, get a, done a, shutdown, drained',
    'delay a, add a, get a, done a, get a, done a',
    'add a, get a, shutdown, add a, done a, drained',
    'add a, shutdown, get a, done a, drained',
    'add a',
    'add a, get a, add a, done a',
    'done a, add a, get a, done a, done a, shutdown, drained',
  ])('accepts %s', (text) => {
    expect(check(text)).toBeUndefined();
  });

  it.each([
    ['add a, add a, get a 1, get a 2', 'two hands', /for 2 at "a": expected one worker at a time, seen it still processed by 1/],
    ['add a, get a, add a, get a', 'a second run before the first is done', /handed out before it was done/],
    ['add a, get a, done a, get a', 'a run that nobody asked for', /expected a run that was asked for, seen one more/],
    ['get a', 'one of a key that was never added', /expected a run that was asked for/],
    ['add a, get a, done a, shutdown, add a, get a', 'a run for an add after the end', /expected a run that was asked for/],
    ['add a, shutdown, drained', 'an add that is lost', /expected a run after step 0/],
    ['add a, get a, add a, done a, shutdown, drained', 'an add in work that is lost', /expected a run after step 2/],
    ['add a, add b, get b, done b, shutdown, drained', 'one of two that is lost', /at "a": expected a run after step 0/],
    ['add a, get a, shutdown, drained', 'an end before the work is done', /expected it done when the queue is drained/],
    ['add a, get a, done a, shutdown, drained, get a', 'a run when all is done', /expected a run that was asked for/],
    ['add a, get a, done a, drained', 'an end without a shutdown', /expected a shutdown before the end/],
  ])('rejects %s: %s', (text, _, expected) => {
    expect(check(text)).toMatch(expected);
    expect(check(text)).toMatch(WORDED);
  });

  it('names the worker if there is one', () => {
    expect(checkSerial({ steps: history('get a 7') })).toMatchObject({ watcher: '7' });
    expect(checkSerial({ steps: history('get a') })).not.toHaveProperty('watcher');
  });

  it('tells keys apart by keyOf', () => {
    const steps: QueueStep<{ name: string }>[] = [
      { step: 'add', key: { name: 'a' } },
      { step: 'get', key: { name: 'a' } },
    ];
    expect(checkSerial({ steps, keyOf: ({ name }) => name })).toBeUndefined();
    expect(checkSerial({ steps })?.guarantee).toBe('Serial');
  });
});
