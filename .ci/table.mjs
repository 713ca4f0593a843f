// Prints what a run of CI did: node .ci/table.mjs FOLDER SECONDS < STEPS
//
// STEPS has a line for each step: its seconds, its name and its report, with tabs between them. FOLDER has the reports, of vitest.
import { existsSync, readFileSync } from 'node:fs';

const [folder, seconds] = process.argv.slice(2);

/** What a report counts, or undefined if there is none: the step ran no test, or not to its end. */
function countsOf(report) {
  const file = `${folder}/${report}.json`;
  if (report === '' || !existsSync(file)) return undefined;
  let run;
  try {
    run = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined; // it was ended while it wrote
  }
  // Of a file that could not be loaded no test has failed, but the file has.
  const broken = run.testResults.filter((each) => each.status === 'failed' && each.assertionResults.length === 0).length;
  return { passed: run.numPassedTests, failed: run.numFailedTests + broken, skipped: run.numPendingTests + run.numTodoTests };
}

const sum = { passed: 0, failed: 0, skipped: 0 };
const row = (time, tests, step) => console.log(`${String(time).padStart(7)}  ${String(tests).padStart(6)}  ${step}`);

console.log('');
row('seconds', 'tests', 'step');
for (const line of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const [time, step, report = ''] = line.split('\t');
  const counts = countsOf(report);
  for (const each of Object.keys(sum)) sum[each] += counts?.[each] ?? 0;
  row(time, counts === undefined ? '' : counts.passed + counts.failed, step);
}
row(seconds, sum.passed + sum.failed, 'altogether');
console.log(`\ntests: ${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
