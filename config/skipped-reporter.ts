import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { COMPONENTS, isMissing, isUnwanted, skippedLine } from '../test/components.ts';

/** Ends a test run with one line: what was skipped, and how to run it. */
export default class SkippedReporter implements Reporter {
  private selected: boolean = false;

  onInit({ config }: Vitest): void {
    // Whoever selects tests by name knows that the others do not run.
    this.selected = config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.selected) return;
    let skipped = 0;
    for (const each of modules) skipped += [...each.children.allTests('skipped')].length;
    console.log(
      `${skippedLine(
        skipped,
        COMPONENTS.filter((each) => isMissing(each) || isUnwanted(each)),
      )}\n`,
    );
  }
}
