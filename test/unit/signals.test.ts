// Signals to a process that is the first one of a container, to which the kernel sends only those that it listens to.
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { endUnheard } from '../../src/operator/signals.ts';

class OwnProcess extends EventEmitter {
  readonly ended: number[] = [];
  readonly pid: number;

  constructor(pid: number) {
    super();
    this.pid = pid;
  }

  exit(code: number): void {
    this.ended.push(code);
  }
}

test('process 1 ends at a signal, unless somebody else listens to it', () => {
  const own = new OwnProcess(1);
  endUnheard(own as unknown as NodeJS.Process);
  own.on('SIGHUP', () => {});
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) own.emit(signal);
  expect(own.ended).toEqual([130, 143]);
});

test('any other process ends at signals by itself', () => {
  const own = new OwnProcess(2);
  endUnheard(own as unknown as NodeJS.Process);
  expect(own.eventNames()).toEqual([]);
});
