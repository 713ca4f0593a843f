// A client of `watchmux serve --data` whose server begins a new file, or an older copy of it: the client's versions are of another history.
// client-go's informer has to list again each time, and to have in the end what the server has.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { component, isMissing } from '../components.ts';
import { killAll, serve } from '../e2e/cli.ts';
import { eventually } from '../eventually.ts';
import { ClientProgram } from './client-program.ts';
import { freePorts } from './ports.ts';

const clientGo = component('client-go');
const TIMES = 3;
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  killAll();
});

async function write(url: string, names: readonly string[]): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const path = `${url}/api/v1/namespaces/default/configmaps`;
  for (const name of names) {
    const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify({ metadata: { name } }) });
    expect(response.status).toBe(201);
  }
}

/** What is there: versions by `namespace/name`. */
async function listed(url: string): Promise<Record<string, string>> {
  const response = await fetch(`${url}/api/v1/namespaces/default/configmaps`);
  const { items } = (await response.json()) as { items: { metadata: { name: string; resourceVersion: string } }[] };
  return Object.fromEntries(items.map(({ metadata }) => [`default/${metadata.name}`, metadata.resourceVersion]));
}

describe.skipIf(isMissing(clientGo))('a client of a server that begins another history', () => {
  it.each([
    ['a new file', [], true],
    ['a new file', ['--watch-list=false'], true],
    ['a copy of before', [], false],
  ] as const)(
    'lists again: %s %j',
    async (_, args, isNew) => {
      const folder = mkdtempSync(join(tmpdir(), 'watchmux-new-data-'));
      closing.push(() => rmSync(folder, { recursive: true, force: true }));
      const [port] = (await freePorts(1)) as [number];
      const begin = (file: string) => serve('--port', String(port), '--data', join(folder, file));
      let server = await begin('0');
      const { url } = server;
      await write(url, NAMES.slice(0, 2));
      const stop = async (): Promise<void> => {
        server.child.kill('SIGTERM');
        await server.exit;
      };
      await stop();
      copyFileSync(join(folder, '0'), join(folder, 'copy'));
      server = await begin('0');
      const program = new ClientProgram(clientGo.path, ['informer', ...args, '--server', url]);
      closing.push(() => program.end());
      const isAlike = async (): Promise<void> => {
        const there = await listed(url);
        await eventually(async () => expect(await program.dump()).toEqual(there));
      };
      await isAlike();
      for (let time = 1; time <= TIMES; time++) {
        await write(url, NAMES.slice(2, 2 + (time % 3)));
        await isAlike();
        await stop();
        const next = isNew ? String(time) : `copy-${time}`;
        if (!isNew) copyFileSync(join(folder, 'copy'), join(folder, next));
        server = await begin(next);
        // As many writes as before, or more: the numbers of a history that began with 1 would be those that the client knows.
        if (isNew) await write(url, [...NAMES].reverse().slice(0, 3 + (time % 2)));
        else await write(url, [NAMES[5 - (time % 3)] as string]);
        await isAlike();
        if (time < TIMES && isNew)
          for (const name of NAMES.slice(2, 5))
            await fetch(`${url}/api/v1/namespaces/default/configmaps/${name}`, { method: 'DELETE' });
      }
    },
    300_000,
  );
});
