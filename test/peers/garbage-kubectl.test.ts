// kubectl deletes with each of its cascades, at a server that collects garbage: it waits, and comes back, as at a kube-apiserver.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { EVERYTHING } from '../garbage-world.ts';
import { listening } from '../listening.ts';

const kubectlBinary = component('kubectl');
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'watchmux-garbage-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(isMissing(kubectlBinary))('kubectl delete', () => {
  const server = new ApiServer({ storage: new MemoryStorage(), resources: EVERYTHING, garbageCollection: true });
  let at: Awaited<ReturnType<typeof listening>>;
  beforeAll(async () => {
    await server.ready;
    at = await listening(server);
  });
  afterAll(() => at.close());

  const kubectl = async (...args: string[]): Promise<string> =>
    (await run(kubectlBinary.path, ['--server', at.url, ...args], { env: { PATH: '', HOME: folder } })).stdout.trim();
  const orders = server.resource('orders.example.com/v1').in('default');
  const names = async (): Promise<unknown> => (await orders.list()).items.map(({ metadata }) => metadata?.name);

  /** An owner with two dependents, one of which blocks it. */
  async function family(): Promise<void> {
    const { apiVersion, kind, metadata } = await orders.create({ metadata: { name: 'owner' } });
    const owner = { apiVersion, kind, name: 'owner', uid: metadata?.uid };
    await orders.create({ metadata: { name: 'a', ownerReferences: [{ ...owner, blockOwnerDeletion: true }] } });
    await orders.create({ metadata: { name: 'b', ownerReferences: [owner] } });
  }

  test('--cascade=foreground returns when the dependents are gone', async () => {
    await family();
    expect(await kubectl('delete', 'orders.example.com', 'owner', '--cascade=foreground')).toContain('deleted');
    await expect.poll(names).toEqual([]);
  });

  test('--cascade=background, and its default', async () => {
    for (const cascade of [['--cascade=background'], []]) {
      await family();
      expect(await kubectl('delete', 'orders.example.com', 'owner', ...cascade)).toContain('deleted');
      await expect.poll(names).toEqual([]);
    }
  });

  test('--cascade=orphan leaves them', async () => {
    await family();
    expect(await kubectl('delete', 'orders.example.com', 'owner', '--cascade=orphan')).toContain('deleted');
    await expect.poll(names).toEqual(['a', 'b']);
    for (const { metadata } of (await orders.list()).items) expect(metadata?.ownerReferences).toBeUndefined();
  });
});
