// The HTTPS server of webhooks: certificates that change, clients with certificates, connections, and its end.
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { Agent, request as httpsRequest, type RequestOptions, type Server } from 'node:https';
import { connect as connectPlainly, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebhookServer, type WebhookServerOptions, type Webhooks } from '../../src/operator/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { eventually } from '../eventually.ts';
import { type Certified, certify } from './certificates.ts';

const EVERY_MS = 5_000;

let folder: string;
let generation = 0;
const stops: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watchmux-webhooks-'));
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  rmSync(folder, { recursive: true, force: true });
});

const at = (name: string): string => join(folder, name);

/** Replaces the pair as the kubelet does: `tls.crt` is a link to `..data/tls.crt`, and `..data` one to a folder, which is swapped. */
function mount({ cert, key }: Certified): { certFile: string; keyFile: string } {
  const data = `..${++generation}`;
  mkdirSync(at(data));
  writeFileSync(join(folder, data, 'tls.crt'), cert);
  writeFileSync(join(folder, data, 'tls.key'), key);
  symlinkSync(data, at('..data_tmp'));
  renameSync(at('..data_tmp'), at('..data'));
  for (const name of ['tls.crt', 'tls.key']) {
    try {
      symlinkSync(join('..data', name), at(name));
    } catch {
      // It is there already.
    }
  }
  return { certFile: at('tls.crt'), keyFile: at('tls.key') };
}

interface Running {
  readonly server: WebhookServer;
  readonly url: string;
  readonly clock: FakeClock;
  readonly errors: Error[];
  readonly stop: () => Promise<void>;
}

const hello: Webhooks['handler'] = (_, response) => void response.end('hello');

async function running(
  options: Pick<WebhookServerOptions, 'certFile' | 'keyFile'> & Partial<WebhookServerOptions>,
  handler: Webhooks['handler'] = hello,
): Promise<Running> {
  const clock = new FakeClock();
  const errors: Error[] = [];
  const onError = (error: unknown): void => void errors.push(error as Error);
  const server = new WebhookServer({ webhooks: { handler }, host: '127.0.0.1', port: 0, clock, onError, ...options });
  const abort = new AbortController();
  const ended = server.run(abort.signal);
  const stop = (): Promise<void> => {
    abort.abort();
    return ended;
  };
  stops.push(() => {
    const stopped = stop();
    clock.advance(60_000);
    return stopped;
  });
  return { server, url: await server.ready, clock, errors, stop };
}

/** Asks on a new connection. Resolves with the answer and the server's certificate. */
function ask(url: string, options: RequestOptions): Promise<{ text: string; raw: string }> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(url, { agent: false, ...options }, (response) => {
      const raw = (response.socket as TLSSocket).getPeerCertificate().raw.toString('base64');
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ text, raw }));
    });
    request.on('error', reject);
    request.end();
  });
}

const rawOf = ({ cert }: Certified): string => cert.replace(/-----[A-Z ]+-----|\s/g, '');

describe('certificates', () => {
  test('are read again when they change; one that does not fit its key is told once, and not used', async () => {
    const [first, second] = [certify(), certify()];
    const files = mount(first.server);
    const { url, clock, errors } = await running(files);
    const check = async (by: typeof first): Promise<void> => {
      expect(await ask(url, { ca: by.ca })).toEqual({ text: 'hello', raw: rawOf(by.server) });
    };
    /** Until the files have been read: what is replaced while they are read may be seen in part. */
    const read = (): Promise<void> => eventually(() => expect(clock.pending).toBe(1));
    await check(first);

    mount(second.server);
    await check(first);
    clock.advance(EVERY_MS);
    await eventually(() => check(second));
    await expect(ask(url, { ca: first.ca })).rejects.toThrow(/certificate/);
    await read();

    mount({ cert: first.server.cert, key: second.server.key });
    for (let count = 1; count <= 3; count++) {
      clock.advance(EVERY_MS);
      await read();
    }
    await eventually(() => expect(errors.map(({ message }) => message)).toEqual([expect.stringMatching(/^certFile, keyFile: /)]));
    await check(second);

    unlinkSync(files.keyFile);
    clock.advance(EVERY_MS);
    await read();
    await eventually(() => expect(errors[1]?.message).toMatch(/^keyFile: ENOENT/));
    await check(second);

    mount(first.server);
    clock.advance(EVERY_MS);
    await eventually(() => check(first));
    expect(errors).toHaveLength(2);
  });

  test('that cannot be used at the start are refused', () => {
    const [one, other] = [certify(), certify()];
    const webhooks = { handler: hello };
    const create = (files: { certFile: string; keyFile: string }): WebhookServer => new WebhookServer({ webhooks, ...files });
    expect(() => create({ certFile: at('none'), keyFile: at('none') })).toThrow(/certFile: ENOENT/);
    const files = mount({ cert: one.server.cert, key: other.server.key });
    expect(() => create(files)).toThrow(/certFile, keyFile: /);
    expect(() => create({ ...files, keyFile: files.certFile })).toThrow(/certFile, keyFile: /);
    writeFileSync(at('text'), 'text');
    expect(() => create({ ...files, certFile: at('text') })).toThrow(/certFile: .*text is not in PEM/);
  });

  test('of clients are demanded, and their authority may change', async () => {
    const [trusted, other] = [certify(), certify()];
    writeFileSync(at('ca.crt'), trusted.ca);
    const { url, clock } = await running({ ...mount(trusted.server), clientCaFile: at('ca.crt') });
    const asked = (by: typeof trusted, own = true): Promise<unknown> =>
      ask(url, { ca: trusted.ca, ...(own && by.client('api')) });
    await expect(asked(trusted)).resolves.toMatchObject({ text: 'hello' });
    await expect(asked(other)).rejects.toThrow();
    await expect(asked(trusted, false)).rejects.toThrow();
    writeFileSync(at('ca.crt'), other.ca);
    clock.advance(EVERY_MS);
    await eventually(() => expect(asked(other)).resolves.toMatchObject({ text: 'hello' }));
    await expect(asked(trusted)).rejects.toThrow();
  });
});

