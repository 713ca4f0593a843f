// The built package serves webhooks over HTTPS on Node, Bun and Deno: certificates that are replaced while it runs are in use soon after,
// and SIGTERM lets what is under way come to its end.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Certified, certify } from '../unit/certificates.ts';
import { until } from './cli.ts';
import { endAll, NODE, RUNTIMES, type Started } from './runtimes.ts';

const PROGRAM = 'test/runtimes/webhooks.mjs';
const [first, second] = [certify(), certify()];

afterAll(endAll);

interface Answer {
  readonly allowed: boolean;
  readonly patch?: string;
  readonly status?: { readonly message: string };
}

/** Sends a review on a new connection, by a client that trusts this authority. */
function review(port: number, path: string, name: string, ca: string): Promise<Answer> {
  const resource = { group: 'example.com', version: 'v1', resource: 'websites' };
  const body = JSON.stringify({
    ...{ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' },
    request: { uid: '1', operation: 'CREATE', resource, name, object: { spec: {} } },
  });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method: 'POST', headers, ca, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve((JSON.parse(text) as { response: Answer }).response));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

describe.each([NODE, ...RUNTIMES])('$name', ({ missing, start }) => {
  const test = it.skipIf(missing);
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-webhooks-'));
  const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  let started: Started;
  let port = 0;

  function put({ cert, key }: Certified): void {
    for (const [file, content] of [
      [certFile, cert],
      [keyFile, key],
    ] as const) {
      writeFileSync(`${file}.new`, content);
      renameSync(`${file}.new`, file);
    }
  }

  beforeAll(async () => {
    if (missing) return;
    put(first.server);
    started = start(PROGRAM, certFile, keyFile);
    await until(() => started.out().includes('\n') || started.child.exitCode !== null);
    if (started.child.exitCode !== null) throw new Error(`not listening: ${(await started.ended)[1]}`);
    port = Number(started.out());
  });

  afterAll(() => {
    started?.child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  test('answers reviews', async () => {
    const { patch = '' } = await review(port, '/mutate', 'good', first.ca);
    expect(JSON.parse(atob(patch))).toEqual([{ op: 'add', path: '/spec/replicas', value: 1 }]);
    expect(await review(port, '/validate', 'bad', first.ca)).toMatchObject({ allowed: false, status: { message: 'not this' } });
  });

  test('takes new certificates, also while a request is under way, and ends in order', async () => {
    const slow = review(port, '/validate', 'slow', first.ca);
    await until(() => started.out().includes('waits'));
    put(second.server);
    await eventually(async () => expect(await review(port, '/validate', 'good', second.ca)).toMatchObject({ allowed: true }));
    await expect(review(port, '/validate', 'good', first.ca)).rejects.toThrow();
    started.child.kill('SIGTERM');
    expect(await slow).toMatchObject({ allowed: true });
    expect(await started.ended).toEqual([0, expect.stringMatching(/ended\n$/)]);
  });
});
