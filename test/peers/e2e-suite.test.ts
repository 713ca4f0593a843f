// Kubernetes' own end-to-end suite with `watchmux serve`, without a flag for it: of the conformance cases of four of its groups, all that
// a kube-apiserver alone passes, too, and whose kinds are served. cases.json has their names, why each other one is
// left out, and what is missing for those that fail.
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { component, isMissing } from '../components.ts';
import { killAll, serve } from '../e2e/cli.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import cases from './e2e-suite/cases.json' with { type: 'json' };

interface Result {
  readonly name: string;
  readonly state: string;
  readonly failure?: string;
}

const suite = component('e2e-suite');
const kubectl = component('kubectl');
const folder = mkdtempSync(join(tmpdir(), 'watchmux-e2e-suite-'));
const GROUPS = /^\[sig-(?:api-machinery|apps|instrumentation|node)\] .*\[Conformance\]/;
/** Processes that share the cases: most of them wait. */
const SHARDS = 4;
const LIMIT_MS = 900_000;

/** Such as with a certificate that nobody has signed, and a token. */
interface Cluster {
  readonly url: string;
  readonly token?: string | undefined;
}

async function suiteWith(args: readonly string[]): Promise<string> {
  // It ends with 1 if a case has failed: the results say which.
  const run = promisify(execFile)(suite.path, args, { maxBuffer: 2 ** 28 });
  return (await run.catch((error: { stdout: string }) => error)).stdout;
}

async function runCases(names: readonly string[], { url, token }: Cluster, at: string): Promise<Result[]> {
  const config = {
    ...{
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    },
    clusters: [{ name: 'a', cluster: { server: url, ...(token !== undefined && { 'insecure-skip-tls-verify': true }) } }],
    users: [{ name: 'a', user: token === undefined ? {} : { token } }],
  };
  const [file, results] = [join(folder, `${at}.config`), join(folder, `${at}.results`)];
  writeFileSync(file, JSON.stringify(config));
  const focus = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  const log = await suiteWith([
    ...['--kubeconfig', file, '--results', results, '--provider', 'skeleton', '--num-nodes', '1', '--kubectl-path', kubectl.path],
    ...[
      '--e2e-verify-service-account=false',
      '--dump-logs-on-failure=false',
      '--ginkgo.no-color',
      '--ginkgo.focus',
      `(${focus})$`,
    ],
  ]);
  const found = linesOf(readFileSync(results, 'utf8')).filter(({ name }) => name !== '');
  if (found.length < names.length)
    throw new Error(`the suite ended after ${found.length} of ${names.length} cases: ${log.slice(-3000)}`);
  return found;
}

const linesOf = (text: string): Result[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Result);

async function expectToPass(cluster: Cluster, name: string, failing: readonly string[] = []): Promise<void> {
  const shards = Array.from({ length: SHARDS }, (_, shard) => cases.runs.filter((_, at) => at % SHARDS === shard));
  const results = (await Promise.all(shards.map((names, at) => runCases(names, cluster, `${name}-${at}`)))).flat();
  const failed = results.filter(({ state }) => state !== 'passed');
  expect(failed.filter((each) => !failing.includes(each.name))).toEqual([]);
  expect(failing.filter((each) => !failed.some((one) => one.name === each))).toEqual([]);
  expect(results.map((each) => each.name).sort()).toEqual([...cases.runs].sort());
}

afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(isMissing(suite))("Kubernetes' end-to-end suite", () => {
  it('has no conformance case that is neither run nor left out with a reason', async () => {
    const all = linesOf(await suiteWith(['--list'])).map(({ name }) => name);
    const known = [...cases.runs, ...Object.values(cases.leftOut).flat()];
    expect(new Set(known).size).toBe(known.length);
    expect(known.sort()).toEqual(all.filter((name) => GROUPS.test(name)).sort());
  });

  it('passes with watchmux serve', async () => expectToPass(await serve(), 'serve', Object.keys(cases.failing)), LIMIT_MS);

  it.skipIf(isMissing(component('kube-apiserver')))(
    'passes with a kube-apiserver: what is run needs no node and no controller',
    async () => {
      const server: ApiServer = await startApiServer();
      try {
        await expectToPass(server, 'kube-apiserver');
      } finally {
        await server.stop();
      }
    },
    LIMIT_MS,
  );
});
