// Answers of the workloads that do not time deliveries: checks, outside the timed part, that watchers join, wait, lag and leave
// correctly.
import { setImmediate } from 'node:timers/promises';
import type { Hub, Take } from './contender.ts';

/** Some contenders need several turns of the event loop to deliver, and there may be thousands of watchers. */
const MOST_TURNS = 5_000;
/** An event that should not arrive arrives within this many turns. */
const FEW_TURNS = 20;

/** Waits until the due number of events has arrived, and then for events that should not. */
export async function settle(due: number, came: () => number): Promise<void> {
  for (let turn = 0; turn < MOST_TURNS && came() < due; turn++) await setImmediate();
  for (let turn = 0; turn < FEW_TURNS; turn++) await setImmediate();
}

/** Reads the numbers held for a watcher that was never read. Throws if they are not the due ones. */
export async function expectHeld(hub: Hub, watcher: unknown, due: readonly number[]): Promise<void> {
  const numbers: number[] = [];
  hub.read?.(watcher, (event) => void numbers.push(event.object));
  await settle(due.length, () => numbers.length);
  expectNumbers(numbers, due);
}

export function expectNumbers(numbers: readonly number[], due: readonly number[]): void {
  const at = due.findIndex((number, index) => numbers[index] !== number);
  if (at >= 0) throw new Error(`wrong answer: ${numbers[at] ?? 'nothing'} where event ${due[at]} was due`);
  if (numbers.length !== due.length) throw new Error(`wrong answer: ${numbers.length} events where ${due.length} were due`);
}

/** A group joins, gets the next event, leaves, and gets none after that. */
export async function expectJoinAndLeave(hub: Hub, { group, waiting }: { group: number; waiting: boolean }): Promise<void> {
  let came = 0;
  const take: Take = () => void came++;
  // Each has its own consumer, because some contenders identify consumers by reference.
  const joined = Array.from({ length: group }, () => (waiting ? hub.watch((event) => take(event)) : hub.open?.()));
  publish(hub, 0);
  if (!waiting) for (const each of joined) hub.read?.(each, (event) => take(event));
  await settle(group, () => came);
  if (came !== group) throw new Error(`wrong answer: ${came} events for ${group} watchers that have joined`);
  for (const each of joined) hub.leave(each);
  await settle(0, () => 0);
  publish(hub, 1);
  await settle(0, () => 0);
  if (came !== group) throw new Error(`wrong answer: ${came - group} events for watchers that have left`);
}

export function publish(hub: Hub, object: number): void {
  hub.publish({ type: 'TICK', object });
  hub.flush?.();
}
