import type { Clock } from '../watch/clock.ts';
import type { Session } from './session.ts';
import type { Sink } from './sink.ts';

/** Ends a session in order after so long. */
export function endAfter(session: Session, delayMs: number, clock: Clock): void {
  session.whenOver(clock.schedule(delayMs, () => session.stop('timeout')));
}

/** How often, and by which clock. */
export interface Interval {
  readonly intervalMs: number;
  readonly clock: Clock;
}

/** BOOKMARK events from now on: one so often, and one before an end by timeout. */
export function bookmarkEvery(session: Session, interval: Interval): void {
  session.bookmarks = true;
  every(session, interval, () => session.bookmark());
}

/** The same without an event, where the wire has a way to say it. */
export function markEvery(session: Session, sink: Sink, { version, ...interval }: Interval & { version: () => string }): void {
  if (sink.mark === undefined) return;
  every(session, interval, () => {
    if (!session.upToDate) return;
    try {
      sink.mark?.(version());
    } catch (error) {
      session.cut('failed', error);
    }
  });
}

function every(session: Session, { intervalMs, clock }: Interval, act: () => void): void {
  const tick = (): void => {
    session.flush();
    act();
    if (!session.over) cancel = clock.schedule(intervalMs, tick);
  };
  let cancel = clock.schedule(intervalMs, tick);
  session.whenOver(() => cancel());
}
