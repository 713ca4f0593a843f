import type { Contender } from './contender.ts';
import { OF_NODE } from './contenders-node.ts';
import { OURS } from './contenders-ours.ts';
import { OF_PACKAGES } from './contenders-packages.ts';

/** All contenders inside a Node process. The Go original is a separate program: see go.ts. */
export const CONTENDERS: readonly Contender[] = [...OURS, ...OF_NODE, ...OF_PACKAGES];

export function contenderOf(name: string): Contender {
  const found = CONTENDERS.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no contender "${name}"`);
  return found;
}
