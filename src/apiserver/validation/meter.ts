/** What the running expression may still cost, and the error of one that costs more: one for all, as loops meet it often. */
export const meter: { left: number } = { left: 0 };
export const OVER: Error = new Error('operation cancelled: actual cost limit exceeded');

/** Takes steps from what is left. Whatever may be long calls it first, with what it is going to cost. */
export function spend(cost: number): void {
  meter.left -= cost;
  if (meter.left < 0) throw OVER;
}
