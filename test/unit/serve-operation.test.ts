// What `watchmux serve` says on stderr, and whom its tokens let in.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Health } from '../../src/apiserver/index.ts';
import { parseCommand } from '../../src/cli/args.ts';
import { LogDigest, type LogFields, type LogFormat, ServeLog } from '../../src/cli/serve/log.ts';
import { Tokens, toTokens } from '../../src/cli/serve/reload.ts';
import type { ServeCommand } from '../../src/cli/serve/serve-args.ts';
import { HealthMonitor, ServeEvents } from '../../src/cli/serve/serve-events.ts';
import { UsageError } from '../../src/cli/usage.ts';
import { FakeClock } from '../../src/testing/index.ts';

function logTo(format: LogFormat = 'text'): { log: ServeLog; lines: string[]; output: { writableLength: number } } {
  const lines: string[] = [];
  const output = { writableLength: 0, write: (text: string) => lines.push(text) };
  return { log: new ServeLog({ format, output, now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678) }), lines, output };
}

describe('a log', () => {
  test('as text: the event, and what is known of it', () => {
    const { log, lines } = logTo();
    log.info('listening', { url: 'http://127.0.0.1:8080', metrics: undefined });
    log.warn('refused', { count: 3, codes: '429:3', path: '/a b', empty: '' });
    expect(lines).toEqual([
      'watchmux serve: listening url=http://127.0.0.1:8080\n',
      'watchmux serve: refused count=3 codes=429:3 path="/a b" empty=""\n',
    ]);
  });

  test('as JSON: one object per line, with the time', () => {
    const { log, lines } = logTo('json');
    log.error('storage-lost', { error: 'connect "x"' });
    expect(lines).toEqual([
      '{"time":"2026-01-02T03:04:05.678Z","level":"error","event":"storage-lost","error":"connect \\"x\\""}\n',
    ]);
  });

  test.each(['text', 'json'] as const)('as %s: what a client sends makes no line, no colour, and no long one', (format) => {
    const { log, lines } = logTo(format);
    log.info('refused', { path: `/a\nwatchmux serve: ready\u001b[31m\u2028${'x'.repeat(10_000)}` });
    expect(lines.join('').match(/\n/g)).toHaveLength(1);
    for (const character of ['\u001b', '\u2028']) expect(lines.join('')).not.toContain(character);
    expect(lines.join('').length).toBeLessThan(1_200);
  });

  test('nobody reads it: nothing is kept, and how much was lost is told later', () => {
    const { log, lines, output } = logTo();
    output.writableLength = 65_536;
    for (let at = 0; at < 5; at++) log.info('refused');
    expect(lines).toEqual([]);
    output.writableLength = 0;
    log.info('ready');
    expect(lines).toEqual(['watchmux serve: log-lines-lost count=5\n', 'watchmux serve: ready\n']);
  });
});

describe('a digest', () => {
  function digest(): { digest: LogDigest; clock: FakeClock; told: LogFields[] } {
    const clock = new FakeClock();
    const told: LogFields[] = [];
    return { digest: new LogDigest({ keys: 'codes', clock, tell: (fields) => told.push(fields) }), clock, told };
  }

  test('tells the first at once, and the others once per second', () => {
    const { digest: refused, clock, told } = digest();
    refused.add('429', { path: '/a' });
    for (let at = 0; at < 100; at++) refused.add(at % 4 === 0 ? '401' : '429', { path: `/${at}` });
    expect(told).toEqual([{ count: 1, codes: '429:1', path: '/a' }]);
    clock.advance(1_000);
    expect(told[1]).toEqual({ count: 100, codes: '401:25,429:75', path: '/99' });
    clock.advance(1_000);
    expect([told.length, clock.pending]).toEqual([2, 0]);
    refused.add('429', {});
    expect(told).toHaveLength(3);
  });

  test('has a bounded number of keys, and at its end tells what is left', () => {
    const { digest: failed, clock, told } = digest();
    for (let at = 0; at < 1_000; at++) failed.add(`Error${at}`, {});
    failed.end();
    expect(String(told[1]?.codes).split(',')).toHaveLength(21);
    expect(String(told[1]?.codes)).toContain('other:979');
    expect(clock.pending).toBe(0);
  });
});

describe('a health monitor', () => {
  const ok: Health = { ready: true, checks: [{ name: 'storage', ok: true }] };
  const lost: Health = { ready: false, checks: [{ name: 'storage', ok: false, error: new Error('connect ECONNREFUSED') }] };
  const stale = { name: 'cache/configmaps', ok: false, error: new Error('410') };

  test('has a line for each change, and none for what stays', async () => {
    const clock = new FakeClock();
    const { log, lines } = logTo();
    let health: Health = { ready: false, checks: [{ name: 'start', ok: false }] };
    const monitor = new HealthMonitor({ health: async () => health, log, clock });
    const turn = async (next: Health): Promise<void> => {
      await new Promise((resolve) => setImmediate(resolve));
      health = next;
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    };
    for (const next of [ok, ok, lost, lost, { ...lost, checks: [...lost.checks, stale] }, ok]) await turn(next);
    monitor.end();
    expect(lines.map((line) => line.slice('watchmux serve: '.length, -1))).toEqual([
      'ready',
      'storage-lost error="connect ECONNREFUSED"',
      'not-ready checks=storage reason="connect ECONNREFUSED"',
      'not-ready checks="storage,cache/configmaps" reason="connect ECONNREFUSED"',
      'storage-back afterMs=3000',
      'ready',
    ]);
    expect(clock.pending).toBe(0);
  });
});

