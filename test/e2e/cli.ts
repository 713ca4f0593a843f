// Helpers of the end-to-end tests: the built command line as a child process, and clients of every transport.
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:http';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { until } from '../eventually.ts';
import { freePort } from '../peers/ports.ts';

/** The built command line. WATCHMUX_CLI names another one, such as that of an installed package. */
export const CLI: string = process.env.WATCHMUX_CLI ?? fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface Run {
  readonly child: ChildProcessWithoutNullStreams;
  readonly out: () => string;
  readonly err: () => string;
  /** The exit code, or the signal that ended it. */
  readonly exit: Promise<number | NodeJS.Signals>;
}

const children: Set<ChildProcessWithoutNullStreams> = new Set();

/** For afterAll: kills every child. */
export function killAll(): void {
  for (const child of children) child.kill('SIGKILL');
}

/** Collects a child's output. */
export function hear(child: ChildProcessWithoutNullStreams): { out: () => string; err: () => string } {
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  // Writing to a child that has exited fails. Tests check its exit code instead.
  child.stdin.on('error', () => {});
  return { out: () => out, err: () => err };
}

export function run(...args: string[]): Run {
  if (!existsSync(CLI)) throw new Error(`${CLI} is missing: run "npm run build" first`);
  const child = spawn(process.execPath, [CLI, ...args], { env: { ...process.env, NO_COLOR: '1' } });
  const { out, err } = hear(child);
  children.add(child);
  const exit = new Promise<number | NodeJS.Signals>((resolve) => {
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve(code ?? (signal as NodeJS.Signals));
    });
  });
  return { child, out, err, exit };
}

export interface Pipe extends Run {
  readonly url: string;
  readonly write: (...lines: unknown[]) => void;
  readonly stats: () => Promise<Stats>;
}

export interface Stats {
  readonly version: string;
  readonly accepted: number;
  readonly clients: { transport: string; queued: number; dropped: number; delivered: number; bufferedBytes: number }[];
  readonly total: { clients: number; refused: number; delivered: number; dropped: number };
}

/** For a server that is started again. What listens at a port of the kernel's choice may lose it to another program in between. */
export const atFreePort = async (): Promise<string[]> => ['--port', String(await freePort())];

/** Starts `watchmux pipe` on a free port and waits until it listens. */
export async function pipe(...args: string[]): Promise<Pipe> {
  const started = run('pipe', '--port', '0', ...args);
  await until(() => started.out().includes('\n') || started.child.exitCode !== null);
  const url = /^listening on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(started.out())?.[1];
  if (url === undefined) throw new Error(`not listening: ${started.out()}${started.err()}`);
  return {
    ...started,
    url,
    write: (...lines) => void started.child.stdin.write(lines.map((line) => `${JSON.stringify(line)}\n`).join('')),
    stats: async () => JSON.parse(await text(`${url}/stats`)) as Stats,
  };
}

export interface Serving extends Run {
  readonly url: string;
  /** What requests must have, if the server was given one. */
  readonly token?: string | undefined;
}

/** Starts `watchmux serve`, on a free port unless the arguments name one, and waits until it listens. */
export async function serve(...args: string[]): Promise<Serving> {
  const started = run('serve', ...(args.includes('--port') ? [] : ['--port', '0']), ...args);
  await until(() => started.out().includes('\n') || started.child.exitCode !== null);
  const url = /^listening on (https?:\/\/127\.0\.0\.1:\d+)\n/.exec(started.out())?.[1];
  if (url === undefined) throw new Error(`not listening: ${started.out()}${started.err()}`);
  return { ...started, url };
}

export function open(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, resolve).on('error', reject);
  });
}

export async function text(url: string): Promise<string> {
  let body = '';
  for await (const chunk of (await open(url)).setEncoding('utf8')) body += chunk;
  return body;
}

/** What a client has received: the events as JSON text, in order, and how its stream ended. */
export interface Client {
  readonly texts: string[];
  readonly ids: string[];
  /** The events without their versions, and the versions by themselves. */
  readonly events: () => { type: string; object: unknown }[];
  readonly versions: () => (string | undefined)[];
  readonly ended: Promise<string>;
  readonly pause: () => void;
  readonly resume: () => void;
  readonly close: () => void;
}

type Parsed = { type: string; object: unknown; resourceVersion?: string };
const parsed = (texts: string[]): Pick<Client, 'events' | 'versions'> => ({
  events: () => texts.map((one) => JSON.parse(one) as Parsed).map(({ resourceVersion: _, ...event }) => event),
  versions: () => texts.map((one) => (JSON.parse(one) as Parsed).resourceVersion),
});

/** What a client requests. */
export interface ClientOptions {
  readonly query?: string;
  readonly headers?: Record<string, string>;
}

export async function webSocket(url: string, { query = '', headers = {} }: ClientOptions = {}): Promise<Client> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/watch${query}`, { headers });
  const texts: string[] = [];
  const ended = new Promise<string>((resolve) => {
    socket.on('close', (code) => resolve(String(code)));
  });
  socket.on('message', (data, binary) => texts.push(binary ? 'binary' : String(data)));
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return {
    texts,
    ids: [],
    ...parsed(texts),
    ended,
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: () => socket.terminate(),
  };
}

/** Reads an HTTP stream or SSE. `separator` separates two frames. */
async function stream(
  url: string,
  { query = '', headers = {}, accept }: ClientOptions & { accept: string },
  take: { separator: string; frame: (frame: string) => void },
): Promise<Pick<Client, 'ended' | 'pause' | 'resume' | 'close'>> {
  const response = await open(`${url}/watch${query}`, { ...headers, accept });
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}`);
  let rest = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const frames = (rest + chunk).split(take.separator);
    rest = frames.pop() as string;
    frames.forEach(take.frame);
  });
  const ended = new Promise<string>((resolve) => {
    response.on('close', () => resolve(response.complete && rest.trim() === '' ? 'complete' : 'broken'));
    response.on('error', () => resolve('broken'));
  });
  return { ended, pause: () => response.pause(), resume: () => response.resume(), close: () => response.destroy() };
}

export async function httpStream(url: string, options: ClientOptions = {}): Promise<Client> {
  const texts: string[] = [];
  const rest = await stream(
    url,
    { ...options, accept: 'application/json' },
    { separator: '\n', frame: (line) => void texts.push(line.trimStart()) },
  );
  return { texts, ids: [], ...parsed(texts), ...rest };
}

export async function sse(url: string, options: ClientOptions = {}): Promise<Client> {
  const texts: string[] = [];
  const ids: string[] = [];
  const frame = (record: string): void => {
    const lines = record.split('\n');
    const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
    // A record without data, such as the first one, is not an event.
    if (data.length === 0) return;
    texts.push(data.join('\n'));
    ids.push(...lines.filter((line) => line.startsWith('id: ')).map((line) => line.slice(4)));
  };
  const rest = await stream(url, { ...options, accept: 'text/event-stream' }, { separator: '\n\n', frame });
  return { texts, ids, ...parsed(texts), ...rest };
}

export const TRANSPORTS: readonly [string, (url: string, options?: ClientOptions) => Promise<Client>][] = [
  ['WebSocket', webSocket],
  ['HTTP stream', httpStream],
  ['SSE', sse],
];

/** Writes numbered lines of about 10 KB, more than kernel buffers hold. */
export function flood(server: Pipe, count: number): void {
  const filler = 'x'.repeat(10_000);
  for (let i = 0; i < count; i++) server.write({ type: 'n', object: { i, filler } });
}

export { until };
