// A client that asks for little waits little, whatever another one asks for: see fair/measure.ts. The attacks are in fair/attacks.mjs.
import { describe } from 'vitest';
import { ATTACKS } from './fair/attacks.mjs';
import { measureBeside } from './fair/measure.ts';

describe('an honest client waits little for a small object, and for /livez, beside', () => {
  measureBeside(
    ATTACKS.filter(({ isLarge }) => !isLarge),
    { getMs: 100, livezMs: 250 },
  );
});
