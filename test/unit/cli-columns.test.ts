// The columns of the demo, on a terminal of 80 by 24 characters, and in a file.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { DemoColumns, gauge } from '../../src/cli/demo/columns.ts';
import { Output } from '../../src/cli/output.ts';

const ESC = '\u001b';
const COLOUR = new RegExp(`${ESC}\\[[\\d;]*m`, 'g');
/** Moves the cursor up, and erases what is below it. */
const UP_AND_ERASE = new RegExp(`\r${ESC}\\[(\\d+)A${ESC}\\[J`);

/** As much of a terminal as the columns need. */
class Terminal {
  readonly isTTY: boolean = true;
  readonly columns: number = 80;
  /** All lines, as one would scroll through them. The cursor is at the end of the last one. */
  lines: string[] = [''];

  write(text: string): void {
    const [before = '', up, after] = text.replace(COLOUR, '').split(UP_AND_ERASE);
    this.append(before);
    if (up === undefined) return;
    this.lines.length -= Number(up) + 1;
    this.lines.push('');
    this.append(after ?? '');
  }

  private append(text: string): void {
    const [first = '', ...rest] = text.split('\n');
    this.lines.push(`${this.lines.pop()}${first}`, ...rest);
  }

  /** The rows in view. */
  get screen(): readonly string[] {
    return this.lines.slice(-24);
  }
}

describe('on a terminal', () => {
  test('the panel stays in view below a hundred lines, is drawn once, and no line is wider than the screen', () => {
    const terminal = new Terminal();
    const columns = new DemoColumns(terminal);
    let lost = 0;
    columns.line('the first line');
    columns.head(['left'], ['right']);
    columns.keep(() => ['', 'the title', columns.pair(`queue ${gauge(1, 4, 8)}`, `lost ${lost}`), 'x'.repeat(200)]);
    for (let i = 0; i < 50; i++) {
      lost++;
      columns.left(columns.apart(`+ ${'name'.repeat(20)}`, '[####]'), 'added');
      columns.right(`~ ${'name'.repeat(20)}`, 'lost');
      columns.refresh();
    }
    expect(terminal.screen).toHaveLength(24);
    expect(terminal.screen.filter((line) => line === 'the title')).toHaveLength(1);
    expect(terminal.screen.at(-3)).toMatch(/^ +queue \[##\.{6}\] +lost 50$/);
    expect(terminal.lines.filter((line) => line === 'the title')).toHaveLength(1);
    expect(terminal.lines.filter((line) => line.length > 80)).toEqual([]);
    // Nothing is overwritten: the lines above are all there.
    expect(terminal.lines[0]).toBe('the first line');
    expect(terminal.lines.filter((line) => line.includes('+ name'))).toHaveLength(50);
    expect(terminal.lines.filter((line) => line.includes('~ name'))).toHaveLength(50);
  });

  test('an empty panel removes it', () => {
    const terminal = new Terminal();
    const columns = new DemoColumns(terminal);
    columns.keep(() => ['the title']);
    columns.keep(() => []);
    columns.line('the sum');
    expect(terminal.lines).toEqual(['the sum', '']);
  });
});

test.each([
  ['a file', false, 'xterm'],
  ['a dumb terminal', true, 'dumb'],
])('in %s there is no panel, and no control character', (_name, isTTY, term) => {
  vi.stubEnv('TERM', term);
  onTestFinished(() => void vi.unstubAllEnvs());
  const written: string[] = [];
  const output = { isTTY, columns: 80, write: (text: string) => written.push(text) };
  const columns = new DemoColumns(output);
  columns.keep(() => ['the title']);
  columns.left('one', 'added');
  columns.refresh();
  expect(written.join('')).toMatch(/^ +\d\.\d\d s {2}one\n$/);
});

test('a gauge shows what is queued, and something if that is little', () => {
  expect([0, 1, 2, 4, 9].map((queued) => gauge(queued, 4, 4))).toEqual(['[....]', '[#...]', '[##..]', '[####]', '[####]']);
  expect(gauge(1, 100, 8)).toBe('[#.......]');
});

test('a terminal that does not know its width has the usual one', () => {
  const stream = { write: () => true, on: () => undefined, writableLength: 0 };
  expect([0, undefined, 100].map((columns) => new Output({ ...stream, columns } as typeof stream).columns)).toEqual([
    80, 80, 100,
  ]);
});
