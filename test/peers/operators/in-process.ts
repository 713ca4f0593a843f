// The operator of operators.test.ts in this process, on a server of ours. Kinds that it does not have are defined here.
import { ApiServer, BUILT_IN_KINDS } from 'watchmux/apiserver';
import { Operator } from 'watchmux/operator';
import { MemoryStorage } from 'watchmux/storage';
import { eventually } from '../../eventually.ts';
import websites from './website.json' with { type: 'json' };
import { websiteController } from './website.ts';
import { type Send, World } from './world.ts';

const DEFINED = [
  { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', status: true },
  { group: '', version: 'v1', plural: 'services', kind: 'Service' },
] as const;

/** Runs `work` beside an operator. */
export async function inProcess<R>(name: string, work: (world: World) => Promise<R>): Promise<R> {
  const server = new ApiServer({
    storage: new MemoryStorage(),
    resources: [...BUILT_IN_KINDS, ...DEFINED],
    customResourceDefinitions: true,
  });
  const send: Send = async (method, path, body, type = 'application/json') => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body), headers: { 'content-type': type } };
    const response = await server.fetch(new Request(`http://127.0.0.1${path}`, init));
    const answer = await response.json();
    if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${answer.message}`), { code: response.status });
    return answer;
  };
  await send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', websites);
  await eventually(() => send('GET', '/apis/example.com/v1/websites'));
  const world = new World(send, name);
  await world.create();
  const ended = new AbortController();
  const failures: unknown[] = [];
  const operator = new Operator({ cluster: server, name: 'website', namespace: name, onError: (error) => failures.push(error) });
  const running = operator.controller(websiteController(world.registry)).run(ended.signal);
  try {
    return await Promise.race([work(world), running.then(() => Promise.reject(new Error(`it has ended: ${failures}`)))]);
  } finally {
    ended.abort();
    await running;
    await server.shutdown();
  }
}
