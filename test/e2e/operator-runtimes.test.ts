// The built package runs an operator on Node, Bun and Deno: on an API server in the same process, as the leader, until SIGTERM.
import { afterAll, describe, expect, it } from 'vitest';
import { until } from './cli.ts';
import { endAll, NODE, RUNTIMES } from './runtimes.ts';

afterAll(endAll);

describe.each([NODE, ...RUNTIMES])('an operator on $name', ({ missing, start }) => {
  it.skipIf(missing)('leads, applies, says so, finalizes, reports its health, and ends on SIGTERM', async () => {
    const { child, out, ended } = start('test/runtimes/operator.mjs');
    await until(() => out().includes('waits\n') || child.exitCode !== null);
    child.kill('SIGTERM');
    expect(await ended).toEqual([
      0,
      ['says Applied', 'made hello', 'told Applied', 'ready ok', 'counts true', 'finalized home', 'waits', 'ended', ''].join(
        '\n',
      ),
    ]);
  });
});
