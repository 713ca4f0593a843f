/** The first releases of their lines whose answers to progress requests come after all events that are owed. */
const FIRST: Readonly<Record<string, number>> = { '3.4': 31, '3.5': 13 };

/** Whether an etcd of this version may answer a progress request before events that are owed, so that a cache would lose them. */
export function isTooOld(version: string): boolean {
  const [, major, minor, patch] = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})/.exec(version) ?? [];
  if (major === undefined || minor === undefined) return true;
  const first = FIRST[`${major}.${minor}`];
  if (first !== undefined) return Number(patch) < first;
  return Number(major) < 3 || (Number(major) === 3 && Number(minor) < 4);
}
