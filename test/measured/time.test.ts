// What input costs in time. Nothing runs beside these tests. The control is the same with a quarter of the input: what takes the time
// of its square takes sixteen times as long.
import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import ts from 'typescript';
import { afterAll, describe, expect, test } from 'vitest';
import { duplicateFields } from '../../src/apiserver/request/json.ts';
import type { Backend, Change } from '../../src/storage/backend.ts';
import { BackedStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { atOnce, FairQueue } from '../../src/watch/fair-queue.ts';
import { httpStream, killAll, pipe, until } from '../e2e/cli.ts';
import { type Block, PROGRAMS, ROOT } from '../e2e/documents.mjs';
import { ORDERS_PATH, rig } from '../unit/apiserver-rig.ts';

afterAll(killAll);

/** The fastest of three. */
async function fastestMs(run: () => unknown): Promise<number> {
  let fastest = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) {
    const begun = performance.now();
    await run();
    fastest = Math.min(fastest, performance.now() - begun);
  }
  return fastest;
}

/** How long it takes, and how often the time of a quarter that is. Times below a millisecond say nothing. */
async function measured(size: number, run: (size: number) => unknown): Promise<{ ms: number; timesQuarter: number }> {
  await run(size); // compiled
  const quarter = await fastestMs(() => run(size / 4));
  const ms = await fastestMs(() => run(size));
  return { ms, timesQuarter: ms / Math.max(1, quarter) };
}

test('an update of many finalizers takes no time of their square', async () => {
  const { call } = rig();
  const finalizers = (of: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${of}${at}`);
  let n = 0;
  const update = async (count: number): Promise<void> => {
    const name = `a${n++}`;
    expect((await call('POST', ORDERS_PATH, { metadata: { name, finalizers: finalizers('a', count) } })).code).toBe(201);
    expect((await call('PUT', `${ORDERS_PATH}/${name}`, { metadata: { name, finalizers: finalizers('b', count) } })).code).toBe(
      200,
    );
  };
  const { ms, timesQuarter } = await measured(50_000, update);
  expect(ms).toBeLessThan(4_000);
  expect(timesQuarter).toBeLessThan(10);
});

test('duplicate fields in three megabytes are searched in one pass', async () => {
  const wide = (count: number): string => `{"a":1,"a":2,"x":{${Array.from({ length: count }, (_, at) => `"${at}":1`).join()}}}`;
  const deep = (count: number): string =>
    `${'{"a":'.repeat(100)}{${Array.from({ length: count }, () => '"b":1').join()}}${'}'.repeat(100)}`;
  const inWide = await measured(250_000, (size) => expect(atOnce(duplicateFields(wide(size))).told).toEqual(['a']));
  const inDeep = await measured(100_000, (size) =>
    expect(atOnce(duplicateFields(deep(size))).told).toEqual([`${'a.'.repeat(100)}b`]),
  );
  // Milliseconds; in squares of the length it would be minutes.
  expect(inWide.ms + inDeep.ms).toBeLessThan(10_000);
  expect([inWide, inDeep].filter(({ timesQuarter }) => timesQuarter >= 10)).toEqual([]);
});

test('however many addresses and tenants wait for their turn, to find the next one takes no time of their number', async () => {
  const served = async (addresses: number, tenants: number): Promise<void> => {
    const turns: (() => void)[] = [];
    const queue = new FairQueue({ now: () => clock.now(), turn: (callback) => void turns.push(callback) });
    const clock = new FakeClock();
    queue.turn({ tenant: '', address: '' });
    clock.advance(10);
    for (let at = 0; at < addresses * tenants; at++) {
      void queue.turn({ tenant: `${at % tenants}`, address: `${Math.floor(at / tenants)}` });
    }
    for (let turn = turns.shift(); turn; turn = turns.shift()) turn();
    expect(queue.size).toBe(0);
  };
  expect((await measured(4_000, (size) => served(size, 1))).timesQuarter).toBeLessThan(10);
  expect((await measured(4_000, (size) => served(1, size))).timesQuarter).toBeLessThan(10);
});

test('a watch that is stopped in the middle of a revision delivers the rest of it in the time of its length', async () => {
  const change = (at: number): Change<never> => {
    const object = { metadata: { name: `a${at}`, resourceVersion: '8' } } as never;
    return { type: 'ADDED', key: `a${at}`, revision: '8', object, previous: undefined };
  };
  const read = async (count: number): Promise<void> => {
    const batches = [{ changes: Array.from({ length: count }, (_, at) => change(at)) }];
    const changes = { open: async () => {}, next: async () => batches.pop(), poll: () => undefined, close: () => {} };
    const storage = new BackedStorage({ changesAfter: () => changes, close: async () => {} } as unknown as Backend);
    const watch = await storage.watch({ resourceVersion: '7' });
    let left = count - 1;
    await watch.next();
    watch.stop();
    for await (const _ of watch) left--;
    expect(left).toBe(0);
    await storage.close();
  };
  expect((await measured(100_000, read)).timesQuarter).toBeLessThan(10);
});

test('the test of docs/operators.md takes less than 300 ms', () => {
  const isExample = ({ page, heading }: Block): boolean => page === 'docs/operators.md' && heading === 'Test an operator';
  const { code = '', prints } = PROGRAMS.find(isExample) ?? {};
  const body = code.slice(code.indexOf('\n\n'));
  const timed = `${code.slice(0, -body.length)}
    for (let round = 0; round < 3; round++) {
      const begun = performance.now();
      await (async () => {${body}})();
      console.log(performance.now() - begun, 'ms');
    }`;
  const module = ts.transpile(timed, { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext });
  const args = ['--input-type=module', '--eval', module];
  const printed = execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } });
  const times = Array.from(printed.matchAll(/^(.*) ms\n/gm), ([, ms]) => Number(ms));
  expect(printed.replace(/^.* ms\n/gm, '')).toBe(prints?.repeat(3));
  expect(Math.min(...times)).toBeLessThan(300);
});

describe('64 KB of requests in one pipeline', () => {
  const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;

  test.each(['/stats', '/metrics', '/', '/nothing'])('block nobody, for %s', async (path) => {
    const server = await pipe();
    const clients = [];
    for (let at = 0; at < 100; at++) clients.push(await httpStream(server.url));
    const [witness] = clients;
    /** Until an event reaches a client that was published when these requests had been answered or refused. */
    const takes = async (requests: number): Promise<void> => {
      const before = witness?.texts.length ?? 0;
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1').resume();
      socket.on('error', () => {});
      await new Promise((resolve) => socket.once('connect', resolve));
      socket.end(ask(path).repeat(requests));
      await until(() => socket.closed);
      server.write('after');
      await until(() => witness?.texts.length === before + 1);
    };
    await takes(1);
    const eight = await fastestMs(() => takes(8));
    const many = await fastestMs(() => takes(Math.floor(65_536 / ask(path).length)));
    expect(many).toBeLessThan(500);
    expect(many).toBeLessThan(10 * eight + 100);
    for (const client of clients) client.close();
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
  });
});
