// The same as fair.test.ts beside bodies of about 3 MiB, twenty at a time.
import { describe } from 'vitest';
import { ATTACKS } from './fair/attacks.mjs';
import { measureBeside } from './fair/measure.ts';

describe('an honest client waits little for a small object, and for /livez, beside', () => {
  measureBeside(
    ATTACKS.filter(({ isLarge }) => isLarge),
    { getMs: 100, livezMs: 250 },
  );
});
