// A process that writes into a storage with a file until it is killed. It says what it begins with, and each write once it is answered.
export {};

const [, , file = ''] = process.argv;
const door: string = 'watchmux/storage'; // as built
const { openMemoryStorage } = (await import(door)) as typeof import('../../src/storage/index.ts');

interface Thing {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly n: number;
}

const storage = await openMemoryStorage<Thing>({ file, minCompactBytes: 20_000 });
const { items, resourceVersion } = await storage.list();
const state = Object.fromEntries(items.map(({ metadata, n }) => [metadata.name, [n, Number(metadata.resourceVersion)]]));
process.stdout.write(`${JSON.stringify({ begin: Number(resourceVersion), state })}\n`);

/** Each writer has a key of its own, which it counts up, and deletes now and then. */
async function write(name: string): Promise<never> {
  for (let n = ((await storage.get(name))?.n ?? 0) + 1; ; n++) {
    const object = { metadata: { name }, n };
    const stored = await storage.update(name, () => object, { createIfMissing: true });
    process.stdout.write(`${JSON.stringify([name, n, Number(stored.metadata.resourceVersion)])}\n`);
    if (n % 7 !== 0) continue;
    const deleted = await storage.delete(name);
    process.stdout.write(`${JSON.stringify([name, null, Number(deleted.metadata.resourceVersion)])}\n`);
  }
}

await Promise.all(['a', 'b', 'c', 'd'].map(write));
