import { isIPv6 } from 'node:net';
import { parseArgs } from 'node:util';
import { TRANSPORTS } from '../bridge/client/options.ts';
import type { ClientTransport } from '../bridge/client.ts';
import { DEFAULTS } from '../bridge/protocol.ts';
import { distance } from '../watch/errors.ts';
import { OVERFLOWS, type Overflow } from '../watch/overflow.ts';
import { type CheckCommand, toCheck } from './check.ts';
import { GET_OPTIONS, type GetCommand, toGet } from './get/get-args.ts';
import { SERVE_OPTIONS, type ServeCommand, toServe } from './serve/serve-args.ts';
import {
  COMMANDS,
  type CommandName,
  KEEP_ALIVE_SECONDS,
  keepAlive,
  milliseconds,
  type Options,
  type Parsed,
  quote,
  UsageError,
  whole,
  wrong,
} from './usage.ts';

export { type CommandName, UsageError } from './usage.ts';

/** The options of `watchmux pipe`. */
export interface PipeCommand {
  readonly command: 'pipe';
  readonly host: string;
  readonly port: number;
  readonly capacity: number;
  readonly maxQueuedBytes: number;
  readonly overflow: Overflow;
  readonly replay: number;
  readonly window: number;
  readonly raw: boolean;
  readonly keepOpen: boolean;
  /** The heading of the live page. */
  readonly title: string | undefined;
  /** How long a connection is kept that waits for its next request. */
  readonly keepAliveMs: number;
  readonly drainMs: number;
}

/** The options of `watchmux watch`. */
export interface WatchCommand {
  readonly command: 'watch';
  readonly url: URL;
  readonly transport: ClientTransport;
  /** The version to continue after: the `resourceVersion` of an event. */
  readonly resume: string | undefined;
  /** Whether to reconnect when the connection is lost. */
  readonly reconnect: boolean;
}

/** The options of `watchmux demo`. */
export interface DemoCommand {
  readonly command: 'demo';
  readonly directory: string | undefined;
  readonly durationMs: number;
}

/** A parsed command line. */
export type Command =
  | PipeCommand
  | WatchCommand
  | GetCommand
  | ServeCommand
  | CheckCommand
  | DemoCommand
  | { readonly command: 'help'; readonly topic: CommandName | undefined }
  | { readonly command: 'version' };

/** Parses the arguments after the program's name. Throws {@link UsageError}. */
export function parseCommand(argv: readonly string[]): Command {
  const [name, ...rest] = argv;
  switch (name) {
    case 'pipe':
      return helpOr('pipe', rest, PIPE_OPTIONS, toPipe);
    case 'watch':
      return helpOr('watch', rest, WATCH_OPTIONS, toWatch);
    case 'get':
      return helpOr('get', rest, GET_OPTIONS, toGet);
    case 'serve':
      return helpOr('serve', rest, SERVE_OPTIONS, toServe);
    case 'check':
      return helpOr('check', rest, {}, toCheck);
    case 'demo':
      return helpOr('demo', rest, { seconds: { type: 'string', default: '10' } }, toDemo);
    case 'help':
      return { command: 'help', topic: toTopic(rest[0]) };
    case undefined:
      throw new UsageError('missing command: pipe, watch, get, serve, check or demo; see --help');
    case '--help':
    case '-h':
      return { command: 'help', topic: undefined };
    case '--version':
    case '-v':
      return { command: 'version' };
    default:
      throw new UsageError(`unknown ${name.startsWith('-') ? 'option' : 'command'} ${quote(name)}; see --help`);
  }
}

const PIPE_OPTIONS: Options = {
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string', default: '8080' },
  capacity: { type: 'string', default: '100' },
  'max-queued-bytes': { type: 'string', default: String(DEFAULTS.maxQueuedBytes) },
  overflow: { type: 'string', default: 'disconnect' },
  replay: { type: 'string', default: '0' },
  window: { type: 'string' },
  raw: { type: 'boolean', default: false },
  'keep-open': { type: 'boolean', default: false },
  title: { type: 'string' },
  'keep-alive': { type: 'string', default: KEEP_ALIVE_SECONDS },
  drain: { type: 'string', default: '5' },
};

const WATCH_OPTIONS: Options = {
  transport: { type: 'string' },
  resume: { type: 'string' },
  'no-reconnect': { type: 'boolean', default: false },
};

function helpOr(topic: CommandName, args: readonly string[], options: Options, read: (parsed: Parsed) => Command): Command {
  let parsed: Parsed;
  try {
    const help: Options = { help: { type: 'boolean', short: 'h', default: false } };
    parsed = parseArgs({ args: joined(args, options), options: { ...help, ...options }, allowPositionals: true, strict: true });
  } catch (error) {
    // Node's message is long; its first sentence says what is wrong.
    const [sentence = 'bad option'] = (error as Error).message.split(/[.\n]/, 1);
    const missing = /^Option '(?:-\w, )?(--[\w-]+).* argument (?:missing|is ambiguous)$/.exec(sentence);
    const [, unknown = ''] = /^Unknown option '--([\w-]+)/.exec(sentence) ?? [];
    const what = missing === null ? sentence + meant(unknown, Object.keys(options)) : `${missing[1]} needs a value`;
    throw new UsageError(`${what}; see watchmux ${topic} --help`, topic);
  }
  return parsed.values.help === true ? { command: 'help', topic } : read(parsed);
}

