import { describe, expect, it } from 'vitest';
import { escapeFieldValue, FieldSelector, parseFieldSelector } from '../../src/selectors/field-selector.ts';
import { LabelSelector, parseLabelSelector, printLabels } from '../../src/selectors/label-selector.ts';
import { attributesOfMeta, SelectionPredicate } from '../../src/selectors/predicate.ts';
import { labelOf } from '../../src/selectors/syntax.ts';
import { isWatchError, type WatchError } from '../../src/watch/errors.ts';
import { thrown } from './support.ts';

const shape = (text: string): unknown =>
  parseFieldSelector(text).terms.map(({ field, operator, value }) => [field, operator, value]);
const refused = (text: string): WatchError => {
  const error = thrown(() => parseFieldSelector(text));
  expect([text, isWatchError(error, 'INVALID_SELECTOR')]).toEqual([text, true]);
  return error as WatchError;
};

describe('a field selector', () => {
  it('TestSplitTerms: cuts at commas that are not escaped, and skips what is empty', () => {
    expect(shape('a=')).toEqual([['a', '=', '']]);
    expect(shape('a=\\,,b=\\\\,c=\\\\\\,d')).toEqual([
      ['a', '=', ','],
      ['b', '=', '\\'],
      ['c', '=', '\\,d'],
    ]);
    expect([shape(''), shape(','), shape(',a=b,, ,')]).toEqual([[], [], [['a', '=', 'b']]]);
  });

  it('TestSplitTerm: the first operator counts', () => {
    expect([shape('a=b'), shape('a==b'), shape('a!=b'), shape('a!b=c')]).toEqual([
      [['a', '=', 'b']],
      [['a', '=', 'b']],
      [['a', '!=', 'b']],
      [['a!b', '=', 'c']],
    ]);
    expect([shape('a!='), shape('a!!=b'), shape('a= b ')]).toEqual([[['a', '!=', '']], [['a!', '!=', 'b']], [['a', '=', ' b ']]]);
    for (const text of ['a', 'a!', 'x in (a)', 'a=b,c']) refused(text);
  });

  it('TestEscapeValue: what is escaped is read back', () => {
    expect(['', 'a', '\\', ',', '=', 'a=b,c\\'].map(escapeFieldValue)).toEqual(['', 'a', '\\\\', '\\,', '\\=', 'a\\=b\\,c\\\\']);
    for (const text of ['\\a', '\\', '\\ ', 'a=b', 'a,b']) refused(`x=${text}`);
  });

  it('TestSelectorParse: accepts what is good, refuses what is bad, and prints what it has read', () => {
    for (const text of ['x=a,y=b,z=c', '', 'x!=a,y=b', 'x=a||y\\=b', 'x=a\\=\\=b'])
      expect(String(parseFieldSelector(text))).toBe(text);
    for (const text of [
      'x=a||y=b',
      'x==a==b',
      'x=a,b',
      'x in (a)',
      'x in (a,b,c)',
      'x',
      '=a',
      'a=\\',
      'a=\\b',
      'a\\,b=c',
      'a! =b',
    ])
      refused(text);
  });

  it('TestDeterministicParse: the order of the text does not matter', () => {
    expect(String(parseFieldSelector('x=a,a=x'))).toBe(String(parseFieldSelector('a=x,x=a')));
  });

  it('TestEverything: no term selects all', () => {
    expect([
      FieldSelector.everything().matches({ x: 'y' }),
      FieldSelector.everything().isEmpty,
      String(FieldSelector.everything()),
    ]).toEqual([true, true, '']);
    const nothing = FieldSelector.nothing();
    expect([nothing.matches({}), nothing.matches({ nothing: 'a' }), nothing.matchesNothing, nothing.isEmpty]).toEqual([
      false,
      false,
      true,
      false,
    ]);
    expect(parseFieldSelector(String(nothing)).canonical).toBe(nothing.canonical);
  });

  it('TestSelectorMatches: a field that is missing is empty', () => {
    const matches = (text: string, fields: Record<string, string>): boolean => parseFieldSelector(text).matches(fields);
    const yes: [string, Record<string, string>][] = [
      ['', { x: 'y' }],
      ['x=y', { x: 'y' }],
      ['x=y,z=w', { x: 'y', z: 'w' }],
      ['x!=y,z!=w', { x: 'z', z: 'a' }],
      ['notin=in', { notin: 'in' }],
      ['x=', {}],
      ['x!=y', {}],
      ['constructor=', {}],
    ]; // prettier-ignore
    const no: [string, Record<string, string>][] = [
      ['x=z', {}],
      ['x=y', { x: 'z' }],
      ['x=y,z=w', { x: 'w', z: 'w' }],
      ['x!=y,z!=w', { x: 'z', z: 'w' }],
      ['x!=', {}],
    ]; // prettier-ignore
    for (const [text, fields] of yes) expect([text, matches(text, fields)]).toEqual([text, true]);
    for (const [text, fields] of no) expect([text, matches(text, fields)]).toEqual([text, false]);
    expect(parseFieldSelector('a=').matches(undefined)).toBe(true);
  });

  it('TestOneTermEqualSelector: one field, one value', () => {
    const one = FieldSelector.fromFields({ x: 'y' });
    expect([one.matches({ x: 'y' }), one.matches({ x: 'z' }), one.matches({}), String(one)]).toEqual([true, false, false, 'x=y']);
  });

  it('TestSetMatches: a selector of fields selects those that have them', () => {
    const fields = { foo: 'bar', baz: 'blah' };
    const wanted = [{}, { foo: 'bar' }, fields, { other: '' }].map((each) => FieldSelector.fromFields(each).matches(fields));
    const unwanted = [{ foo: '' }, { foo: 'blah' }, { other: 'bar' }].map((each) =>
      FieldSelector.fromFields(each).matches(fields),
    );
    expect([wanted, unwanted]).toEqual([
      [true, true, true, true],
      [false, false, false],
    ]);
  });

  it('TestNilMapIsValid: no fields, null and undefined select everything', () => {
    for (const fields of [{}, null, undefined]) expect(FieldSelector.fromFields(fields).isEmpty).toBe(true);
  });

  it('TestSetIsEmpty: only a selector without terms is empty', () => {
    expect(['', ',', 'a=', 'a!=b'].map((text) => parseFieldSelector(text).isEmpty)).toEqual([true, true, false, false]);
  });

  it('TestRequiresExactMatch: the first term that is an equality', () => {
    const exact = (text: string): string | undefined => parseFieldSelector(text).requiresExactMatch('x');
    expect(['x=a', 'x==a', 'x!=b,x=a', 'y=1,x=', 'x!=a', '', 'y=a'].map(exact)).toEqual([
      'a',
      'a',
      'a',
      '',
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('TestTransform: fields get other names and values; empty terms go, and errors come through', () => {
    const selector = parseFieldSelector('a=1,b!=2,c=3');
    const changed = selector.transform((field, value) =>
      field === 'b' ? { field: '', value: '' } : { field: `m.${field}`, value: `${value}=` },
    );
    expect([String(changed), String(selector)]).toEqual(['m.a=1\\=,m.c=3\\=', 'a=1,b!=2,c=3']);
    const failure = new Error('no such field');
    expect(
      thrown(() =>
        selector.transform(() => {
          throw failure;
        }),
      ),
    ).toBe(failure); // prettier-ignore
  });

  it('takes spaces around a field for what they are meant to be', () => {
    expect(shape('a=b, c=d ,\te != f')).toEqual([
      ['a', '=', 'b'],
      ['c', '=', 'd '],
      ['e', '!=', ' f'],
    ]);
  });

  it.each([
    ['a=b=c', 3, '"\\="'],
    ['x,a=b', 1, 'an operator'],
    ['a=b,=c', 4, 'the name of a field'],
    ['a=\\b', 3, 'after a "\\"'],
    ['a\\b=c', 1, 'without "\\"'],
  ])('an error in %j points at character %i', (text, position, expected) => {
    const { position: at, message } = refused(text);
    expect(at).toBe(position);
    expect(message).toContain(expected);
  });

  it.each([
    ['b=1,a=1,a==1', 'a=1,b=1'],
    ['a=1,a!=2', 'a=1'],
    ['a!=2,a!=1,a!=2', 'a!=1,a!=2'],
    ['a=1,a=2', 'nothing!=,nothing='],
    ['a=1,a!=1', 'nothing!=,nothing='],
  ])('the canonical form of %j is %j', (text, canonical) => {
    expect(parseFieldSelector(text).canonical).toBe(canonical);
    expect(parseFieldSelector(text).equals(parseFieldSelector(canonical))).toBe(true);
    expect(parseFieldSelector(text).equals(parseFieldSelector('z=another'))).toBe(false);
  });

  it('refuses terms that cannot be written', () => {
    for (const field of ['', ' a', 'a=', 'a,b', 'a\\', 'a!']) {
      expect([field, thrown(() => FieldSelector.fromFields({ [field]: 'x' }))]).toEqual([
        field,
        expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
      ]);
    }
    expect(thrown(() => new FieldSelector([{ field: 'a', operator: '==' as never, value: 'x' }]))).toHaveProperty(
      'code',
      'INVALID_ARGUMENT',
    );
    expect(thrown(() => new FieldSelector([{ field: 'a', operator: '=', value: 1 as never }]))).toHaveProperty(
      'code',
      'INVALID_ARGUMENT',
    );
    expect(thrown(() => parseFieldSelector('a=b', { maxChars: 2 }))).toMatchObject({ code: 'INVALID_SELECTOR', limit: 2 });
  });
});

describe('labels', () => {
  it('TestSetString: sorted by key', () => {
    expect([printLabels({ x: 'y' }), printLabels({ foo: 'bar', baz: 'blah' }), printLabels({})]).toEqual([
      'x=y',
      'baz=blah,foo=bar',
      '',
    ]);
  });

  it('TestLabelHas: only own labels are there', () => {
    expect([labelOf({ x: '' }, 'x') === '', labelOf({ x: '' }, 'y'), labelOf({}, 'toString'), labelOf(null, 'x')]).toEqual([
      true,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('TestLabelGet: the value of a label', () => {
    expect(labelOf({ x: 'y' }, 'x')).toBe('y');
  });
});

describe('a selection predicate', () => {
  interface Pod {
    metadata: { name: string; namespace: string; labels: Record<string, string> };
    uninitialized?: boolean;
  } // prettier-ignore
  const pod: Pod = { metadata: { name: 'foo', namespace: 'n', labels: { app: 'web' } } };

  it('TestSelectionPredicate: both selectors must match; everything matches without a look', () => {
    const judge = (labels: string, fields: string): boolean =>
      new SelectionPredicate<Pod>({ labels: parseLabelSelector(labels), fields: parseFieldSelector(fields) }).matches(pod);
    expect([
      judge('app=web', 'metadata.name=foo'),
      judge('app=web', 'metadata.name=bar'),
      judge('app=api', 'metadata.name=foo'),
      judge('', ''),
    ]).toEqual([true, false, false, true]);
    const failure = new Error('unknown object');
    const attributesOf = (): never => {
      throw failure;
    }; // prettier-ignore
    expect(new SelectionPredicate({ attributesOf }).matches(pod)).toBe(true);
    expect(thrown(() => new SelectionPredicate({ attributesOf, labels: parseLabelSelector('a') }).matches(pod))).toBe(failure);
    const predicate = new SelectionPredicate({ labels: LabelSelector.fromLabels({ a: 'b' }) });
    expect([predicate.matchesAttributes({ labels: { a: 'b' } }), predicate.matchesAttributes({})]).toEqual([true, false]);
    expect([attributesOfMeta({}), attributesOfMeta(null)]).toEqual(
      Array(2).fill({ labels: undefined, fields: { 'metadata.name': '', 'metadata.namespace': '' } }),
    );
  });

  it('finds one name and one namespace, but not on a further page', () => {
    const fields = parseFieldSelector('metadata.name=a,metadata.namespace=b');
    const first = new SelectionPredicate({ fields });
    const next = new SelectionPredicate({ fields, continue: 'token', limit: 5 });
    expect([first.singleName, first.singleNamespace, next.singleName, next.singleNamespace, next.limit]).toEqual([
      'a',
      'b',
      undefined,
      undefined,
      5,
    ]);
    expect(new SelectionPredicate().singleName).toBeUndefined();
    expect(thrown(() => new SelectionPredicate({ limit: -1 }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('limit: '),
    });
    const bookmarks = (allowWatchBookmarks?: boolean): boolean =>
      new SelectionPredicate({ allowWatchBookmarks }).allowWatchBookmarks;
    expect([bookmarks(), bookmarks(false), bookmarks(true)]).toEqual([false, false, true]);
    expect(thrown(() => new SelectionPredicate({ label: 1 } as never))).toHaveProperty('code', 'INVALID_ARGUMENT');
  });

  it('TestSelectionPredicateMatcherIndex: the values that indexes are asked for', () => {
    const hints = (labels: string, fields: string, namespace?: string): unknown =>
      new SelectionPredicate({
        labels: parseLabelSelector(labels),
        fields: parseFieldSelector(fields),
        indexLabels: ['app'],
        indexFields: ['metadata.namespace', 'spec.nodeName'],
      }) // prettier-ignore
        .indexHints(namespace)
        .map(({ index, value }) => `${index}=${value}`);
    expect(hints('app=web', 'spec.nodeName=n1')).toEqual(['f:spec.nodeName=n1', 'l:app=web']);
    expect(hints('app!=web', 'spec.nodeName!=n1')).toEqual([]);
    expect(hints('', '', 'ns')).toEqual(['f:metadata.namespace=ns']);
    expect(hints('', 'metadata.namespace=other', 'ns')).toEqual(['f:metadata.namespace=other']);
    expect(hints('other=web', 'metadata.name=x')).toEqual([]);
  });
});
