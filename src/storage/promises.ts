/** Whether a function of the user has answered later. What has answered at once is used in the same turn: nothing can come between. */
export function isPromise<R>(answer: R | PromiseLike<R>): answer is PromiseLike<R> {
  return typeof (answer as Partial<PromiseLike<R>> | null | undefined)?.then === 'function';
}
