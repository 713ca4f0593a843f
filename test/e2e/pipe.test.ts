import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { afterAll, describe, expect, test, vi } from 'vitest';
import type { Client, Pipe } from './cli.ts';
import { CLI, flood, hear, httpStream, killAll, open, pipe, run, sse, TRANSPORTS, until, webSocket } from './cli.ts';

afterAll(killAll);

const added = (object: unknown): { type: string; object: unknown } => ({ type: 'ADDED', object });

const numbers = (client: Client): number[] =>
  client
    .events()
    .filter((event) => event.type === 'n')
    .map((event) => (event.object as { i: number }).i);

/** Its connection is full, and its queue fills up. */
const stands = async (server: Pipe): Promise<boolean> => {
  const [client] = (await server.stats()).clients;
  return client !== undefined && client.bufferedBytes >= 1_000_000 && client.queued > 0;
};

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe.each(TRANSPORTS)('over %s', (name, connect) => {
  test('delivers events in order, in the documented form, and ends regularly', async () => {
    const server = await pipe();
    const client = await connect(server.url);
    await until(async () => (await server.stats()).clients.length === 1);
    server.write({ type: 'placed', object: { id: 1 }, extra: true }, 42, 'text', null, { any: 'value' });
    server.child.stdin.end('[1,2]\n');
    expect(await client.ended).toBe(name === 'WebSocket' ? '1000' : 'complete');
    expect(client.events()).toEqual([
      { type: 'placed', object: { id: 1 }, extra: true },
      ...[42, 'text', null, { any: 'value' }, [1, 2]].map(added),
    ]);
    expect(await server.exit).toBe(0);
    expect(server.err()).toBe('watchmux pipe: 6 events, 0 lines skipped; 1 client: 6 delivered, 0 dropped\n');
  });

  test('a new client gets the last N events first, and misses none after them', async () => {
    const server = await pipe('--replay', '3');
    server.write(...upTo(10));
    await until(async () => (await server.stats()).accepted === 10);
    const client = await connect(server.url);
    server.write(...upTo(2));
    server.child.stdin.end();
    await client.ended;
    expect(client.events().map((event) => event.object)).toEqual([7, 8, 9, 0, 1]);
    expect(await server.exit).toBe(0);
  });

  test('a client that is too slow gets its queue, then the number of missed events, then the end; others go on', async () => {
    const server = await pipe('--capacity', '50');
    const slow = await connect(server.url);
    slow.pause();
    const fast = await httpStream(server.url);
    flood(server, 3_000);
    await until(() => fast.texts.length === 3_000);
    slow.resume();
    expect(await slow.ended).toBe(name === 'WebSocket' ? '4410' : 'complete');
    const got = numbers(slow);
    expect(got).toEqual(upTo(got.length));
    expect(got.length).toBeLessThan(3_000);
    const last = slow.events().at(-1) as { type: string; object: { details: { missed: number } } };
    expect(last).toMatchObject({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } });
    expect(slow.events()).toHaveLength(got.length + 1);
    // It missed what came before it was told, which may be before the end of the flood; and the server counts the same.
    const { missed } = last.object.details;
    expect(missed).toBeGreaterThan(0);
    expect(got.length + missed).toBeLessThanOrEqual(3_000);
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
    expect(server.err()).toContain(`${3_000 + got.length} delivered, ${missed} dropped`);
    expect(numbers(fast)).toEqual(upTo(3_000));
  });

  test('with wait, a client that stops reading delays stdin, and loses nothing', async () => {
    const server = await pipe('--overflow', 'wait', '--capacity', '10');
    const client = await connect(server.url);
    client.pause();
    flood(server, 3_000);
    // Stalled: the queue is full, and ever so many looks later still nothing more was accepted.
    let seen = -1;
    let same = 0;
    await until(async () => {
      const { accepted, clients } = await server.stats();
      same = accepted === seen && clients[0]?.queued !== 0 ? same + 1 : 0;
      seen = accepted;
      return same === 40;
    });
    expect(seen).toBeLessThan(2_500);
    expect(server.child.stdin.writableLength).toBeGreaterThan(0);
    client.resume();
    server.child.stdin.end();
    await client.ended;
    expect(numbers(client)).toEqual(upTo(3_000));
    expect(await server.exit).toBe(0);
    expect(server.err()).toContain('3000 delivered, 0 dropped');
  });
});

