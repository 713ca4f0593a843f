// What comes for a watcher in one turn of the event loop is one write.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Session, Turns } from '../../src/apiserver/http/sessions.ts';
import type { Source } from '../../src/apiserver/http/sources.ts';
import type { Sink } from '../../src/bridge/hub/connection.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { Timetable } from '../../src/watch/timetable.ts';

/** A source of numbers: all that have come since it was asked last are one piece. */
class Numbers implements Source {
  joins: boolean = true;
  closed: boolean = false;
  private come: number[] = [];
  private onBytes: ((bytes: Uint8Array) => void) | undefined;

  push(number: number): void {
    this.come.push(number);
    this.onBytes?.(this.take());
    this.onBytes = undefined;
  }

  next(): Uint8Array | Promise<Uint8Array> {
    if (this.come.length > 0) return this.take();
    return new Promise((resolve) => {
      this.onBytes = resolve;
    });
  }

  close(): void {
    this.closed = true;
  }

  private take(): Uint8Array {
    return Uint8Array.from(this.come.splice(0));
  }
}

function begin(joins: boolean): { source: Numbers; written: number[][]; session: Session } {
  const written: number[][] = [];
  const source = new Numbers();
  source.joins = joins;
  const sink = {
    form: undefined,
    opened: () => {},
    write: (bytes: Uint8Array) => written.push([...bytes]) > 0,
    end: () => {},
    destroy: () => {},
  } as unknown as Sink;
  const onError = (error: unknown): never => {
    throw error;
  };
  const host = { turns: new Turns(), ends: new Timetable<Session>(new FakeClock(), () => {}), onError, ended: () => {} };
  const answer = { source, isWatch: true, timeoutMs: 0, slot: undefined };
  const session = new Session(host, { sink, answer, outbound: { writableLength: 0 } });
  session.start();
  return { source, written, session };
}

async function pushed(source: Numbers, numbers: readonly number[]): Promise<void> {
  for (const number of numbers) {
    source.push(number);
    for (let i = 0; i < 10; i++) await Promise.resolve();
  }
}

test('the first change is sent at once, and those that follow in the same turn together', async () => {
  const { source, written } = begin(true);
  await pushed(source, [1, 2, 3]);
  expect(written).toEqual([[1]]);
  await setImmediate();
  expect(written).toEqual([[1], [2, 3]]);
  // Sent in this turn: what comes now waits for the next one.
  await pushed(source, [4, 5]);
  expect(written).toEqual([[1], [2, 3]]);
  await setImmediate();
  await setImmediate();
  await pushed(source, [6]);
  expect(written).toEqual([[1], [2, 3], [4, 5], [6]]);
});

test('what is not joined is sent as it comes', async () => {
  const { source, written } = begin(false);
  await pushed(source, [1, 2, 3]);
  expect(written).toEqual([[1], [2], [3]]);
});

test('a session that ends between two turns is not read again', async () => {
  const { source, written, session } = begin(true);
  await pushed(source, [1, 2]);
  session.stop();
  expect(source.closed).toBe(true);
  await setImmediate();
  expect(written).toEqual([[1]]);
});
