import type { List } from '../../cache/list-watcher.ts';
import { WatchError } from '../../watch/errors.ts';
import { toStatus } from '../../watch/event.ts';

/** A list at one version, or what is left of it. */
export interface FakePage<T> {
  /** By key, in the order of the keys. */
  readonly items: readonly (readonly [key: string, object: T])[];
  readonly resourceVersion: string;
}

/** What a token refers to: what comes after a key, at an old version (`page`), at none (`gone`), or at the newest one (`now`). */
interface Rest<T> {
  readonly after: string;
  readonly at: FakePage<T> | 'gone' | 'now';
}

/** How many unfinished lists it remembers. */
const MAX_PAGES = 100;

/**
 * The rests of lists that were served in part, by their `continue`. They are dropped together with the past: a request with such
 * a token is refused with 410, and gets another one in the Status, with which the list continues at the newest version.
 */
export class FakePages<T> {
  readonly #rests: Map<string, Rest<T>> = new Map();
  #made: number = 0;

  /** The first `limit` items, and a token for those that are left. */
  cut({ items, resourceVersion }: FakePage<T>, { limit }: { limit: number }): List<T> {
    const objects = items.slice(0, limit || items.length).map(([, object]) => object);
    if (objects.length === items.length) return { items: objects, resourceVersion };
    const [after] = items[limit - 1] as readonly [string, T];
    const token = this.#keep({ after, at: { items: items.slice(limit), resourceVersion } });
    return { items: objects, resourceVersion, continue: token, remainingItemCount: items.length - limit };
  }

  /** The rest that a token refers to; `now` is the newest state. */
  take(token: string, now: FakePage<T>): FakePage<T> {
    const rest = this.#rests.get(token);
    if (!rest) throw expired();
    const { after, at } = rest;
    if (at === 'gone') throw expired(this.#keep({ after, at: 'now' }));
    return at === 'now' ? { ...now, items: now.items.filter(([key]) => key > after) } : at;
  }

  /** Forgets the versions of all rests. */
  expire(): void {
    for (const [token, { after }] of this.#rests) this.#rests.set(token, { after, at: 'gone' });
  }

  #keep(rest: Rest<T>): string {
    const token = `${++this.#made}.${rest.after}`;
    this.#rests.set(token, rest);
    for (const [oldest] of this.#rests) if (this.#rests.size > MAX_PAGES) this.#rests.delete(oldest);
    return token;
  }
}

function expired(token?: string): WatchError {
  const message = 'The provided continue parameter is too old';
  const status = toStatus({ code: 410, reason: 'Expired', message });
  return new WatchError('REFUSED', '410 Expired', { status: { ...status, metadata: token ? { continue: token } : {} } });
}
