// What some tests need and npm does not install. If it is missing, its tests skip; with REQUIRE_COMPONENTS=1 they fail instead.
import { existsSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';
import {
  builtBinary,
  CLIENT_GO,
  CONTROLLER_RUNTIME,
  E2E_SUITE,
  ETCDUTL,
  GARBAGE_COLLECTOR,
  HELM_3,
  HELM_4,
  JAVA_CLIENTS,
  KUBE_RS,
  KUBECTL,
  NPM_CLIENTS,
  PYTHON_CLIENTS,
  REACT_18,
  SCHEMAS,
  STRUCTURED_MERGE,
} from './peers/binary.mjs';
import { debianKubectl } from './peers/debian.mjs';

/** A program that tests drive. */
export interface Component {
  readonly name:
    | 'Chromium'
    | 'Firefox'
    | 'Bun'
    | 'Deno'
    | 'workerd'
    | 'frameworks'
    | 'nats-server'
    | 'kube-apiserver'
    | 'kubectl'
    | 'client-go'
    | 'schemas'
    | 'garbage-collector'
    | 'structured-merge'
    | 'etcdutl'
    | 'kube-rs'
    | 'controller-runtime'
    | 'helm-3'
    | 'helm-4'
    | 'e2e-suite'
    | 'python-clients'
    | 'java-clients'
    | 'npm-clients'
    | 'react-18'
    | 'kubectl of Debian'
    | 'promtool'
    | 'systemd-analyze'
    | 'node:sqlite'
    | 'site';
  /** Where it is, or would be; empty if nobody has said. */
  readonly path: string;
  /** How to get its tests to run. */
  readonly remedy: string;
}

const { env } = process;

/** What a page needs of Chromium, at a third of the processor time: there is no window around it. */
const HEADLESS_SHELL = '/usr/bin/chromium-headless-shell';
const CHROMIUM = env.WATCHMUX_CHROMIUM ?? (existsSync(HEADLESS_SHELL) ? HEADLESS_SHELL : '/usr/bin/chromium');

/** All of them. */
export const COMPONENTS: readonly Component[] = [
  { name: 'Chromium', path: CHROMIUM, remedy: 'apt-get install chromium-headless-shell' },
  { name: 'Firefox', path: '/usr/bin/firefox-esr', remedy: 'apt-get install firefox-esr' },
  { name: 'Bun', path: env.WATCHMUX_BUN ?? '', remedy: 'WATCHMUX_BUN=<its binary>' },
  { name: 'Deno', path: env.WATCHMUX_DENO ?? '', remedy: 'WATCHMUX_DENO=<its binary>' },
  { name: 'workerd', path: env.WATCHMUX_WORKERD ?? '', remedy: 'WATCHMUX_WORKERD=<its binary>' },
  {
    name: 'frameworks',
    path: env.WATCHMUX_FRAMEWORKS ?? '',
    remedy: 'npm ci --prefix test/frameworks, WATCHMUX_FRAMEWORKS=test/frameworks',
  },
  { name: 'nats-server', path: '/usr/sbin/nats-server', remedy: 'apt-get install nats-server' },
  { name: 'kube-apiserver', path: builtBinary() ?? '', remedy: 'node test/peers/build.mjs' },
  { name: 'kubectl', path: builtBinary(KUBECTL) ?? '', remedy: 'node test/peers/build.mjs kubectl' },
  { name: 'client-go', path: builtBinary(CLIENT_GO) ?? '', remedy: 'node test/peers/build.mjs client-go' },
  { name: 'schemas', path: builtBinary(SCHEMAS) ?? '', remedy: 'node test/peers/build.mjs schemas' },
  {
    name: 'garbage-collector',
    path: builtBinary(GARBAGE_COLLECTOR) ?? '',
    remedy: 'node test/peers/build.mjs garbage-collector',
  },
  { name: 'etcdutl', path: builtBinary(ETCDUTL) ?? '', remedy: 'node test/peers/build.mjs etcdutl' },
  {
    name: 'structured-merge',
    path: builtBinary(STRUCTURED_MERGE) ?? '',
    remedy: 'node test/peers/build.mjs structured-merge',
  },
  { name: 'kube-rs', path: builtBinary(KUBE_RS) ?? '', remedy: 'node test/peers/build.mjs kube-rs' },
  ...([CONTROLLER_RUNTIME, HELM_3, HELM_4, E2E_SUITE, PYTHON_CLIENTS, JAVA_CLIENTS, NPM_CLIENTS, REACT_18] as const).map(
    (peer) => ({
      name: peer.name as Component['name'],
      path: builtBinary(peer) ?? '',
      remedy: `node test/peers/build.mjs ${peer.name}`,
    }),
  ),
  { name: 'kubectl of Debian', path: debianKubectl(), remedy: 'node test/peers/debian.mjs, on Debian 12' },
  { name: 'promtool', path: '/usr/bin/promtool', remedy: 'apt-get install prometheus' },
  { name: 'systemd-analyze', path: '/usr/bin/systemd-analyze', remedy: 'apt-get install systemd' },
  {
    name: 'site',
    path: fileURLToPath(new URL('../reports/site/index.html', import.meta.url)),
    remedy: 'npm ci --prefix config/site && npm run docs',
  },
  // The runtime has it or not: .ci/run has a step on a Node that has.
  {
    name: 'node:sqlite',
    path: isBuiltin('node:sqlite') ? process.execPath : '', // to load it is to be warned of it
    remedy: 'Node 22.13 or newer: npx -p node@22 node node_modules/vitest/vitest.mjs run sqlite',
  },
];

/** Returns a component by its name. */
export function component(name: Component['name']): Component {
  return COMPONENTS.find((each) => each.name === name) as Component;
}

/** Whether the tests that need a component skip. */
export function isMissing({ name, path }: Component): boolean {
  return !existsSync(path) && (env.REQUIRE_COMPONENTS !== '1' || name === 'node:sqlite');
}

/** A list such as `chromium,firefox:few`. */
const browsers = env.WATCHMUX_BROWSERS?.split(',');

/** Whether WATCHMUX_BROWSERS leaves a browser out. */
export function isUnwanted({ name }: Component): boolean {
  const isBrowser = name === 'Chromium' || name === 'Firefox';
  return isBrowser && browsers?.some((each) => each.split(':')[0] === name.toLowerCase()) === false;
}

/** Whether only those tests run in a browser for which it is known to matter which one it is. */
export function isForFew({ name }: Component): boolean {
  return browsers?.includes(`${name.toLowerCase()}:few`) === true;
}

/** The line at the end of a test run: what was skipped, what is not here, and how to run it. */
export function skippedLine(skipped: number, absent: readonly Component[]): string {
  if (skipped === 0) return 'skipped: nothing';
  const how = (each: Component): string => (isUnwanted(each) ? 'not in WATCHMUX_BROWSERS' : each.remedy);
  const which = absent.map((each) => `${each.name} (${how(each)})`).join(', ');
  const why = which === '' ? 'their titles say why' : `not here: ${which}`;
  return `skipped: ${skipped} test${skipped === 1 ? '' : 's'}; ${why}; bash .ci/run installs everything and runs every test`;
}
