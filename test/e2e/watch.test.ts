import type { RequestListener, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createRawServer } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { atFreePort, killAll, pipe, run, until } from './cli.ts';

const servers: Server[] = [];

afterAll(() => {
  killAll();
  for (const server of servers) server.close().closeAllConnections();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('watchmux watch', () => {
  test('prints exactly what pipe serves, and ends with it', async () => {
    const server = await pipe();
    const watching = run('watch', server.url);
    await until(async () => (await server.stats()).clients.length === 1);
    server.child.stdin.end('{"type":"X", "object":12345678901234567890}\n"✓"\n');
    expect(await watching.exit).toBe(0);
    const [first, second] = watching.out().split('\n');
    // As written, to the digit; the server has added the version.
    expect(first).toMatch(/^\{"type":"X", "object":12345678901234567890,"resourceVersion":"\w+\.1"\}$/);
    expect(second).toMatch(/^\{"type":"ADDED","object":"✓","resourceVersion":"\w+\.2"\}$/);
    expect(watching.err()).toBe('');
  });

  test('a URL with a path is used as it is, including its query', async () => {
    const asked: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      asked.push(request.url);
      response.setHeader('content-type', 'application/json').end('{"type":"A","object":1}\n{"type":"B","object":2}');
    });
    const watching = run('watch', `${url}/api/pods?watch=true`);
    expect(await watching.exit).toBe(0);
    expect(asked).toEqual(['/api/pods?watch=true']);
    expect(watching.out()).toBe('{"type":"A","object":1}\n{"type":"B","object":2}\n');
  });

  test('prints nothing that a terminal would act on: escapes stand for it, with the same meaning', async () => {
    const acting = 'csi \u009b31m, override \u202e, isolate \u2066, DEL \u007f';
    const status = { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired', message: `too old ${acting}` };
    const lines = [
      JSON.stringify({ type: acting, object: { [acting]: acting } }),
      JSON.stringify({ type: 'ERROR', object: status }),
    ];
    const url = await serve(
      (_request, response) => void response.setHeader('content-type', 'application/json').end(`${lines.join('\n')}\n`),
    );
    const watching = run('watch', url);
    expect(await watching.exit).toBe(1);
    for (const text of [watching.out(), watching.err()]) expect(text).not.toMatch(/[^\P{C}\n]/u);
    expect(
      watching
        .out()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(lines.map((line) => JSON.parse(line)));
    expect(watching.err()).toContain('too old csi .31m, override .');
  });

  test('an ERROR at the end is exit code 1, and is printed like any event', async () => {
    const status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'too old',
      reason: 'Expired',
      code: 410,
    };
    const line = JSON.stringify({ type: 'ERROR', object: status });
    const url = await serve((_request, response) => void response.setHeader('content-type', 'application/json').end(`${line}\n`));
    const watching = run('watch', url);
    expect(await watching.exit).toBe(1);
    expect(watching.out()).toBe(`${line}\n`);
    expect(watching.err()).toBe('watchmux watch: the stream ended with an error: too old\n');
  });

  test('invalid data is one ERROR line and exit code 1', async () => {
    const url = await serve(
      (_request, response) =>
        void response.setHeader('content-type', 'application/json').end('{"type":"A","object":1}\nnonsense\n'),
    );
    const watching = run('watch', url);
    expect(await watching.exit).toBe(1);
    const [first, second] = watching
      .out()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(first).toEqual({ type: 'A', object: 1 });
    expect(second).toMatchObject({ type: 'ERROR', object: { kind: 'Status' } });
  });

  test.each<[string, RequestListener, string]>([
    [
      'a refusal',
      (_, response) => void response.writeHead(503).end(JSON.stringify({ kind: 'Status', code: 503, message: 'full' })),
      'answered 503: full\n',
    ],
    ['a plain error', (_, response) => void response.writeHead(404).end('no \u001b[2Jsuch\n'), 'answered 404: no .[2Jsuch\n'],
    [
      'a page',
      (_, response) => void response.setHeader('content-type', 'text/html').end('<p>'),
      'is not a watch: it answered with text/html\n',
    ],
  ])('%s is one line and exit code 1', async (_name, listener, message) => {
    const watching = run('watch', await serve(listener));
    expect(await watching.exit).toBe(1);
    expect(watching.err()).toContain(message);
    expect(watching.err()).toMatch(/^[^\n]+\n$/);
    expect(watching.out()).toBe('');
  });

  test.each<[string, RequestListener, string]>([
    ['a page', (_, response) => void response.setHeader('content-type', 'text/html').end('<p>'), 'it answered with text/html\n'],
    ['a plain error', (_, response) => void response.writeHead(404).end('no such\n'), 'answered 404: no such\n'],
    ['a full server', (_, response) => void response.writeHead(503).end(), 'answered 503: status 503\n'],
  ])('over WebSocket, too: %s', async (_name, listener, message) => {
    const watching = run('watch', await serve(listener), '--transport', 'websocket');
    expect(await watching.exit).toBe(1);
    expect(watching.err()).toMatch(/^watchmux watch: http:[^\n]+\n$/);
    expect(watching.err()).toContain(message);
    expect(watching.out()).toBe('');
  });

  test.each(['http', 'sse', 'websocket'])('over %s, a redirect is not followed, and told', async (transport) => {
    const url = await serve((_request, response) => void response.writeHead(308, { location: '/there' }).end('moved'));
    const watching = run('watch', `${url}/here`, '--transport', transport);
    expect(await watching.exit).toBe(1);
    expect(watching.err()).toBe(`watchmux watch: ${url}/here answered 308: try ${url}/there\n`);
  });

  test.each([205, 600, 999])('a status that a Response cannot have is told as any other: %i', async (status) => {
    const watching = run('watch', await serve((_request, response) => void response.writeHead(status).end()));
    expect(await watching.exit).toBe(1);
    expect(watching.err()).toContain(`status ${status}`);
  });

  test('a password in the URL is used, and not shown', async () => {
    const asked: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      asked.push(request.headers.authorization);
      response.writeHead(403).end('no');
    });
    const watching = run('watch', url.replace('//', '//ann:s3cret@'));
    expect(await watching.exit).toBe(1);
    expect(asked).toEqual([`Basic ${btoa('ann:s3cret')}`]);
    expect(watching.err()).toBe(`watchmux watch: ${url}/watch answered 403: no\n`);
  });

  const serveText = (body: string): Promise<string> =>
    serve((_request, response) => void response.setHeader('content-type', 'application/json').end(body));

  test('a response that was cut off is no regular end: exit code 1', async () => {
    const watching = run('watch', await serveText('{"type":"A","object":1}\n{"type":"A","obj'));
    expect(await watching.exit).toBe(1);
    expect(watching.out()).toBe('{"type":"A","object":1}\n');
    expect(watching.err()).toBe('watchmux watch: the stream ended with a line that is not an event: {"type":"A","obj\n');
  });

  test('nor is other JSON, with or without a line end', async () => {
    for (const body of ['{"items":[]}', '{"items":[]}\n']) {
      const watching = run('watch', await serveText(body));
      expect(await watching.exit).toBe(1);
      expect(JSON.parse(watching.out())).toMatchObject({ type: 'ERROR', object: { code: 422 } });
      expect(watching.err()).toContain('watchmux watch: the stream ended with an error: ');
      expect(watching.err()).toContain('{"items":[]}');
    }
  });

  test('an ERROR without a Status at the end is exit code 1, too', async () => {
    const line = '{"type":"ERROR","object":{"why":"\\u001b[2J"}}';
    const url = await serve((_request, response) => void response.setHeader('content-type', 'application/json').end(`${line}\n`));
    const watching = run('watch', url);
    expect(await watching.exit).toBe(1);
    expect(watching.out()).toBe(`${line}\n`);
    expect(watching.err()).toBe('watchmux watch: the stream ended with an error: {"why":"\\u001b[2J"}\n');
  });

  test.each([
    ['{"kind":"Status","code":410,"reason":"Expired"}', 'Expired'],
    ['{"kind":"Status","code":410}', 'code 410'],
    ['{"kind":"Status","code":410,"message":7}', '7'],
  ])('a Status may lack its message, in an ERROR and in a refusal: %s', async (status, words) => {
    const line = `{"type":"ERROR","object":${status}}`;
    const url = await serve((request, response) => {
      response.setHeader('content-type', 'application/json');
      if (request.url === '/no') response.writeHead(403).end(status);
      else response.end(`${line}\n`);
    });
    const watching = run('watch', url);
    expect(await watching.exit).toBe(1);
    expect(watching.out()).toBe(`${line}\n`);
    expect(watching.err()).toBe(`watchmux watch: the stream ended with an error: ${words}\n`);
    const refused = run('watch', `${url}/no`);
    expect(await refused.exit).toBe(1);
    expect(refused.err()).toBe(`watchmux watch: ${url}/no answered 403: ${words}\n`);
  });

  test('an unreachable server is one line and exit code 1', async () => {
    const free = createRawServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => free.once('listening', resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const watching = run('watch', `127.0.0.1:${port}`);
    expect(await watching.exit).toBe(1);
    expect(watching.err()).toMatch(/^watchmux watch: cannot connect to http:\/\/127\.0\.0\.1:\d+\/watch: [^\n]+\n$/);
  });

  test('a connection that breaks is not a regular end: exit code 1', async () => {
    const url = await serve((_request, response) => {
      response.setHeader('content-type', 'application/json').write('{"type":"A","object":1}\n', () => response.destroy());
    });
    const watching = run('watch', url);
    expect(await watching.exit).toBe(1);
    expect(watching.out()).toBe('{"type":"A","object":1}\n');
    expect(watching.err()).toBe('watchmux watch: the connection broke\n');
  });

  test('ends quietly when the reader of its output has ended', async () => {
    const url = await serve((_request, response) => {
      response.setHeader('content-type', 'application/json');
      const more = (): void => {
        while (!response.destroyed && response.write(`{"type":"A","object":"${'x'.repeat(1_000)}"}\n`)) {}
      };
      response.on('drain', more);
      more();
    });
    const watching = run('watch', url);
    await until(() => watching.out().length > 100_000);
    watching.child.stdout.destroy();
    expect(await watching.exit).toBe(0);
    expect(watching.err()).toBe('');
  });

  test('reads as fast as its output is read, and with wait the server does, too', async () => {
    const server = await pipe('--overflow', 'wait', '--capacity', '10');
    const watching = run('watch', server.url);
    watching.child.stdout.pause();
    await until(async () => (await server.stats()).clients.length === 1);
    const filler = 'x'.repeat(10_000);
    for (let i = 0; i < 3_000; i++) server.write({ i, filler });
    server.child.stdin.end();
    await until(async () => (await server.stats()).clients[0]?.queued);
    watching.child.stdout.resume();
    expect(await watching.exit).toBe(0);
    const got = watching
      .out()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).object.i);
    expect(got).toEqual(Array.from({ length: 3_000 }, (_, i) => i));
    expect(await server.exit).toBe(0);
  });
});