/** The option that was probably meant, if one is near. */
function meant(name: string, names: readonly string[]): string {
  const [nearest = ''] = [...names].sort((one, other) => distance(name, one) - distance(name, other));
  return distance(name, nearest) <= name.length / 2 ? `: did you mean --${nearest}?` : '';
}

/** Turns `--port -1` into `--port=-1`, so that the error is about the number, and not about an unknown option. */
function joined(args: readonly string[], options: Options): string[] {
  const all: string[] = [];
  for (const arg of args) {
    const before = all.at(-1) ?? '';
    if (/^-\d/.test(arg) && options[before.slice(2)]?.type === 'string') all[all.length - 1] = `${before}=${arg}`;
    else all.push(arg);
  }
  return all;
}

function toPipe({ values, positionals }: Parsed): PipeCommand {
  if (positionals.length > 0)
    throw new UsageError(`unexpected argument ${quote(positionals[0] as string)}: pipe reads from stdin`, 'pipe');
  const overflow = OVERFLOWS.find((policy) => policy === values.overflow);
  if (overflow === undefined) throw wrong('pipe', 'overflow', values.overflow, `one of ${OVERFLOWS.join(', ')}`);
  const port = whole('pipe', 'port', values.port, { max: 65_535 });
  const replay = whole('pipe', 'replay', values.replay);
  const window = values.window === undefined ? Math.max(replay, 1_000) : whole('pipe', 'window', values.window);
  if (window < replay) throw wrong('pipe', 'window', values.window, `at least ${replay}, the value of --replay`);
  return {
    command: 'pipe',
    host: toHost(values.host as string),
    port,
    capacity: whole('pipe', 'capacity', values.capacity, { min: 1 }),
    maxQueuedBytes: whole('pipe', 'max-queued-bytes', values['max-queued-bytes'], { min: 1 }),
    overflow,
    replay,
    window,
    raw: values.raw as boolean,
    keepOpen: values['keep-open'] as boolean,
    title: values.title === undefined ? undefined : toTitle(values.title as string),
    keepAliveMs: keepAlive('pipe', values['keep-alive']),
    drainMs: milliseconds('pipe', 'drain', values.drain),
  };
}

function toWatch({ values, positionals }: Parsed): WatchCommand {
  const [given, extra] = positionals;
  if (given === undefined) throw new UsageError('missing URL, for example: watchmux watch http://127.0.0.1:8080', 'watch');
  if (extra !== undefined) throw new UsageError(`unexpected argument ${quote(extra)}: watch takes one URL`, 'watch');
  const socket = /^wss?:/i.test(given);
  const text = (given.includes('://') ? given : `http://${given}`).replace(/^ws(s?):/i, 'http$1:');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw new UsageError(`not an HTTP URL: ${quote(given)}`, 'watch');
  const asked = values.transport ?? (socket ? 'websocket' : 'http');
  const transport = TRANSPORTS.find((each) => each === asked);
  if (transport === undefined) throw wrong('watch', 'transport', asked, `one of ${TRANSPORTS.join(', ')}`);
  // A script whose variable is empty would silently begin with new events, instead of where it was.
  if (values.resume === '') throw wrong('watch', 'resume', '', 'the resourceVersion of an event');
  return {
    command: 'watch',
    url,
    transport,
    resume: values.resume as string | undefined,
    reconnect: values['no-reconnect'] !== true,
  };
}

function toDemo({ values, positionals }: Parsed): DemoCommand {
  const [directory, extra] = positionals;
  if (extra !== undefined) throw new UsageError(`unexpected argument ${quote(extra)}: demo takes at most one directory`, 'demo');
  return { command: 'demo', directory, durationMs: milliseconds('demo', 'seconds', values.seconds) };
}

/** Returns the host to listen on. An IPv6 address may be in brackets, as in a URL. */
function toHost(value: string): string {
  const host = value.replace(/^\[(.*)\]$/, '$1');
  // An empty name, such as that of an unset variable, would mean all interfaces.
  if (!isIPv6(host) && !/^[^\s:/[\]]+$/.test(host))
    throw wrong('pipe', 'host', value, 'an address or a host name, without a port');
  return host;
}

function toTitle(value: string): string {
  const title = value.trim();
  if (title !== '' && title.length <= MAX_TITLE_CHARS && !/\p{C}/u.test(title)) return title;
  throw wrong('pipe', 'title', value, `1 to ${MAX_TITLE_CHARS} visible characters`);
}

const MAX_TITLE_CHARS = 100;

function toTopic(name: string | undefined): CommandName | undefined {
  if (name === undefined) return name;
  const topic = COMMANDS.find((each) => each === name);
  if (topic !== undefined) return topic;
  throw new UsageError(`unknown command ${quote(name)}; see --help`);
}
