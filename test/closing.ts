import { afterEach } from 'vitest';

/** Returns a list of what ends something: all of it is called after each test of the file, the last first. */
export function closers(): (() => unknown)[] {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });
  return ends;
}
