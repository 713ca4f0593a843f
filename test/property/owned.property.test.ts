// Owned, for random stories of objects: see test/peers/apply.test.ts for the comparison with Kubernetes' own.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { checkOwned, type OwnedStep } from '../../src/testing/checkers/check-owned.ts';
import { Choices, ourOutcome, type Story, storyOf, tell } from '../peers/apply-stories.ts';
import { runs } from '../runs.ts';

/** What the checker reads: stories in one version and one schema, of managers without the rights of kubectl. */
function historyOf(story: Story): readonly OwnedStep[] {
  const history: OwnedStep[] = [];
  tell(story, (manager, live, step) => {
    const outcome = ourOutcome(manager, live, step);
    if (step.op !== 'extract' && step.object) {
      const operation = step.op === 'apply' ? 'Apply' : 'Update';
      const { conflicts: found, object: after } = outcome;
      const conflicts = found?.map(({ message, field }) => ({ manager: message.replace('conflict with ', ''), field }));
      history.push({ operation, manager: step.manager, force: step.force, before: live, sent: step.object, after, conflicts });
    }
    return outcome;
  });
  return history;
}

/** Only what changes fields: owners that a request makes up may own anything. */
function plain(story: Story): Story {
  const steps = story.steps.filter(({ op, version, object, manager }) => {
    const { managedFields } = (object?.metadata ?? {}) as { managedFields?: unknown };
    return op !== 'schemas' && version === 'v1' && manager !== 'kubectl' && managedFields === undefined;
  });
  return { ...story, steps: steps.map((step) => ({ ...step, subresource: '' })) };
}

it('keeps Owned in random stories', () => {
  const numbers = fc.array(fc.nat(65_535), { minLength: 200, maxLength: 1_500, size: 'max' });
  const keeps = fc.property(numbers, (each) => {
    expect(checkOwned({ steps: historyOf(plain(storyOf(new Choices(each)))) })?.message).toBeUndefined();
  });
  fc.assert(keeps, { numRuns: runs(600) });
});
