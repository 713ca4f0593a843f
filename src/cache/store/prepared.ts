/**
 * An object of a list that has come before the rest of its list: what user code has made of it, or has thrown. What nobody needs
 * of it is gone by then, so a list of large objects that become small needs little memory.
 */
export class Prepared<T> {
  /** Undefined if `keyOf` has thrown. */
  readonly key: string | undefined;
  /** What is to be stored; the original, if user code has thrown. */
  readonly object: T;
  /** It is the state that is stored already. */
  readonly isStored: boolean;
  readonly failure: { readonly error: unknown } | undefined;

  constructor(key: string | undefined, object: T, more: { isStored?: boolean; failure?: { readonly error: unknown } } = {}) {
    this.key = key;
    this.object = object;
    this.isStored = more.isStored ?? false;
    this.failure = more.failure;
  }

  /** Its key and what is to be stored. Throws what user code has thrown. */
  entry(): readonly [key: string, object: T] {
    if (this.failure) throw this.failure.error;
    return [this.key as string, this.object];
  }
}

const REPLACES: WeakSet<object> = new WeakSet<object>();

/**
 * Marks the `replace` of a class: it knows what to do with what was prepared. One that overrides it gets objects. Called by the
 * constructor: in a static block, it would keep classes in bundles that do not use them.
 */
export function takesPrepared(replace: object): void {
  REPLACES.add(replace);
}

/** Whether the `replace` of a store is marked. */
export function isPreparing({ replace }: { readonly replace: object }): boolean {
  return REPLACES.has(replace);
}
