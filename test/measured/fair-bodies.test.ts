// The same as fair.test.ts beside large bodies: parsing, copying and checking one of 3 MiB cannot be cut, and twenty of them make garbage.
import { describe } from 'vitest';
import { ATTACKS } from './fair/attacks.mjs';
import { measureBeside } from './fair/measure.ts';

describe('an honest client waits less than half a second for a small object, and for /livez, beside', () => {
  measureBeside(
    ATTACKS.filter(({ isLarge }) => isLarge),
    { getMs: 500, livezMs: 500 },
  );
});
