// Measures what one client can do to another: a server, a hostile client and an honest one, each in a process of its own. Nothing runs
// beside these tests. The attacks are in attacks.mjs.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { Agent, get } from 'node:http';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hear, until } from '../../e2e/cli.ts';
import { ATTACKS } from './attacks.mjs';

/** How often the honest client asks, on how many connections: a server that stands still keeps all of them waiting. */
const SAMPLES = 100;
const CONNECTIONS = 2;

/** What the honest client may wait longer than without an attack, in ms. */
export interface Bounds {
  /** For a small object: of a hundred requests, one may take longer. */
  readonly getMs: number;
  /** For the server's health, as a load balancer looks at it: at most. */
  readonly livezMs: number;
}

const children = new Set<ChildProcessWithoutNullStreams>();

function start(
  script: string,
  ...args: string[]
): { child: ChildProcessWithoutNullStreams; out: () => string; err: () => string } {
  const child = spawn(process.execPath, [fileURLToPath(new URL(`./${script}`, import.meta.url)), ...args]);
  children.add(child);
  child.on('close', () => children.delete(child));
  return { child, ...hear(child) };
}

/** An honest client. */
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
const health = new Agent({ keepAlive: true, maxSockets: 1 });

function takes(port: number, path: string, of: Agent): Promise<number> {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { authorization: 'Bearer alice' };
    get({ host: '127.0.0.1', port, path, agent: of, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`));
      response.resume().on('end', () => resolve(performance.now() - begun));
    }).on('error', reject);
  });
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

/** Milliseconds of an honest client's requests, sorted. */
async function sampled(port: number): Promise<{ gets: number[]; livez: number[] }> {
  const [gets, livez]: [number[], number[]] = [[], []];
  const look = async (): Promise<void> => {
    while (gets.length < SAMPLES) {
      livez.push(await takes(port, '/livez', health));
      await pause(25);
    }
  };
  const ask = async (): Promise<void> => {
    for (let at = 0; at < SAMPLES / CONNECTIONS; at++) {
      gets.push(await takes(port, '/apis/example.com/v1/namespaces/small/orders/order-0', agent));
      await pause(3);
    }
  };
  await Promise.all([look(), ...Array.from({ length: CONNECTIONS }, ask)]);
  const sorted = (all: number[]): number[] => all.sort((one, other) => one - other);
  return { gets: sorted(gets), livez: sorted(livez) };
}

/** Measures each of these attacks, in tests of their names. */
export function measureBeside(attacks: readonly (typeof ATTACKS)[number][], { getMs, livezMs }: Bounds): void {
  let server: ReturnType<typeof start>;
  let port = 0;
  /** What it takes without an attack: next to nothing, if nothing runs beside this. */
  let control: Awaited<ReturnType<typeof sampled>>;
  const at50 = (sorted: readonly number[]): number => Math.round(sorted[sorted.length >> 1] ?? 0);
  const at99 = (sorted: readonly number[]): number => Math.round(sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0);

  afterAll(() => {
    for (const child of children) child.kill('SIGKILL');
  });

  beforeAll(async () => {
    server = start('server.mjs');
    await until(() => /listening on \d+/.test(server.out()) || server.child.exitCode !== null);
    port = Number(/listening on (\d+)/.exec(server.out())?.[1]);
    expect(port, server.err()).toBeGreaterThan(0);
    control = await sampled(port);
  });

  test.each(attacks.map((attack): [string, number] => [attack.name, ATTACKS.indexOf(attack)]))('%s', async (_, at) => {
    const attacker = start('attacker.mjs', `${port}`, `${at}`);
    await until(() => attacker.out().includes('begun'));
    /** By how much the bounds are exceeded, in ms, and what was measured. */
    const round = async (): Promise<{ excessMs: number; figures: string }> => {
      const { gets, livez } = await sampled(port);
      const excessMs = Math.max(
        at99(gets) - at99(control.gets) - getMs,
        Math.round((livez.at(-1) ?? 0) - (control.livez.at(-1) ?? 0)) - livezMs,
      );
      return { excessMs, figures: `median ${at50(gets)}, p99 ${at99(gets)}, /livez at most ${Math.round(livez.at(-1) ?? 0)}` };
    };
    // A stall of the machine is not there again; one of the server is.
    const rounds = [await round()];
    while (rounds.length < 3 && (rounds.at(-1)?.excessMs ?? 0) > 0) rounds.push(await round());
    attacker.child.kill('SIGTERM');
    await until(() => attacker.child.exitCode !== null);
    const figures = rounds.map((one) => one.figures).join('; ');
    expect(rounds.at(-1)?.excessMs, `${figures}; without it p99 ${at99(control.gets)} ms`).toBeLessThanOrEqual(0);
  });
}
