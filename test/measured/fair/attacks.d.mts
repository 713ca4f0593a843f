/** The largest collection, in objects. */
export const OBJECTS: number;
export const ATTACKS: readonly {
  readonly name: string;
  readonly connections?: number;
  readonly leaveAfterBytes?: number;
  /** Its bodies, or objects, are near their limits. */
  readonly isLarge?: boolean;
  readonly requests: () => readonly object[];
}[];
