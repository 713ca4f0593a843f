/**
 * Whether two JSON values are the same, whatever the order of members. An undefined member is the same as none. At the top level,
 * some members may be ignored.
 */
export function sameJson(one: unknown, other: unknown, but: readonly string[] = NOTHING): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    return (
      Array.isArray(one) &&
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((each, at) => sameJson(each, other[at]))
    );
  }
  const [left, right] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const names = namesOf(left, but);
  if (names.length !== namesOf(right, but).length) return false;
  return names.every((name) => Object.hasOwn(right, name) && sameJson(left[name], right[name]));
}

const NOTHING: readonly string[] = [];

function namesOf(object: Readonly<Record<string, unknown>>, but: readonly string[]): string[] {
  return Object.keys(object).filter((name) => object[name] !== undefined && !but.includes(name));
}
