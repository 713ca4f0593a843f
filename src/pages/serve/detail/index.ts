import type { PageResource } from '../api.ts';

/** An object whose detail can be shown. */
export interface DetailRef {
  readonly resource: PageResource;
  /** Absent if the resource has none. */
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Of the object that was chosen: another one may have its name later. */
  readonly uid?: string | undefined;
}

let show: (ref: DetailRef) => void = () => {};

/** Sets what shows details. */
export function showDetailsWith(by: (ref: DetailRef) => void): void {
  show = by;
}

/** Shows the detail of an object, or hides it if it is shown. */
export function openDetail(ref: DetailRef): void {
  show(ref);
}
