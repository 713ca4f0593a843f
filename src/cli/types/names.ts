// The names of interfaces and constants: the same for the same input, whatever its order, and never twice.
import { compareApiVersions } from '../../apiserver/documents/discovery.ts';
import { byCodeUnit } from '../../selectors/syntax.ts';
import type { DescribedKind, GroupVersionKind } from './described.ts';

/** Names that have a meaning in the file already. */
const IMPORTED = ['Kind', 'ResourceType', 'kind'];

/** `image-pull secrets` becomes `ImagePullSecrets`. Only ASCII: what is a letter depends on the version of the compiler. */
export function pascal(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return words.join('') || 'Value';
}

const constantCase = (text: string): string => text.replace(/[^A-Za-z0-9]+/g, '_').toUpperCase();

/** The names of one file. */
export class Names {
  readonly #taken: Set<string> = new Set(IMPORTED);
  /** The next number of a name that several have. */
  readonly #next: Map<string, number> = new Map();

  /** Takes the first of these names that is free. If none is, the last one gets a number. */
  take(candidates: readonly string[]): string {
    const last = candidates.at(-1) ?? 'Value';
    let name = candidates.find((each) => !this.#taken.has(each)) ?? last;
    for (let n = this.#next.get(last) ?? 2; this.#taken.has(name); n++) {
      name = `${last}${n}`;
      this.#next.set(last, n + 1);
    }
    this.#taken.add(name);
    return name;
  }

  /**
   * Takes the names of interfaces, in this order. The best version of a kind has the kind's name, others append their version;
   * if that is taken, the group goes in front: `Website`, `WebsiteV1beta1`, `EventsEvent`.
   */
  takeAll<T extends GroupVersionKind>(all: readonly T[]): Map<T, { readonly name: string; readonly isBest: boolean }> {
    const best = new Map<string, string>();
    for (const { group, version, kind } of all) {
      const before = best.get(`${group}/${kind}`);
      if (before === undefined || compareApiVersions(version, before) < 0) best.set(`${group}/${kind}`, version);
    }
    const named = new Map<T, { readonly name: string; readonly isBest: boolean }>();
    for (const each of all) {
      const isBest = best.get(`${each.group}/${each.kind}`) === each.version;
      const candidates = forms(each, isBest).map((words) => words.map(pascal).join(''));
      const name = this.take(candidates.map((candidate) => (/^\d/.test(candidate) ? `Kind${candidate}` : candidate)));
      named.set(each, { name, isBest });
    }
    return named;
  }

  /** Takes the name of a kind's constant, such as `WEBSITES` or `WEBSITES_V1BETA1`, which goes with that of its interface. */
  takeConstant({ group, version, kind, plural = kind }: DescribedKind, isBest: boolean): string {
    const candidates = forms({ group, version, kind: plural }, isBest).map((words) => words.map(constantCase).join('_'));
    return this.take(candidates.map((name) => (/^[A-Z]/.test(name) ? name : `KIND_${name}`)));
  }
}

/** The words of the names that something may have, the best first. */
function forms({ group, version, kind }: GroupVersionKind, isBest: boolean): readonly (readonly string[])[] {
  const first = group.split('.')[0] ?? '';
  const before = first === '' ? [] : [first];
  const after = version === '' ? [] : [version];
  return isBest
    ? [[kind], [...before, kind], [...before, kind, ...after]]
    : [
        [kind, ...after],
        [...before, kind, ...after],
      ];
}

/**
 * The parts of a component's name, such as `io.k8s.api.apps.v1.DeploymentSpec`; in the order in which components get their
 * names.
 */
export function sortedComponents(components: Iterable<string>): readonly (GroupVersionKind & { readonly component: string })[] {
  const parsed = [...components].map((component) => {
    const words = component.split('.');
    const isVersioned = /^v\d/.test(words.at(-2) ?? '');
    const version = isVersioned ? (words.at(-2) ?? '') : '';
    return { component, kind: words.at(-1) ?? '', version, group: words.at(isVersioned ? -3 : -2) ?? '' };
  });
  return parsed.sort(
    (one, other) =>
      byCodeUnit(one.kind, other.kind) ||
      byCodeUnit(one.group, other.group) ||
      compareApiVersions(one.version, other.version) ||
      byCodeUnit(one.component, other.component),
  );
}
