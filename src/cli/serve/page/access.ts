import type { FetchLike } from '../../../bridge/client.ts';

/** The server wants another token. */
export class Denied extends Error {}

/** The server has refused a request, or cannot be reached. */
export class Refused extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** What a token may consist of: it becomes a header. */
const TOKEN = /^[\x21-\x7e]{1,1000}$/;

/**
 * Asks the server, with a token if it wants one. The token is in this object and nowhere else: not in the URL, and not in a
 * storage that another program at this address could read later.
 */
export class Access {
  #token: string | undefined = undefined;

  /** Returns whether the text can be a token. */
  use(token: string): boolean {
    if (!TOKEN.test(token)) return false;
    this.#token = token;
    return true;
  }

  /** Whether there is a token. It may be a wrong one. */
  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** The host's `fetch`, with the token. */
  readonly fetch: FetchLike = (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...this.headers } });

  /** Gets a text. Rejects with {@link Denied} for 401, and with {@link Refused} for anything but success. */
  async text(path: string, { signal, accept }: { signal?: AbortSignal; accept?: string } = {}): Promise<string> {
    const headers = { ...this.headers, accept: accept ?? 'application/json' };
    const response = await fetch(path, { headers, cache: 'no-store', ...(signal && { signal }) });
    if (response.status === 401) throw new Denied('the server requires a token');
    const text = await response.text();
    if (!response.ok) throw new Refused(response.status, messageIn(text) ?? `status ${response.status}`);
    return text;
  }

  private get headers(): Readonly<Record<string, string>> {
    return this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
  }
}

/** The message of a Status. */
function messageIn(text: string): string | undefined {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' ? message.slice(0, 500) : undefined;
  } catch {
    return undefined;
  }
}
