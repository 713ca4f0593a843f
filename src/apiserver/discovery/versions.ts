const FORM = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/;
const STABILITY: readonly (string | undefined)[] = ['alpha', 'beta', undefined];

/**
 * Compares versions of an API, so that the best comes first: `v2`, `v1`, `v2beta1`, `v1alpha1`, and then other words in
 * alphabetical order. Upstream: `version.CompareKubeAwareVersionStrings`, in reverse.
 */
export function compareApiVersions(one: string, other: string): number {
  const [a, b] = [FORM.exec(one), FORM.exec(other)];
  if (a === null || b === null) return Number(a === null) - Number(b === null) || (one < other ? -1 : Number(one > other));
  const stability = STABILITY.indexOf(b[2]) - STABILITY.indexOf(a[2]);
  return stability || Number(b[1]) - Number(a[1]) || Number(b[3] ?? 0) - Number(a[3] ?? 0);
}
