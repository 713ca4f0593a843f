// The parts of the live page that need no browser.
import { describe, expect, test } from 'vitest';
import { area, bars, ChartSeries, line, Poller, roundUp } from '../../src/pages/elements.ts';
import { PipeEvents } from '../../src/pages/pipe/events.ts';
import { livePage } from '../../src/pages/pipe/page.ts';
import { placeOf, plural, rate, size } from '../../src/pages/words.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';

const event = (sequence: number, object: unknown = sequence, epoch = 'e') => ({
  type: sequence % 2 === 0 ? 'EVEN' : 'ODD',
  object,
  resourceVersion: `${epoch}.${sequence}`,
});
/** The rows from an id on, newest first. */
const shown = (store: PipeEvents, from = 0): unknown[] =>
  [...store.from(from)].map((row) => (row.kind === 'gap' ? `${row.missed} missed` : row.event.object)).reverse();

describe('the page', () => {
  test('loads nothing from elsewhere, and its policy allows only its own content', () => {
    const { html, policy } = livePage('let a = 1;');
    expect(html).not.toMatch(/https?:|innerHTML|\son\w+=|\sstyle=/);
    expect(html).toContain('<script type="module">let a = 1;</script>');
    expect(policy).toMatch(/script-src 'sha256-[^']+'/);
    expect(policy).not.toContain('unsafe');
  });

  test('has a script that does not contain its own end tag', () => {
    const { html } = livePage('a("</script><!--")');
    expect(html).toContain('a("<\\/script>\\x3c!--")');
    expect(livePage('other').policy).not.toBe(livePage('script').policy);
  });
});

