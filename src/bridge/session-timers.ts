import type { Clock } from '../watch/clock.ts';
import type { Session } from './session.ts';

/** Ends a session in order after so long. */
export function endAfter(session: Session, delayMs: number, clock: Clock): void {
  session.whenOver(clock.schedule(delayMs, () => session.stop('timeout')));
}

/** BOOKMARK events from now on: one so often, and one before an end by timeout. */
export function bookmarkEvery(session: Session, intervalMs: number, clock: Clock): void {
  session.bookmarks = true;
  const tick = (): void => {
    session.flush();
    session.bookmark();
    if (!session.over) cancel = clock.schedule(intervalMs, tick);
  };
  let cancel = clock.schedule(intervalMs, tick);
  session.whenOver(() => cancel());
}
