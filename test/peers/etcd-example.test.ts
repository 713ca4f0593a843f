// The example of docs/etcd.md prints what the page says, with the built package and a real etcd.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { component, isMissing } from '../components.ts';
import { type EtcdServer, startEtcd } from './etcd-server.ts';

const missing = isMissing(component('kube-apiserver'));
const root = fileURLToPath(new URL('../..', import.meta.url));
let etcd: EtcdServer;

beforeAll(async () => {
  if (!missing) etcd = await startEtcd();
}, 60_000);
afterAll(() => etcd?.stop());

describe.skipIf(missing)('docs/etcd.md, a real etcd', () => {
  test('the example prints what the page says', async () => {
    const page = readFileSync(`${root}/docs/etcd.md`, 'utf8');
    const [, code = '', , prints = ''] = /```ts\n([\s\S]*?)```\n(\s*)```text\n([\s\S]*?)```/.exec(page) ?? [];
    const { outputText } = ts.transpileModule(code.replace('http://127.0.0.1:2379', etcd.url), {
      compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
    });
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', outputText], { cwd: root });
    expect(stdout).toBe(prints);
  });
});
