/** A request and its answer, independent of the host. */
import type { FromWhere } from '../../bridge/hub/admission/refusals.ts';
import type { CutReason } from '../../bridge/hub/connection.ts';
import type { Status } from '../../watch/event.ts';
import type { Source } from './sources.ts';

/** Whether the client of a request is still there. A signal would say the same, but costs each request several times as much. */
export class Presence {
  gone: boolean = false;
  private onLeft: ((reason: unknown) => void) | undefined = undefined;

  /** Marks the client as gone. */
  leave(): void {
    if (this.gone) return;
    this.gone = true;
    this.onLeft?.(new Error('the client has left'));
  }

  /** Sets or clears the one callback for when the client leaves. If it has left already, nothing is called: check `gone`. */
  tell(onLeft: ((reason: unknown) => void) | undefined): void {
    this.onLeft = onLeft;
  }
}

/** A request, as far as every host knows it. `request` is the host's own object. */
export interface WireRequest extends FromWhere<unknown> {
  readonly method: string;
  /** The path and the query, as they were sent. */
  readonly target: string;
  readonly address: string;
  /** In lower case. */
  readonly headerNames: readonly string[];
  /** A header by its name in lower case. Several of the same name are joined by commas. */
  header(name: string): string | undefined;
  /** The same, one by one, if the host tells them apart. */
  values(name: string): readonly string[];
  /** Reads the body. Rejects with 413 when it is longer than `maxBytes`; what follows is then not read. */
  body(maxBytes: number, signal: AbortSignal): Promise<Uint8Array>;
  readonly client: Presence;
  /** Whether its answer has to wait for those to earlier requests on its connection. */
  readonly waits?: boolean;
  /** Whether it asks for a WebSocket although its program does not listen for upgrades. */
  readonly isUnheard?: boolean;
}

/** Whether a client asks for a WebSocket. A proxy may set `Upgrade` on any request. */
export function isWebSocket(upgrade: string | null | undefined, connection: string | null | undefined): boolean {
  if (upgrade?.toLowerCase() !== 'websocket') return false;
  return (connection ?? '').split(',').some((each) => each.trim().toLowerCase() === 'upgrade');
}

/** An answer that is complete. */
export interface WholeAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string | null;
  readonly source?: undefined;
  /** The place that the answer holds until it has been sent. */
  readonly slot?: Slot | undefined;
}

/** A place among the requests that are answered at the same time. */
export interface Slot {
  /** Frees it, once; with the reason, if its client was cut. */
  release(reason?: CutReason): void;
  begun?(session: Streaming): void;
}

/** A stream that is being sent. */
export interface Streaming {
  /** Ends it after a delay, as {@link stop} does, or at its own time if that is earlier. */
  stopAfter(delayMs: number): void;
  /** Ends it gracefully: its client comes back. */
  stop(): void;
  /** Ends it at once. */
  cut(reason: CutReason): void;
}

/** An answer that is sent bit by bit. Code that does not send it closes the source, and releases the slot. */
export interface StreamAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly source: Source;
  readonly isWatch: boolean;
  /** The resource of a watch, such as `orders.example.com`. */
  readonly resource?: string | undefined;
  readonly sse: boolean;
  /** How long it lasts, in ms; 0: forever. */
  readonly timeoutMs: number;
  /** The place that the stream holds until it has ended. */
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

/** The answer for a refusal. */
export function refusal(status: Status): WholeAnswer {
  const seconds = status.details?.retryAfterSeconds;
  return jsonAnswer(status.code, status, {
    ...(seconds !== undefined && seconds > 0 && { 'retry-after': String(seconds) }),
    ...(status.code === 401 && { 'www-authenticate': 'Bearer' }),
  });
}
