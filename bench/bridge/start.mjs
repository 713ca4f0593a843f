// node bench/bridge/start.mjs [options]: runs the workload `bridge`. With --check, checks its floors in bench/budgets.json.
const args = process.argv.splice(2);
const check = args.indexOf('--check');
if (check < 0) process.argv.push('run', 'bridge', ...args);
else process.argv.push('check', '--only', 'bridge', ...args.toSpliced(check, 1));
await import('../start.mjs');
