/** Whether a user's function answers later. An immediate answer is used in the same turn, so nothing can come in between. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> & Promise<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}

/** Now, or later if it takes long. */
export type Soon<R> = R | Promise<R>;
