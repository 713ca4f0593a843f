// An operator that serves webhooks: from when, until when, and what if it cannot.
import { describe, expect, it } from 'vitest';
import { order, settle, world } from './operator-rig.ts';

/** Stands for a WebhookServer. */
function webhooks() {
  let listen: (url: string) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const ready = new Promise<string>((resolve) => {
    listen = resolve;
  });
  const states: string[] = [];
  const run = (signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      states.push('runs');
      fail = reject;
      signal?.addEventListener('abort', () => {
        states.push('ends');
        resolve();
      });
    });
  return { server: { run, ready }, states, listen: () => listen('https://localhost'), fail: (error: Error) => fail(error) };
}

describe('webhooks of an operator', () => {
  it('are served by those that do not lead as well, and it is ready once they listen', async () => {
    const { start, clock } = world();
    const { server, states, listen } = webhooks();
    const { operator, stop } = await start({}, { webhooks: server });
    const ready = async (): Promise<number> => {
      const answer = operator.fetch(new Request('http://localhost/readyz/webhooks'));
      await settle();
      clock.advance(1_000);
      return (await answer).status;
    };
    expect([await ready(), states]).toEqual([500, ['runs']]);
    listen();
    await settle();
    expect(await ready()).toBe(200);
    expect((await stop()).state).toBe('resolved');
    expect([states, clock.pending]).toEqual([['runs', 'ends'], 0]);
  });

  it('end after the last reconcile, whose writes they may have to admit', async () => {
    const { start, orders } = world();
    const { server, states } = webhooks();
    let finish: () => void = () => {};
    const reconcile = (): Promise<void> =>
      new Promise((resolve) => {
        finish = resolve;
      });
    const { stop, run } = await start({ reconcile }, { webhooks: server });
    await orders.create(order('a'));
    await settle();
    await stop();
    expect([states, run.state]).toEqual([['runs'], 'pending']);
    finish();
    await settle();
    expect([states, run.state]).toEqual([['runs', 'ends'], 'resolved']);
  });

  it('that cannot be served end it', async () => {
    const { start } = world();
    const { server, fail } = webhooks();
    const { run } = await start({}, { webhooks: server });
    fail(new Error('EADDRINUSE'));
    await settle();
    expect(run).toMatchObject({ state: 'rejected', error: { message: 'EADDRINUSE' } });
  });

  it('have to be some', () => {
    expect(() => world().operator({ webhooks: {} as never })).toThrow(/webhooks: expected a WebhookServer, got Object/);
  });
});
