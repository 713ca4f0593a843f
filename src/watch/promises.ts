/** Whether a function of the user answers later. An answer that is there at once is used in the same turn: nothing can come between. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> & Promise<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}
