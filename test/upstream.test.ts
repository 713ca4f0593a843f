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
  TestCache TestCacheWithTransformer TestKeyError TestGetIndexFuncValues TestMultiIndexKeys TestIndex
  TestCacheTransactionShouldIndexErrors TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex
  TestThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex TestThreadSafeStoreIndexingFunctionsWithMultipleValues
  TestThreadSafeStoreRV TestDeltaFIFO_basic TestDeltaFIFO_replaceWithDeleteDeltaIn
  TestDeltaFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue TestDeltaFIFO_addUpdate TestDeltaFIFO_transformer
  TestDeltaFIFO_enqueueingNoLister TestDeltaFIFO_enqueueingWithLister TestDeltaFIFO_addReplace
  TestDeltaFIFO_ResyncNonExisting TestDeltaFIFO_Resync TestDeltaFIFO_DeleteExistingNonPropagated
  TestDeltaFIFO_ReplaceMakesDeletions TestDeltaFIFO_ReplaceMakesDeletionsReplaced TestDeltaFIFO_ReplaceDeltaType
  TestDeltaFIFO_UpdateResyncRace TestDeltaFIFO_HasSyncedCorrectOnDeletion TestDeltaFIFO_detectLineJumpers TestDeltaFIFO_KeyOf
  TestDeltaFIFO_HasSynced TestDeltaFIFO_PopShouldUnblockWhenClosed TestRealFIFO_basic TestRealFIFO_replaceWithDeleteDeltaIn
  TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue TestRealFIFO_addUpdate TestRealFIFO_transformer
  TestRealFIFO_enqueueingNoLister TestRealFIFO_enqueueingWithLister TestRealFIFO_addReplace TestRealFIFO_ResyncNonExisting
  TestRealFIFO_Resync TestRealFIFO_DeleteExistingNonPropagated TestRealFIFO_ReplaceMakesDeletions
  TestRealFIFO_ReplaceMakesDeletionsReplaced TestRealFIFO_ReplaceDeltaType TestRealFIFO_UpdateResyncRace
  TestRealFIFO_HasSyncedCorrectOnDeletion TestRealFIFO_detectLineJumpers TestRealFIFO_KeyOf TestRealFIFO_HasSynced
  TestRealFIFO_PopShouldUnblockWhenClosed TestRealFIFO_PopMultipleDeltaInBatch TestRealFIFO_PopBrokenItemsInBatch
  TestRealFIFO_ReplaceAtomic TestRealFIFO_ReplaceAtomicPop TestRealFIFO_ResyncAtomic
`
  .trim()
  .split(/\s+/);

describe("upstream's tests", () => {
  it('are all listed in the tables', () => {
    expect([...new Set(rows.map(({ upstream }) => upstream))].sort()).toEqual([...NAMES].sort());
  });

  it.each(rows)('$upstream has its counterpart in $file', ({ upstream, file, title }) => {
    expect(title.split(/\W+/)).toContain(upstream);
    const source = readFileSync(new URL(file, here), 'utf8');
    const titles = [...source.matchAll(/\b(?:it|test)\(\s*(['"`])(.*?)\1,/gs)].map((match) => match[2]);
    expect(titles).toContain(title);
  });
});
