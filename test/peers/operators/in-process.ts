// The operator of operators.test.ts in this process, on a server of ours, without a network, and on a clock that moves when it is told
// to: what is there after the same edits must be the same. The kinds of Kubernetes that such a server does not have are defined here.
import { testOperator } from 'watchmux/operator-testing';
import websites from './website.json' with { type: 'json' };
import { websiteController } from './website.ts';
import { type Send, type Settled, World } from './world.ts';

const DEFINED = [
  { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', status: true },
  { group: '', version: 'v1', plural: 'services', kind: 'Service' },
] as const;
const SECOND_MS = 1_000;
/** Until when a recorder has told all that it has counted. */
const HOUR_MS = 3_600_000;
const MOST = 20;

/** What is done beside an operator. */
export interface InProcess {
  readonly world: World;
  readonly settled: Settled;
  /** Lets the time pass after which all events have been told, and resolves with them. */
  events(): Promise<Readonly<Record<string, number>>>;
}

/** Runs `work` beside an operator in a namespace. */
export async function inProcess<R>(name: string, work: (means: InProcess) => Promise<R>): Promise<R> {
  const send: Send = async (method, path, body, type = 'application/json') => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body), headers: { 'content-type': type } };
    const response = await test.server.fetch(new Request(`http://127.0.0.1${path}`, init));
    const answer = await response.json();
    if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${answer.message}`), { code: response.status });
    return answer;
  };
  const world = new World(send, name);
  const controllers = [websiteController(world.registry)] as never;
  const test = await testOperator({
    name: 'website',
    namespace: name,
    controllers,
    resources: ['namespaces', websites, ...DEFINED],
  });
  const settled: Settled = async ({ ready = false } = {}) => {
    for (let tries = 1; ; tries++) {
      await test.advance(SECOND_MS); // what was refused is tried again
      await world.collect();
      await test.settled();
      const fault = (await world.fault()) ?? (!ready || (await world.ready()) ? undefined : 'replicas were not ready');
      if (fault === undefined) return;
      if (tries === MOST) throw new Error(`in process, it has settled, but: ${fault}`);
    }
  };
  const events = async (): Promise<Readonly<Record<string, number>>> => {
    await test.advance(HOUR_MS);
    return await world.events();
  };
  try {
    await world.create();
    return await work({ world, settled, events });
  } finally {
    await test.close();
  }
}
