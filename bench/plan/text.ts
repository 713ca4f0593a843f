import { digits } from '../report.ts';
import type { Plan, Wanted } from './capacity.ts';
import { type Check, MOST_ERROR } from './checks.ts';
import type { Units } from './units.ts';

const whole = (value: number): string => Math.round(value).toLocaleString('en');
const percent = (share: number): string => `${Math.round(share * 100)} %`;
const megabytes = (bytes: number): string => `${digits(bytes / 1e6)} MB`;
const seconds = (ms: number): string => `${digits(ms / 1e3)} s`;

/** Two columns. */
function lines(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}

export function unitsText(units: Units): string {
  const us = (value: number): string => `${digits(value)} µs`;
  return [
    'Processor time and memory, measured with one replica:',
    lines([
      ['event: a replica learns of a change', us(units.event)],
      ['delivery: it tells one client', us(units.delivery)],
      ['byte: of it beyond 1,000', `${digits(units.byte * 1e3)} ns`],
      ['write: it takes a write', us(units.write)],
      ['listed: an object in a list', us(units.listed)],
      ['join: a watch begins, and ends', us(units.join)],
      ['etcdWrite: etcd takes a write', us(units.etcdWrite)],
      ['etcdWatch: it tells one replica', us(units.etcdWatch)],
      ['etcdList: it says how far it is', us(units.etcdList)],
      ['a watcher that waits', `${digits(units.watcherBytes / 1e3)} KB`],
      ['a replica without watchers', megabytes(units.replicaBytes)],
    ]),
  ].join('\n');
}

export function checksText(checks: readonly Check[]): string {
  const byWhat = new Map<string, Check[]>();
  for (const check of checks) byWhat.set(check.what, [...(byWhat.get(check.what) ?? []), check]);
  const cell = ({ measured, predicted, error }: Check): string =>
    `${digits(measured)} / ${digits(predicted)} (${error > 0 ? '+' : ''}${Math.round(error * 100)} %)`;
  const rows = [...byWhat].map(([what, all]) => [what, ...all.map(cell)]);
  const table = [['', '1 replica', '2 replicas', '3 replicas'], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const text = table.map((row) => `  ${row.map((each, at) => each.padEnd(widths[at] ?? 0)).join('  ')}`.trimEnd());
  const worst = (of: Check['of']): string =>
    percent(Math.max(...checks.map((each) => (each.of === of ? Math.abs(each.error) : 0))));
  const [ours, theirs] = [MOST_ERROR.replicas, MOST_ERROR.etcd].map(percent);
  return [
    'Measured / predicted, in µs of processor time. The largest errors:',
    `replicas ${worst('replicas')}, of ${ours} that are allowed; etcd ${worst('etcd')}, of ${theirs}.`,
    ...text,
  ].join('\n');
}

export function planText(wanted: Wanted, plan: Plan): string {
  const { clients, changes, bytes, concerns, watchSeconds, starts, listed, members } = wanted;
  const needed = plan.replicas - 1;
  const tooSoon = plan.storm.longestWaitMs;
  return [
    `${whole(clients)} clients; ${whole(changes)} changes/s of ${whole(bytes)} bytes, each of which concerns ${whole(concerns)} of them;`,
    `watches of ${whole(watchSeconds)} s; ${whole(starts)} clients/s that begin with a list of ${whole(listed)} objects:`,
    lines([
      ['replicas', `${whole(plan.replicas)}: ${whole(needed)} for the ${plan.because}, and 1 that may be missing`],
      [
        'cores, all replicas',
        `${digits(plan.cores)}; ${percent(plan.share)} of one each, ${percent(plan.shareWithout)} with one missing`,
      ],
      ['memory of a replica', megabytes(plan.replicaBytes)],
      ['etcd', `${whole(members)} members; ${digits(plan.etcdCores)} cores for the writes and the replicas' watches`],
      ['to clients', `${megabytes(plan.toClients)}/s`],
      ['from etcd to replicas', `${megabytes(plan.toReplicas)}/s`],
      ['between members of etcd', `${megabytes(plan.toMembers)}/s`],
      ['a replica dies: spread its clients over', seconds(plan.spreadMs)],
      ['by default, the last of them is live after', `${seconds(plan.storm.allLiveMs)}, and waits for ${seconds(tooSoon)} of it`],
    ]),
  ].join('\n');
}
