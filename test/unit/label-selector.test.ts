import { describe, expect, it } from 'vitest';
import { LabelLexer } from '../../src/selectors/label-parser.ts';
import { LabelSelector, parseLabelSelector, Requirement } from '../../src/selectors/label-selector.ts';
import type { LabelOperator } from '../../src/selectors/syntax.ts';
import { isWatchError, type WatchError } from '../../src/watch/errors.ts';
import { thrown } from './support.ts';

const GOOD = ['', 'x=a,y=b,z=c', 'x!=a,y=b', 'x=', 'x= ', 'x=,z= ', 'x= ,z= ', '!x', 'x>1', 'x>1,z<5', 'in', 'in in (in)'];
const BAD = ['x=a||y=b', 'x==a==b', '!x=a', 'x<a', 'x>', 'x>1.5', 'x>-1', 'x>9223372036854775808', 'x\0', 'x=a\0,y', '\0'];

/** `x in (a)` as upstream's parser sees it: requirements by key, operator, values. */
const shape = (text: string): unknown =>
  parseLabelSelector(text).requirements.map(({ key, operator, values }) => [key, operator, ...values]);
const refused = (text: string): WatchError => {
  const error = thrown(() => parseLabelSelector(text));
  expect([text, isWatchError(error, 'INVALID_SELECTOR')]).toEqual([text, true]);
  return error as WatchError;
};
const kinds = (text: string): string[] => {
  const lexer = new LabelLexer(text);
  const found: string[] = [];
  while (!lexer.is('end')) found.push(lexer.is('word') ? `word ${lexer.take().text}` : lexer.take().kind);
  return found;
};

