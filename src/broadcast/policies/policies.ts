import type { Overflow } from '../../watch/overflow.ts';
import { Coalesce } from './coalesce.ts';
import { Disconnect } from './disconnect.ts';
import { DropNewest } from './drop-newest.ts';
import { DropOldest } from './drop-oldest.ts';
import type { Policy } from './policy.ts';
import { Wait } from './wait.ts';

/** The policy of each name. */
export const POLICIES: Readonly<Record<Overflow, Policy>> = {
  wait: new Wait(),
  'drop-newest': new DropNewest(),
  'drop-oldest': new DropOldest(),
  disconnect: new Disconnect(),
  coalesce: new Coalesce(),
};
