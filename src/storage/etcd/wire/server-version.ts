/** The first release of each line whose answers to progress requests come after all events that are owed. */
const FIRST: Readonly<Record<string, number>> = { '3.4': 31, '3.5': 13 };

/** Whether an etcd of this version may answer a progress request before events that are owed, so that a cache would lose them. */
export function isTooOld(version: string): boolean {
  const found = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})/.exec(version);
  if (!found) return true;
  const [major = 0, minor = 0, patch = 0] = found.slice(1).map(Number);
  const first = FIRST[`${major}.${minor}`];
  if (first !== undefined) return patch < first;
  return major < 3 || (major === 3 && minor < 4);
}