describe('parsing', () => {
  it('TestSelectorParse: accepts what is good, refuses what is bad, and prints what it has read', () => {
    for (const text of GOOD) expect(shape(String(parseLabelSelector(text)))).toEqual(shape(text));
    for (const text of BAD) refused(text);
  });

  it('TestDeterministicParse: the order of the text does not matter', () => {
    expect(String(parseLabelSelector('x=a,a=x'))).toBe(String(parseLabelSelector('a=x,x=a')));
  });

  it('TestLexer: one token at a time', () => {
    for (const token of ['=', '==', '!=', '!', '(', ')', ',', '>', '<']) expect(kinds(token)).toEqual([token]);
    for (const word of ['in', 'notin', 'a', 'in-b', '|', '\0']) expect(kinds(word)).toEqual([`word ${word}`]);
    expect(kinds('')).toEqual([]);
    expect(kinds(' \t\r\n')).toEqual([]);
  });

  it('TestLexerSequence: the longest operator counts, and spaces separate', () => {
    expect(kinds('key in ( value )')).toEqual(['word key', 'word in', '(', 'word value', ')']);
    expect(kinds('key notin(value)')).toEqual(['word key', 'word notin', '(', 'word value', ')']);
    expect(kinds('key in (value1,value2)')).toEqual(['word key', 'word in', '(', 'word value1', ',', 'word value2', ')']);
    expect(kinds('!key,key==v')).toEqual(['!', 'word key', ',', 'word key', '==', 'word v']);
    expect(kinds('key!=v')).toEqual(['word key', '!=', 'word v']);
    expect(kinds('()')).toEqual(['(', ')']);
    expect(kinds('x in (),y')).toEqual(['word x', 'word in', '(', ')', ',', 'word y']);
    expect(kinds('== != (), = notin')).toEqual(['==', '!=', '(', ')', ',', '=', 'word notin']);
    expect(kinds('key\t>2')).toEqual(['word key', '>', 'word 2']);
    expect(kinds('a===b')).toEqual(['word a', '==', '=', 'word b']);
  });

  it('TestParserLookahead: looking at a token does not take it', () => {
    const lexer = new LabelLexer('key in (a)');
    expect([lexer.next.text, lexer.next.text, lexer.take().text, lexer.next.text]).toEqual(['key', 'key', 'key', 'in']);
    expect(lexer.next).toEqual({ kind: 'word', text: 'in', at: 4 });
    for (let left = 0; left < 4; left++) lexer.take();
    expect([lexer.is('end'), lexer.take().kind, lexer.take().at]).toEqual([true, 'end', 10]);
  });

  it('TestParseOperator: those of the language, and no other', () => {
    const operators = ['x in (a)', 'x notin (a)', 'x=a', 'x==a', 'x!=a', 'x>1', 'x<1'].map((text) => shape(text));
    expect(operators).toEqual(
      ['in', 'notin', '=', '==', '!=', 'gt', 'lt'].map((op) => [['x', op, /[gl]t/.test(op) ? '1' : 'a']]),
    );
    for (const text of ['x ! a', 'x exists', 'x nott in (y)', 'x (a)', 'x ) a', 'x => a']) refused(text);
  });

  it('TestSetSelectorParser: sets, with empty values between commas', () => {
    const good: [string, unknown][] = [
      ['', []],
      ['\rx', [['x', 'exists']]],
      ['this-is-a-dns.domain.com/key-with-dash', [['this-is-a-dns.domain.com/key-with-dash', 'exists']]],
      [
        'this-is-another-dns.domain.com/key-with-dash in (so,what)',
        [['this-is-another-dns.domain.com/key-with-dash', 'in', 'so', 'what']],
      ],
      ['0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)', [['0.1.2.domain/99', 'notin', '10.10.100.1', 'tick.tack.clock']]],
      ['foo  in     (abc)', [['foo', 'in', 'abc']]],
      ['x notin\n (abc)', [['x', 'notin', 'abc']]],
      ['x  notin	\t	(abc,def)', [['x', 'notin', 'abc', 'def']]],
      ['x in (abc,)', [['x', 'in', '', 'abc']]],
      ['x in ()', [['x', 'in', '']]],
      [
        'x notin (abc,,def),bar,z in (),w',
        [
          ['bar', 'exists'],
          ['w', 'exists'],
          ['x', 'notin', '', 'abc', 'def'],
          ['z', 'in', ''],
        ],
      ],
      [
        'x,y in (a)',
        [
          ['x', 'exists'],
          ['y', 'in', 'a'],
        ],
      ],
      ['x=a', [['x', '=', 'a']]],
      [
        'x>1,x<7',
        [
          ['x', 'gt', '1'],
          ['x', 'lt', '7'],
        ],
      ],
      [
        'x=a,y!=b,z in (h,i,j)',
        [
          ['x', '=', 'a'],
          ['y', '!=', 'b'],
          ['z', 'in', 'h', 'i', 'j'],
        ],
      ],
      ['x notin ( )', [['x', 'notin', '']]],
      ['x notin (, a)', [['x', 'notin', '', 'a']]],
      ['a ', [['a', 'exists']]],
      ['a in (x,y,notin, z,in)', [['a', 'in', 'in', 'notin', 'x', 'y', 'z']]],
      ['a in (b,b,b)', [['a', 'in', 'b']]],
      ['a in (,,)', [['a', 'in', '']]],
    ];
    for (const [text, expected] of good) expect([text, shape(text)]).toEqual([text, expected]);
    const bad =
      'x=a||y=b;x,,y;,x,y;x nott in (y);a in (xyz),;a in (xyz)b notin ();a in (xyz abc);a notin(;a (;(;a in (b;,;x,;!;!!x;a in b;a=(b)';
    for (const text of bad.split(';')) refused(text);
  });
});

