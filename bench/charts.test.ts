// Charts show their figures in the right place and order, as valid XML.
import { describe, expect, test } from 'vitest';
import { INPUT, laggards } from './chart-fixture.ts';
import type { ChartInput, ChartTable } from './chart-input.ts';
import { spread } from './chart-lines.ts';
import { figure } from './chart-parts.ts';
import { CHARTS } from './chart-set.ts';
import { all, type Element, has, parseXml } from './xml.ts';

function draw(id: string, input: ChartInput = INPUT): Element {
  const svg = CHARTS.find((chart) => chart.id === id)?.draw(input, id);
  if (svg === undefined) throw new Error(`no ${id}`);
  return parseXml(svg);
}

function texts(svg: Element): string[] {
  return all(svg).flatMap(({ name, text }) => (name === 'text' ? [text] : []));
}

/** Rectangles of bars, except those of the legend. */
function bars(svg: Element): Element[] {
  return all(svg).filter((element) => has(element, 'bar') && element.attributes.height === '14');
}

function lineOf(svg: Element, contender: string): [number, number][] {
  const group = all(svg).find(({ name, children }) => name === 'g' && children.some(({ text }) => text === contender));
  const path = group?.children.find((element) => has(element, 'line'))?.attributes.d ?? '';
  return path
    .slice(1)
    .split('L')
    .map((point) => point.split(' ').map(Number) as [number, number]);
}

test('the parser of these tests rejects invalid XML', () => {
  expect(parseXml('<a b="1 &#60; 2"><c/>x &amp; y</a>').attributes.b).toBe('1 < 2');
  for (const wrong of [
    '<a>',
    '<a></b>',
    '<a/><b/>',
    '<a>1 < 2</a>',
    '<a>R&D</a>',
    '<a b="1" b="2"/>',
    '<a b=1/>',
    '<a>\u0001</a>',
    'x',
  ])
    expect(() => parseXml(wrong), wrong).toThrow();
});

