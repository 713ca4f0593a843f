import { barChart, type Group } from './chart-bars.ts';
import type { ChartRow, ChartTable } from './chart-input.ts';
import { lineChart } from './chart-lines.ts';
import { footerOf, whole } from './chart-parts.ts';
import { STACK_CHARTS } from './chart-stack.ts';
import { aim, type Chart, ranked, tablesOf, times, WHISKERS } from './chart-tables.ts';
import { median } from './stats.ts';

const BURST = 64;
const WATCHERS = 100;

const fanoutLines: Chart = {
  id: 'fanout-watchers',
  needs: `fanout at two numbers of watchers or more, bursts of ${BURST}`,
  draw(input, id) {
    const tables = tablesOf(input, 'fanout').filter(({ shape }) => shape.burst === BURST && Number(shape.watchers) > 0);
    const counts = [...new Set(tables.map(({ shape }) => Number(shape.watchers)))].sort((a, b) => a - b);
    const [first] = tables;
    if (first === undefined || counts.length < 2) return undefined;
    const all = tables.flatMap(({ rows }) => rows);
    const names = [...new Set(all.map(({ contender }) => contender))];
    const lines = names.map((contender) => ({
      contender,
      queue: all.find((row) => row.contender === contender)?.queue ?? ('none' as const),
      points: counts.flatMap((x) => {
        const row = tables.find(({ shape }) => shape.watchers === x)?.rows.find((each) => each.contender === contender);
        return row !== undefined && row.median > 0 ? [{ x, y: row.median }] : [];
      }),
    }));
    return lineChart({
      id,
      title: 'Fan-out, by the number of watchers',
      subtitle: `Bursts of ${BURST} events; ${aim(first)}. Both axes are logarithmic`,
      footer: footerOf(input, { tables, spread: '' }),
      lines: lines.filter(({ points }) => points.length > 0),
      xName: 'watchers',
    });
  },
};

const fanoutBars: Chart = {
  id: `fanout-${WATCHERS}`,
  needs: `fanout at ${WATCHERS} watchers, bursts of ${BURST}`,
  draw(input, id) {
    const table = tablesOf(input, 'fanout').find(({ shape }) => shape.watchers === WATCHERS && shape.burst === BURST);
    if (table === undefined) return undefined;
    return barChart({
      id,
      title: `Fan-out to ${WATCHERS} watchers`,
      subtitle: `Bursts of ${BURST} events; ${aim(table)}`,
      footer: footerOf(input, { tables: [table], spread: WHISKERS }),
      sections: [{ noteName: `ratio to ${table.reference}`, groups: ranked(table) }],
    });
  },
};

/**
 * Converts times to rates, so that longer bars are better. As a time, one very slow contender would make all other bars too
 * short.
 */
function perSecond(table: ChartTable): ChartTable {
  if (table.unit !== 'ns/publish') return table;
  const rate = (ns: number): number => (ns > 0 ? 1000 / ns : 0);
  const rows = table.rows.map((row) => ({
    ...row,
    rounds: row.rounds.map(rate),
    median: rate(row.median),
    min: rate(row.max),
    max: rate(row.min),
  }));
  return { ...table, unit: 'million publishes/s', better: 'higher', rows };
}

/** How much longer it takes with many, as a median of ratios per round, so that a disturbance affects both sides. */
function longer(better: ChartTable['better'], { few, many }: { few: ChartRow; many: ChartRow }): number | null {
  const ratios = few.rounds.map((one, round) => {
    const other = many.rounds[round] ?? Number.NaN;
    return better === 'higher' ? one / other : other / one;
  });
  const middle = median(ratios.filter((ratio) => ratio > 0 && ratio < Number.POSITIVE_INFINITY));
  return Number.isNaN(middle) ? null : middle;
}

/** A contender's bar per number of laggards, and how much longer a publish takes with the most laggards than with the fewest. */
function byLaggards(contender: string, tables: readonly ChartTable[]): Group {
  const bars = tables.flatMap(({ shape, rows }) => {
    const row = rows.find((each) => each.contender === contender);
    return row === undefined ? [] : [{ ...row, label: whole(Number(shape.laggards)) }];
  });
  const [few, many, better] = [bars[0], bars.at(-1), tables[0]?.better];
  const comparable = bars.length === tables.length && bars.length > 1;
  const ratio = comparable && few && many && better ? longer(better, { few, many }) : null;
  return { contender, queue: few?.queue ?? 'none', bars, note: times(ratio) };
}

function laggards(are: string, title: string): Chart {
  return {
    id: `laggards-${are}`,
    needs: `laggards that are ${are}`,
    draw(input, id) {
      const tables = tablesOf(input, 'laggards')
        .filter(({ shape }) => shape.are === are)
        .sort((a, b) => Number(a.shape.laggards) - Number(b.shape.laggards))
        .map(perSecond);
      const [few, many] = [tables[0], tables.at(-1)];
      if (few === undefined || many === undefined) return undefined;
      const names = [...new Set(tables.flatMap(({ rows }) => rows.map(({ contender }) => contender)))];
      const [most, fewest] = [many, few].map(({ shape }) => whole(Number(shape.laggards)));
      const noteName = most === fewest ? '' : `time: ${most} against ${fewest}`;
      return barChart({
        id,
        title,
        subtitle: `By the number of watchers that nobody reads; ${aim(few)}`,
        footer: footerOf(input, { tables, spread: WHISKERS }),
        sections: [{ noteName, groups: names.map((name) => byLaggards(name, tables)) }],
      });
    },
  };
}

const laggardsFull: Chart = laggards('full', 'Publishing while watchers lag: their queues are full');
const laggardsFilling: Chart = laggards('filling', 'Publishing while watchers lag: their queues fill');

const decoding: Chart = {
  id: 'decode',
  needs: 'decode',
  draw(input, id) {
    const tables = tablesOf(input, 'decode');
    const [first] = tables;
    if (first === undefined) return undefined;
    return barChart({
      id,
      title: 'Decoding a watch stream of Kubernetes objects',
      subtitle: `Newline-delimited JSON; ${aim(first)}`,
      footer: footerOf(input, { tables, spread: WHISKERS }),
      sections: tables.map((table) => ({
        heading: headingOf(table),
        noteName: `ratio to ${table.reference}`,
        groups: ranked(table),
      })),
    });
  },
};

/** `chunks of 64 KiB` */
function headingOf({ shape }: ChartTable): string {
  return Object.entries(shape)
    .map(([key, value]) => {
      if (key !== 'chunkBytes') return `${key} ${typeof value === 'number' ? whole(value) : value}`;
      const bytes = Number(value);
      return `chunks of ${bytes % 1024 === 0 ? `${whole(bytes / 1024)} KiB` : `${whole(bytes)} bytes`}`;
    })
    .join(', ');
}

export const CHARTS: readonly Chart[] = [...[fanoutLines, fanoutBars, laggardsFull, laggardsFilling, decoding], ...STACK_CHARTS];
