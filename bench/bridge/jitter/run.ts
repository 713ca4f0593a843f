import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { ClientTransport } from '../../../src/bridge/client.ts';
import { quantile } from '../../stats.ts';
import { endAll } from './peer.ts';
import type { Outcome, Profile } from './profile.ts';
import { faultsOf, runProfile } from './profile.ts';
import type { FleetOutcome, FleetProfile } from './replicas.ts';
import { runFleet } from './replicas.ts';

const USAGE = `Usage: npm run bench:jitter -- [options]

Delivery under jitter: clients whose connections are cut again and again, each of which is to get every event once, in order.

Sockets are destroyed on the clients' side, without a close frame, at random times. For a while every new connection is refused;
then the client finds its way back by its own backoff. A latency is the time from the publishing of an event to its client's
reader, and so holds the time that the client was away.

Exits with 1 unless 100 % are delivered, none twice, all in order. With --replay-items, a window that is too small for some, what
is missing must stand behind a 410, and none is heard twice for one version.

With --replicas, that many hubs follow one stream of a real nats-server, and clients reach them through a balancer. Replicas and
nats-server are killed (-9) and stopped at random, and connections are cut, while writers publish. Every client is to get every
acknowledged event, once and in order.

Options:
  --transport websocket   websocket, sse, http or all
  --clients 1000
  --broadcasts 120        events that are published
  --per-second 2          so many of them a second
  --event-bytes 270
  --cut-every-ms 15000    from one cut of a client's connection to the next, give or take a half
  --offline-ms 2000       how long it is refused after that
  --backoff-min-ms N      the client's; default as in connect()
  --backoff-max-ms N
  --replay-items N        the server's window; default large enough for all
  --loads 2               processes that the clients are in
  --seed 1                of the cuts
  --replicas N            hubs on one stream of NATS; with these defaults: 500 clients over all transports,
                          4 writers with one event a second each
  --duration-ms 300000    how long there are faults, with --replicas
  --fault-every-ms 3000   from one fault to the next, give or take a half, with --replicas
  --json FILE             writes the figures there
  --help`;

const TRANSPORTS: readonly ClientTransport[] = ['websocket', 'sse', 'http'];

