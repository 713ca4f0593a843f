// docs/clients.md says what the tests of test/peers run: the rows of its tables are made of their lists.
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import {
  CLIENT_GO,
  CONTROLLER_RUNTIME,
  E2E_SUITE,
  HELM_3,
  HELM_4,
  JAVA_CLIENTS,
  KUBE_RS,
  KUBECTL,
  NPM_CLIENTS,
  PYTHON_CLIENTS,
  release,
  versionOf,
} from './peers/binary.mjs';
import clients from './peers/clients.json' with { type: 'json' };
import cases from './peers/e2e-suite/cases.json' with { type: 'json' };
import { readText } from './tracked.ts';

const page = readText('docs/clients.md');

test('each client with its version and its steps, and no other one', () => {
  const peers = [CONTROLLER_RUNTIME, JAVA_CLIENTS, NPM_CLIENTS, PYTHON_CLIENTS];
  const rows = Object.values(clients).map(({ client, package: name, steps, ...each }) => {
    const peer = peers.find((one) => one.name === each.peer);
    return `| ${client} | ${peer && versionOf(peer, name)} | ${steps.join(', ')} | none |`;
  });
  const table = page.slice(page.indexOf('| client | version | steps'), page.indexOf('These have scenarios'));
  expect(table.trim().split('\n').slice(2)).toEqual(rows);
});

test('the versions of those with a scenario of their own', () => {
  const versions = {
    kubectl: release(KUBECTL),
    'client-go': release(CLIENT_GO).replace(/^1/, '0'),
    'kube-rs': release(KUBE_RS),
    'client-node': manifest.devDependencies['@kubernetes/client-node'],
    'Helm 3': release(HELM_3),
    'Helm 4': release(HELM_4),
    Ansible: versionOf(PYTHON_CLIENTS, 'ansible'),
  };
  for (const [client, version] of Object.entries(versions)) expect(page).toContain(`\n| ${client} | ${version} |`);
});

test("the cases of Kubernetes' suite, by the reasons why they are left out, and those that fail", () => {
  const failing = Object.keys(cases.failing);
  const left = Object.values(cases.leftOut).flat();
  const text = page.replace(/\s+/g, ' ');
  expect(text).toContain(`Kubernetes ${release(E2E_SUITE)} runs ${cases.runs.length}`);
  expect(text).toContain(`${cases.runs.length - failing.length} pass.`);
  expect(text).toContain(`The other ${left.length} are left out`);
  for (const [why, { length }] of Object.entries(cases.leftOut)) expect(text).toContain(`- ${why}: ${length}`);
  for (const [name, why] of Object.entries(cases.failing))
    expect(text).toContain(`- ${name.replace(/ \[[^\]]*\]/g, '')}: ${why}`);
  expect(failing.filter((name) => !cases.runs.includes(name))).toEqual([]);
});
