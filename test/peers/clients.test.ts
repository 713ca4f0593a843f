// Clients of other languages with `watchmux serve`, without a flag for them: each program takes the steps that clients.json names, and
// says what came of each. docs/clients.md has the same list.
//
//   program                                                 the test
//     {"type":"passed","verb":"create"}             ----->
//     {"type":"failed","verb":"apply","message":""} ----->
//     {"type":"restart"}                            ----->  ends the server, and starts it with its data
//                                                   <-----  a line: it is back
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { component, isMissing } from '../components.ts';
import { killAll, type Serving, serve, until } from '../e2e/cli.ts';
import { ClientProgram } from './client-program.ts';
import clients from './clients.json' with { type: 'json' };
import { freePorts } from './ports.ts';

const folder = mkdtempSync(join(tmpdir(), 'watchmux-clients-'));
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const LIMIT_MS = 120_000;

const [python, java, npm, go] = (['python-clients', 'java-clients', 'npm-clients', 'controller-runtime'] as const).map(component);

/** How a program is started: the server's URL comes last. */
function commandOf(name: string): { readonly needs: typeof go; readonly words: readonly string[] } {
  const classes = ['classes', 'lib/*'].map((path) => join(java?.path ?? '', path)).join(delimiter);
  if (name.endsWith('.py')) {
    return { needs: python, words: ['env', `PYTHONPATH=${python?.path}`, 'python3', '-B', here(`python-clients/${name}`)] };
  }
  if (name.endsWith('.mjs')) return { needs: npm, words: [process.execPath, here(`npm-clients/${name}`), npm?.path ?? ''] };
  if (name === 'controller-runtime') return { needs: go, words: [go?.path ?? '', here('crds')] };
  return { needs: java, words: ['java', '-XX:TieredStopAtLevel=1', '-cp', classes, 'Clients', name] };
}

/** Creates the kind of which the steps are. */
async function define(url: string): Promise<void> {
  const body = readFileSync(here('crds/order.json'));
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`, { method: 'POST', body, headers });
  expect([answer.status, await answer.json()]).toMatchObject([201, {}]);
  await until(async () => (await fetch(`${url}/apis/example.com/v1/orders`)).ok);
}

afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(Object.entries(clients))('%s', (name, { steps }) => {
  const { needs, words } = commandOf(name);

  it.skipIf(needs && isMissing(needs))(
    `takes every step: ${steps.join(', ')}`,
    async () => {
      const [port] = await freePorts(1);
      const start = (): Promise<Serving> => serve('--port', String(port), '--data', join(folder, name));
      let server = await start();
      if (name !== 'controller-runtime') await define(server.url);
      const [command = '', ...args] = words;
      const program = new ClientProgram(command, [...args, server.url]);
      const isOver = program.ended;
      await Promise.race([isOver, until(() => program.of('restart').length > 0)]);
      if (program.of('restart').length > 0) {
        server.child.kill('SIGKILL');
        await server.exit;
        server = await start();
        program.tell('restarted');
      }
      await isOver;
      expect({ failed: program.of('failed'), log: program.of('failed').length > 0 ? program.log : '' }).toEqual({
        failed: [],
        log: '',
      });
      expect(program.of('passed').map(({ verb }) => verb)).toEqual(steps);
    },
    LIMIT_MS,
  );
});
