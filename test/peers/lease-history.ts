// Judges the history of a Lease by what it says itself: whether two ever held it at one time.
import type { Lease } from 'watchmux/apiserver';

/** What is wrong with a history, in the order of its changes: two that held it at one time, or a count that is wrong. */
export function faultsOf(history: readonly Lease[]): string[] {
  return history.slice(1).flatMap((next, at) => {
    const [old, now] = [history[at]?.spec ?? {}, next.spec ?? {}];
    if (!now.holderIdentity || old.holderIdentity === now.holderIdentity) return [];
    const faults: string[] = [];
    const [before, after] = [old.leaseTransitions ?? 0, now.leaseTransitions ?? 0];
    if (after !== before + 1) faults.push(`${now.holderIdentity} says ${after} transitions after ${before}`);
    const freeMs = Date.parse(old.renewTime ?? '') + (old.leaseDurationSeconds ?? 0) * 1_000;
    if (old.holderIdentity && !(Date.parse(now.acquireTime ?? '') >= freeMs)) {
      faults.push(`${now.holderIdentity} took it before ${old.holderIdentity} had lost it`);
    }
    return faults;
  });
}