describe('watchmux watch with a connection that breaks', () => {
  const event = (sequence: number): string => `{"type":"A","object":${sequence}.0,"resourceVersion":"e.${sequence}"}\n`;

  /** Serves events after the version that was asked for, two per connection, and breaks it. */
  function breaking(asked: (string | null)[], end: (response: ServerResponse, from: number) => boolean): RequestListener {
    return (request, response) => {
      const version = new URL(request.url ?? '', 'http://h').searchParams.get('resourceVersion');
      const from = Number(version?.slice(2) ?? 0);
      asked.push(version);
      if (end(response, from)) return;
      response.setHeader('content-type', 'application/json');
      response.write(event(from + 1) + event(from + 2), () => setTimeout(() => response.destroy(), 20));
    };
  }

  test('resumes: every line once, as it was sent, and the breaks on stderr', async () => {
    const asked: (string | null)[] = [];
    const listener = breaking(asked, (response, from) => {
      if (from >= 6) response.setHeader('content-type', 'application/json').end();
      return from >= 6;
    });
    const watching = run('watch', await serve(listener));
    expect(await watching.exit).toBe(0);
    expect(asked).toEqual([null, 'e.2', 'e.4', 'e.6']);
    expect(watching.out()).toBe([1, 2, 3, 4, 5, 6].map(event).join(''));
    expect(watching.err()).toMatch(/^(watchmux watch: [^\n]+; retrying in \d\.\d s\n){3}$/);
  });

  test('prints the ERROR of a server that cannot resume, exit code 1', async () => {
    const status = JSON.stringify({ kind: 'Status', status: 'Failure', code: 410, reason: 'Expired', message: 'too old' });
    const listener = breaking([], (response, from) => {
      if (from > 0) response.writeHead(410, { 'content-type': 'application/json' }).end(status);
      return from > 0;
    });
    const watching = run('watch', await serve(listener));
    expect(await watching.exit).toBe(1);
    expect(watching.out()).toBe(`${event(1)}${event(2)}{"type":"ERROR","object":${status}}\n`);
    expect(watching.err()).toMatch(/watchmux watch: the stream ended with an error: too old\n$/);
  });

  test.each(['http', 'sse', 'websocket'])('over %s, a departing server is not the end of the stream', async (transport) => {
    const first = await pipe(...(await atFreePort()));
    const watching = run('watch', first.url, '--transport', transport);
    await until(async () => (await first.stats()).clients.length === 1);
    first.child.stdin.write('1\n');
    await until(() => watching.out() !== '');
    first.child.kill('SIGTERM');
    expect(await first.exit).toBe(0);
    await until(() => watching.err().includes('retrying in'));
    // It comes back as another life of the stream.
    const second = await pipe('--port', new URL(first.url).port);
    expect(await watching.exit).toBe(1);
    expect(watching.out().trimEnd().split('\n')).toEqual([
      expect.stringContaining('"object":1'),
      expect.stringContaining('"code":410'),
    ]);
    second.child.stdin.end();
  });

  test('--no-reconnect: a break is the end, exit code 1; --resume starts after a version', async () => {
    const asked: (string | null)[] = [];
    const watching = run('watch', await serve(breaking(asked, () => false)), '--no-reconnect', '--resume', 'e.7');
    expect(await watching.exit).toBe(1);
    expect(asked).toEqual(['e.7']);
    expect(watching.out()).toBe(event(8) + event(9));
    expect(watching.err()).toBe('watchmux watch: the connection broke\n');
  });

  test.each(['sse', 'websocket'])('--transport %s gets what pipe serves', async (transport) => {
    const server = await pipe();
    const watching = run('watch', server.url, '--transport', transport);
    await until(async () => (await server.stats()).clients.length === 1);
    expect((await server.stats()).clients[0]?.transport).toBe(transport);
    server.child.stdin.end('{"type":"X", "object":12345678901234567890}\n');
    expect(await watching.exit).toBe(0);
    expect(watching.out()).toMatch(/^\{"type":"X", "object":12345678901234567890,"resourceVersion":"\w+\.1"\}\n$/);
    expect(watching.err()).toBe('');
  });
});

describe('the command line', () => {
  test('--version, --help and help per command go to stdout, exit 0', async () => {
    const version = run('--version');
    expect(await version.exit).toBe(0);
    expect(version.out()).toMatch(/^\d+\.\d+\.\d+\n$/);
    for (const args of [['--help'], ['help', 'demo'], ['pipe', '--help'], ['watch', '-h'], ['demo', '--help']]) {
      const help = run(...args);
      expect(await help.exit).toBe(0);
      expect(help.out()).toContain('Usage');
      expect(help.err()).toBe('');
    }
  });

  test.each([[['frob']], [[]], [['watch']], [['watch', 'ftp://x']], [['pipe', '--frob']]])(
    '%j is one line and exit code 2',
    async (args) => {
      const refused = run(...args);
      expect(await refused.exit).toBe(2);
      expect(refused.err()).toMatch(/^watchmux[^\n]+\n$/);
      expect(refused.out()).toBe('');
    },
  );

  test('help that is not read to its end is no crash', async () => {
    const help = run('--help');
    help.child.stdout.destroy();
    expect(await help.exit).toBe(0);
    expect(help.err()).toBe('');
  });
});
