/** The most recent values of a number that is sampled repeatedly. */
export class Series {
  readonly values: number[] = [];
  private readonly length: number;

  constructor(length: number) {
    this.length = length;
  }

  push(value: number): void {
    this.values.push(value);
    if (this.values.length > this.length) this.values.shift();
  }

  get max(): number {
    return this.values.reduce((most, value) => Math.max(most, value), 0);
  }

  /** The maximum number of values. */
  get room(): number {
    return this.length;
  }
}

/** The size of a drawing, in its own units. */
export interface Box {
  readonly width: number;
  readonly height: number;
}

/** Draws a series as a line that ends at the right, as SVG path data. `top` is the value at the upper edge. */
export function line({ values, room }: Series, { width, height }: Box, top: number): string {
  const step = width / Math.max(1, room - 1);
  const from = width - (values.length - 1) * step;
  const points = values.map((value, at) => {
    const y = height - (Math.min(value, top) / Math.max(top, Number.MIN_VALUE)) * height;
    return `${(from + at * step).toFixed(1)} ${y.toFixed(1)}`;
  });
  return points.length < 2 ? '' : `M${points.join('L')}`;
}

/** Draws the line of a series and the area below it. */
export function area(series: Series, box: Box, top: number): string {
  const path = line(series, box, top);
  if (path === '') return '';
  const step = box.width / Math.max(1, series.room - 1);
  const from = box.width - (series.values.length - 1) * step;
  return `${path}V${box.height}H${from.toFixed(1)}Z`;
}

/** Draws one bar per value, for occasional events. */
export function bars({ values, room }: Series, { width, height }: Box, top: number): string {
  const step = width / Math.max(1, room);
  const from = width - values.length * step;
  const bar = (value: number, at: number): string => {
    if (value <= 0) return '';
    const tall = Math.max(1.5, (Math.min(value, top) / top) * height);
    return `M${(from + at * step).toFixed(1)} ${height}v${(-tall).toFixed(1)}h${(step * 0.8).toFixed(1)}V${height}Z`;
  };
  return values.map(bar).join('');
}

/** Rounds up to one of 1, 2, 5, 10, 20, 50 ..., so that the chart's upper edge does not move with every value. */
export function roundUp(value: number, least: number): number {
  const wanted = Math.max(value, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const factor = [1, 2, 5, 10].find((one) => one * power >= wanted) ?? 10;
  return factor * power;
}
