// Charts show their figures in the right order, as text for everyone; how they look is the library's.
import { readFileSync } from 'node:fs';
import { parseHTML } from 'linkedom';
import { describe, expect, test } from 'vitest';
import { figure } from './chart-draw.ts';
import { INPUT, laggards } from './chart-fixture.ts';
import { type ChartInput, type ChartTable, readReport } from './chart-input.ts';
import { CHARTS } from './chart-set.ts';

function svgOf(id: string, input: ChartInput = INPUT): string {
  const svg = CHARTS.find((chart) => chart.id === id)?.draw(input);
  if (svg === undefined) throw new Error(`no ${id}`);
  return svg;
}

const draw = (id: string, input?: ChartInput): Element =>
  parseHTML(svgOf(id, input)).document.querySelector('svg') as unknown as Element;
const texts = (id: string, input?: ChartInput): string[] =>
  Array.from(draw(id, input).querySelectorAll('text'), ({ textContent }) => textContent ?? '');
const told = (id: string, input?: ChartInput): string => draw(id, input).querySelector('desc')?.textContent ?? '';

describe.each(CHARTS.map(({ id }) => id))('%s', (id) => {
  test('is what is kept, drawn again from the figures that are kept', () => {
    const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
    const reports = ['README', 'stack'].map((name) => readReport(read(`results/${name}-figures.json`)));
    const chart = CHARTS.find((each) => each.id === id);
    const [drawn] = reports.flatMap((report) => chart?.draw(report) ?? []);
    expect(drawn).toBe(read(`charts/${id}.svg`));
  });

  test('has a name and a description that contain the figures', () => {
    const svg = draw(id);
    const [title, description] = [svg.querySelector('title'), svg.querySelector('desc')];
    expect(svg.getAttribute('role')).toBe('img');
    expect(svg.getAttribute('aria-labelledby')).toBe(`${title?.id} ${description?.id}`);
    expect(title?.textContent).toBe(texts(id)[0]);
    const ours = Array.from(svg.querySelectorAll('.ours text'), ({ textContent }) => textContent ?? '');
    for (const name of ours.filter((text) => text.startsWith('watchmux')))
      expect(description?.textContent).toContain(`${name}: `);
    const ids = Array.from(svg.querySelectorAll('[id]'), (element) => element.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('shows text of 11 px or more, for light and dark, and loads nothing', () => {
    const svg = svgOf(id);
    const style = draw(id).querySelector('style')?.textContent ?? '';
    const sizes = Array.from(style.matchAll(/([\d.]+)px/g), ([, size]) => Number(size));
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(11);
    expect(style).toContain('@media(prefers-color-scheme:dark)');
    expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|data:|url\((?!#)|@import|@font-face|\sfont-size/);
  });

  test('treats words of the file as text', () => {
    const evil = '</text><script>alert(1)</script>\u0000\ud800';
    const workloads = INPUT.workloads.map((each) => ({
      ...each,
      unit: evil,
      rows: each.rows.map((one) => ({ ...one, contender: `${evil}${one.median}` })),
    }));
    const svg = draw(id, { ...INPUT, workloads });
    expect(svg.querySelector('script')).toBeNull();
    expect(svg.textContent).toContain('<script>alert(1)</script>  ');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML does not allow
    expect(svg.outerHTML).not.toMatch(/[\x00-\x08\ud800-\udfff]/);
  });

  test('is left out if the report has no data for it', () => {
    const chart = CHARTS.find((each) => each.id === id);
    expect(chart?.draw({ ...INPUT, workloads: [] })).toBeUndefined();
    expect(chart?.draw({ ...INPUT, workloads: INPUT.workloads.map((each) => ({ ...each, rows: [] })) })).toBeUndefined();
  });
});

describe('fan-out by watchers', () => {
  test('has a line per contender, from the least number of watchers to the most; it ends where its figures end', () => {
    const words = told('fanout-watchers');
    expect(words).toContain('By watchers.');
    expect(words).toContain('watchmux batches(): 300 at 1, 600 at 100, 150 at 10,000');
    expect(words).toContain('Go Broadcaster: 9.00 at 1, 18.0 at 100;');
    expect(words).toContain('bare loop (control): ');
  });

  test('ours is on top', () => {
    const lines = Array.from(draw('fanout-watchers').querySelectorAll('.line'), (line) => line.getAttribute('class'));
    expect(lines.at(-1)).toBe('line ours');
  });

  test('needs two numbers of watchers', () => {
    const few = { ...INPUT, workloads: INPUT.workloads.filter(({ shape }) => shape.watchers === 100) };
    expect(() => draw('fanout-watchers', few)).toThrow('no fanout-watchers');
  });
});

describe('fan-out bars', () => {
  test('best first, whether higher or lower is better', () => {
    const best = 'bare loop (control): 1,200; watchmux batches(): 600; EventEmitter: 400; loses some: 40.0';
    expect(told('fanout-100')).toContain(`${best}; Node events.on: 20.0; Go Broadcaster: 18.0.`);
    const workloads = INPUT.workloads.map((each) => ({ ...each, better: 'lower' as const }));
    expect(told('fanout-100', { ...INPUT, workloads })).toContain('Go Broadcaster: 18.0; Node events.on: 20.0; loses some');
  });

  test('each kind of queue has a look of its own, besides its colour', () => {
    const fills = Array.from(draw('fanout-100').querySelectorAll('.bar'), (bar) =>
      [bar.getAttribute('class'), bar.getAttribute('fill')].join(' '),
    );
    expect(new Set(fills)).toEqual(
      new Set([
        'bar control none',
        'bar fill ours ',
        'bar none none',
        'bar lossy url(#fanout-100-peer-lossy)',
        'bar unbounded url(#fanout-100-peer-unbounded)',
        'bar fill bounded ',
      ]),
    );
  });

  test('figures that are all 0 are drawn', () => {
    const none = { median: 0, min: 0, max: 0 };
    const workloads = INPUT.workloads.map((each) => ({ ...each, rows: each.rows.map((one) => ({ ...one, ...none })) }));
    expect(svgOf('fanout-100', { ...INPUT, workloads })).not.toMatch(/NaN|Infinity/);
  });

  test('has the figures, ratios, the number of rounds and the machine', () => {
    const shown = texts('fanout-100');
    expect(shown).toEqual(expect.arrayContaining(['1,200', '120×', '20.0', '2.00×', '1.80×', 'ratio to Node events.on']));
    expect(shown.slice(-2)).toEqual([
      'Median of 3 rounds, whiskers from the least to the most.',
      'Node 20.1.2, 2 cores, A <fast> "one" & more, 2026-01-02.',
    ]);
  });
});

test.each([
  [1234.5, '1,235'],
  [22.51, '22.5'],
  [1.234, '1.23'],
  [0.999, '1.00'],
  [0.994, '0.99'],
  [0.00157, '0.0016'],
  [0, '0.000'],
])('%d is written %s', (value, written) => {
  expect(figure(value)).toBe(written);
});

describe('laggards', () => {
  const shown = texts('laggards-full');

  test('a bar per number of laggards, fewest first, and how much longer a publish takes with the most', () => {
    expect(shown.filter((text) => /^(1|100|10,000)$/.test(text))).toEqual(['1', '100', '10,000', '1', '100', '10,000']);
    expect(shown).toEqual(expect.arrayContaining(['1.25×', '10,000×', 'time: 10,000 against 1']));
  });

  test('times are shown as rates', () => {
    expect(shown).toEqual(expect.arrayContaining(['25.0', '22.2', '20.0', '10.0', '0.10', '0.0010']));
    expect(shown[1]).toBe('By the number of watchers that nobody reads; million publishes/s, higher is better');
  });

  test('watchers whose queues are filling have a separate chart', () => {
    const filling = texts('laggards-filling');
    expect(filling).toEqual(expect.arrayContaining(['12.5', '10.0']));
    expect(filling.filter((text) => /×$|against/.test(text))).toEqual([]); // there is one number of laggards only
  });

  test('the ratio is taken round by round', () => {
    const rounds = (few: number[], many: number[]) => {
      const [one, most] = [few, many].map((all, at) => {
        const each = laggards(at === 0 ? 1 : 10_000, { ns: 40 });
        return { ...each, rows: each.rows.slice(0, 1).map((first) => ({ ...first, rounds: all })) };
      });
      return texts('laggards-full', { ...INPUT, workloads: [one as ChartTable, most as ChartTable] });
    };
    // A machine that slows down by ten halfway: medians would make 20 of it.
    expect(rounds([1, 1, 10], [2, 20, 20])).toContain('2.00×');
    expect(rounds([0, 0, 0], [1, 1, 1]).filter((text) => text.endsWith('×'))).toEqual([]);
  });

  test('other units are shown as they are', () => {
    const workloads = INPUT.workloads.map((each) => ({ ...each, unit: 'ms' }));
    expect(texts('laggards-full', { ...INPUT, workloads })).toEqual(expect.arrayContaining(['40.0', '50.0', '1.25×']));
  });
});

test('names what ratios are to, if there are any', () => {
  const workloads = INPUT.workloads.map((each) => ({ ...each, rows: each.rows.map((row) => ({ ...row, ratio: null })) }));
  expect(texts('fanout-100', { ...INPUT, workloads }).filter((text) => /ratio to|×$/.test(text))).toEqual([]);
});

test('decoding has a section per chunk length', () => {
  const shown = texts('decode');
  expect(shown).toEqual(expect.arrayContaining(['chunks of 64 KiB', 'chunks of 1,000 bytes, of lines']));
  expect(shown).not.toContain('no queue: calls consumers'); // the control has none, and a name that says so
});
