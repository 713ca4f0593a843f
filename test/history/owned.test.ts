import { describe, expect, it } from 'vitest';
import { checkOwned, type OwnedStep } from '../../src/testing/checkers/check-owned.ts';
import { WORDED } from './build.ts';

const fields = { 'f:spec': { 'f:a': {}, 'f:list': { 'k:{"k":"x"}': { '.': {}, 'f:b': {} } }, 'f:set': { 'v:1': {} } } };
const spec = { a: 1, list: [{ k: 'x', b: 2 }], set: [1] };
const entry = (manager: string, owned: object = fields, operation: string = 'Apply'): object => ({
  ...{ manager, operation, apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: owned },
});
const thing = (of: object, ...managedFields: object[]): object => ({ metadata: { managedFields }, spec: of });
const sent = { spec };
const live = thing(spec, entry('one'));
const onlyA = { 'f:spec': { 'f:a': {} } };
const step = (more: Partial<OwnedStep>): OwnedStep => ({ operation: 'Apply', manager: 'one', sent, ...more });
const check = (...steps: readonly OwnedStep[]): string | undefined => checkOwned({ steps })?.message;

describe('Owned', () => {
  it.each<[string, OwnedStep]>([
    ['a create', step({ after: live })],
    ['an apply that nobody objects to', step({ manager: 'two', before: live, after: thing(spec, entry('one'), entry('two')) })],
    ['a conflict with an owner', step({ manager: 'two', before: live, conflicts: [{ manager: '"one"', field: '.spec.a' }] })],
    [
      'one by force',
      step({
        ...{ manager: 'two', force: true, before: live, sent: { spec: { a: 5 } } },
        after: thing({ ...spec, a: 5 }, entry('two', onlyA)),
      }),
    ],
    [
      'an update',
      step({
        ...{ operation: 'Update', manager: 'two', before: thing(spec, entry('one', onlyA)), sent: { spec: { a: 5 } } },
        after: thing({ a: 5 }, entry('two', onlyA, 'Update')),
      }),
    ],
    ['a refusal', step({ before: live })],
  ])('accepts %s', (_name, each) => {
    expect(check(each)).toBeUndefined();
  });

  it("accepts that what is empty goes with what was in it, and stays its manager's", () => {
    const hollow = { 'f:spec': {} };
    const emptied = step({ before: live, sent: { spec: {} }, after: { metadata: { managedFields: [entry('one', hollow)] } } });
    const others = { metadata: { managedFields: [entry('one', hollow), entry('two', { 'f:b': {} })] }, b: 1 };
    const next = step({ manager: 'two', before: emptied.after, sent: { b: 1 }, after: others });
    expect(check(step({ after: live }), emptied, next)).toBeUndefined();
    expect(check(step({ after: live }), { ...emptied, sent })).toMatch(/owned fields in the object.*f:spec/);
    expect(check(step({ after: live }), { ...emptied, manager: 'two' })).toMatch(/owned fields in the object.*f:spec/);
  });

  it.each<[string, OwnedStep, RegExp]>([
    ['a field that is gone', step({ after: thing({ ...spec, set: [] }, entry('one')) }), /owned fields in the object.*v:1/],
    ['another value than was applied', step({ after: thing({ ...spec, a: 7 }, entry('one')) }), /the value that was applied/],
    [
      'a change of what another owns, without force',
      step({ manager: 'two', before: live, sent: { spec: { a: 5 } }, after: thing({ ...spec, a: 5 }, entry('two', onlyA)) }),
      /expected what one Apply/,
    ],
    [
      'an owner of what somebody else has changed',
      step({ operation: 'Update', manager: 'two', before: live, after: thing({ ...spec, a: 5 }, entry('one')) }),
      /a new owner of/,
    ],
    ['a conflict with nobody', step({ before: live, conflicts: [{ manager: '"else"', field: '.spec.a' }] }), /one with "else"/],
    [
      'a conflict in spite of force',
      step({ force: true, before: live, conflicts: [{ manager: '"one"', field: '.x' }] }),
      /a write/,
    ],
  ])('rejects %s', (_name, each, words) => {
    const message = check(step({ after: live }), each);
    expect(message).toMatch(words);
    expect(message).toMatch(WORDED);
  });
});