/** Returns undefined if help was requested. */
function parse(): { profile: Profile; fleet: FleetProfile | undefined; json: string | undefined } | undefined {
  const string = { type: 'string' } as const;
  const { values } = parseArgs({
    options: {
      transport: string,
      clients: string,
      broadcasts: { ...string, default: '120' },
      'per-second': string,
      replicas: { ...string, default: '0' },
      'duration-ms': { ...string, default: '300000' },
      'fault-every-ms': { ...string, default: '3000' },
      'cut-every-ms': { ...string, default: '15000' },
      'offline-ms': { ...string, default: '2000' },
      'event-bytes': { ...string, default: '270' },
      'replay-items': string,
      'backoff-min-ms': string,
      'backoff-max-ms': string,
      loads: { ...string, default: '2' },
      seed: { ...string, default: '1' },
      json: string,
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const number = (name: Exclude<keyof typeof values, 'transport' | 'json' | 'help'>, fallback: number = Number.NaN): number => {
    const value = Number(values[name] ?? fallback);
    if (!(value >= 0)) throw new Error(`--${name}: expected a number, got "${values[name]}"`);
    return value;
  };
  const optional = (name: 'replay-items' | 'backoff-min-ms' | 'backoff-max-ms'): number | undefined =>
    values[name] === undefined ? undefined : number(name);
  const { json } = values;
  const replicas = number('replicas');
  const { transport = replicas > 0 ? 'all' : 'websocket' } = values;
  const transports = TRANSPORTS.filter((each) => transport === 'all' || transport === each);
  if (transports.length === 0) throw new Error(`--transport: expected ${TRANSPORTS.join(', ')} or all, got "${transport}"`);
  const profile: Profile = {
    transports,
    clients: number('clients', 1_000),
    broadcasts: number('broadcasts'),
    perSecond: number('per-second', 2),
    eventBytes: number('event-bytes'),
    cutEveryMs: number('cut-every-ms'),
    offlineMs: number('offline-ms'),
    replayItems: optional('replay-items'),
    minMs: optional('backoff-min-ms'),
    maxMs: optional('backoff-max-ms'),
    loads: number('loads'),
    seed: number('seed'),
    weighs: true,
  };
  const { eventBytes, loads, seed } = profile;
  const fleet: FleetProfile = {
    replicas,
    clients: number('clients', 500),
    transports,
    writers: 4,
    perSecond: number('per-second', 1),
    eventBytes,
    durationMs: number('duration-ms'),
    faultEveryMs: number('fault-every-ms'),
    awayMs: 4_000,
    replayItems: number('replay-items', 500),
    loads,
    seed,
  };
  return { profile, fleet: replicas > 0 ? fleet : undefined, json };
}

const mib = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`;

function reportOf({ expected, received, latencies, memory, ...outcome }: Outcome): [string, string][] {
  const at = (share: number): string => `${quantile(latencies, share).toFixed(1)} ms`;
  const count = (n: number): string => n.toLocaleString('en');
  return [
    ['expected', count(expected)],
    ['delivered', `${count(received.delivered)} (${((received.delivered / expected) * 100).toFixed(3)} %)`],
    ['duplicates', count(received.duplicates)],
    ['out of order', count(received.outOfOrder)],
    ['missing behind a 410', count(received.told)],
    ['missing without a word', count(received.silent)],
    ['410s heard', `${count(received.expired + received.blind)}, ${count(received.blind)} of them without any version`],
    ['410s said by the server', count(outcome.refused)],
    ['connections cut', count(outcome.cuts)],
    ['reconnects', `${count(outcome.reconnects)}, ${count(outcome.resumes)} resumed`],
    ['latency p50, p95, p99, max', [0.5, 0.95, 0.99, 1].map(at).join(', ')],
    ['server heap', `${memory.map(({ heapUsed }) => mib(heapUsed)).join(', ')}: before, at the end, when all have gone`],
    ['server rss', `${memory.map(({ rss }) => mib(rss)).join(', ')}: the same`],
  ];
}

const script = (name: string): string => fileURLToPath(new URL(`./${name}.js`, import.meta.url));

async function main(): Promise<number> {
  const parsed = parse();
  if (parsed === undefined) {
    console.log(USAGE);
    return 0;
  }
  const { profile, fleet, json } = parsed;
  if (fleet !== undefined) return mainFleet(fleet, json);
  const { transports, clients, broadcasts, perSecond, cutEveryMs, offlineMs, seed } = profile;
  const scripts = { server: script('server'), load: script('load') };
  const outcome = await runProfile(profile, scripts, (what) => process.stderr.write(`${what}\n`));
  const faults = faultsOf(outcome);
  const title = `${transports.join(', ')}: ${clients} clients, ${broadcasts} broadcasts at ${perSecond}/s, cut every ${cutEveryMs} ms, ${offlineMs} ms offline, seed ${seed}`;
  console.log(`${title}\nNode ${process.version}`);
  for (const [name, value] of reportOf(outcome)) console.log(`  ${name.padEnd(28)}${value}`);
  for (const fault of faults) console.log(`WRONG: ${fault}`);
  if (json !== undefined)
    writeFileSync(json, `${JSON.stringify({ ...outcome, latencies: undefined, report: reportOf(outcome) }, null, 1)}\n`);
  return faults.length === 0 ? 0 : 1;
}

async function mainFleet(profile: FleetProfile, json: string | undefined): Promise<number> {
  const scripts = { replica: script('replica'), writers: script('writers'), audience: script('audience') };
  const outcome = await runFleet(profile, scripts, (what) => process.stderr.write(`${what}\n`));
  const { replicas, clients, transports, durationMs, seed } = profile;
  console.log(
    `${replicas} replicas on NATS, ${clients} clients over ${transports.join(', ')}, ${durationMs} ms of faults, seed ${seed}`,
  );
  console.log(`Node ${process.version}`);
  for (const [name, value] of fleetReportOf(outcome)) console.log(`  ${name.padEnd(28)}${value}`);
  for (const fault of outcome.wrong.slice(0, 10)) console.log(`WRONG: ${fault}`);
  if (outcome.wrong.length > 10) console.log(`WRONG: and ${outcome.wrong.length - 10} more`);
  if (json !== undefined)
    writeFileSync(json, `${JSON.stringify({ ...outcome, latencies: undefined, report: fleetReportOf(outcome) }, null, 1)}\n`);
  return outcome.wrong.length === 0 ? 0 : 1;
}

function fleetReportOf(outcome: FleetOutcome): [string, string][] {
  const { profile, acknowledged, stored, delivered, latencies, faults } = outcome;
  const at = (share: number): string => `${quantile(latencies, share).toFixed(1)} ms`;
  const count = (n: number): string => n.toLocaleString('en');
  const expected = stored * profile.clients;
  return [
    ['acknowledged, stored', `${count(acknowledged)}, ${count(stored)}`],
    ['expected', count(expected)],
    ['delivered', `${count(delivered)} (${((delivered / expected) * 100).toFixed(3)} %)`],
    ...Object.entries(faults).map(([name, times]): [string, string] => [name, count(times)]),
    ['connections cut', count(outcome.cuts)],
    ['reconnects', count(outcome.reconnects)],
    ['publishes that timed out', count(outcome.publishFailures)],
    ['latency p50, p95, p99, max', [0.5, 0.95, 0.99, 1].map(at).join(', ')],
  ];
}

process.on('exit', endAll);
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));
main().then(
  (code) => process.exit(code),
  (error) => {
    const { message, code } = error as Error & { code?: string };
    const isUsage = message?.startsWith('--') || code?.startsWith('ERR_PARSE_ARGS');
    console.error(isUsage ? `${message}\nSee --help.` : error);
    process.exit(isUsage ? 2 : 1);
  },
);
