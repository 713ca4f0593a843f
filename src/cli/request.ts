import type { IncomingMessage } from 'node:http';
import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { Readable } from 'node:stream';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import type { FetchLike } from '../bridge/client.ts';

/** A replacement for fetch, which ends a stream that is silent for five minutes. Does not follow redirects. */
export const request: FetchLike = async (url, { headers, signal }) => {
  const get = url.protocol === 'https:' ? getHttps : getHttp;
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers, signal, agent: false }, resolve).on('error', reject);
  });
  const { statusCode: status = 200, statusMessage: statusText = '' } = incoming;
  const own = Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]);
  // The reader of the body gets the error. This only keeps it from being uncaught.
  incoming.on('error', () => {});
  // A Response accepts no body with these, and no other status at all.
  const bare = [204, 205, 304].includes(status);
  const known = status >= 200 && status < 600;
  if (bare || !known) incoming.destroy();
  if (!known) throw new Error(`status ${status}, which is none of HTTP`);
  if (bare) return new Response(null, { status, headers: own });
  const body = Readable.toWeb(incoming) as NodeReadableStream<Uint8Array> as ReadableStream<Uint8Array<ArrayBuffer>>;
  return new Response(body, { status, statusText, headers: own });
};
