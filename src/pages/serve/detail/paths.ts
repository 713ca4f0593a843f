// JSON values as the page compares and writes them, and the names of what is in them.

/** The members of an object. */
export type Members = Readonly<Record<string, unknown>>;

/**
 * `JSON.isRawJSON`, where there is one. Such a value is a number that JavaScript's numbers cannot represent exactly: see
 * `parseExactly`.
 */
const { isRawJSON } = JSON as { isRawJSON?: (value: unknown) => boolean };

/** Whether a value is an object, and not a list. */
export function hasMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJSON?.(value);
}

/** A scalar as JSON. */
export function scalarText(value: unknown): string {
  return typeof value === 'number' && !Number.isFinite(value) ? 'null' : (JSON.stringify(value) ?? 'null');
}

/** A name that needs no quotes in a path. */
const PLAIN_NAME = /^[A-Za-z_$][\w$-]*$/;

/** The path of a member: `spec.count`, `metadata.labels["example.com/app"]`. */
export function memberPath(path: string, name: string): string {
  if (!PLAIN_NAME.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
}

/** The members that identify items of Kubernetes' lists: containers, conditions, owners, ports. */
const KEYS = ['name', 'type', 'uid', 'key', 'id'] as const;
/** Items of longer lists are identified by their place. */
const MAX_KEYED = 1_000;

/** The member that is unique among the items of a list, if there is one. */
export function keyMember(list: readonly unknown[]): string | undefined {
  if (list.length === 0 || list.length > MAX_KEYED) return undefined;
  return KEYS.find((name) => {
    const values = list.map((item) => (hasMembers(item) && Object.hasOwn(item, name) ? item[name] : undefined));
    return values.every((each) => typeof each === 'string' && each.length <= 253) && new Set(values).size === list.length;
  });
}

/** The path of an item: `spec.containers[name=web]`, or `spec.args[2]`. */
export function itemPath(path: string, at: number, keyed?: { readonly key: string; readonly item: unknown }): string {
  return `${path}[${keyed ? `${keyed.key}=${String((keyed.item as Members)[keyed.key])}` : at}]`;
}

/** Members of something from the network, as texts; empty if it has none. */
export function memberTexts<N extends string>(value: unknown, ...names: readonly N[]): Readonly<Record<N, string>> {
  const members = hasMembers(value) ? value : {};
  return Object.fromEntries(names.map((name) => [name, typeof members[name] === 'string' ? members[name] : ''])) as Record<
    N,
    string
  >;
}
