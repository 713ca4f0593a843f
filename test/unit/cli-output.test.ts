// What a command does with an output that nobody reads. test/e2e/cli-output.test.ts has outputs that fail.
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { Output } from '../../src/cli/output.ts';
import { FakeClock } from '../../src/testing/index.ts';

/** A pipe that takes a text only when its reader reads. */
class Pipe extends EventEmitter {
  writableLength: number = 0;
  private waiting: (() => void)[] = [];

  write(text: string, written: () => void = () => {}): boolean {
    this.writableLength += text.length;
    this.waiting.push(written);
    return false;
  }

  read(): void {
    this.writableLength = 0;
    for (const written of this.waiting.splice(0)) written();
    this.emit('drain');
  }
}

test('a reader that does not read holds up nothing for more than five seconds after a signal', async () => {
  const clock = new FakeClock();
  const output = new Output(new Pipe());
  const ended: string[] = [];
  output.onGone = () => void ended.push('gone');
  void output.write('something').then(() => ended.push('written'));
  output.hurry(clock);
  clock.advance(4_999);
  await Promise.resolve();
  expect(ended).toEqual([]);
  clock.advance(1);
  await output.write('more');
  await output.flushed();
  expect([ended, output.gone, output.failure]).toEqual([['gone', 'written'], true, undefined]);
});

test('the last words wait for their reader no longer, either', async () => {
  const clock = new FakeClock();
  const output = new Output(new Pipe());
  void output.write('something');
  const last = output.flushed();
  output.hurry(clock);
  clock.advance(5_000);
  await last;
  expect(output.gone).toBe(true);
});

test('a reader that reads gets all of it', async () => {
  const clock = new FakeClock();
  const pipe = new Pipe();
  const output = new Output(pipe);
  const written = output.write('something');
  output.hurry(clock);
  pipe.read();
  await written;
  clock.advance(5_000);
  expect(output.gone).toBe(false);
});
