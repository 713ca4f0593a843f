/** Whether two types are identical, including their modifiers. */
export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Whether A is assignable to B. */
export type Assignable<A, B> = [A] extends [B] ? true : false;

/** Compiles only if the claim is true. */
export function claim<Claim extends true>(): Claim | undefined {
  return undefined;
}

/** Takes code that only needs to compile, and is never called. */
export function compiles(...code: readonly ((...values: never[]) => unknown)[]): number {
  return code.length;
}
