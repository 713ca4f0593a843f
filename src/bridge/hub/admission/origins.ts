import { invalid } from '../../../watch/errors.ts';
import type { Status } from '../../../watch/event.ts';
import { forbidden } from './refusals.ts';

/** Which web pages may connect. `R` is the host's request. */
export type AllowedOrigins<R> = '*' | readonly string[] | ((origin: string, request: R) => boolean) | undefined;

/** What is known about where a request comes from. */
export interface FromWhere<R> {
  readonly request: R;
  readonly origin: string | undefined;
  /** The header `Sec-Fetch-Site`, with which browsers say where a request comes from. Pages cannot change it. */
  readonly site: string | undefined;
  readonly host: string | undefined;
}

/** What `Sec-Fetch-Site` says about another origin. With `none`, the user has typed the address. */
const FOREIGN_SITES: ReadonlySet<string | undefined> = new Set(['cross-site', 'same-site']);

/** Decides which web pages may connect. Without a rule, only those of the requested host. */
export class Origins<R> {
  private readonly allowed: AllowedOrigins<R>;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid rule. */
  constructor(allowed: AllowedOrigins<R>) {
    // A string would admit every origin that is part of it. Other values would throw only at the first request.
    if (allowed !== undefined && allowed !== '*' && typeof allowed !== 'function' && !Array.isArray(allowed)) {
      throw invalid('allowedOrigins', allowed, "'*', an array of origins, or a function");
    }
    this.allowed = allowed;
  }

  /** Whether the caller's origin may connect. A caller without an origin is not a page that reads the answer, but it takes a slot. */
  allows({ origin, site, host, request }: FromWhere<R>): boolean {
    const { allowed } = this;
    if (allowed === '*') return true;
    if (origin === undefined) return !FOREIGN_SITES.has(site);
    if (typeof allowed === 'function') {
      try {
        // A promise does not count as true.
        return allowed(origin, request) === true;
      } catch {
        return false; // an error in the hook admits nobody
      }
    }
    if (allowed !== undefined) return allowed.includes(origin);
    return URL.canParse(origin) && new URL(origin).host === host;
  }

  /** Does not name the expected host: behind a proxy, that is an internal name. */
  refusal({ origin, site }: FromWhere<R>): Status {
    if (origin === undefined) return forbidden(`pages of other origins may not connect: Sec-Fetch-Site is ${site}`);
    const why = this.allowed === undefined ? 'it does not match the header Host' : 'allowedOrigins does not admit it';
    return forbidden(`this origin may not connect: ${why}`);
  }

  /** The CORS headers that let a page of this origin read the response. */
  corsHeaders({ origin }: Pick<FromWhere<R>, 'origin'>): Record<string, string> {
    if (origin === undefined || this.allowed === undefined) return {};
    if (this.allowed === '*') return { 'access-control-allow-origin': '*' };
    return { 'access-control-allow-origin': origin, vary: 'Origin' };
  }
}