describe('input', () => {
  test('an invalid line is reported with its number, skipped and counted; blank lines are ignored', async () => {
    const server = await pipe('--replay', '9', '--keep-open');
    server.child.stdin.end('1\n\nnot json\n{"type":\n2\r\nlast');
    await until(() => server.err().includes('until a signal'));
    const client = await httpStream(server.url);
    server.child.kill('SIGTERM');
    await client.ended;
    expect(client.events()).toEqual([added(1), added(2)]);
    expect(await server.exit).toBe(0);
    expect(server.err().split('\n')).toEqual([
      'watchmux pipe: line 3 skipped: not JSON: not json',
      'watchmux pipe: line 4 skipped: not JSON: {"type":',
      'watchmux pipe: line 6 skipped: not JSON: last',
      'watchmux pipe: stdin has ended; serving until a signal',
      'watchmux pipe: 2 events, 3 lines skipped; 1 client: 2 delivered, 0 dropped',
      '',
    ]);
  });

  test('with --raw, any line is a string', async () => {
    const server = await pipe('--raw');
    const client = await sse(server.url);
    server.child.stdin.end('{"type":"X","object":1}\n\nnot json ✓\nlast');
    await client.ended;
    expect(client.events()).toEqual(['{"type":"X","object":1}', '', 'not json ✓', 'last'].map(added));
    expect(await server.exit).toBe(0);
  });

  test('with --raw, lines of spaces stay, and so does each of their spaces', async () => {
    const server = await pipe('--raw');
    const client = await httpStream(server.url);
    server.child.stdin.end('   \n\t\n\na\n  ');
    await client.ended;
    expect(client.events()).toEqual(['   ', '\t', '', 'a', '  '].map(added));
    expect(await server.exit).toBe(0);
  });

  test('with --raw, a line that clients would not take as JSON is skipped: the hole of a truncated log is all NULs', async () => {
    const server = await pipe('--raw', '--replay', '9', '--keep-open');
    const clients = await Promise.all(TRANSPORTS.map(([, connect]) => connect(server.url)));
    await until(async () => (await server.stats()).clients.length === clients.length);
    server.child.stdin.write('before\n');
    // 3 MB, of which JSON makes 18 MB: more than a client takes by default.
    for (let i = 0; i < 3; i++) server.child.stdin.write(Buffer.alloc(1_000_000));
    server.child.stdin.end('\nafter\n');
    await until(() => server.err().includes('until a signal'));
    expect(server.err()).toMatch(
      /watchmux pipe: line 2 skipped: the event has 180000\d\d bytes as JSON, more than maxEventBytes \(16000000\)\n/,
    );
    expect(await server.stats()).toMatchObject({ accepted: 2, oversize: 1 });
    server.child.kill('SIGTERM');
    for (const client of clients) {
      await client.ended;
      expect(client.events()).toEqual([added('before'), added('after')]);
    }
    expect(await server.exit).toBe(0);
    expect(server.err()).toContain('2 events, 1 line skipped');
  });

  test('JSON over several lines: the hint says how to make one line of it', async () => {
    const server = await pipe();
    server.child.stdin.end(JSON.stringify([{ a: 1 }, 2], undefined, 2));
    expect(await server.exit).toBe(0);
    expect(server.err()).toContain('line 1 begins a value that spans several lines; for one line per value, use jq -c\n');
  });

  test('a line of more than 16 MiB is skipped with a clear message, and the next one is read', async () => {
    const server = await pipe();
    const client = await httpStream(server.url);
    for (let i = 0; i < 17; i++) server.child.stdin.write('x'.repeat(1_048_576));
    server.child.stdin.end('\n"next"\n');
    await client.ended;
    expect(client.events()).toEqual([added('next')]);
    expect(await server.exit).toBe(0);
    expect(server.err()).toContain('line 1 skipped: longer than the limit of 16777216 bytes');
  });

  test('numbers keep all their digits', async () => {
    const server = await pipe();
    const client = await webSocket(server.url);
    server.child.stdin.end('{"type":"X","object":12345678901234567890}\n1.0\n');
    await client.ended;
    const [first, second] = client.versions();
    expect(client.texts).toEqual([
      `{"type":"X","object":12345678901234567890,"resourceVersion":"${first}"}`,
      `{"type":"ADDED","object":1.0,"resourceVersion":"${second}"}`,
    ]);
    expect(second).toBe(first?.replace('.1', '.2'));
  });

  test('so they do with coalesce, which changes the type and nothing else', async () => {
    const server = await pipe('--overflow', 'coalesce');
    const client = await webSocket(server.url);
    const change = (type: string, more: string): string =>
      `{ "object":{"metadata":{"name":"a"},"id":12345678901234567890,"x":1.0},"type":"${type}"${more}}\n`;
    // The first lines go out at once, and those behind them together.
    server.child.stdin.end(`1\n2\n3\n4\n${change('ADDED', '')}${change('MODIFIED', ',"more":[1e2]')}`);
    await client.ended;
    const last = client.versions().at(-1);
    expect(client.texts.at(-1)).toBe(change('ADDED', `,"more":[1e2],"resourceVersion":"${last}"`).trimEnd());
    expect(client.texts).toHaveLength(5);
  });

  test('a burst in one chunk does not overflow the queues of clients that keep up', async () => {
    const server = await pipe('--capacity', '4');
    const clients = await Promise.all(TRANSPORTS.map(([, connect]) => connect(server.url)));
    server.child.stdin.end(upTo(20_000).join('\n'));
    await Promise.all(clients.map((client) => client.ended));
    for (const client of clients) expect(client.events().map((event) => event.object)).toEqual(upTo(20_000));
  });
});

