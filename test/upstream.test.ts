import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const here = new URL('.', import.meta.url);
const rows = readFileSync(new URL('upstream.md', here), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| upstream'))
  .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')))
  .map(([, , upstream = '', file = '', title = '']) => ({ upstream, file, title }));

/** Upstream's tests of what this package ports. */
const NAMES = `
  TestEmpty TestFake TestRaceFreeFake TestProxyWatcher
  TestBroadcaster TestBroadcasterWatcherClose TestBroadcasterWatcherStopDeadlock TestBroadcasterDropIfChannelFull
  TestBroadcasterWatchAfterShutdown TestBroadcasterSendEventAfterShutdown TestBroadcasterShutdownRace
  TestFilter TestFilterStop TestRecorder
  TestStreamWatcher TestStreamWatcherError TestStreamWatcherRace
  TestRead TestReadLarge TestReadInvalidFrame TestReadClientTimeout
  TestJSONFrameReader TestJSONFrameReaderShortBuffer TestJSONFrameReaderShortBufferNoUnderlyingArrayReuse
  TestEmptyDecoder TestDecoder
  TestAdd TestAddTwoFireEarly TestAddWhileProcessing TestBasic TestCollapse TestCollapseWhileProcessing TestCopyShifting
  TestDeduping TestDeterministicParse TestEscapeValue TestEverything TestForceQueueShutdownUsingShutDown
  TestGarbageCollection TestItemExponentialFailureRateLimiter TestItemExponentialFailureRateLimiterOverFlow
  TestItemFastSlowRateLimiter TestLabelConflict TestLabelGet TestLabelHas TestLabelMerge TestLabelSelectorParse TestLen
  TestLexer TestLexerSequence TestMatchesNothing TestMaxOfRateLimiter TestMetricShutdown TestMetrics TestNilMapIsValid
  TestNoQueueDrainageUsingShutDown TestOneTermEqualSelector TestParallelizeUntil TestParseOperator TestParserLookahead
  TestQueueDrainageUsingShutDownWithDrain TestQueueDrainageUsingShutDownWithDrainWithDirtyItem TestRateLimitingQueue
  TestReinsert TestRequirementConstructor TestRequirementEqual TestRequirementSelectorMatching TestRequiresExactMatch
  TestSafeSort TestSelectionPredicate TestSelectionPredicateMatcherIndex TestSelectorMatches TestSelectorParse
  TestSetIsEmpty TestSetMatches TestSetSelectorParser TestSetSelectorString TestSetString TestSimpleQueue TestSplitTerm
  TestSplitTerms TestToString TestTransform TestValidatedSelectorFromSet TestWithMaxWaitRateLimiter
`
  .trim()
  .split(/\s+/);

describe("upstream's tests", () => {
  it('are all listed in the table', () => {
    expect([...new Set(rows.map(({ upstream }) => upstream))].sort()).toEqual([...NAMES].sort());
  });

  it.each(rows)('$upstream has its counterpart in $file', ({ upstream, file, title }) => {
    expect(title.split(/\W+/)).toContain(upstream);
    const source = readFileSync(new URL(file, here), 'utf8');
    const titles = [...source.matchAll(/\b(?:it|test)\(\s*(['"`])(.*?)\1,/gs)].map((match) => match[2]);
    expect(titles).toContain(title);
  });
});
