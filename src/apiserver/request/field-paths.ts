/**
 * Paths of fields to report: a limited number, each shortened if it is long, and how many more there are. A hostile object can
 * have a million fields at the end of paths of a megabyte.
 */

/** A name of a member, or an index of a list. */
export type Step = string | number;

/** The most that are reported, as upstream does for its own kinds. */
export const MAX_PATHS = 100;
const MAX_PATH_CHARS = 256;

export class FieldPaths {
  readonly #paths: Set<string> = new Set();
  #more = 0;

  /** Adds the path of these steps, which are computed only if it is reported. Equal paths are reported once. */
  add(steps: () => readonly Step[]): void {
    if (this.#paths.size === MAX_PATHS) this.#more++;
    else this.#paths.add(toPath(steps()));
  }

  /** The reported paths, in the order in which they were found. */
  get told(): string[] {
    return [...this.#paths];
  }

  /** How many more were found. */
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
