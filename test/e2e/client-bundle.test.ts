// The client as browsers get it: the bundle, with shortened names and parts left out, behaves like the source.
import { expect, test, vi } from 'vitest';

vi.mock('../../src/bridge/client.ts', () => import('../../dist/client-browser.js' as string));
// What only the WebSocket of ws can do is not in it.
vi.mock('../unit/client-network.ts', async (original) => ({
  ...(await original<object>()),
  KINDS: ['http', 'sse', 'browser'],
}));

test('runs the browser bundle, whose WebSocket accepts no headers', async () => {
  const { connect } = await import('../../src/bridge/client.ts');
  const headers = { authorization: 'secret' };
  expect(() => connect('ws://h/', { headers })).toThrow('headers: expected none with a WebSocket, got "authorization"');
});

await import('../unit/client-arguments.test.ts');
await import('../unit/client-ends.test.ts');
await import('../unit/client-events.test.ts');
await import('../unit/client-overflow.test.ts');
await import('../unit/client-reconnect.test.ts');
await import('../unit/client-refusals.test.ts');
