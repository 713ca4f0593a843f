import type { Overflow } from '../../watch/overflow.ts';

/** What an overflow policy promises, as far as the checkers tell policies apart. */
export interface PolicyRules {
  /** It loses nothing, and holds back the publisher instead. */
  readonly waits: boolean;
  /** A full queue loses its oldest event rather than the new one. */
  readonly dropsOldest: boolean;
  /** It may cut a watch, with an ERROR with code 410. */
  readonly cuts: boolean;
  /** It cuts at the first loss; what was queued by then is still delivered. */
  readonly cutsAtLoss: boolean;
  /** Its queue holds the net change of each key instead of events. */
  readonly folds: boolean;
}

const KEEPS: PolicyRules = { waits: false, dropsOldest: false, cuts: false, cutsAtLoss: false, folds: false };

/** The rules of every policy. The checkers ask only these, so a new policy is checked as soon as it is listed here. */
export const RULES: Readonly<Record<Overflow, PolicyRules>> = {
  wait: { ...KEEPS, waits: true },
  'drop-newest': KEEPS,
  'drop-oldest': { ...KEEPS, dropsOldest: true },
  disconnect: { ...KEEPS, cuts: true, cutsAtLoss: true },
  coalesce: { ...KEEPS, cuts: true, folds: true },
};