describe('reconnecting', () => {
  test.each(TRANSPORTS)('over %s resumes, as long as the events are kept; --window sets how many', async (_name, connect) => {
    const server = await pipe('--window', '3');
    server.write(...upTo(5));
    await until(async () => (await server.stats()).accepted === 5);
    const [epoch] = (await server.stats()).version.split('.');
    const client = await connect(server.url, { query: `?resourceVersion=${epoch}.3` });
    server.write('live');
    server.child.stdin.end();
    await client.ended;
    expect(client.events().map((event) => event.object)).toEqual([3, 4, 'live']);
    expect(await server.exit).toBe(0);
  });
});

describe('the end', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s drains the clients, tells them to reconnect, and exits with 0, even if stdin is open',
    async (signal) => {
      const server = await pipe();
      const clients = await Promise.all(TRANSPORTS.map(([, connect]) => connect(server.url)));
      server.write(...upTo(20));
      await until(async () => (await server.stats()).accepted === 20);
      server.child.kill(signal);
      expect(await Promise.all(clients.map((client) => client.ended))).toEqual(['1001', 'broken', 'broken']);
      expect(await server.exit).toBe(0);
      for (const client of clients) expect(client.events()).toHaveLength(20);
    },
  );

  test('a client that does not read cannot delay it past the deadline', async () => {
    const server = await pipe('--overflow', 'wait', '--drain', '0.2', '--capacity', '3000');
    const client = await httpStream(server.url);
    client.pause();
    flood(server, 2_000);
    await until(() => stands(server));
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
    expect(server.err()).toContain('1 of 1 client did not take their queue in time and were cut');
    client.resume();
    expect(await client.ended).toBe('broken');
  });

  test('a second signal exits at once', async () => {
    const server = await pipe('--drain', '60', '--capacity', '3000');
    const client = await httpStream(server.url);
    client.pause();
    flood(server, 2_000);
    await until(() => stands(server));
    server.child.kill('SIGTERM');
    await until(async () => (await open(`${server.url}/watch`)).statusCode === 503);
    await until(() => server.err() === 'watchmux pipe: waiting up to 60 s for 1 client to take their queued events\n');
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(143);
    client.close();
  });

  test('events that wait cost the memory of their text, not that of their values', async () => {
    // Text is outside of this heap. The values of the lines below would take some hundred MB.
    vi.stubEnv('NODE_OPTIONS', '--max-old-space-size=80');
    const server = await pipe('--overflow', 'drop-oldest');
    vi.unstubAllEnvs();
    const client = await httpStream(server.url);
    client.pause();
    const line = `[${'{},'.repeat(100_000)}0]\n`;
    for (let i = 0; i < 150; i++) server.child.stdin.write(line);
    // Rejects if the server has run out of memory.
    await until(async () => (await server.stats()).accepted === 150);
    server.child.stdin.end('"last"\n');
    client.resume();
    expect(await client.ended).toBe('complete');
    expect(client.texts.at(-1)).toContain('"last"');
    expect(await server.exit).toBe(0);
  });

  test('reports that nobody reads are counted, not kept', async () => {
    vi.stubEnv('NODE_OPTIONS', '--max-old-space-size=60');
    const server = await pipe();
    vi.unstubAllEnvs();
    server.child.stderr.pause();
    const bad = 'bad\n'.repeat(50_000);
    for (let i = 0; i < 5; i++) server.child.stdin.write(bad);
    server.write('good');
    // Rejects if the server has run out of memory.
    await until(async () => (await server.stats()).accepted === 1);
    server.child.stderr.resume();
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
    const reports = server.err().split('\n');
    expect(reports[10]).toBe('watchmux pipe: no line is an event so far; to serve lines of text, use --raw');
    const told = reports.filter((report) => report.endsWith(' skipped: not JSON: bad')).length;
    // Once or more often, as the kernel takes more of what waits.
    const untold = reports.map((report) => Number(/ (\d+) more skipped: nobody has read these reports$/.exec(report)?.[1] ?? 0));
    expect(told).toBeLessThan(150_000);
    expect(told + untold.reduce((sum, count) => sum + count, 0)).toBe(250_000);
    expect(reports.at(-2)).toBe('watchmux pipe: 1 event, 250000 lines skipped; 0 clients: 0 delivered, 0 dropped');
  });

  test.runIf(existsSync('/usr/bin/script'))('a terminal as stdin is told', async () => {
    const terminal = spawn('/usr/bin/script', ['-qec', `${process.execPath} ${CLI} pipe --port 0`, '/dev/null']);
    const { out } = hear(terminal);
    await until(() => out().includes('reading from the terminal: one event per line, Ctrl-D at the end'));
    terminal.stdin.write('1\n\u0004');
    await until(() => out().includes('1 event, 0 lines skipped'));
    terminal.kill();
  });

  test('an empty stdin is a regular end', async () => {
    const server = await pipe();
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
    expect(server.err()).toBe('watchmux pipe: 0 events, 0 lines skipped; 0 clients: 0 delivered, 0 dropped\n');
  });

  test('a port in use is one clear line and exit code 2', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    const refused = run('pipe', '--port', String(port));
    expect(await refused.exit).toBe(2);
    expect(refused.err()).toBe(
      `watchmux pipe: port ${port} is in use; choose another with --port, or any free one with --port 0\n`,
    );
    expect(refused.out()).toBe('');
    other.close();
  });

  test('so are an unknown host and an invalid option', async () => {
    for (const [args, message] of [
      [['--host', 'no-such-host.invalid'], 'watchmux pipe: cannot listen on '],
      [['--overflow', 'explode'], 'watchmux pipe: --overflow takes one of '],
    ] as const) {
      const refused = run('pipe', '--port', '0', ...args);
      expect(await refused.exit).toBe(2);
      expect(refused.err()).toMatch(/^[^\n]+\n$/);
      expect(refused.err()).toContain(message);
    }
  });
});
