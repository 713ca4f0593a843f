import { parseArgs } from 'node:util';
import { TRANSPORTS } from '../bridge/client/client-options.ts';
import type { ClientTransport } from '../bridge/client.ts';
import { DEFAULTS } from '../bridge/protocol.ts';
import { nearest } from '../watch/errors.ts';
import { OVERFLOWS, type Overflow } from '../watch/overflow.ts';
import { GET_OPTIONS, type GetCommand, toGet } from './get/get-args.ts';
import { NEW_OPTIONS, type NewCommand, toNew } from './new/new-args.ts';
import { SERVE_OPTIONS, type ServeCommand, toServe } from './serve/serve-args.ts';
import { TYPES_OPTIONS, type TypesCommand, toTypes } from './types/types-args.ts';
import {
  COMMANDS,
  type CommandName,
  Given,
  KEEP_ALIVE_SECONDS,
  type Options,
  preset,
  quote,
  quoteUrl,
  UsageError,
  valued,
} from './usage.ts';

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
  /** How long an idle connection is kept open for its next request. */
  readonly keepAliveMs: number;
  readonly drainMs: number;
}

export interface WatchCommand {
  readonly command: 'watch';
  readonly url: URL;
  readonly transport: ClientTransport;
  /** The version to continue after: the `resourceVersion` of an event. */
  readonly resume: string | undefined;
  /** Whether to reconnect when the connection is lost. */
  readonly reconnect: boolean;
}

export interface CheckCommand {
  readonly command: 'check';
  readonly file: string;
}

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
  | NewCommand
  | CheckCommand
  | TypesCommand
  | DemoCommand
  | { readonly command: 'help'; readonly topic: CommandName | undefined }
  | { readonly command: 'version' };

/** Parses the arguments after the program's name. Throws {@link UsageError}. */
export function parseCommand(argv: readonly string[]): Command {
  const [name, ...rest] = argv;
  const topic = COMMANDS.find((each) => each === name);
  if (topic !== undefined) return helpOr(topic, rest);
  switch (name) {
    case undefined:
      throw new UsageError('missing command: pipe, watch, get, serve, new, check, types or demo; see --help');
    case 'help':
    case '--help':
    case '-h':
      return { command: 'help', topic: /^(-h|--help)$/.test(rest[0] ?? '') ? undefined : toTopic(rest[0]) };
    case '--version':
    case '-v':
      return { command: 'version' };
    default:
      throw name.startsWith('-') ? new UsageError(`unknown option ${quote(name)}; see --help`) : unknownCommand(name);
  }
}

const PIPE_OPTIONS: Options = {
  ...preset({ host: '127.0.0.1', port: '8080', capacity: '100', 'max-queued-bytes': String(DEFAULTS.maxQueuedBytes) }),
  ...preset({ overflow: 'disconnect', replay: '0', 'keep-alive': KEEP_ALIVE_SECONDS, drain: '5' }),
  ...valued('window', 'title'),
  ...{ raw: { type: 'boolean', default: false }, 'keep-open': { type: 'boolean', default: false } },
};

const WATCH_OPTIONS: Options = { ...valued('transport', 'resume'), 'no-reconnect': { type: 'boolean', default: false } };

/** What each command takes, and how its arguments are read. */
export const READERS: Readonly<Record<CommandName, readonly [options: Options, read: (given: Given) => Command]>> = {
  pipe: [PIPE_OPTIONS, toPipe],
  watch: [WATCH_OPTIONS, toWatch],
  get: [GET_OPTIONS, toGet],
  serve: [SERVE_OPTIONS, toServe],
  new: [NEW_OPTIONS, toNew],
  check: [{}, toCheck],
  types: [TYPES_OPTIONS, toTypes],
  demo: [preset({ seconds: '10' }), toDemo],
};

