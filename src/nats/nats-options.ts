import type { NodeConnectionOptions } from '@nats-io/transport-node';
import { checkOptions, invalid, wholeNumber } from '../watch/errors.ts';

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

/** How a connection is kept: it retries a server that is gone, and gives up one that is silent. */
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

/**
 * The subjects of a stream. An event without topics is published to the stream's own subject, one with topics to a subject below
 * it, with one token per topic:
 *
 *     no topics            chat
 *     'lobby'              chat.lobby
 *     'lobby', 'a.b *'     chat.lobby.a=2Eb=20=2A
 *
 * In a subject, dots separate tokens, and `*` and `>` stand for any of them. So every byte of a topic except letters, digits, `-`
 * and `_` becomes `=` and two hex digits, and no topic can reach a subject that is not its own.
 */

/** NATS limits a line of its protocol to 4 KiB, and a subject is only part of one. */
const MAX_SUBJECT_CHARS = 1_024;
const ESCAPED = /[.!~*'()]/g;

/**
 * Returns the subject of an event with these topics. Throws INVALID_ARGUMENT for topics that are too long together, or that UTF-8
 * cannot represent.
 */
export function toSubject(root: string, topics: readonly string[]): string {
  const subject = [root, ...topics.map(toToken)].join('.');
  if (subject.length > MAX_SUBJECT_CHARS) {
    throw invalid('topics', topics.join(), `topics whose subject has at most ${MAX_SUBJECT_CHARS} characters`);
  }
  return subject;
}

/**
 * Returns the topics of a subject, or undefined if it is not below this root. A topic that another program wrote is taken as it
 * is.
 */
export function toTopics(root: string, subject: string): readonly string[] | undefined {
  if (subject === root) return [];
  return subject.startsWith(`${root}.`)
    ? subject
        .slice(root.length + 1)
        .split('.')
        .map(fromToken)
    : undefined;
}

function toToken(topic: string): string {
  // A token cannot be empty.
  if (topic === '') return '=';
  let escaped: string;
  try {
    escaped = encodeURIComponent(topic);
  } catch {
    throw invalid('topics', topic, 'text without lone surrogates');
  }
  const hex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return escaped.replace(ESCAPED, hex).replaceAll('%', '=');
}

function fromToken(token: string): string {
  if (token === '=') return '';
  try {
    const topic = decodeURIComponent(token.replaceAll('%', '%25').replaceAll('=', '%'));
    return toToken(topic) === token ? topic : token;
  } catch {
    return token;
  }
}

/** Whether a stream can be kept under this subject: tokens without wildcards or white space. */
function isSubject(subject: unknown): subject is string {
  return typeof subject === 'string' && subject.length <= 256 && /^[\w-]+(\.[\w-]+)*$/.test(subject);
}
