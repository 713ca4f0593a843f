/**
 * The iterator for `for await`. It has its own type because TypeScript before 5.6 does not know the return type of an
 * AsyncIterableIterator.
 */
export interface KeyIterator<K> extends AsyncIterator<K, undefined> {
  [Symbol.asyncIterator](): KeyIterator<K>;
}

/**
 * An iterator over what `get` returns, until it is undefined. Written by hand, because `return` must settle while `next` is pending:
 * then it withdraws its request, so that no key goes to a loop that has ended.
 */
export function iterate<K>(get: (signal: AbortSignal) => Promise<K | undefined>): KeyIterator<K> {
  const stopped = new AbortController();
  const { signal } = stopped;
  const resultOf = (key: K | undefined): IteratorResult<K, undefined> =>
    key === undefined ? { done: true, value: undefined } : { done: false, value: key };
  return {
    next: () => get(signal).then(resultOf, (error: unknown) => (signal.aborted ? resultOf(undefined) : Promise.reject(error))),
    return: () => {
      stopped.abort();
      return Promise.resolve(resultOf(undefined));
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
