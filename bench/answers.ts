// Answers of those workloads that time something else than deliveries: whether watchers that join, wait, lag and leave still are
// watchers. Looked at when the clock does not run.
import { setImmediate } from 'node:timers/promises';
import type { Hub, Take } from './contender.ts';

/** Some need several turns of the event loop to deliver, and there may be thousands of them. */
const MOST_TURNS = 5_000;
/** What comes although it should not comes within so many. */
const FEW_TURNS = 20;

/** Waits until as much has come as is due, and then whether more comes. */
export async function settle(due: number, came: () => number): Promise<void> {
  for (let turn = 0; turn < MOST_TURNS && came() < due; turn++) await setImmediate();
  for (let turn = 0; turn < FEW_TURNS; turn++) await setImmediate();
}

/** The numbers that a watcher which nobody has read yet holds. Throws when they are not those that are due. */
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

/** A group joins, gets the event that is published then, leaves, and gets none after that. */
export async function expectJoinAndLeave(hub: Hub, { group, waiting }: { group: number; waiting: boolean }): Promise<void> {
  let came = 0;
  const take: Take = () => void came++;
  // A consumer of its own for each: some keep a list of them by identity.
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
