import { invalid, WatchError } from './errors.ts';

/**
 * Returns `options`. Throws INVALID_ARGUMENT for anything but an object, and for an option that is not in `names`: a misspelt one
 * would otherwise mean the default. An option that is undefined counts as not given. Class instances may have other members, so
 * only plain objects are checked.
 */
export function checkOptions<O extends object>(options: O, names: readonly (keyof O & string)[]): O {
  if (!options || typeof options !== 'object') throw invalid('options', options, 'an object');
  for (const name in options) {
    if (names.includes(name) || options[name] === undefined || !Object.hasOwn(options, name) || !isPlain(options)) continue;
    const nearest = names.reduce((one, other) => (distance(name, other) < distance(name, one) ? other : one));
    throw new WatchError('INVALID_ARGUMENT', `unknown option ${name.slice(0, 80)}: did you mean ${nearest}?`);
  }
  return options;
}

/** Whether an object is plain, whatever its realm: it has no prototype, or one without a prototype. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return !prototype || !Object.getPrototypeOf(prototype);
}

/** The number of letters to insert, remove or replace to get from one word to the other (Levenshtein), row by row. */
export function distance(from: string, to: string): number {
  let row = Array.from(`${to}.`, (_, at) => at);
  for (const letter of from.slice(0, 40)) {
    let left = (row[0] as number) + 1;
    row = row.map((above, at) => {
      const diagonal = at && (row[at - 1] as number) + +(to[at - 1] !== letter);
      left = at ? Math.min(above + 1, left + 1, diagonal) : left;
      return left;
    });
  }
  return row[to.length] as number;
}