function helpOr(topic: CommandName, args: readonly string[]): Command {
  const [options, read] = READERS[topic];
  let parsed: ReturnType<typeof parseArgs>;
  try {
    const help: Options = { help: { type: 'boolean', short: 'h', default: false } };
    parsed = parseArgs({ args: joined(args, options), options: { ...help, ...options }, allowPositionals: true, strict: true });
  } catch (error) {
    // Node's message is long; its first sentence says what is wrong.
    const [sentence = 'bad option'] = (error as Error).message.split(/\.(?=\s|$)|\n/, 1);
    const missing = /^Option '(?:-\w, )?(--[\w-]+).* argument (?:missing|is ambiguous)$/.exec(sentence);
    const [, unknown = ''] = /^Unknown option '--([\w-]+)/.exec(sentence) ?? [];
    const near = nearest(unknown, Object.keys(options));
    const what = missing === null ? `${sentence}${near && `: did you mean --${near}?`}` : `${missing[1]} needs a value`;
    throw new UsageError(`${what}; see watchmux ${topic} --help`, topic);
  }
  return parsed.values.help === true ? { command: 'help', topic } : read(new Given(topic, parsed));
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

function toPipe(given: Given): PipeCommand {
  given.atMost(0, 'pipe reads from stdin');
  const overflow = given.oneOf('overflow', OVERFLOWS);
  const port = given.whole('port', { max: 65_535 });
  const replay = given.whole('replay');
  const window = given.wholeIf('window') ?? Math.max(replay, 1_000);
  if (window < replay) throw given.wrong('window', `at least ${replay}, the value of --replay`);
  return {
    command: 'pipe',
    host: given.host(),
    port,
    capacity: given.whole('capacity', { min: 1 }),
    maxQueuedBytes: given.whole('max-queued-bytes', { min: 1 }),
    overflow,
    replay,
    window,
    raw: given.flag('raw'),
    keepOpen: given.flag('keep-open'),
    title: toTitle(given),
    keepAliveMs: given.milliseconds('keep-alive', 1),
    drainMs: given.milliseconds('drain'),
  };
}

function toWatch(given: Given): WatchCommand {
  const [address] = given.positionals;
  if (address === undefined) throw given.error('missing URL, for example: watchmux watch http://127.0.0.1:8080');
  given.atMost(1, 'watch takes one URL');
  const text = (address.includes('://') ? address : `http://${address}`).replace(/^ws(s?):/i, 'http$1:');
  const url = given.httpUrl(text);
  if (url === undefined) throw given.error(`not an HTTP URL: ${quoteUrl(address)}`);
  const asked = given.text('transport') ?? (/^wss?:/i.test(address) ? 'websocket' : 'http');
  const transport = given.oneOf('transport', TRANSPORTS, asked);
  given.notEmpty(['resume'], 'the resourceVersion of an event');
  return { command: 'watch', url, transport, resume: given.text('resume'), reconnect: !given.flag('no-reconnect') };
}

function toCheck(given: Given): CheckCommand {
  const [file = ''] = given.positionals;
  if (file === '') throw given.error('missing FILE, for example: watchmux check orders.data');
  given.atMost(1, 'check takes one file');
  return { command: 'check', file };
}

function toDemo(given: Given): DemoCommand {
  given.atMost(1, 'demo takes at most one directory');
  return { command: 'demo', directory: given.positionals[0], durationMs: given.milliseconds('seconds') };
}

function toTitle(given: Given): string | undefined {
  const title = given.text('title')?.trim();
  if (title === undefined || (title !== '' && title.length <= MAX_TITLE_CHARS && !/\p{C}/u.test(title))) return title;
  throw given.wrong('title', `1 to ${MAX_TITLE_CHARS} visible characters`);
}

const MAX_TITLE_CHARS = 100;

function toTopic(name: string | undefined): CommandName | undefined {
  const topic = COMMANDS.find((each) => each === name);
  if (topic === undefined && name !== undefined) throw unknownCommand(name);
  return topic;
}

function unknownCommand(name: string): UsageError {
  const near = nearest(name, COMMANDS);
  return new UsageError(`unknown command ${quote(name)}${near && `: did you mean ${near}?`}; see --help`);
}
