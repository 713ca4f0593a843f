/** The largest collection, in objects. */
export const OBJECTS: number;
export const ATTACKS: readonly {
  readonly name: string;
  readonly connections?: number;
  readonly leaveAfterBytes?: number;
  readonly requests: () => readonly object[];
}[];
