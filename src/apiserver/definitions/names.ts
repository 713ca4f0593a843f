/**
 * Which names a definition gets, and whether it is served. A pure function: see `definitions.ts` for why all servers decide the same.
 *
 *     new ---> names free? ---> NamesAccepted, Established: Installing ---> still nobody else has them? ---> Established
 *                 '- no: NamesAccepted False, until they are                          '- no: it yields
 *
 * Upstream: `NamingConditionController` and `EstablishingController`.
 */
import type { ResourceInfo } from '../resource-info.ts';
import { type Condition, type Crd, type CrdNames, conditionOf, isTrue, type SINGLE_NAMES, withCondition } from './crd.ts';

/** What a decision depends on. */
interface Surroundings {
  /** All definitions, at the version of the one in question. */
  readonly known: readonly Crd[];
  /** What the program of the server serves. */
  readonly fixed: readonly ResourceInfo[];
  readonly nowMs: number;
  /** Whether it is decided about again, because something around it has changed since its version. */
  readonly isAgain?: boolean;
}

/** The definition with a new status; undefined if its status is right. */
export function decided(crd: Crd, around: Surroundings): Crd | undefined {
  if (crd.metadata?.deletionTimestamp !== undefined) return undefined;
  const { spec, status } = crd;
  const claimed = isSame(spec.names, status.acceptedNames);
  if (claimed && isTrue(crd, 'Established')) return undefined;
  const isInstalling = claimed && isTrue(crd, 'NamesAccepted');
  const own = isInstalling ? NO_NAMES : ownNames(crd, around);
  const { names, conflict } = accepted(spec.names, own, usedNames(crd, around, own));
  if (isInstalling && conflict === undefined) return withCondition(crd, ESTABLISHED, around.nowMs);
  const naming = conflict ?? NO_CONFLICTS;
  const old = conditionOf(crd, 'NamesAccepted');
  const isOld = old?.status === naming.status && old.reason === naming.reason && old.message === naming.message;
  if (isSame(names, status.acceptedNames) && isOld) return undefined;
  const next = withCondition({ ...crd, status: { ...status, acceptedNames: names } }, naming, around.nowMs);
  if (isTrue(crd, 'Established')) return next;
  const established = naming.status === 'True' ? INSTALLING : (conditionOf(crd, 'Established') ?? NOT_ACCEPTED);
  return withCondition(next, conflict && isInstalling ? NOT_ACCEPTED : established, around.nowMs);
}

type Said = Omit<Condition, 'lastTransitionTime'>;

const NO_NAMES: CrdNames = { plural: '', kind: '' };
const NO_CONFLICTS: Said = { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' };
const NOT_ACCEPTED: Said = {
  ...{ type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
};
const INSTALLING: Said = {
  ...{ type: 'Established', status: 'False', reason: 'Installing', message: 'the initial names have been accepted' },
};
const ESTABLISHED: Said = {
  ...{ type: 'Established', status: 'True', reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' },
};

interface Used {
  readonly resources: ReadonlySet<string | undefined>;
  readonly kinds: ReadonlySet<string | undefined>;
}

/**
 * The names that it owns: all if it is Established. A mere claim is decided about again at the version of the claim, which shows
 * all earlier claims; later ones yield to it, unless they have been Established meanwhile.
 */
function ownNames(crd: Crd, { known, fixed, nowMs, isAgain }: Surroundings): CrdNames {
  const { acceptedNames } = crd.status;
  if (isTrue(crd, 'Established')) return acceptedNames;
  if (!isAgain) return NO_NAMES;
  const established = known.filter((each) => isTrue(each, 'Established'));
  const { resources, kinds } = usedNames(crd, { known: established, fixed, nowMs }, NO_NAMES);
  const { plural, singular, shortNames = [], kind, listKind, ...rest } = acceptedNames;
  return {
    ...rest,
    ...{ plural: resources.has(plural) ? '' : plural, ...(!resources.has(singular) && { singular }) },
    ...{ shortNames: shortNames.filter((name) => !resources.has(name)) },
    ...{ kind: kinds.has(kind) ? '' : kind, ...(!kinds.has(listKind) && { listKind }) },
  };
}

/**
 * The names that no other definition gets: those that it has and, if it is Established and has asked for others, those, too,
 * until it is decided whether it gets them.
 */
export function claimsOf(crd: Crd): readonly CrdNames[] {
  const { spec, status } = crd;
  const isPending = isTrue(crd, 'Established') && isTrue(crd, 'NamesAccepted') && !isSame(spec.names, status.acceptedNames);
  return isPending ? [status.acceptedNames, spec.names] : [status.acceptedNames];
}

/** The names that others in the group have, and its own: one of these is not free to be something else as well. */
function usedNames({ metadata, spec: { group } }: Crd, { known, fixed }: Surroundings, own: CrdNames): Used {
  const resources = new Set<string | undefined>();
  const kinds = new Set<string | undefined>();
  const add = ({ plural, singular, shortNames = [], kind, listKind }: CrdNames): void => {
    for (const name of [plural, singular, ...shortNames]) if (name) resources.add(name);
    for (const name of [kind, listKind]) if (name) kinds.add(name);
  };
  add(own);
  for (const info of fixed) if (info.group === group) add(info);
  for (const other of known) {
    if (other.spec.group === group && other.metadata?.name !== metadata?.name) for (const names of claimsOf(other)) add(names);
  }
  return { resources, kinds };
}

/** The names that are free or already its own as what they are, and the last conflict. Upstream: `calculateNamesAndConditions`. */
function accepted(wanted: CrdNames, own: CrdNames, { resources, kinds }: Used): { names: CrdNames; conflict?: Said } {
  let conflict: Said | undefined;
  const taken = (reason: string, names: readonly string[]): void => {
    const texts = names.map((name) => `${JSON.stringify(name)} is already in use`);
    const message = texts.length === 1 ? String(texts[0]) : `[${[...new Set(texts)].join(', ')}]`;
    conflict = { type: 'NamesAccepted', status: 'False', reason, message };
  };
  const one = (name: (typeof SINGLE_NAMES)[number]): string | undefined => {
    const set = name === 'kind' || name === 'listKind' ? kinds : resources;
    const want = wanted[name];
    if (want === undefined || want === own[name] || !set.has(want)) return want;
    taken(`${name.charAt(0).toUpperCase()}${name.slice(1)}Conflict`, [want]);
    return own[name];
  };
  const [plural, singular] = [one('plural'), one('singular')];
  const { shortNames = [], categories = [] } = wanted;
  const lost = shortNames.filter((name) => !own.shortNames?.includes(name) && resources.has(name));
  if (lost.length > 0) taken('ShortNamesConflict', lost);
  const short = lost.length > 0 ? (own.shortNames ?? []) : shortNames;
  const [kind, listKind] = [one('kind'), one('listKind')];
  const names = {
    ...{ plural: plural ?? '', ...(singular && { singular }), ...(short.length > 0 && { shortNames: short }) },
    ...{ kind: kind ?? '', ...(listKind && { listKind }), ...(categories.length > 0 && { categories }) },
  };
  return { names, ...(conflict && { conflict }) };
}

/** Whether names are equal. An empty list equals a missing one. */
function isSame(one: CrdNames, other: CrdNames): boolean {
  const text = ({ plural, singular = '', shortNames = [], kind, listKind = '', categories = [] }: CrdNames): string =>
    JSON.stringify([plural, singular, shortNames, kind, listKind, categories]);
  return text(one) === text(other);
}