describe('an error', () => {
  it.each([
    ['a in (b c)', 8, '","'],
    ['a in (b', 7, 'expected "," or ")"'],
    ['a in (b,', 8, 'a label value, "," or ")"'],
    ['x,', 2, 'a label key'],
    ['x==a==b', 4, '"," or the end'],
    ['x=a\0,y', 3, 'letters, digits'],
    ['x>1.5', 2, 'a 64-bit integer'],
    ['a/b/c', 3, 'at most one "/"'],
    ['A.com/b', 0, 'a prefix of lower-case'],
    ['a..b/c', 2, 'a lower-case letter or digit'],
    ['a-/c', 1, 'a lower-case letter or digit'],
    ['/c', 0, 'a lower-case letter or digit'],
    ['a/', 2, 'a name after the "/"'],
    ['b,-a', 2, 'begins with a letter or digit'],
    ['b,a-', 3, 'ends with a letter or digit'],
    [`b,${'a'.repeat(64)}`, 65, 'at most 63 characters'],
    [`${'a'.repeat(254)}/x`, 253, 'at most 253 characters'],
    ['x notin', 7, '"("'],
  ])('of %j points at character %i', (text, position, expected) => {
    const error = refused(text);
    expect(error.position).toBe(position);
    expect(error.message).toContain(expected);
    const [head = '', shown = '', caret = ''] = error.message.split('\n');
    expect(head).toContain(`at character ${position + 1}`);
    expect(shown[caret.length - 1] ?? '').toBe(text[position] === '\0' ? ' ' : (text[position] ?? ''));
    expect(caret.trim()).toBe('^');
  });

  it('is laid out like this', () => {
    expect(refused('a in (b c)').message).toBe(
      ['label selector: expected "," or ")" at character 9, got "c"', '  a in (b c)', '          ^'].join('\n'),
    );
  });

  it('shows the surroundings of a long text, in three lines, whatever the text', () => {
    const text = `${'a=b,'.repeat(1_000)}c=\r\n\u2028d e,${'a=b,'.repeat(1_000)}f`;
    const { message, position } = refused(text);
    expect([text[position as number], message.includes('got U+2028')]).toEqual(['\u2028', true]);
    const [, shown = '', caret = ''] = message.split('\n');
    expect(message.split(/[\r\n\u2028]/)).toHaveLength(3);
    expect([shown[caret.length - 1], shown.slice(2, 3), shown.at(-1)]).toEqual([' ', '…', '…']);
    expect(message.length).toBeLessThan(300);
  });

  it('for a text that is too long comes before the text is looked at', () => {
    const error = thrown(() => parseLabelSelector('('.repeat(65_537))) as WatchError;
    expect([error.code, error.limit, error.position]).toEqual(['INVALID_SELECTOR', 65_536, 65_536]);
    expect(shape('a'.repeat(63))).toHaveLength(1);
    expect((thrown(() => parseLabelSelector('aa', { maxChars: 1 })) as WatchError).limit).toBe(1);
    expect(thrown(() => parseLabelSelector('a', { maxChars: -1 }))).toHaveProperty('code', 'INVALID_ARGUMENT');
    expect(thrown(() => parseLabelSelector(5 as never))).toHaveProperty('code', 'INVALID_ARGUMENT');
  });
});

