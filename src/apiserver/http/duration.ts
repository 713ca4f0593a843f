/** Time spans as `kubectl get` shows them. Upstream: `duration.HumanDuration`. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** The units in which a span below each limit is shown, the smaller one only if it is named. */
const STEPS: readonly (readonly [below: number, unit: number, name: string, rest?: number, restName?: string])[] = [
  [2 * MINUTE, SECOND, 's'],
  [10 * MINUTE, MINUTE, 'm', SECOND, 's'],
  [3 * HOUR, MINUTE, 'm'],
  [8 * HOUR, HOUR, 'h', MINUTE, 'm'],
  [2 * DAY, HOUR, 'h'],
  [8 * DAY, DAY, 'd', HOUR, 'h'],
  [2 * YEAR, DAY, 'd'],
  [8 * YEAR, YEAR, 'y', DAY, 'd'],
  [Infinity, YEAR, 'y'],
];

/** A time span as `kubectl get` shows ages: the shorter the span, the more exact. Upstream: `duration.HumanDuration`. */
export function humanDuration(spanMs: number): string {
  if (!(spanMs > -2 * SECOND)) return '<invalid>';
  const span = Math.max(spanMs, 0);
  for (const [below, unit, name, rest, restName] of STEPS) {
    if (span >= below) continue;
    const more = rest === undefined ? 0 : Math.floor((span % unit) / rest);
    return `${Math.floor(span / unit)}${name}${more === 0 ? '' : `${more}${restName}`}`;
  }
  return '<invalid>';
}
