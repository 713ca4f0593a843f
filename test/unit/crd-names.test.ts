// Which names a definition gets, beside others that were decided about at the same time.
import { describe, expect, test } from 'vitest';
import { type Crd, type CrdNames, preparedCrd } from '../../src/apiserver/definitions/crd.ts';
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

describe('names', () => {
  const NOW = '1970-01-01T00:00:00Z';
  const [yes, no] = [{ status: 'True' } as const, { status: 'False' } as const];
  const free = { type: 'NamesAccepted', ...yes, reason: 'NoConflicts', message: 'no conflicts found' };
  const taken = (kind: string, message: string) => ({ type: 'NamesAccepted', ...no, reason: `${kind}Conflict`, message });
  const refused = { type: 'Established', ...no, reason: 'NotAccepted', message: 'not all names are accepted' };
  const installing = {
    ...{ type: 'Established', ...no, reason: 'Installing', message: 'the initial names have been accepted' },
  };
  const done = { type: 'Established', ...yes, reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' };
  const at = (...conditions: object[]): object[] => conditions.map((each) => ({ ...each, lastTransitionTime: NOW }));

  const fresh = (names: Partial<CrdNames> = {}, spec: object = {}): Crd =>
    preparedCrd(crdOf({ names: { plural: 'as', kind: 'A', ...names }, ...spec }, {}, 'as', 'A') as never) as Crd;
  const other: Crd = {
    ...(preparedCrd(crdOf({}, {}, 'os', 'O') as never) as Crd),
    status: {
      acceptedNames: { plural: 'os', singular: 'o', shortNames: ['x', 'y'], kind: 'O', listKind: 'OList' },
      conditions: at(free, done) as never,
      storedVersions: ['v1'],
    },
  };
  const OWN: CrdNames = { plural: 'as', singular: 'a', kind: 'A', listKind: 'AList' };
  const next = (crd: Crd, known: readonly Crd[] = [other], fixed: readonly object[] = []): Crd | undefined =>
    decided(crd, { known: [crd, ...known], fixed: fixed as never, nowMs: 0 });

  test('that are free are claimed, and have them once nobody else has claimed them', () => {
    const names = { shortNames: ['z'], categories: ['all'] };
    const claim = next(fresh(names));
    expect(claim?.status).toMatchObject({ acceptedNames: { ...OWN, ...names }, conditions: at(free, installing) });
    const established = next(claim as Crd);
    expect(established?.status).toMatchObject({ acceptedNames: { ...OWN, ...names }, conditions: at(free, done) });
    expect(next(established as Crd)).toBeUndefined();
    expect(next(fresh({ categories: [] }))?.status.acceptedNames).toEqual(OWN);
    expect(next({ ...fresh(), metadata: { name: 'as.example.com', deletionTimestamp: NOW } })).toBeUndefined();
  });

  test.each<[what: string, wanted: Partial<CrdNames>, has: Record<string, unknown>, condition: object]>([
    ['a plural', { plural: 'x' }, { plural: '' }, taken('Plural', '"x" is already in use')],
    ['a singular', { singular: 'os' }, { singular: undefined }, taken('Singular', '"os" is already in use')],
    ['a kind', { kind: 'OList', singular: 'a' }, { kind: '', listKind: 'OListList' }, taken('Kind', '"OList" is already in use')],
    ['the kind of lists', { listKind: 'O' }, { listKind: undefined }, taken('ListKind', '"O" is already in use')],
    ['one short name', { shortNames: ['z', 'o'] }, {}, taken('ShortNames', '"o" is already in use')],
    [
      'several short names',
      { shortNames: ['y', 'z', 'x', 'y'], categories: ['all'] },
      { categories: ['all'] },
      taken('ShortNames', '["y" is already in use, "x" is already in use]'),
    ],
    [
      'several of them',
      { singular: 'o', listKind: 'OList', shortNames: ['x'] },
      { singular: undefined, listKind: undefined },
      taken('ListKind', '"OList" is already in use'),
    ],
  ])('%s that another one has is refused, and the others are taken', (_, wanted, has, condition) => {
    const refusal = next(fresh(wanted));
    const acceptedNames = Object.fromEntries(Object.entries({ ...OWN, ...has }).filter(([, name]) => name !== undefined));
    expect(refusal?.status).toMatchObject({ acceptedNames, conditions: at(condition, refused) });
    expect(Object.keys(refusal?.status.acceptedNames ?? {}).sort()).toEqual(Object.keys(acceptedNames).sort());
    expect(next(refusal as Crd)).toBeUndefined();
    const [isFree] = [next(refusal as Crd, [])];
    expect(isFree?.status.conditions).toEqual(at(free, installing));
  });

  test('that the program serves, or another definition of the group has, are not free; those of other groups are', () => {
    const ours = { ...OWN, group: 'example.com' };
    expect(next(fresh(), [], [ours])?.status.conditions).toEqual(at(taken('ListKind', '"AList" is already in use'), refused));
    expect(next(fresh(), [], [{ ...ours, group: 'other.example' }])?.status.conditions).toEqual(at(free, installing));
    const elsewhere: Crd = { ...other, spec: { ...other.spec, group: 'other.example' } };
    expect(next(fresh({ shortNames: ['x'] }), [elsewhere])?.status.conditions).toEqual(at(free, installing));
  });

  test('that are lost between the claim and the end of the installation are given up', () => {
    const claim = next(fresh({ shortNames: ['x'] }), []);
    expect(next(claim as Crd)?.status).toMatchObject({
      ...{ acceptedNames: OWN, conditions: at(taken('ShortNames', '"x" is already in use'), refused) },
    });
  });

  test('an established definition keeps those that it has if it does not get others', () => {
    const has = { ...OWN, shortNames: ['z'] };
    const names = (wanted: Partial<CrdNames>): Crd => ({
      ...fresh(wanted),
      status: { acceptedNames: has, conditions: at(free, done) as never, storedVersions: ['v1'] },
    });
    expect(next(names({ shortNames: ['z'] }))).toBeUndefined();
    for (const [wanted, condition] of [
      [{ shortNames: ['z', 'x'] }, taken('ShortNames', '"x" is already in use')],
      [{ shortNames: ['z'], singular: 'o' }, taken('Singular', '"o" is already in use')],
      // A name is its own only as what it was accepted.
      [{ shortNames: ['z', 'as'] }, taken('ShortNames', '"as" is already in use')],
      [{ shortNames: ['z'], listKind: 'A' }, taken('ListKind', '"A" is already in use')],
    ] as const) {
      const refusal = next(names(wanted));
      expect(refusal?.status).toMatchObject({ acceptedNames: has, conditions: at(condition, done) });
      expect(next(refusal as Crd)).toBeUndefined();
    }
    // It gives up one of them, and gets it as something else after that.
    const given = next(names({ singular: 'z', shortNames: ['w'] }));
    expect(given?.status).toMatchObject({
      acceptedNames: { ...has, shortNames: ['w'] },
      conditions: at(taken('Singular', '"z" is already in use'), done),
    });
    expect(next(given as Crd)?.status).toMatchObject({
      acceptedNames: { ...has, singular: 'z', shortNames: ['w'] },
      conditions: at(free, done),
    });
  });

  test('a claim that is decided about again keeps what others have claimed later, and loses what they have been given', () => {
    const claims = { singular: 'a', shortNames: ['s', 't'], listKind: 'AList' };
    const waiting = fresh({ ...claims, kind: 'O' });
    const status = {
      ...{ acceptedNames: { plural: 'as', ...claims, kind: '' }, storedVersions: ['v1'] },
      conditions: at(taken('Kind', '"O" is already in use'), refused) as never,
    };
    const again = (others: Partial<Crd['status']['acceptedNames']>, isEstablished: boolean): CrdNames | undefined => {
      const conditions = at(isEstablished ? free : taken('Kind', ''), isEstablished ? done : refused);
      const acceptedNames = { plural: 'bs', kind: '', ...others };
      const metadata = { name: 'bs.example.com' };
      const second = { ...other, metadata, status: { acceptedNames, conditions, storedVersions: ['v1'] } } as Crd;
      const known = [{ ...waiting, status }, other, second];
      return decided({ ...waiting, status }, { known, fixed: [], nowMs: 0, isAgain: true })?.status.acceptedNames;
    };
    expect(again({ ...claims, plural: 'as' }, false)).toBeUndefined();
    expect(again({ singular: 'a' }, true)).toEqual({ plural: 'as', shortNames: ['s', 't'], kind: '', listKind: 'AList' });
    expect(again({ listKind: 'AList' }, true)).toEqual({ plural: 'as', singular: 'a', shortNames: ['s', 't'], kind: '' });
    expect(again({ shortNames: ['t'] }, true)).toEqual({ ...claims, plural: 'as', shortNames: ['s'], kind: '' });
    expect(again({ plural: 'as' }, true)).toEqual({ ...claims, plural: '', kind: '' });
  });

  test('a condition that says something else is written anew, with its time if its status is another one', () => {
    const refusal = next(fresh({ singular: 'o' })) as Crd;
    const [first, ...rest] = refusal.status.conditions ?? [];
    for (const wrong of [{ reason: 'Other' }, { message: 'other' }]) {
      const conditions = [{ ...first, ...wrong, lastTransitionTime: 'then' }, ...rest] as never;
      const corrected = next({ ...refusal, status: { ...refusal.status, conditions } })?.status.conditions;
      expect(corrected).toEqual([{ ...first, lastTransitionTime: 'then' }, ...rest]);
    }
  });
});