test('one address has so many connections: further ones are closed, and another address has its own', async () => {
  const { ca, server } = certify();
  const { url } = await running(mount(server));
  const port = Number(new URL(url).port);
  let closed = 0;
  const opened = Array.from({ length: 1_001 }, () => {
    const socket = connectPlainly({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => {});
    socket.resume().on('close', () => closed++);
    return socket;
  });
  await Promise.all(opened.map((socket) => once(socket, 'connect')));
  await eventually(() => expect(closed).toBe(1));
  expect((await ask(url, { ca })).text).toBe('hello');
  for (const socket of opened) socket.destroy();
});

describe('the end', () => {
  test('running requests are answered, and their connections closed; nothing is left', async () => {
    const { ca, server } = certify();
    const answers: (() => void)[] = [];
    const run = await running(mount(server), (_, response) => void answers.push(() => response.end('late')));
    const [idle, silent] = await Promise.all([opened(run.url, ca), opened(run.url, ca)]);
    const closed = [idle, silent].map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    idle.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n');
    await eventually(() => expect(answers).toHaveLength(1));
    answers[0]?.();
    await once(idle, 'data');
    const agent = new Agent({ keepAlive: true });
    const asked = ask(run.url, { ca, agent });
    await eventually(() => expect(answers).toHaveLength(2));
    const stopped = run.stop();
    await Promise.all(closed);
    answers[1]?.();
    expect((await asked).text).toBe('late');
    await stopped;
    expect([run.errors, run.clock.pending]).toEqual([[], 0]);
    await expect(ask(run.url, { ca })).rejects.toThrow(/ECONNREFUSED/);
    agent.destroy();
  });

  test('what is not answered in time is cut, and told', async () => {
    const { ca, server } = certify();
    let count = 0;
    const run = await running({ ...mount(server), shutdownTimeoutMs: 3_000 }, () => void count++);
    const asked = Promise.allSettled([ask(run.url, { ca }), ask(run.url, { ca })]);
    await eventually(() => expect(count).toBe(2));
    const stopped = run.stop();
    await eventually(() => expect(run.clock.pending).toBe(1));
    run.clock.advance(3_000);
    await stopped;
    expect(run.errors.map(({ message }) => message)).toEqual(['gave up after 3000 ms on 2 requests']);
    expect((await asked).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  test('may be before the start; and there is one start', async () => {
    const { server } = certify();
    const own = new WebhookServer({ webhooks: { handler: hello }, ...mount(server), port: 0 });
    await own.run(AbortSignal.abort());
    await expect(own.ready).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(own.run()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('is not that of a connection that cannot be accepted, which is told', async () => {
    const { ca, server } = certify();
    const { url, errors, stop } = await running(mount(server), ({ socket }, response) => {
      (socket as unknown as { server: Server }).server.emit('error', new Error('accept EMFILE'));
      response.end('hello');
    });
    for (let i = 0; i < 2; i++) expect((await ask(url, { ca })).text).toBe('hello');
    expect(errors.map(({ message }) => message)).toEqual(['accept EMFILE', 'accept EMFILE']);
    await stop();
  });

  test('a port that is taken ends it', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => void taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as { port: number };
    const own = new WebhookServer({ webhooks: { handler: hello }, ...mount(certify().server), host: '127.0.0.1', port });
    await expect(own.run()).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await expect(own.ready).rejects.toMatchObject({ code: 'EADDRINUSE' });
    taken.close();
  });
});

/** A connection without a request. */
async function opened(url: string, ca: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca });
  await new Promise((resolve) => socket.once('secureConnect', resolve));
  return socket.on('error', () => {}).resume();
}
