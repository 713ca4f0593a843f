/** A request and its answer, independent of the host. */

import type { FromWhere } from '../../bridge/hub/admission/origins.ts';
import type { CutReason } from '../../bridge/hub/client-info.ts';
import type { Status } from '../../watch/event.ts';
import type { Presence } from './presence.ts';
import type { Source } from './sources.ts';

/** A request, as every host can tell it. `request` is the host's own. */
export interface WireRequest extends FromWhere<unknown> {
  readonly method: string;
  /** The path and the query, as they were sent. */
  readonly target: string;
  readonly address: string;
  /** A header by its name in lower case. Several of one name are joined by commas. */
  header(name: string): string | undefined;
  /** Reads the body. Rejects with 413 when it is longer than `maxBytes`; what follows is then not read. */
  body(maxBytes: number, signal: AbortSignal): Promise<Uint8Array>;
  readonly client: Presence;
  /** Whether its answer has to wait for those to earlier requests of its connection. */
  readonly waits?: boolean;
}

/** An answer that is complete. */
export interface WholeAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string | null;
  readonly source?: undefined;
}

/** A place among those that are answered at once. */
export interface Slot {
  /** Frees it, once; with the reason, if its client was cut. */
  release(reason?: CutReason): void;
}

/** An answer that is sent bit by bit. Whoever does not send it closes the source, and releases the slot. */
export interface StreamAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly source: Source;
  readonly isWatch: boolean;
  /** Whose events a watch has, such as `orders.example.com`. */
  readonly resource?: string | undefined;
  readonly sse: boolean;
  /** When it ends, in ms; 0: never. */
  readonly timeoutMs: number;
  /** What the stream has taken, until it is over. */
  readonly slot: Slot | undefined;
}

export type Answer = WholeAnswer | StreamAnswer;

/** An answer that is a Status, or another object. */
export function jsonAnswer(code: number, object: object, headers: Readonly<Record<string, string>> = {}): WholeAnswer {
  return { code, headers: { ...JSON_HEADERS, ...headers }, body: `${JSON.stringify(object)}\n` };
}

export const JSON_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  'cache-control': 'no-cache, private',
  'x-content-type-options': 'nosniff',
};

/** The answer that refuses. */
export function refusal(status: Status): WholeAnswer {
  const seconds = status.details?.retryAfterSeconds;
  return jsonAnswer(status.code, status, {
    ...(seconds !== undefined && seconds > 0 && { 'retry-after': String(seconds) }),
    ...(status.code === 401 && { 'www-authenticate': 'Bearer' }),
  });
}
