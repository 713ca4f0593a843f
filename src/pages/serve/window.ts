// A table of any number of rows, of which only those in view are in the document.
//
//     tbody  space above   [ 0 .. first )      one empty row, as tall as all of these
//     tbody  rows          [ first .. end )    those in view, and a few around them
//     tbody  space below   [ end .. count )
//
// All rows have the same height, which the style sets and the page measures. A screen reader learns from `aria-rowcount` and
// `aria-rowindex` how many there are, and which these are.
import { byId } from '../elements.ts';

/** Rows above and below those in view, so that a short way shows no gap. */
const AROUND = 8;
/** Until one has been measured. */
const USUAL_PX = 33;

/** Rows of a table, from `first` up to `end`. */
export interface Span {
  readonly first: number;
  readonly end: number;
}

/** Which rows are in view, and those around them. */
export function spanIn({ top, height, row, count }: { top: number; height: number; row: number; count: number }): Span {
  const end = Math.min(count, Math.ceil((top + height) / row) + AROUND);
  return { first: Math.max(0, Math.min(Math.floor(top / row), end) - AROUND), end: Math.max(0, end) };
}

/** The part of a table that scrolls. */
export class RowWindow {
  readonly body: HTMLTableSectionElement = byId<HTMLTableSectionElement>('object-rows');
  private readonly scroller: HTMLElement = byId('object-list');
  private readonly above: HTMLElement = byId('space-above');
  private readonly below: HTMLElement = byId('space-below');
  private row: number = USUAL_PX;

  constructor(onScroll: () => void) {
    this.scroller.addEventListener('scroll', onScroll, { passive: true });
    new ResizeObserver(onScroll).observe(this.scroller);
  }

  /** The first row that is in view, wholly or in part. */
  get top(): number {
    return Math.floor(this.scroller.scrollTop / this.row);
  }

  /** How many rows are in view. */
  get rows(): number {
    return Math.max(1, Math.floor((this.scroller.clientHeight - this.headPx) / this.row));
  }

  span(count: number): Span {
    const [row] = this.body.rows;
    if (row !== undefined) this.row = row.getBoundingClientRect().height || this.row;
    return spanIn({ top: this.scroller.scrollTop, height: this.scroller.clientHeight, row: this.row, count });
  }

  /** Makes room for the rows that are not in the document. */
  frame({ first, end }: Span, count: number): void {
    setHeight(this.above, first * this.row);
    setHeight(this.below, (count - end) * this.row);
  }

  /** Moves the view by rows, because rows have come or gone above it. */
  shift(by: number, count: number): void {
    if (by === 0) return;
    // More room than it needs: the end of what can be scrolled must not stop it.
    setHeight(this.below, count * this.row);
    this.scroller.scrollTop += by * this.row;
  }

  /** Moves the view so far that a row is in it, if it is not. */
  reveal(index: number): void {
    const { scroller, row, headPx } = this;
    const top = index * row;
    const bottom = top + row - (scroller.clientHeight - headPx);
    if (scroller.scrollTop > top) scroller.scrollTop = top;
    else if (scroller.scrollTop < bottom) scroller.scrollTop = bottom;
  }

  toStart(): void {
    this.scroller.scrollTo(0, 0);
  }

  /** The head stays in view above the rows. */
  private get headPx(): number {
    return byId('object-head').getBoundingClientRect().height;
  }
}

function setHeight(space: HTMLElement, px: number): void {
  const height = `${px}px`;
  if (space.style.height !== height) space.style.height = height;
}
