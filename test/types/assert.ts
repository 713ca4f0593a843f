/** Whether two types are one and the same, also in their modifiers. */
export type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Whether a value of A may stand where B is asked for. */
export type Assignable<A, B> = [A] extends [B] ? true : false;

/** Does not compile unless the claim is true. */
export function claim<Claim extends true>(): Claim | undefined {
  return undefined;
}

/** Code that is there to be compiled, not to be called. */
export function compiles(...code: readonly ((...values: never[]) => unknown)[]): number {
  return code.length;
}
