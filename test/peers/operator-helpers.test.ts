// Conditions, owners and equality beside those of controller-runtime and apimachinery: the same questions, the same answers. Random
// ones, all in one run of the program: see controller-runtime/helpers.go.
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import {
  type Condition,
  controllerOf,
  equals,
  removeCondition,
  removeOwner,
  setCondition,
  setOwner,
} from '../../src/operator/index.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { component, isMissing } from '../components.ts';
import { runs } from '../runs.ts';

const program = component('controller-runtime');
const LIMIT_MS = 60_000;

/** What the program says to each question. */
function answersTo<A>(questions: readonly object[]): readonly A[] {
  const input = questions.map((each) => `${JSON.stringify(each)}\n`).join('');
  const { stdout, stderr } = spawnSync(program?.path ?? '', ['helpers'], {
    input,
    encoding: 'utf8',
    maxBuffer: 1e9,
    timeout: LIMIT_MS,
  });
  const lines = stdout.split('\n').filter(Boolean);
  expect(lines, stderr).toHaveLength(questions.length);
  return lines.map((line) => JSON.parse(line) as A);
}

const optional = <T>(arb: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arb, { nil: undefined });
const samples = <T>(arb: fc.Arbitrary<T>): T[] => fc.sample(arb, runs(2_000));

const TIMES = ['2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z'];
const condition = fc.record({
  type: fc.constantFrom('a', 'b', 'c'),
  status: fc.constantFrom('True', 'False', 'Unknown'),
  reason: fc.constantFrom('', 'R', 'S'),
  message: fc.constantFrom('', 'm', 'n'),
  observedGeneration: optional(fc.constantFrom(0, 1, 2)),
  lastTransitionTime: optional(fc.constantFrom(...TIMES)),
});
const removal = fc.record({ type: fc.constantFrom('a', 'b', 'c'), status: fc.constant('') });

/** A condition without the differences between what is absent and what is empty, or between one now and another. */
function plain({
  lastTransitionTime: time = null,
  ...rest
}: Partial<Omit<Condition, 'lastTransitionTime'>> & { lastTransitionTime?: string | null | undefined }): object {
  const since = time && !TIMES.includes(time) ? 'now' : time;
  return { ...rest, message: rest.message ?? '', observedGeneration: rest.observedGeneration ?? 0, since };
}

const apiVersion = fc.constantFrom('v1', 'apps/v1', 'apps/v2', 'example.com/v1');
const who = { apiVersion, kind: fc.constantFrom('A', 'B'), name: fc.constantFrom('x', 'y'), uid: fc.constantFrom('u1', 'u2') };
const flag = optional(fc.boolean());
const owners = fc.record({
  namespace: fc.constantFrom('', 'shop'),
  references: fc.array(fc.record({ ...who, controller: flag, blockOwnerDeletion: flag }), { maxLength: 2 }),
  steps: fc.array(
    fc.record({
      ...who,
      namespace: fc.constantFrom('', 'shop', 'other'),
      controller: fc.boolean(),
      block: flag,
      remove: fc.integer({ max: 3, min: 0 }).map((each) => each === 0),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});

/** A member with one of these values, or null, or absent. */
const member = (...values: unknown[]): fc.Arbitrary<unknown> => fc.constantFrom<unknown>(undefined, null, ...values);
const pod = fc.record({
  metadata: fc.record({
    name: fc.constant('a'),
    labels: member({}, { a: '' }, { a: '1' }),
    finalizers: member([], ['a/b']),
    generateName: member('', 'a-'),
  }),
  spec: fc.record({
    hostname: member('', 'h'),
    terminationGracePeriodSeconds: member(0, 1),
    nodeSelector: member({}, { a: '' }, { a: '1' }), // of texts, so { a: null } would be { a: '' }
    volumes: member([], [{ name: 'v' }], [{ name: 'v', emptyDir: {} }], [{ name: 'v', emptyDir: null }]),
    securityContext: member({}, { runAsUser: 0 }, { runAsUser: null }),
  }),
});

describe.skipIf(isMissing(program))('beside controller-runtime', () => {
  it('conditions', () => {
    const questions = samples(
      fc.record({
        conditions: fc.array(condition, { maxLength: 3 }),
        set: fc.array(fc.oneof(condition, removal), { minLength: 1, maxLength: 5 }),
      }),
    );
    const answers = answersTo<{ changed: boolean[]; conditions: Condition[] | null }>(questions);
    for (const [at, { conditions, set }] of questions.entries()) {
      const object = { status: { conditions: structuredClone(conditions) as Condition[] } };
      const changed = set.map((each) =>
        each.status ? setCondition(object, each as Condition) : removeCondition(object, each.type),
      );
      const answer = answers[at];
      const shown = { changed, conditions: object.status.conditions.map(plain) };
      expect(shown, JSON.stringify(questions[at])).toEqual({
        changed: answer?.changed,
        conditions: answer?.conditions?.map(plain),
      });
    }
  });

  it('owners', () => {
    const questions = samples(owners).map(({ namespace, references, steps }) => ({
      object: {
        apiVersion: 'v1',
        kind: 'Thing',
        metadata: { name: 'a', ...(namespace && { namespace }), ...(references.length && { ownerReferences: references }) },
      },
      owners: steps.map(({ apiVersion, kind, namespace: outer, name, uid, ...step }) => ({
        owner: { apiVersion, kind, metadata: { name, uid, ...(outer && { namespace: outer }) } },
        ...step,
      })),
    }));
    const answers = answersTo<{ results: string[]; owners: object[] | null; controller: object | null }>(questions);
    for (const [at, question] of questions.entries()) {
      const object: KubernetesObject = JSON.parse(JSON.stringify(question.object));
      const results = question.owners.map(({ owner, controller, block, remove }) => {
        try {
          const changed = remove
            ? removeOwner(object, owner)
            : setOwner(object, owner, { controller, blockOwnerDeletion: block });
          return changed ? 'changed' : 'unchanged';
        } catch (error) {
          if (!isWatchError(error, 'INVALID_ARGUMENT')) throw error;
          return 'refused';
        }
      });
      const shown = { results, owners: object.metadata?.ownerReferences ?? [], controller: controllerOf(object) ?? null };
      const answer = answers[at];
      expect(shown, JSON.stringify(question)).toEqual({ ...answer, owners: answer?.owners ?? [] });
    }
  });

  it('what equals takes for the same is the same there, which knows the types', () => {
    const questions = samples(fc.record({ pods: fc.tuple(pod, pod) }));
    const near = questions.map(({ pods: [{ metadata, spec }, other] }, at) => {
      // All but one member in common.
      const names = Object.keys(other.spec) as (keyof typeof spec)[];
      const name = names[at % names.length] as keyof typeof spec;
      return {
        pods: [
          { metadata, spec },
          { metadata, spec: { ...spec, [name]: other.spec[name] } },
        ] as const,
      };
    });
    const answers = answersTo<{ equal: boolean }>(near);
    const seen = { same: 0, stricter: 0, different: 0 };
    for (const [at, { pods }] of near.entries()) {
      const same = equals(...pods);
      if (same) expect(answers[at]?.equal, JSON.stringify(pods)).toBe(true);
      seen[same ? 'same' : answers[at]?.equal ? 'stricter' : 'different']++;
    }
    expect(Math.min(seen.same, seen.different)).toBeGreaterThan(20);
  });
});
