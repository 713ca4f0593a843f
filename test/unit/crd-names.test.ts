// Which names a definition gets, beside others that were decided about at the same time.
import { expect, test } from 'vitest';
import { type Crd, preparedCrd } from '../../src/apiserver/definitions/crd.ts';
import { decided } from '../../src/apiserver/definitions/names.ts';
import { crdOf } from './crd-rig.ts';

interface Named {
  readonly short?: string;
  readonly kind?: string;
  readonly has?: Partial<Crd['status']['acceptedNames']>;
  /** Whether its names are accepted, and whether it is established. */
  readonly is: readonly [accepted: boolean, established: boolean];
}

function crd(plural: string, { short = plural.charAt(0), kind = plural.toUpperCase(), has = {}, is }: Named): Crd {
  const made = preparedCrd(crdOf({}, {}, plural, kind) as never) as Crd;
  const names = { ...made.spec.names, shortNames: [short] };
  const conditions = (['NamesAccepted', 'Established'] as const).map((type, at) => ({
    ...{ type, status: is[at] ? 'True' : 'False', reason: '', message: '', lastTransitionTime: '' },
  }));
  return {
    ...{ ...made, spec: { ...made.spec, names } },
    status: { ...made.status, acceptedNames: { ...names, ...has }, conditions },
  } as Crd;
}

const decide = (one: Crd, others: readonly Crd[], isAgain: boolean = false): Crd['status'] | undefined =>
  decided(one, { known: [one, ...others], fixed: [], nowMs: 0, isAgain })?.status;

const waiting = crd('as', { short: 'x', kind: 'C', has: { shortNames: [] }, is: [false, false] });
const holder = crd('cs', { short: 'x', kind: 'D', is: [true, true] });

test('what has some of its names loses those with which another one was established meanwhile', () => {
  const other = crd('bs', { short: 'as', kind: 'C', is: [true, true] });
  for (const isAgain of [false, true]) {
    const names = decide(waiting, [holder, other], isAgain)?.acceptedNames;
    expect([names?.plural, names?.kind, names?.singular]).toEqual(['', '', undefined]);
  }
});

test('of two that have only some of their names, the one that sees the other when it has claimed them yields', () => {
  const other = crd('bs', { short: 'x', kind: 'C', has: { shortNames: [] }, is: [false, false] });
  expect(decide(waiting, [holder, other])?.acceptedNames.kind).toBe('');
  expect(decide(waiting, [holder, other], true)?.acceptedNames.kind ?? 'C').toBe('C');
});

test('what an established one wants since is its own until it is decided', () => {
  const claim = crd('as', { short: 'x', kind: 'C', is: [true, false] });
  const changed = (is: Named['is']): Crd => crd('bs', { short: 'as', kind: 'B', has: { shortNames: ['b'] }, is });
  expect(decide(claim, [changed([true, true])])?.conditions?.[0]).toMatchObject({ status: 'False', reason: 'PluralConflict' });
  expect(decide(claim, [changed([false, true])])?.conditions).toContainEqual(
    expect.objectContaining({ type: 'Established', status: 'True' }),
  );
});
