// What the page of `pipe` reads from lines: levels, fields, and the colours of terminals.
import { describe, expect, test } from 'vitest';
import { toRuns, withStyles } from '../../src/pages/pipe/ansi.ts';
import { fieldText, LEVELS, learnFields, levelOf, rankOf, toLevel, withoutStyles } from '../../src/pages/pipe/fields.ts';
import { livePage } from '../../src/pages/pipe/page.ts';
import { contrast } from '../contrast.ts';

const ESC = '\u001b';
const names = (text: string): string[] => toRuns(text, 1_000).runs.map((run) => `${run.name}:${run.text}`);

describe('the level of a line', () => {
  test.each([
    [{ level: 30 }, 'info'],
    [{ level: 40, msg: 'ERROR' }, 'warn'],
    [{ level: 60 }, 'fatal'],
    [{ level: 35 }, 'notice'],
    [{ level: 3 }, 'error'],
    [{ level: 0 }, 'emerg'],
    [{ PRIORITY: '4' }, 'warn'],
    [{ level: 'Warning' }, 'warn'],
    [{ severity: 'CRITICAL' }, 'fatal'],
    [{ 'log.level': 'debug' }, 'debug'],
    [{ log: { level: 'err' } }, 'error'],
    [{ levelname: 'INFO' }, 'info'],
    [{ level: 'unheard', severity: 'alert' }, 'alert'],
    [{ level: 8 }, undefined],
    [{ level: { a: 1 } }, undefined],
    [{ level: '__proto__' }, undefined],
    [null, undefined],
    [[1], undefined],
    [7, undefined],
  ])('of %j is %s', (object, level) => {
    expect(levelOf(object)).toBe(level);
  });

  test.each([
    ['<34>Oct 11 22:14:15 mymachine su: failed', 'fatal'],
    ['<165>1 2003-10-11T22:14:15.003Z host', 'notice'],
    ['E0131 10:00:00.1 1 main.go:1] x', 'error'],
    ['ts=1 level=warn msg="an ERROR"', 'warn'],
    ['2026-01-31 10:00 ERROR could not connect', 'error'],
    [`${ESC}[31mERROR${ESC}[0m red`, 'error'],
    ['[warning] low', 'warn'],
    ['error: no such file', 'error'],
    ['npm warn: old', 'warn'],
    ['no errors were found', undefined],
    ['an information desk', undefined],
    ['INFORMED', undefined],
    ['', undefined],
  ])('of the text %j is %s', (text, level) => {
    expect(levelOf(text)).toBe(level);
  });

  test('is found in the first characters only, in a time that does not depend on the line', () => {
    expect(levelOf(`${' '.repeat(400)}ERROR`)).toBe(undefined);
    for (const part of ['level=', '[', '<1', 'ERR', `${ESC}[`, `${ESC}[1;`])
      expect(levelOf(part.repeat(1_000_000))).toBe(undefined);
  });

  test('levels are in order, and a number is one of them', () => {
    expect([...LEVELS].sort((one, other) => rankOf(one) - rankOf(other))).toEqual(LEVELS);
    for (const level of LEVELS)
      expect([toLevel(level), toLevel(level.toUpperCase()), toLevel(rankOf(level))]).toEqual([level, level, level]);
  });
});

describe('fields', () => {
  test('are found by their path; a name with dots comes first', () => {
    const object = { a: { b: { c: 1 }, 'b.c': 'dotted' }, 'x.y': null, list: [1, 2], text: 'abc' };
    expect(
      ['a.b.c', 'x.y', 'list', 'list.0', 'text', 'text.0', 'a.b', 'none', 'a.none.c'].map((path) => fieldText(object, path)),
    ).toEqual(['dotted', 'null', '[1,2]', '1', 'abc', undefined, '{"c":1}', undefined, undefined]);
    for (const path of ['__proto__', 'constructor', 'toString', 'a.__proto__.polluted', '', '.', 'a.']) {
      expect(fieldText(object, path)).toBe(undefined);
    }
  });

  test('of journald may be bytes: they are shown as text', () => {
    const bytes = [...new TextEncoder().encode(`${ESC}[31mf\u00fcnf`), 0xff];
    expect(fieldText({ MESSAGE: bytes }, 'MESSAGE')).toBe(`${ESC}[31mf\u00fcnf\ufffd`);
    const others = [[], [256], [-1], [1.5], ['a', 'b'], [72, null]];
    expect(others.map((MESSAGE) => fieldText({ MESSAGE }, 'MESSAGE'))).toEqual(others.map((each) => JSON.stringify(each)));
    expect(fieldText({ list: [72, 105] }, 'list')).toBe('[72,105]');
  });

  test('are offered by name, few and short, however large an object is', () => {
    const known = new Set<string>();
    learnFields(
      {
        level: 30,
        req: { method: 'GET', headers: { host: 'a', deep: { er: 1 } } },
        tags: ['a'],
        'no name': 1,
        [`x${'y'.repeat(200)}`]: 1,
      },
      known,
    );
    expect([...known]).toEqual(['level', 'req.method', 'req.headers.host', 'req.headers.deep', 'tags']);
    learnFields(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`f${i}`, i])), known);
    expect(known.size).toBeLessThan(60);
    for (let i = 0; i < 100; i++) learnFields(Object.fromEntries(Array.from({ length: 40 }, (_, j) => [`g${i}_${j}`, 1])), known);
    expect(known.size).toBe(200);
    for (const none of ['text', null, 7, [{ a: 1 }]]) learnFields(none, known);
    expect(known.size).toBe(200);
  });
});

