/** The largest collection, in objects. */
export const OBJECTS: number;
export const ATTACKS: readonly {
  readonly name: string;
  readonly connections?: number;
  readonly leaveAfterBytes?: number;
  /** What an honest client may wait, in ms. Default 100. */
  readonly isLarge?: boolean;
  readonly requests: () => readonly object[];
}[];
