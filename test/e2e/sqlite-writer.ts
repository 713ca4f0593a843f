// A process that writes into a storage on SQLite until it is killed, or has written so much. It notes each write once it is answered.
import { openSync, writeSync } from 'node:fs';

const [, , file = '', notes = '', limit = ''] = process.argv;
const noted = openSync(notes, 'a');
const door: string = 'watchmux/sqlite'; // as built
const { SqliteStorage } = (await import(door)) as typeof import('../../src/storage/sqlite/index.ts');

interface Thing {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly n: number;
}

const storage = new SqliteStorage<Thing>({ file });
const things = storage.scope<Thing>('things/');

/** Each writer has a key of its own, which it counts up. */
async function write(name: string): Promise<void> {
  for (let n = ((await things.get(name))?.n ?? 0) + 1, left = Number(limit); left > 0; n++, left--) {
    const stored = await things.update(name, () => ({ metadata: { name }, n }), { createIfMissing: true });
    writeSync(noted, `${JSON.stringify([name, n, stored.metadata.resourceVersion])}\n`);
    process.stdout.write('.');
  }
}

await Promise.all(['a', 'b', 'c', 'd'].map(write));
await storage.close();
