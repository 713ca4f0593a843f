// One request for one object, of any kind.
import { toObject } from '../cache/http/answer.ts';
import { accepted, Exchange, type HttpSettings, named, type RequestSpec, wholeText } from '../cache/http/exchange.ts';

/** What to ask, and when to stop. */
interface AskOptions {
  readonly question?: RequestSpec | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The option that limits the answer. Default `maxFrameBytes`. */
  readonly limit?: 'maxFrameBytes' | 'maxListBytes' | undefined;
}

/** Resolves with the object that the server returns; undefined if it only reports success. */
export async function ask<T>(
  means: HttpSettings,
  url: URL,
  { question, signal, limit: option = 'maxFrameBytes' }: AskOptions = {},
): Promise<T | undefined> {
  const exchange = new Exchange(means, signal);
  try {
    const limit = { what: option === 'maxListBytes' ? 'the list' : 'the object', option, bytes: means[option] };
    return toObject<T>(await wholeText(exchange, await accepted(exchange, url, question), limit));
  } catch (error) {
    throw named(error, url, signal);
  } finally {
    exchange.end();
  }
}
