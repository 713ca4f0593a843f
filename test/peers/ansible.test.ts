// Ansible's collection kubernetes.core with `watchmux serve`: the tasks of python-clients/playbook.yml.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { component, isMissing } from '../components.ts';
import { killAll, serve } from '../e2e/cli.ts';

const python = component('python-clients');
const home = mkdtempSync(join(tmpdir(), 'watchmux-ansible-'));
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

afterAll(() => {
  killAll();
  rmSync(home, { recursive: true, force: true });
});

it.skipIf(isMissing(python))(
  'Ansible defines a kind, and makes, applies, finds and removes its objects',
  async () => {
    const { url } = await serve();
    const env = { PATH: process.env.PATH, HOME: home, PYTHONPATH: python.path, LC_ALL: 'C.UTF-8' };
    const variables = JSON.stringify({ server: url, crd: here('crds/order.json'), ansible_python_interpreter: 'python3' });
    const args = ['-m', 'ansible', 'playbook', '--inventory', 'localhost,', '--extra-vars', variables];
    const { stdout } = await promisify(execFile)('python3', [...args, here('python-clients/playbook.yml')], { env });
    expect(stdout).toMatch(/ok=9 +changed=4 +unreachable=0 +failed=0/);
  },
  300_000,
);