describe('matching', () => {
  const matches = (text: string, labels: Record<string, string> | null | undefined): boolean =>
    parseLabelSelector(text).matches(labels);

  it('TestEverything: no requirement selects all', () => {
    expect([LabelSelector.everything().matches({ x: 'y' }), LabelSelector.everything().isEmpty]).toEqual([true, true]);
    expect([matches('', {}), matches('', undefined), matches('', null)]).toEqual([true, true, true]);
  });

  it('TestSelectorMatches: equality, presence, sets and integers', () => {
    const yes: [string, Record<string, string>][] = [
      ['x=y', { x: 'y' }],
      ['x=y,z=w', { x: 'y', z: 'w' }],
      ['x!=y,z!=w', { x: 'z', z: 'a' }],
      ['notin=in', { notin: 'in' }],
      ['x', { x: 'z' }],
      ['!x', { y: 'z' }],
      ['x>1', { x: '2' }],
      ['x<1', { x: '0' }],
      ['x!=y', {}],
      ['x notin (y)', {}],
      ['x=', { x: '' }],
      ['x>5', { x: '+006' }],
      ['x<5', { x: '-9223372036854775808' }],
      ['x>9007199254740992', { x: '9007199254740993' }],
    ]; // prettier-ignore
    const no: [string, Record<string, string>][] = [
      ['x=z', {}],
      ['x=y', { x: 'z' }],
      ['x=y,z=w', { x: 'w', z: 'w' }],
      ['x!=y,z!=w', { x: 'z', z: 'w' }],
      ['x', { y: 'z' }],
      ['!x', { x: 'z' }],
      ['x>1', { x: '0' }],
      ['x>1', { x: '1' }],
      ['x<1', { x: '2' }],
      ['x>1', { x: '2x' }],
      ['x>1', {}],
      ['x=', {}],
      ['x>1', { x: '9223372036854775808' }],
      ['x>1', { x: ' 2' }],
      ['x>1', { x: '' }],
      ['x>1', { x: '1'.repeat(200_000) }],
    ]; // prettier-ignore
    for (const [text, labels] of yes) expect([text, matches(text, labels)]).toEqual([text, true]);
    for (const [text, labels] of no) expect([text, matches(text, labels)]).toEqual([text, false]);
  });

  it('TestSetMatches: a selector of labels selects those that have them', () => {
    const labels = { foo: 'bar', baz: 'blah' };
    const wanted = [{}, { foo: 'bar' }, { baz: 'blah' }, labels];
    expect(wanted.map((each) => LabelSelector.fromLabels(each).matches(labels))).toEqual([true, true, true, true]);
    const unwanted = [{ foo: '' }, { foo: 'blah' }, { other: 'bar' }, { ...labels, x: '' }];
    expect(unwanted.map((each) => LabelSelector.fromLabels(each).matches(labels))).toEqual([false, false, false, false]);
  });

  it('TestNilMapIsValid: no labels, null and undefined select everything', () => {
    for (const labels of [{}, null, undefined]) expect(LabelSelector.fromLabels(labels).isEmpty).toBe(true);
  });

  it('TestSetIsEmpty: only a selector without requirements is empty', () => {
    expect(['', 'a', '!a', 'a=b'].map((text) => parseLabelSelector(text).isEmpty)).toEqual([true, false, false, false]);
  });

  it('TestRequirementSelectorMatching: each operator alone', () => {
    const has = (operator: LabelOperator, values: string[], labels: Record<string, string>): boolean =>
      new Requirement('x', operator, values).matches(labels);
    expect(has('in', ['foo', 'bar'], { x: 'foo' })).toBe(true);
    expect(has('in', ['foo', 'bar'], { x: 'baz' })).toBe(false);
    expect(has('notin', ['foo'], {})).toBe(true);
    expect(has('notin', ['foo'], { x: 'foo' })).toBe(false);
    expect(has('exists', [], { x: '' })).toBe(true);
    expect(has('!', [], { x: '' })).toBe(false);
  });

  it('TestMatchesNothing: says so, also for what cannot be fulfilled', () => {
    const nothing = LabelSelector.nothing();
    expect([nothing.matches({}), nothing.matches({ nothing: '' }), nothing.matchesNothing, nothing.isEmpty]).toEqual([
      false,
      false,
      true,
      false,
    ]);
    expect(parseLabelSelector(String(nothing)).matchesNothing).toBe(true);
    expect(['a=1,a=2', 'a,!a', 'a>5,a<6', '', 'a'].map((text) => parseLabelSelector(text).matchesNothing)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  it('looks only at own labels, whatever their names', () => {
    expect(['constructor', 'toString', 'hasOwnProperty'].map((key) => matches(key, {}))).toEqual([false, false, false]);
    const own = JSON.parse('{"constructor":"a"}') as Record<string, string>;
    expect(matches('constructor=a', own)).toBe(true);
    const odd = JSON.parse('{"__proto__":"a"}') as Record<string, string>;
    expect([LabelSelector.everything().matches(odd), thrown(() => LabelSelector.fromLabels(odd))]).toEqual([
      true,
      expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
    ]);
  });
});

describe('a requirement', () => {
  it('TestRequirementConstructor: arity, integers and syntax, all violations at once', () => {
    const ok: [LabelOperator, string[]][] = [
      ['in', ['a']],
      ['notin', ['a', 'b']],
      ['=', ['a']],
      ['==', ['']],
      ['!=', ['a']],
      ['exists', []],
      ['!', []],
      ['gt', ['1']],
      ['lt', ['0']],
    ]; // prettier-ignore
    for (const [operator, values] of ok) expect(new Requirement('x', operator, values).operator).toBe(operator);
    const wrong: [string, LabelOperator, string[]][] = [
      ['x', 'in', []],
      ['x', 'notin', []],
      ['x', '=', []],
      ['x', '=', ['a', 'b']],
      ['x', '!=', []],
      ['x', 'exists', ['a']],
      ['x', '!', ['a']],
      ['x', 'gt', ['a']],
      ['x', 'gt', ['1', '2']],
      ['x', 'lt', []],
      ['x', 'lt', ['-1']],
      ['a'.repeat(64), 'exists', []],
      ['x', 'in', ['a'.repeat(64)]],
      ['x', 'in', ['a b']],
      ['', 'exists', []],
      ['x', 'toString' as never, []],
    ]; // prettier-ignore
    for (const [key, operator, values] of wrong) {
      expect([
        operator,
        values,
        isWatchError(
          thrown(() => new Requirement(key, operator, values)),
          'INVALID_ARGUMENT',
        ),
      ]).toEqual([operator, values, true]);
    }
    const { message } = thrown(() => new Requirement('-x', '=', ['b c', 'd-'])) as Error;
    expect(message.split('; ')).toHaveLength(4);
    expect(message).toMatch(/key "-x".*exactly one value.*value "b c".*value "d-"/);
    expect(thrown(() => new Requirement(1 as never, '=', ['a']))).toHaveProperty('code', 'INVALID_ARGUMENT');
    expect(thrown(() => new Requirement('a', '=', 'a' as never))).toHaveProperty('code', 'INVALID_ARGUMENT');
    expect(thrown(() => new Requirement('a', '=', [1] as never))).toHaveProperty('code', 'INVALID_ARGUMENT');
  });

  it('TestRequirementEqual: the same set of values is the same requirement', () => {
    const one = new LabelSelector([new Requirement('key', 'in', ['foo', 'bar'])]);
    const equal = [
      ['bar', 'foo'],
      ['foo', 'bar', 'foo'],
    ].map((values) => one.equals(new LabelSelector([new Requirement('key', 'in', values)])));
    expect(equal).toEqual([true, true]);
    const others = [
      new Requirement('key', 'in', ['foo']),
      new Requirement('key', 'notin', ['foo', 'bar']),
      new Requirement('kei', 'in', ['foo', 'bar']),
    ];
    expect(others.map((other) => one.equals(new LabelSelector([other])))).toEqual([false, false, false]);
  });

  it('TestAdd: gives a new selector, sorted by key, and leaves the old one alone', () => {
    const one = parseLabelSelector('key notin (b),b');
    const two = one.add(new Requirement('a', '=', ['1']), new Requirement('key', '!'));
    expect([String(one), String(two)]).toEqual(['b,key notin (b)', 'a=1,b,key notin (b),!key']);
  });

  it('TestSafeSort: sorts copies, never the caller’s arrays', () => {
    const values = ['c', 'a', 'b'];
    const requirements = [new Requirement('z', 'in', values), new Requirement('a', 'exists')];
    const selector = new LabelSelector(requirements);
    expect([values, requirements.map(({ key }) => key), selector.requirements.map(({ key }) => key)]).toEqual([
      ['c', 'a', 'b'],
      ['z', 'a'],
      ['a', 'z'],
    ]);
    expect(requirements[0]?.values).toEqual(['a', 'b', 'c']);
  });
});

describe('printing', () => {
  it('TestToString: every operator', () => {
    const selector = new LabelSelector([
      new Requirement('x', 'in', ['def', 'abc']),
      new Requirement('y', 'notin', ['jkl']),
      new Requirement('z', 'exists'),
      new Requirement('a', '!'),
      new Requirement('g', 'gt', ['7']),
      new Requirement('l', 'lt', ['8']),
      new Requirement('e', '==', ['v']),
      new Requirement('n', '!=', ['']),
    ]); // prettier-ignore
    expect(String(selector)).toBe('!a,e==v,g>7,l<8,n!=,x in (abc,def),y notin (jkl),z');
    expect(JSON.stringify({ selector })).toBe(`{"selector":${JSON.stringify(String(selector))}}`);
  });

  it('TestSetSelectorString: what is printed is parsed again', () => {
    for (const text of ['x notin ()', 'x in (,a)', 'a in (b),a notin (c)', 'x=,y!=']) {
      expect(shape(String(parseLabelSelector(text)))).toEqual(shape(text));
    }
  });

  it.each([
    ['', ''],
    ['a in (1)', 'a=1'],
    ['b,a==1', 'a=1,b'],
    ['a in (3,1,2),a!=2', 'a in (1,3)'],
    ['a,a,a', 'a'],
    ['a,a=1', 'a=1'],
    ['a!=1,a notin (2)', 'a notin (1,2)'],
    ['a,a!=1', 'a,a!=1'],
    ['!a,a!=1', '!a'],
    ['!a,a=1', 'nothing,!nothing'],
    ['a>05,a<9,a>3,a!=7,a!=x,a!=99', 'a>5,a<9,a!=7'],
    ['a>5,a in (4,6,007,x)', 'a in (007,6)'],
    ['a>3,a>5,a>4', 'a>5'],
    ['a<9,a<7,a<8', 'a<7'],
    ['a>5,a<6', 'nothing,!nothing'],
    ['a>9223372036854775807', 'nothing,!nothing'],
    ['b=1,a=1,a=2', 'nothing,!nothing'],
  ])('the canonical form of %j is %j', (text, canonical) => {
    expect(parseLabelSelector(text).canonical).toBe(canonical);
  });
});

describe('from other forms', () => {
  it('TestRequiresExactMatch: the first requirement for the key decides', () => {
    const exact = (text: string, key = 'x'): string | undefined => parseLabelSelector(text).requiresExactMatch(key);
    expect(['x=a', 'x==a', 'x in (a)', 'x=', 'x=a,x!=b'].map((text) => exact(text))).toEqual(['a', 'a', 'a', '', 'a']);
    const not = ['', 'y=a', 'x in (a,b)', 'x!=a', 'x notin (a)', 'x', '!x', 'x>1', 'x<1', 'x,x=a', 'x!=b,x=a'];
    expect(not.map((text) => exact(text))).toEqual(not.map(() => undefined));
    expect(exact('constructor=a', 'toString')).toBeUndefined();
  });

  it('TestValidatedSelectorFromSet: labels that no object has are refused', () => {
    expect(String(LabelSelector.fromLabels({ foo: 'bar', app: 'x' }))).toBe('app=x,foo=bar');
    const error = thrown(() =>
      LabelSelector.fromLabels({ Key: 'axahm2EJ8Phiephe2eixohbee9eGeiyees1thuozi1xoh0GiuH3diewi8iem7Nui' }),
    ) as Error;
    expect(isWatchError(error, 'INVALID_ARGUMENT')).toBe(true);
    expect(error.message).toContain('at most 63 characters');
  });

  it('matchLabels and matchExpressions; an empty object selects everything, none selects nothing', () => {
    const object = {
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['b', 'a'] },
        { key: 'env', operator: 'NotIn', values: ['dev'] },
        { key: 'app', operator: 'Exists' },
        { key: 'old', operator: 'DoesNotExist', values: [] },
      ],
    };
    expect(String(LabelSelector.fromObject(object))).toBe('app=web,app,env notin (dev),!old,tier in (a,b)');
    expect([
      LabelSelector.fromObject({}).isEmpty,
      LabelSelector.fromObject({ matchLabels: null, matchExpressions: null }).isEmpty,
    ]).toEqual([true, true]);
    expect([LabelSelector.fromObject(null).matchesNothing, LabelSelector.fromObject(undefined).matchesNothing]).toEqual([
      true,
      true,
    ]);
    for (const matchExpressions of [
      [{ key: 'a', operator: 'Gt', values: ['1'] }],
      [{ key: 'a', operator: 'In' }],
      [{ key: 'a', operator: 'Exists', values: ['1'] }],
      [{ key: '/', operator: 'Exists' }],
    ]) {
      expect(thrown(() => LabelSelector.fromObject({ matchExpressions }))).toHaveProperty('code', 'INVALID_ARGUMENT');
    }
  });
});

describe('a selector with many keys', () => {
  const keys = Array.from({ length: 300 }, (_, at) => `k${at}`);
  const labels = (...present: number[]): Record<string, string> => Object.fromEntries(present.map((at) => [`k${at}`, 'v']));

  it('selects as its requirements do, whether objects have more labels or fewer', () => {
    const selectors = [
      keys.map((key) => `!${key}`).join(),
      keys.map((key) => `${key}!=v`).join(),
      ['k299', ...keys.slice(0, 299).map((key) => `${key}!=w`)].join(),
      ['k1>1', 'k2', '!k3', '!k4'].join(),
    ].map((text) => parseLabelSelector(text));
    for (const selector of selectors) {
      for (const each of [null, {}, labels(299), labels(0, 299), labels(299, 400), labels(...keys.keys()), { k1: '2', k2: '' }]) {
        expect(selector.matches(each)).toBe(selector.requirements.every((requirement) => requirement.matches(each)));
      }
    }
  });

  it('looks at as many labels as an object has, or requires', () => {
    let looked = 0;
    const counted = (of: Record<string, string>): Record<string, string> =>
      new Proxy(of, {
        getOwnPropertyDescriptor: (target, key) => {
          looked++;
          return Reflect.getOwnPropertyDescriptor(target, key);
        },
      });
    for (const text of [keys.map((key) => `!${key}`).join(), keys.join()]) {
      looked = 0;
      parseLabelSelector(text).matches(counted(labels(0, 400)));
      expect(looked).toBeLessThan(12);
    }
  });
});