describe.each(CHARTS.map(({ id }) => id))('%s', (id) => {
  test('is XML with a name and a description that contain the figures', () => {
    const svg = draw(id);
    const [title, description] = svg.children;
    expect(svg.attributes).toMatchObject({ xmlns: 'http://www.w3.org/2000/svg', role: 'img', width: '720' });
    expect(svg.attributes['aria-labelledby']).toBe(`${title?.attributes.id} ${description?.attributes.id}`);
    expect([title?.name, description?.name]).toEqual(['title', 'desc']);
    expect(title?.text).toBe(texts(svg)[0]);
    for (const { text } of all(svg).filter((each) => each.name === 'text' && has(each, 'ours'))) {
      if (text.startsWith('watchmux')) expect(description?.text).toContain(`${text}: `);
    }
  });

  test('shows text of 11 px or more, for light and dark, and loads nothing', () => {
    const svg = draw(id);
    const style = svg.children.find(({ name }) => name === 'style')?.text ?? '';
    const sizes = Array.from(style.matchAll(/([\d.]+)px/g), ([, size]) => Number(size));
    expect(sizes.length).toBeGreaterThan(1);
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(11);
    expect(style).toContain('@media(prefers-color-scheme:dark)');
    const used = all(svg).flatMap(({ attributes }) => Object.entries(attributes).filter(([key]) => key !== 'xmlns'));
    expect(used.filter(([, value]) => /http|data:|url\((?!#)/.test(value))).toEqual([]);
    expect(style).not.toMatch(/url|@import|@font-face/);
  });

  test('stays within its page', () => {
    const svg = draw(id);
    const height = Number(svg.attributes.height);
    for (const { name, attributes, text } of all(svg)) {
      if (attributes.y !== undefined) expect(Number(attributes.y), text).toBeLessThan(height);
      if (name !== 'text') continue;
      const width = text.length * (has({ name, attributes, text, children: [] }, 'ours') ? 7.6 : 6.6); // at 12 px, in a wide font
      const from =
        Number(attributes.x) - (attributes.class?.includes('end') ? width : attributes.class?.includes('middle') ? width / 2 : 0);
      expect(from, text).toBeGreaterThanOrEqual(0);
      expect(from + width, text).toBeLessThanOrEqual(720);
    }
  });

  test('treats words of the file as text', () => {
    const evil = '</text><script>alert(1)</script>\u0000\ud800';
    const workloads = INPUT.workloads.map((each) => ({
      ...each,
      unit: evil,
      rows: each.rows.map((one) => ({ ...one, contender: `${evil}${one.median}` })),
    }));
    const svg = draw(id, { ...INPUT, workloads });
    expect(all(svg).filter(({ name }) => name === 'script')).toEqual([]);
    expect(texts(svg).join()).toContain('<script>alert(1)</script>  ');
  });

  test('is left out if the report has no data for it', () => {
    const chart = CHARTS.find((each) => each.id === id);
    expect(chart?.draw({ ...INPUT, workloads: [] }, id)).toBeUndefined();
    expect(chart?.draw({ ...INPUT, workloads: INPUT.workloads.map((each) => ({ ...each, rows: [] })) }, id)).toBeUndefined();
  });
});

describe('fan-out by watchers', () => {
  const svg = draw('fanout-watchers');

  test('has a line per contender, from the least number of watchers to the most', () => {
    for (const contender of ['watchmux batches()', 'Node events.on', 'loses some', 'bare loop (control)']) {
      const [first, second, third, ...more] = lineOf(svg, contender) as [number, number][];
      expect(more).toEqual([]);
      // 1, 100, 10,000: as far apart on a logarithmic axis. Twice as much is as far up as four times less is half as far down.
      expect(second?.[0]).toBeCloseTo(((first?.[0] ?? 0) + (third?.[0] ?? 0)) / 2, 0);
      const up = (first?.[1] ?? 0) - (second?.[1] ?? 0);
      expect(up).toBeGreaterThan(5);
      expect((third?.[1] ?? 0) - (second?.[1] ?? 0)).toBeCloseTo(2 * up, 0);
    }
  });

  test('a line ends where its figures end', () => {
    expect(lineOf(svg, 'Go Broadcaster')).toHaveLength(2);
  });

  test('higher figures are higher up', () => {
    const names = ['bare loop (control)', 'watchmux batches()', 'EventEmitter', 'loses some', 'Node events.on', 'Go Broadcaster'];
    const heights = names.map((name) => lineOf(svg, name)[1]?.[1] as number);
    expect(heights).toEqual(heights.toSorted((a, b) => a - b));
  });

  test('ours is on top; each kind of queue has its own marker, and the control is a line without markers', () => {
    const groups = all(svg).filter(({ name }) => name === 'g');
    expect(groups.at(-1)?.children.at(-1)?.text).toBe('watchmux batches()');
    const signs = (contender: string): string[] =>
      (groups.find(({ children }) => children.at(-1)?.text === contender)?.children ?? [])
        .slice(2, -1)
        .map((each) => `${each.name} ${each.attributes.class}`);
    expect(signs('Node events.on')[0]).toBe('circle hollow unbounded');
    expect(signs('Go Broadcaster')[0]).toBe('circle fill bounded');
    expect(signs('loses some')[0]).toBe('path hollow lossy');
    expect(signs('EventEmitter')[0]).toBe('rect hollow none');
    expect(signs('bare loop (control)')).toEqual([]);
  });

  test('needs two numbers of watchers', () => {
    const few = { ...INPUT, workloads: INPUT.workloads.filter(({ shape }) => shape.watchers === 100) };
    expect(() => draw('fanout-watchers', few)).toThrow('no fanout-watchers');
  });
});

describe('labels beside lines', () => {
  const room = { pitch: 16, top: 0, bottom: 200 };

  test('stay in place if there is room', () => {
    expect(spread([150, 20, 100], room)).toEqual([150, 20, 100]);
  });

  test('are kept apart, in order, around the middle of where they should be', () => {
    expect(spread([100, 102, 98], room)).toEqual([100, 116, 84]);
    expect(spread([50, 60, 100, 102], room)).toEqual([47, 63, 93, 109]);
  });

  test('stay inside the plot', () => {
    expect(spread([-5, 0, 199, 200], room)).toEqual([0, 16, 184, 200]);
    expect(spread([10, 10, 10, 10], room)).toEqual([0, 16, 32, 48]);
  });
});

describe('fan-out bars', () => {
  const svg = draw('fanout-100');

  test('best first, each as long as its figure', () => {
    const names = texts(svg).filter(
      (text) => /^[a-zA-Z]/.test(text) && INPUT.workloads[2]?.rows.some(({ contender }) => text.startsWith(contender)),
    );
    expect(names).toEqual([
      'bare loop (control)',
      'watchmux batches()',
      'EventEmitter',
      'loses some',
      'Node events.on',
      'Go Broadcaster',
    ]);
    const widths = bars(svg).map(({ attributes }) => Number(attributes.width));
    const scale = (widths[0] as number) / 1200;
    for (const [at, figure] of [1200, 600, 400, 40, 20, 18].entries()) expect(widths[at]).toBeCloseTo(figure * scale, 0);
  });

  test('lower is better: the lowest first', () => {
    const workloads = INPUT.workloads.map((each) => ({ ...each, better: 'lower' as const }));
    const widths = bars(draw('fanout-100', { ...INPUT, workloads })).map(({ attributes }) => Number(attributes.width));
    expect(widths).toEqual(widths.toSorted((a, b) => a - b));
    expect(widths).toHaveLength(6);
  });

  test('queue types can be told apart without colour', () => {
    const fills = bars(svg).map(({ attributes }) => `${attributes.class} ${attributes.style ?? ''}`.trim());
    expect(fills).toEqual([
      'bar control',
      'bar fill ours',
      'bar none',
      'bar lossy fill:url(#fanout-100-peer-lossy)',
      'bar unbounded fill:url(#fanout-100-peer-unbounded)',
      'bar fill bounded',
    ]);
    const ids = all(svg).flatMap(({ attributes }) => attributes.id ?? []);
    expect(ids).toEqual(expect.arrayContaining(['fanout-100-peer-lossy', 'fanout-100-peer-unbounded']));
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('figures that are all 0 have bars without length', () => {
    const none = { median: 0, min: 0, max: 0 };
    const workloads = INPUT.workloads.map((each) => ({ ...each, rows: each.rows.map((one) => ({ ...one, ...none })) }));
    const widths = bars(draw('fanout-100', { ...INPUT, workloads })).map(({ attributes }) => attributes.width);
    expect(new Set(widths)).toEqual(new Set(['1']));
  });

  test('whiskers go from the minimum to the maximum', () => {
    const start = Number(bars(svg)[0]?.attributes.x);
    const scale = Number(bars(svg)[0]?.attributes.width) / 1200;
    const whiskers = all(svg).filter((element) => has(element, 'whisker'));
    expect(whiskers).toHaveLength(6);
    const [, least, , most] = /^M([\d.]+) ([\d.]+)v8M[\d.]+ [\d.]+H([\d.]+)M/.exec(whiskers[1]?.attributes.d ?? '') ?? [];
    expect(Number(least)).toBeCloseTo(start + 540 * scale, 0);
    expect(Number(most)).toBeCloseTo(start + 660 * scale, 0);
  });

  test('has the figures, ratios, the number of rounds and the machine', () => {
    const shown = texts(svg);
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
  const svg = draw('laggards-full');

  test('a bar per number of laggards, fewest first, and how much longer a publish takes with the most', () => {
    expect(texts(svg).filter((text) => /^(1|100|10,000)$/.test(text))).toEqual(['1', '100', '10,000', '1', '100', '10,000']);
    expect(texts(svg)).toEqual(expect.arrayContaining(['1.25×', '10,000×', 'time: 10,000 against 1']));
  });

  test('times are shown as rates, with their spread', () => {
    expect(texts(svg)).toEqual(expect.arrayContaining(['25.0', '22.2', '20.0', '10.0', '0.10', '0.0010']));
    expect(texts(svg)[1]).toBe('By the number of watchers that nobody reads; million publishes/s, higher is better');
    const [first] = bars(svg).map(({ attributes }) => ({ x: Number(attributes.x), width: Number(attributes.width) }));
    const whisker = all(svg).find((element) => has(element, 'whisker'))?.attributes.d ?? '';
    const [, least, most] = /^M([\d.]+) .*H([\d.]+)M/.exec(whisker) ?? [];
    expect((Number(least) - (first?.x ?? 0)) / (first?.width ?? 0)).toBeCloseTo(1 / 1.1, 1);
    expect((Number(most) - (first?.x ?? 0)) / (first?.width ?? 0)).toBeCloseTo(1 / 0.9, 1);
  });

  test('watchers whose queues are filling have a separate chart', () => {
    expect(bars(svg)).toHaveLength(6);
    const filling = texts(draw('laggards-filling'));
    expect(filling).toEqual(expect.arrayContaining(['12.5', '10.0']));
    expect(filling.filter((text) => /×$|against/.test(text))).toEqual([]); // there is one number of laggards only
  });

  test('the ratio is taken round by round', () => {
    const rounds = (few: number[], many: number[]) => {
      const [one, most] = [few, many].map((all, at) => {
        const each = laggards(at === 0 ? 1 : 10_000, { ns: 40 });
        return { ...each, rows: each.rows.slice(0, 1).map((first) => ({ ...first, rounds: all })) };
      });
      return texts(draw('laggards-full', { ...INPUT, workloads: [one as ChartTable, most as ChartTable] }));
    };
    // A machine that slows down by ten halfway: medians would make 20 of it.
    expect(rounds([1, 1, 10], [2, 20, 20])).toContain('2.00×');
    expect(rounds([0, 0, 0], [1, 1, 1]).filter((text) => text.endsWith('×'))).toEqual([]);
  });

  test('other units are shown as they are', () => {
    const workloads = INPUT.workloads.map((each) => ({ ...each, unit: 'ms' }));
    expect(texts(draw('laggards-full', { ...INPUT, workloads }))).toEqual(expect.arrayContaining(['40.0', '50.0', '1.25×']));
  });
});

test('decoding has a section per chunk length, on one scale', () => {
  const svg = draw('decode');
  expect(texts(svg)).toEqual(expect.arrayContaining(['chunks of 64 KiB', 'chunks of 1,000 bytes, of lines']));
  const widths = bars(svg).map(({ attributes }) => attributes.width);
  expect(widths.slice(3)).toEqual(widths.slice(0, 3));
  expect(texts(svg)).not.toContain('no queue: calls consumers'); // the control has none, and a name that says so
});