describe('the colours of terminals', () => {
  test('are names of classes', () => {
    expect(names(`a${ESC}[1;31mb${ESC}[22mc${ESC}[0md`)).toEqual([':a', 'bold fg1:b', 'fg1:c', ':d']);
    expect(names(`${ESC}[4;44mx${ESC}[24;49my${ESC}[7mz${ESC}[m!`)).toEqual(['underline bg4:x', ':y', 'inverse:z', ':!']);
    expect(names(`${ESC}[90mgrey${ESC}[93myellow${ESC}[37mwhite${ESC}[2;3;9mall`)).toEqual([
      'fg8:grey',
      'fg3:yellow',
      ':white',
      'faint italic strike:all',
    ]);
  });

  test('of 256 and of millions are the nearest ones', () => {
    expect(names(`${ESC}[38;5;196mr${ESC}[38;5;46mg${ESC}[38;5;21mb${ESC}[38;5;226my${ESC}[38;5;244mgrey`)).toEqual([
      'fg1:r',
      'fg2:g',
      'fg4:b',
      'fg3:y',
      'fg8:grey',
    ]);
    expect(names(`${ESC}[38;2;255;0;255mm${ESC}[38:2::0:255:255mc${ESC}[38:2:255:0:0;1mr${ESC}[48;2;0;0;9;1mb`)).toEqual([
      'fg5:m',
      'fg6:c',
      'bold fg1:r',
      'bold fg1 bg4:b',
    ]);
  });

  test('what is none stays to be seen, and nothing hides a text', () => {
    for (const other of [`${ESC}[2K`, `${ESC}[`, `${ESC}]0;t\u0007`, ESC, `${ESC}[${'1'.repeat(65)}m`])
      expect(names(`a${other}b`)).toEqual([`:a${other}b`]);
    expect(names(`${ESC}[8;30;40mhidden`)).toEqual([':hidden']);
    expect(
      names(`${ESC}[38mx${ESC}[38;5my${ESC}[38;9;1mz${ESC}[;;;mw${ESC}[999mv`)
        .map((run) => run.split(':')[1])
        .join(''),
    ).toBe('xyzwv');
  });

  test('are bounded: by characters, and by runs', () => {
    expect(toRuns('x'.repeat(10_000_000), 10)).toEqual({ runs: [{ text: 'x'.repeat(10), name: '' }], cut: true });
    expect(toRuns('x'.repeat(10), 10).cut).toBe(false);
    // A sequence that is cut, here behind 80 characters, is not shown as a text.
    const cut = toRuns(`${`${ESC}[31m`.repeat(15)}abc${ESC}[31mdef`, 10);
    expect(cut).toEqual({ runs: [{ text: 'abc', name: 'fg1' }], cut: true });
    const many = toRuns(Array.from({ length: 100_000 }, (_, i) => `${ESC}[3${(i % 6) + 1}mx`).join(''), 100_000);
    expect(many.runs.length).toBeLessThan(203);
    expect(many.runs.map(({ text }) => text).join('')).toHaveLength(100_000);
    // Sequences have no width, but are not read for ever.
    expect(toRuns(`${ESC}[31m`.repeat(1_000_000), 100)).toEqual({ runs: [], cut: true });
    expect(withoutStyles(`${ESC}[1ma${ESC}[38;5;1mb${ESC}[K`)).toBe(`ab${ESC}[K`);
  });

  test('in JSON they are escaped; an escaped backslash is no beginning of one', () => {
    const json = JSON.stringify({ msg: `${ESC}[31mred${ESC}[0m`, path: 'C:\\u001b[31m', other: `${ESC}[K` });
    expect(withStyles(json)).toBe(`{"msg":"${ESC}[31mred${ESC}[0m","path":"C:\\\\u001b[31m","other":"\\u001b[K"}`);
    expect(withStyles('\\'.repeat(1_000_001))).toHaveLength(1_000_001);
  });

  test('can be read on every ground, in light and dark, and so can levels', () => {
    const { html } = livePage('');
    for (const [scheme, ratios] of Object.entries(contrast(html))) {
      for (const [pair, ratio] of Object.entries(ratios)) expect([scheme, pair, ratio >= 4.5]).toEqual([scheme, pair, true]);
      expect(Object.keys(ratios).length).toBeGreaterThan(20);
    }
  });
});