describe('the event store', () => {
  test('keeps the most recent events, limited by number', () => {
    const store = new PipeEvents({ maxRows: 3, maxChars: 1_000 });
    store.push([event(1), event(2)]);
    store.push([event(3), event(4), event(5), event(6), event(7)]);
    expect(shown(store)).toEqual([7, 6, 5]);
    expect(store).toMatchObject({ received: 7, events: 3 });
  });

  test('keeps the most recent events, limited by size; a single event that is too large is kept', () => {
    const store = new PipeEvents({ maxRows: 10, maxChars: 10 });
    store.push([event(1, 'aaaa'), event(2, 'bbbb'), event(3, 'cccc')]);
    expect(shown(store)).toEqual(['cccc', 'bbbb']);
    store.push([event(4, 'x'.repeat(100))]);
    expect(shown(store)).toEqual(['x'.repeat(100)]);
    store.push([event(5, 'd')]);
    expect(shown(store)).toEqual(['d']);
  });

  test('accepts events that are nested too deeply to show, and those after them', () => {
    const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`) as unknown;
    const store = new PipeEvents({ maxRows: 10, maxChars: 1_000 });
    store.push([event(1, deep), event(2)]);
    expect(store.events).toBe(2);
    const [row] = store.from(0);
    expect(row?.kind === 'event' && row.toJson()).toContain('"object":"(nested too deeply to be shown)"');
  });

  test('shows where events are missing, and where the server has restarted', () => {
    const store = new PipeEvents({ maxRows: 10, maxChars: 1_000 });
    const error = { type: 'ERROR', object: 'cut' };
    store.push([event(1), event(2), error, event(5), event(1, 'new', 'f'), event(2, 'next', 'f')]);
    expect(shown(store)).toEqual(['next', 'new', 'undefined missed', 5, '2 missed', 'cut', 2, 1]);
    expect(store).toMatchObject({ received: 6, events: 6, missed: 2 });
  });

  test('knows the types; a row is one line of JSON, as it was sent', () => {
    const store = new PipeEvents({ maxRows: 10, maxChars: 1_000 });
    store.push([event(1, { name: 'Anna' }), event(2, 'te"xt'), { type: 'ERROR', object: null }]);
    expect([...store.types]).toEqual(['ODD', 'EVEN', 'ERROR']);
    expect([...store.from(0)].map((row) => row.kind === 'event' && row.toJson())).toEqual([
      '{"type":"ODD","object":{"name":"Anna"},"resourceVersion":"e.1"}',
      '{"type":"EVEN","object":"te\\"xt","resourceVersion":"e.2"}',
      '{"type":"ERROR","object":null}',
    ]);
  });

  test('reads a line of text that is JSON, and its level', () => {
    const store = new PipeEvents({ maxRows: 10, maxChars: 1_000_000 });
    store.push([
      event(1, '{"level":40,"id":12345678901234567890}'),
      event(2, '{"level":40'),
      event(3, `{"a":"${'x'.repeat(200_000)}"}`),
    ]);
    const rows = [...store.from(0)].filter((row) => row.kind === 'event');
    expect(rows.map(({ level }) => level)).toEqual(['warn', undefined, undefined]);
    expect(rows.map(({ value }) => typeof value)).toEqual(['object', 'string', 'string']);
  });

  test('returns the rows from a given one on', () => {
    const store = new PipeEvents({ maxRows: 2, maxChars: 1_000 });
    store.push([event(1)]);
    const drawn = store.head;
    store.push([event(2), event(3), event(4)]);
    expect(shown(store, drawn)).toEqual([4, 3]);
    expect(shown(store, drawn + 2)).toEqual([4]);
    expect(shown(store, store.head)).toEqual([]);
    expect([store.oldest, store.head - drawn]).toEqual([drawn + 1, 3]);
  });
});

describe('the poller', () => {
  function poller(answers: ('yes' | 'no' | 'never')[]) {
    const clock = new FakeClock();
    const seen: unknown[] = [];
    const asked: { readonly atMs: number; readonly signal: AbortSignal }[] = [];
    const polling = new Poller<number>({
      ask: async (signal) => {
        asked.push({ atMs: clock.now(), signal });
        const answer = answers.shift() ?? 'yes';
        if (answer === 'no') throw new Error('no');
        if (answer === 'never') {
          await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        }
        return asked.length;
      },
      onAnswer: (answer) => void seen.push(answer),
      onFault: () => void seen.push('fault'),
      intervalMs: 1_000,
      maxIntervalMs: 3_000,
      timeoutMs: 500,
      clock,
    });
    const pass = async (ms: number): Promise<void> => {
      clock.advance(ms);
      for (let i = 0; i < 10; i++) await Promise.resolve();
    };
    return { polling, seen, asked, pass, clock };
  }

  test('polls at its interval, less often while there is no answer, and at its interval again after one', async () => {
    const { polling, seen, asked, pass } = poller(['yes', 'no', 'no', 'no', 'yes', 'yes']);
    polling.start();
    await pass(0);
    for (let i = 0; i < 120; i++) await pass(100);
    expect(seen.slice(0, 6)).toEqual([1, 'fault', 'fault', 'fault', 5, 6]);
    expect(asked.slice(0, 6).map(({ atMs }) => atMs)).toEqual([0, 1_000, 3_000, 6_000, 9_000, 10_000]);
  });

  test('gives up on a response that takes too long', async () => {
    const { polling, seen, asked, pass } = poller(['never']);
    polling.start();
    await pass(499);
    expect(asked[0]?.signal.aborted).toBe(false);
    await pass(1);
    expect(asked[0]?.signal.aborted).toBe(true);
    expect(seen).toEqual(['fault']);
    await pass(2_000);
    expect(seen).toEqual(['fault', 2]);
  });

  test('stop: aborts the request, and nothing is requested, called or scheduled any more', async () => {
    const { polling, seen, asked, pass, clock } = poller(['never']);
    polling.start();
    polling.stop();
    expect(asked[0]?.signal.aborted).toBe(true);
    await pass(60_000);
    expect(seen).toEqual([]);
    expect(asked).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  test('polls at once when it is restarted, and never twice at a time', async () => {
    const { polling, seen, asked, pass } = poller(['never', 'yes']);
    polling.start();
    polling.start();
    await pass(0);
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    expect(seen).toEqual([2]);
    await pass(1_000);
    expect(seen).toEqual([2, 3]);
  });
});

describe('charts', () => {
  const series = (...values: number[]): ChartSeries => {
    const made = new ChartSeries(3);
    for (const value of values) made.push(value);
    return made;
  };
  const box = { width: 20, height: 10 };

  test('hold a limited number of values, and end at the right', () => {
    expect(series(9, 1, 2, 3).values).toEqual([1, 2, 3]);
    expect(line(series(0, 5, 10), box, 10)).toBe('M0.0 10.0L10.0 5.0L20.0 0.0');
    expect(line(series(5, 10), box, 10)).toBe('M10.0 5.0L20.0 0.0');
    expect(area(series(5, 10), box, 10)).toBe('M10.0 5.0L20.0 0.0V10H10.0Z');
    expect(line(series(1), box, 10)).toBe('');
  });

  test('stay in their box for any value', () => {
    expect(line(series(0, 1e9), box, 10)).toBe('M10.0 10.0L20.0 0.0');
    expect(line(series(0, 0), box, 0)).not.toContain('NaN');
    expect(bars(series(0, 1e9), box, 10)).toBe('M13.3 10v-10.0h5.3V10Z');
  });

  test('have an upper edge that seldom moves', () => {
    expect([0, 1, 1.1, 3, 7, 12, 999].map((value) => roundUp(value, 1))).toEqual([1, 1, 2, 5, 10, 20, 1_000]);
  });
});

test('readable numbers', () => {
  expect([0, 640, 1_024, 15_000, 3_500_000].map(size)).toEqual(['0 bytes', '640 bytes', '1.0 KiB', '15 KiB', '3.3 MiB']);
  expect([0, 0.25, 9.94, 12.5, 1_234_567].map(rate)).toEqual(['0', '0.3', '9.9', '13', '1.23 M']);
  expect([plural(1, 'event'), plural(1_200, 'event')]).toEqual(['1 event', '1,200 events']);
  expect([placeOf('a.b.17'), placeOf('x'), placeOf(undefined)]).toEqual([17, undefined, undefined]);
});