describe('events of a server', () => {
  test('refusals, cuts and errors have a line; what was answered has none', () => {
    const clock = new FakeClock();
    const { log, lines } = logTo();
    const events = new ServeEvents(log, clock);
    const about = { path: '/api/v1/configmaps', address: '10.0.0.1', durationMs: 1.5 };
    for (const code of [200, 404, 409, 429, 401]) events.hooks.onRequest?.({ ...about, method: 'GET', code });
    events.hooks.onCut?.({ ...about, verb: 'watch', reason: 'stalled' });
    events.hooks.onError?.(new TypeError('broken'));
    events.end();
    expect(lines).toEqual([
      'watchmux serve: refused count=1 codes=429:1 method=GET path=/api/v1/configmaps address=10.0.0.1\n',
      'watchmux serve: client-cut count=1 reasons=stalled:1 verb=watch path=/api/v1/configmaps address=10.0.0.1 durationMs=2\n',
      'watchmux serve: error count=1 kinds=TypeError:1 error=broken\n',
      'watchmux serve: refused count=1 codes=401:1 method=GET path=/api/v1/configmaps address=10.0.0.1\n',
    ]);
    expect(clock.pending).toBe(0);
  });

  test('probes that are refused have none: not-ready says it once, and why', () => {
    const { log, lines } = logTo();
    const events = new ServeEvents(log, new FakeClock());
    const about = { address: '10.0.0.1', durationMs: 1, method: 'GET', code: 503 };
    for (const path of ['/readyz', '/readyz/storage', '/healthz', '/livez']) events.hooks.onRequest?.({ ...about, path });
    expect(lines).toEqual([]);
    events.hooks.onRequest?.({ ...about, path: '/readyzes' });
    events.end();
    expect(lines).toHaveLength(1);
  });
});

test('a start says where everything is, and no secret', () => {
  const { log, lines } = logTo();
  const args = (query: string): string[] => ['--etcd', `http://root:hunter2@127.0.0.1:2379/${query}`, '--token', 'hunter2'];
  const command = parseCommand(['serve', ...args(''), '--token-file', 'f']) as ServeCommand;
  new ServeEvents(log, new FakeClock()).started(command, 12);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(
    /^watchmux serve: start version=\S+ pid=\d+ storage=etcd etcd=http:\/\/127\.0\.0\.1:2379 prefix=\/watchmux\/ /,
  );
  expect(lines[0]).toContain(' resources=12 ');
  expect(lines[0]).not.toContain('hunter2');
  expect(() => parseCommand(['serve', ...args('?x=hunter2')])).toThrow(
    new UsageError('--etcd takes a URL without a path and a query: expected http://127.0.0.1:2379', 'serve'),
  );
});

describe('tokens', () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-tokens-'));
  const file = join(folder, 'tokens');
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const readTokens = (tokenFile: string): Tokens => (toTokens({ tokenFile, token: undefined }) as { value: Tokens }).value;

  test('of a file: each has the name of its tenant', () => {
    writeFileSync(file, '# ours\nsecret-1 ada\n\n  secret-2   team:b  # rotated\nsecret-3 ada\n');
    const tokens = readTokens(file);
    expect(tokens.nameOf('secret-1')).toBe('ada');
    expect(tokens.nameOf('secret-2')).toBe('team:b');
    expect(tokens.nameOf('secret-3')).toBe('ada');
    for (const wrong of ['', 'secret-4', 'secret-1 x', '#']) expect(tokens.nameOf(wrong)).toBeUndefined();
    expect(JSON.stringify([...(tokens as unknown as { names: Map<string, string> }).names])).not.toContain('secret');
  });

  test.each([
    ['secret-1', 'line 1 is not a token'],
    ['secret-1 ada x', 'line 1 is not a token'],
    ['secret-1 ada\nsecret-2 a/b', 'line 2 is not a token'],
    ['# nothing', 'there is no token in it'],
  ])('a file with %j is refused, and the message shows no token', (text, message) => {
    writeFileSync(file, text);
    expect(() => readTokens(file)).toThrow(`watchmux serve: --token-file: ${message}`);
    expect(() => readTokens(file)).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret') }));
  });

  test('no file, no token', () => {
    expect(() => readTokens(join(folder, 'none'))).toThrow('watchmux serve: --token-file: ENOENT');
    expect(new Tokens().nameOf('x')).toBeUndefined();
  });
});
