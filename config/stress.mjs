// Runs the tests on a machine that is busy with other things: npm run stress [-- OPTIONS_OF_VITEST]
//
// Four processes for each core do nothing but count. A test that fails here and passes elsewhere depends on how busy the machine is: it,
// or what it tests, is wrong. Tests that measure memory or time are left out, since they run with nothing beside them; and Kubernetes' own
// suite, whose limits of time are in its programs: a kube-apiserver exceeds them, too. Each property has a fifth of its runs, unless
// WATCHMUX_RUNS says otherwise.
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

const LOOPS_PER_CORE = 4;
// A loop ends by itself if this process was killed.
const LOOP = 'const parent = process.ppid; for (let i = 0; ; i++) if (i % 1e9 === 0 && process.ppid !== parent) process.exit()';

const count = LOOPS_PER_CORE * availableParallelism();
const loops = Array.from({ length: count }, () => spawn(process.execPath, ['-e', LOOP], { stdio: 'ignore' }));
const stopLoops = () => {
  for (const each of loops) each.kill('SIGKILL');
};
process.on('exit', stopLoops);
console.log(`${count} busy loops beside the tests`);

const KUBERNETES = 'test/peers/e2e-suite.test.ts';
console.log(`without ${KUBERNETES}, which has limits of its own`);
const options = ['run', '--project=!alone', `--exclude=${KUBERNETES}`, ...process.argv.slice(2)];
const tests = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...options], {
  stdio: ['ignore', 'inherit', 'inherit'],
  env: { WATCHMUX_RUNS: '300', ...process.env },
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tests.kill(signal));
tests.on('error', (error) => {
  console.error(error.message);
  process.exit(1);
});
tests.on('exit', (code) => process.exit(code ?? 1));
