/**
 * Paths of fields that somebody is told of: the first so many, each cut where it gets long, and how many more there are. A hostile
 * object can have a million fields at the end of paths of a megabyte.
 */

/** A name of a member, or an index of a list. */
export type Step = string | number;

/** So many are told, as upstream does for its own kinds. */
export const MAX_PATHS = 100;
const MAX_PATH_CHARS = 256;

export class FieldPaths {
  readonly #paths: Set<string> = new Set();
  #more = 0;

  /** Adds the path of these steps, which are asked for only if it is told. Of equal paths one is. */
  add(steps: () => readonly Step[]): void {
    if (this.#paths.size === MAX_PATHS) this.#more++;
    else this.#paths.add(toPath(steps()));
  }

  /** Those that are told, in the order in which they were found. */
  get told(): string[] {
    return [...this.#paths];
  }

  /** How many have been found beyond them. */
  get more(): number {
    return this.#more;
  }
}

/** Such as `spec.items[0].count`. */
function toPath(steps: readonly Step[]): string {
  let path = '';
  for (const step of steps) {
    path += typeof step === 'number' ? `[${step}]` : `${path === '' ? '' : '.'}${step.slice(0, MAX_PATH_CHARS)}`;
    if (path.length > MAX_PATH_CHARS) return `${path.slice(0, MAX_PATH_CHARS)}...`;
  }
  return path;
}
