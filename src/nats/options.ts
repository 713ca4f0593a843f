import type { NodeConnectionOptions } from '@nats-io/transport-node';
import { invalid, wholeNumber } from '../watch/errors.ts';
import { checkOptions } from '../watch/options.ts';
import { isSubject } from './subjects.ts';

/** Options of a `NatsStream`. */
export interface NatsStreamOptions {
  /** Where nats-server is: `127.0.0.1:4222`, or several servers of a cluster. */
  servers: string | readonly string[];
  /** The stream's name. All hubs with this stream have the same events and versions. */
  stream: string;
  /** The subject of its events; default the stream's name. Topics become tokens below it. */
  subject?: string | undefined;
  /** Creates the stream if it does not exist, with these limits. Default: it must exist, and publishes wait until it does. */
  create?: NatsStreamLimits | undefined;
  /**
   * How long a publish is retried before it rejects with TIMEOUT, in milliseconds; default 30,000. Never longer than the stream
   * remembers its id.
   */
  publishTimeoutMs?: number | undefined;
  /**
   * Connection options: credentials, TLS, names. Default: those of `connect` in `@nats-io/transport-node`, except that it never
   * gives up.
   */
  connection?: Omit<NodeConnectionOptions, 'servers'> | undefined;
}

/** What a new stream holds. Beyond a limit, the oldest events are dropped, and clients that still need them get a 410. */
export interface NatsStreamLimits {
  /** Number of events; default no limit. */
  maxItems?: number | undefined;
  /** Bytes, including subjects and headers; default no limit. */
  maxBytes?: number | undefined;
  /** Age of events, in milliseconds; default no limit. */
  maxAgeMs?: number | undefined;
  /** How long the id of a publish is remembered, in milliseconds; default two minutes. */
  duplicateWindowMs?: number | undefined;
  /** Number of servers in a cluster that hold a copy; default 1. */
  replicas?: number | undefined;
  /** Where events are stored; default `file`. */
  storage?: 'file' | 'memory' | undefined;
}

/** The options with all defaults filled in. */
export interface NatsSettings {
  readonly stream: string;
  readonly subject: string;
  readonly create: NatsStreamLimits | undefined;
  readonly publishTimeoutMs: number;
  readonly connection: NodeConnectionOptions;
}

const OPTIONS = ['servers', 'stream', 'subject', 'create', 'publishTimeoutMs', 'connection'] as const;
const LIMITS = ['maxItems', 'maxBytes', 'maxAgeMs', 'duplicateWindowMs', 'replicas', 'storage'] as const;

/** How a connection is kept: it retries a server that is gone, and leaves one that is silent. */
const KEEP_ALIVE: NodeConnectionOptions = {
  maxReconnectAttempts: -1,
  timeout: 5_000,
  reconnectTimeWait: 250,
  reconnectJitter: 250,
  pingInterval: 5_000,
  maxPingOut: 2,
};

/** Fills in defaults. Throws INVALID_ARGUMENT for an invalid option. */
export function toNatsSettings(options: NatsStreamOptions): NatsSettings {
  const { servers, stream, subject = stream, create, publishTimeoutMs = 30_000, connection } = checkOptions(options, OPTIONS);
  const list = typeof servers === 'string' ? [servers] : servers;
  if (!Array.isArray(list) || list.length === 0 || !list.every((each) => typeof each === 'string' && each !== '')) {
    throw invalid('servers', servers, 'an address, or an array of them');
  }
  if (typeof stream !== 'string' || !/^[\w-]{1,128}$/.test(stream)) {
    throw invalid('stream', stream, '1 to 128 letters, digits, - or _');
  }
  if (!isSubject(subject)) throw invalid('subject', subject, 'tokens of letters, digits, - and _, with dots between them');
  if (create !== undefined) checkLimits(create);
  return {
    stream,
    subject,
    create,
    publishTimeoutMs: wholeNumber('publishTimeoutMs', publishTimeoutMs, 1),
    connection: { ...KEEP_ALIVE, name: `watchmux ${stream}`, ...connection, servers: [...list] },
  };
}

function checkLimits(limits: NatsStreamLimits): void {
  const { storage, ...counts } = checkOptions(limits, LIMITS);
  for (const [name, value] of Object.entries(counts)) if (value !== undefined) wholeNumber(name, value, 1);
  if (storage !== undefined && storage !== 'file' && storage !== 'memory') throw invalid('storage', storage, 'file or memory');
}
