import { THINGS, type Thing, thingOf } from '../server/objects.ts';

/** How many Things there are: few, as each of a thousand clients has a copy of them. */
export const COPIED = 50;
/** Changes that the server keeps. */
export const WINDOW = 100;

const THING_BYTES = 600;

/** The number of the change that comes at this place among all. The first ones make the Things. */
export const numberAt = (place: number): number => Math.floor(place / COPIED) * THINGS + (place % COPIED);

export const thingAt = (place: number): Thing => thingOf(numberAt(place), THING_BYTES);

/** Which change each Thing has after that of this place. */
export function turnsAfter(place: number): Record<string, number> {
  const last = Array.from({ length: COPIED }, (_, i) => thingAt(place - i));
  return Object.fromEntries(last.map(({ metadata, spec }) => [metadata.name, spec.turn]));
}
