import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { LINE_BYTES, narrow } from '../../src/cli/server/slow-line.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';

/** As much of a response as a narrow line touches. */
class Out extends EventEmitter {
  text = '';
  ended = false;
  destroyed = false;
  writableLength = 0;
  write(chunk: string | Uint8Array): boolean {
    this.text += Buffer.from(chunk as Uint8Array).toString();
    return true;
  }
  end(): this {
    this.ended = true;
    return this;
  }
}

function line(bytesPerSecond: number) {
  const clock = new FakeClock();
  const out = new Out();
  let drains = 0;
  out.on('drain', () => drains++);
  narrow(out as unknown as ServerResponse, { bytesPerSecond, clock });
  return { clock, out, drains: () => drains };
}

describe('a slow line', () => {
  test('lets the given number of bytes per second through, across chunks', () => {
    const { clock, out, drains } = line(100);
    out.write('0123456789ab');
    out.write('cdefgh');
    expect([out.text, out.writableLength]).toEqual(['', 18]);
    clock.advance(100);
    expect([out.text, out.writableLength, drains()]).toEqual(['0123456789', 8, 0]);
    clock.advance(100);
    expect([out.text, out.writableLength, drains()]).toEqual(['0123456789abcdefgh', 0, 1]);
    expect(clock.pending).toBe(0);
  });

  test('also works with less than a byte per tick, and does not make up for idle time', () => {
    const { clock, out } = line(4);
    out.write('abcdef');
    for (let i = 0; i < 10; i++) clock.advance(100);
    expect(out.text).toBe('abcd');
    for (let i = 0; i < 5; i++) clock.advance(100);
    expect(out.text).toBe('abcdef');
    clock.advance(60_000);
    out.write('ghi');
    for (let i = 0; i < 3; i++) clock.advance(100);
    expect(out.text).toBe('abcdefg');
  });

  test('reports that it is full, but accepts everything', () => {
    const { out } = line(10);
    expect(out.write('x'.repeat(LINE_BYTES - 1))).toBe(true);
    expect(out.write('x')).toBe(false);
    expect(out.write('more')).toBe(false);
    expect(out.writableLength).toBe(LINE_BYTES + 4);
  });

  test('ends after the waiting bytes; at once if there are none', () => {
    const { clock, out, drains } = line(100);
    out.write('0123456789abc');
    out.end();
    clock.advance(100);
    expect(out.ended).toBe(false);
    clock.advance(100);
    expect([out.text, out.ended, drains()]).toEqual(['0123456789abc', true, 0]);
    const idle = line(100);
    idle.out.end();
    expect(idle.out.ended).toBe(true);
  });

  test('has no timer after the connection has closed', () => {
    const { clock, out } = line(1);
    out.write('abc');
    out.destroyed = true;
    out.emit('close');
    out.write('abc');
    expect(clock.pending).toBe(0);
  });
});
