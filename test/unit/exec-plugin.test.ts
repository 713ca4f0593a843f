// A plugin that cannot be started because the process has no file descriptor left: then there are no streams, and the error comes later.
import { EventEmitter } from 'node:events';
import { expect, test, vi } from 'vitest';
import { ExecPlugin } from '../../src/kubernetes/exec-plugin.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';

vi.mock('node:child_process', () => ({
  spawn: () => {
    const child = new EventEmitter();
    process.nextTick(() => child.emit('error', Object.assign(new Error('spawn plugin EMFILE'), { code: 'EMFILE' })));
    return child;
  },
}));

test('a plugin that cannot be started is an error that names it, and leaves no timer', async () => {
  const clock = new FakeClock();
  const plugin = new ExecPlugin({ command: 'plugin' } as never, { clusterInfo: async () => ({}), timeoutMs: 1_000, clock });
  await expect(plugin.answer()).rejects.toThrow(/plugin.*EMFILE/);
  expect(clock.pending).toBe(0);
});
