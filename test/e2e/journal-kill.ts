// A process that writes into a storage with a file until it is killed. It notes what it begins with, and each write once it is
// answered. Notes go to a file: what a pipe has no room for would die with the process.
import { openSync, writeSync } from 'node:fs';

const [, , file = '', notes = ''] = process.argv;
const noted = openSync(notes, 'w');
const door: string = 'watchmux/storage'; // as built
const { openMemoryStorage } = (await import(door)) as typeof import('../../src/storage/index.ts');

interface Thing {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly n: number;
}

const storage = await openMemoryStorage<Thing>({ file, minCompactBytes: 20_000 });
const { items, resourceVersion } = await storage.list();
const state = Object.fromEntries(items.map(({ metadata, n }) => [metadata.name, [n, Number(metadata.resourceVersion)]]));
note({ begin: Number(resourceVersion), state });

function note(what: unknown): void {
  writeSync(noted, `${JSON.stringify(what)}\n`);
  process.stdout.write('.');
}

/** Each writer has a key of its own, which it counts up, and deletes now and then. */
async function write(name: string): Promise<never> {
  for (let n = ((await storage.get(name))?.n ?? 0) + 1; ; n++) {
    const object = { metadata: { name }, n };
    const stored = await storage.update(name, () => object, { createIfMissing: true });
    note([name, n, Number(stored.metadata.resourceVersion)]);
    if (n % 7 !== 0) continue;
    const deleted = await storage.delete(name);
    note([name, null, Number(deleted.metadata.resourceVersion)]);
  }
}

await Promise.all([...'abcdefgh'].map(write));
