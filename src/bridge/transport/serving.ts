import { checkOptions } from '../../watch/errors.ts';
import { type Status, toStatus } from '../../watch/event.ts';
import {
  ADMISSION_OPTIONS,
  type AdmissionOptions,
  type Caller,
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  HubAdmission,
  type Limits,
  toLimits,
} from '../hub/admission/admission.ts';
import { noWebSocket, PIPELINED } from '../hub/admission/refusals.ts';
import { coreOf, type Hub } from '../hub/hub.ts';
import type { HubCore } from '../hub/hub-core.ts';
import type { HubNotice } from '../hub/tally.ts';
import { JSON_LINES } from '../protocol.ts';
import { ALLOW_ORIGIN, streamHeaders } from './http-head.ts';
import { type SharedTimer, toSharedTimer } from './stall.ts';

type Options<R, I> = ConnectionOptions & AdmissionOptions<R, I>;

/** The names of the options that all transports have. */
export const COMMON_OPTIONS: readonly string[] = [...CONNECTION_OPTIONS, ...ADMISSION_OPTIONS];

/** What differs between the transports that serve a hub. */
interface ServingOptions {
  /** The names of its options. */
  readonly names: readonly string[];
  /** The host's diagnostics channels, if it has some. */
  readonly channel: ToChannel | undefined;
}

/** A hub that one handler or server serves: what all transports have in common. `R` is the host's request. */
export class Serving<R, I> {
  readonly core: HubCore;
  readonly limits: Limits;
  readonly admission: HubAdmission<R, I>;
  /** Looks for clients that take nothing. */
  readonly stalls: SharedTimer | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for anything but a hub, and for an invalid option. */
  constructor(hub: unknown, options: object, { names, channel }: ServingOptions) {
    const given = checkOptions(options as Record<string, unknown>, names) as Options<R, I>;
    this.core = coreOf(hub as Hub);
    this.limits = toLimits(given);
    this.admission = new HubAdmission(this.core, given, this.limits);
    const { stallTimeoutMs, clock } = this.limits;
    this.stalls = toSharedTimer(stallTimeoutMs, clock);
    if (channel !== undefined) publishNotices(hub as Hub, channel);
  }

  /** Counts a request that arrived before an earlier one on its connection was answered. It gets no answer. */
  refusePipelined(address: string): void {
    this.core.refuse({ reason: 'pipelined', status: PIPELINED, address });
  }
}

/** The same over HTTP, where a client is answered with a stream or with a Status. */
export class HttpServing<R, I> extends Serving<R, I> {
  /** The application's own headers, with names in lower case, so that each of them replaces ours. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    hub: unknown,
    options: { readonly headers?: Readonly<Record<string, string>> | undefined },
    channel: ToChannel | undefined,
  ) {
    super(hub, options, { names: [...COMMON_OPTIONS, 'headers'], channel });
    this.headers = Object.fromEntries(Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
  }

  /** The caller as the hub judges it: an application that admits other origins with a header of its own has already decided. */
  whoAsks<C extends Caller<R>>(caller: C, isDecided: boolean = ALLOW_ORIGIN in this.headers): C {
    return isDecided ? { ...caller, origin: undefined, site: undefined } : caller;
  }

  /** Whether this is a browser's preflight request. */
  isPreflight(caller: Caller<R>, method: string | undefined): boolean {
    return method === 'OPTIONS' && caller.origin !== undefined && this.admission.allows(caller);
  }

  /** Refuses every method but GET and HEAD, and WebSocket requests: only real ones have the key. */
  refusalOf(
    method: string | undefined,
    { address, key, upgrade }: { address: string; key: string | null | undefined; upgrade: string | null | undefined },
  ): Status | undefined {
    if (method === 'GET' || method === 'HEAD') return typeof key === 'string' ? noWebSocket(upgrade) : undefined;
    const status = toStatus({ code: 405, reason: 'MethodNotAllowed', message: 'use GET or HEAD to read a watch' });
    return this.core.refuse({ reason: 'method', status, address });
  }

  streamHeaders(caller: Caller<R>, sse: boolean): Record<string, string> {
    return { ...streamHeaders(sse), ...this.admission.corsHeaders(caller), ...this.headers };
  }

  /** A browser asks first if a page sets headers such as `authorization`. */
  preflightHeaders(caller: Caller<R>, asked: string | null | undefined): Record<string, string> {
    return {
      ...this.admission.corsHeaders(caller),
      'access-control-allow-methods': 'GET, HEAD',
      ...(asked && { 'access-control-allow-headers': asked }),
      'access-control-max-age': '600',
      ...this.headers,
    };
  }

  /** The headers of a response that is a Status. */
  refusalHeaders(caller: Caller<R>, { code, details }: Status): Record<string, string> {
    const { retryAfterSeconds } = details ?? {};
    return {
      ...(code !== 204 && { 'content-type': JSON_LINES }),
      'cache-control': 'no-store',
      ...(code === 405 && { allow: 'GET, HEAD' }),
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
      ...(this.admission.allows(caller) && { ...this.admission.corsHeaders(caller), ...this.headers }),
    };
  }
}

/**
 * The names of a hub's channels in Node's `diagnostics_channel`, for tracing tools. The message is the notice, with its hub.
 * While a channel has no subscribers, no notice is created.
 */
const CHANNELS: Readonly<Record<HubNotice['type'], string>> = {
  open: 'watchmux:client:open',
  close: 'watchmux:client:close',
  cut: 'watchmux:client:cut',
  refused: 'watchmux:client:refused',
  resume: 'watchmux:client:resume',
};

/** The used part of Node's `Channel`. */
interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}
type ToChannel = (name: string) => Channel;

const known: WeakSet<Hub> = new WeakSet();

/** Publishes a hub's notices; once per hub, however many handlers serve it. */
function publishNotices(hub: Hub, channel: ToChannel): void {
  if (known.has(hub)) return;
  known.add(hub);
  const channels = new Map(Object.entries(CHANNELS).map(([type, name]) => [type, channel(name)]));
  hub.observe({
    wants: (type) => channels.get(type)?.hasSubscribers === true,
    tell: (notice) => channels.get(notice.type)?.publish({ hub, ...notice }),
  });
}

/**
 * Returns the host's channels, or undefined if it has none. For an entry point that must not import Node. Node >= 20.16 has it.
 */
export function channelOfHost(): ToChannel | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): { channel?: ToChannel } | undefined } };
  return process?.getBuiltinModule?.('node:diagnostics_channel')?.channel;
}
