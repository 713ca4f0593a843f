// The load, in its own process: raw sockets that send one request and then compare what they read. It is cheap, so that the
// server is what is measured.
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { CYCLE, roomOf, toEvent } from './events.ts';
import { CONNECT, CONNECTED, decode, type Protocol, requestOf } from './protocols.ts';
import { SharedStream } from './shared-stream.ts';

/** Connect to a server. */
export interface Join {
  readonly do: 'join';
  readonly port: number;
  readonly count: number;
  readonly protocol: Protocol;
  /** Number of rooms among which the clients are divided; undefined if there are none. */
  readonly rooms: number | undefined;
}

/** Wait until every client has received everything, and check it. */
export interface Expect {
  readonly do: 'expect';
  /** For all clients together. */
  readonly bytes: number;
  /** Per client. */
  readonly bursts: number;
  readonly burst: number;
  readonly eventBytes: number;
}

export type Request = Join | Expect | { readonly do: 'leave' };

/** Processor time of the load since the last request. If the load is never idle, the figures measure the load. */
export interface Answer {
  readonly error?: string;
  readonly cpuMs: number;
}

let sockets: Socket[] = [];
/** One for each room, or a single one. */
let streams: SharedStream[] = [];
let inRooms = false;
let bytesRead = 0;
let protocol: Protocol = 'websocket';

async function join({ port, count, protocol: asked, rooms }: Join): Promise<void> {
  protocol = asked;
  inRooms = rooms !== undefined;
  start(count, rooms);
  for (let at = 0; at < count; at += 100) {
    const some = Array.from({ length: Math.min(100, count - at) }, (_, i) => open(port, at + i));
    sockets.push(...(await Promise.all(some)));
  }
  // Initial output of a server, such as SSE's retry, may still be on its way, and differs between clients.
  await new Promise((resolve) => setTimeout(resolve, 200));
  start(count, rooms);
}

function start(count: number, rooms: number = 1): void {
  streams = Array.from({ length: rooms }, () => new SharedStream(count / rooms));
  bytesRead = 0;
}

function open(port: number, client: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', reject);
    const room = client % streams.length;
    const place = Math.floor(client / streams.length);
    socket.write(requestOf(protocol, inRooms ? roomOf(room) : undefined));
    let head: string | undefined = '';
    socket.on('data', (chunk) => {
      if (head === undefined) {
        streams[room]?.read(place, chunk);
        bytesRead += chunk.length;
        return;
      }
      const asked = protocol === 'socket.io' && head.includes('\r\n\r\n');
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      if (!/^HTTP\/1\.1 (101|200) /.test(head)) reject(new Error(`refused: ${head.slice(0, 80)}`));
      if (protocol === 'socket.io' && !asked) socket.write(CONNECT);
      if (protocol === 'socket.io' && !head.includes(CONNECTED)) return;
      head = undefined;
      resolve(socket);
    });
  });
}

/** Returns the processor time until everything was read. Decoding and checking come after that. */
async function expectEvents({ bytes, bursts, burst, eventBytes }: Expect): Promise<number> {
  while (bytesRead < bytes) await setImmediate();
  const cpuMs = cpuSince();
  // Anything sent twice would arrive now.
  for (let i = 0; i < 20; i++) await setImmediate();
  if (bytesRead > bytes) throw new Error(`the clients have read ${bytesRead} bytes, and ${bytes} were sent`);
  bytesRead = 0;
  for (const [room, stream] of streams.entries()) {
    if (!stream.all(stream.longest)) throw new Error('a client has read less than the others');
    const events = decode(stream.take(), protocol);
    if (events.length !== bursts * burst) throw new Error(`${events.length} events instead of ${bursts * burst}`);
    for (const [at, { type, object }] of events.entries()) {
      const right = JSON.stringify(toEvent(at % (CYCLE * burst), eventBytes, inRooms ? roomOf(room) : undefined));
      if (JSON.stringify({ type, object }) !== right) throw new Error(`event ${at} is wrong`);
    }
  }
  cpuSince();
  return cpuMs;
}

function leave(): void {
  for (const socket of sockets) socket.destroy();
  sockets = [];
}

async function obey(request: Request): Promise<number> {
  if (request.do === 'expect') return expectEvents(request);
  if (request.do === 'join') await join(request);
  else leave();
  return cpuSince();
}

let spent = process.cpuUsage();

function cpuSince(): number {
  const { user, system } = process.cpuUsage(spent);
  spent = process.cpuUsage();
  return (user + system) / 1_000;
}

// The main process has gone. Exit, so that an aborted run leaves nothing behind.
process.on('disconnect', () => process.exit());
process.on('message', (request: Request) => {
  obey(request).then(
    (cpuMs) => process.send?.({ cpuMs } satisfies Answer),
    (error) => process.send?.({ cpuMs: 0, error: String(error?.message ?? error) } satisfies Answer),
  );
});
