import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CAPACITY } from './contender.ts';
import { GoProgram, pathOf } from './go-programs.ts';
import type { Prepared, Settings } from './workload.ts';

const FIRST_DELIVERIES = 100_000;

interface Answer {
  readonly deliveries: number;
  readonly seconds: number;
  readonly ok: boolean;
}

function start(size: { watchers: number; burst: number }, deliveries: number): Promise<GoProgram<Answer>> {
  const args = Object.entries({ ...size, deliveries, queue: CAPACITY }).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return GoProgram.start('fanout', args);
}

/** Go publishes its bursts back to back, which suits it best: its watchers run in parallel with the publisher. */
export async function prepareGo(size: { watchers: number; burst: number }, settings: Settings): Promise<Prepared> {
  const least = size.watchers * size.burst;
  const probe = await start(size, Math.max(least, FIRST_DELIVERIES));
  let speed = 0;
  for (let i = 0; i < 3; i++) {
    const { deliveries, seconds } = await probe.round();
    speed = deliveries / seconds;
  }
  probe.end();
  const program = await start(size, Math.max(least, Math.round(speed * (settings.roundMs / 1000))));
  await program.round();
  return {
    async round() {
      const { deliveries, seconds } = await program.round();
      return [deliveries / seconds / 1e6];
    },
    end: () => program.end(),
  };
}

/** Go measures itself, in a new process each time. */
export async function prepareGoLatency({ watchers, events }: { watchers: number; events: number }): Promise<Prepared> {
  const args = ['latency', '--watchers', watchers, '--events', events, '--queue', CAPACITY].map(String);
  return {
    async round() {
      const { stdout } = await promisify(execFile)(pathOf('fanout'), args);
      const { p50Us, p99Us, p999Us, ok } = JSON.parse(stdout) as { p50Us: number; p99Us: number; p999Us: number; ok: boolean };
      if (!ok) throw new Error('wrong answer from the Go program');
      return [p50Us, p99Us, p999Us];
    },
  };
}
