import { pluralOf } from '../../operator/kinds.ts';
import { type Given, type Options, preset, quote, valued } from '../usage.ts';

export interface NewCommand {
  readonly command: 'new';
  /** The name of the folder, the package, and everything it has in a cluster. */
  readonly name: string;
  /** Of the kind that the operator defines, such as `example.com`. */
  readonly group: string;
  /** Such as `Website`. */
  readonly kind: string;
  /** Such as `websites`: used in the server's paths, and as the controller's name. */
  readonly plural: string;
}

export const NEW_OPTIONS: Options = { ...preset({ group: 'example.com' }), ...valued('kind') };

/** A valid name for namespaces and much else; begins with a letter, because a kind is named after it. */
const NAME = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** `List` follows it in the name of its lists. */
const KIND = /^[A-Z][A-Za-z0-9]{0,58}$/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** npm does not install a package into one with the same name. */
export const PACKAGES: readonly string[] = ['typescript', 'watchmux', 'yaml'];
/** Names that mean something else in the project. */
export const NAMES_IN_USE: readonly string[] = ['Condition', 'KubernetesObject'];
/** Plurals that JavaScript does not accept as the name of a constant. */
const RESERVED: readonly string[] = ['arguments', 'extends', 'implements', 'this'];
/** Words that YAML 1.1, which kubectl reads, does not read as text. */
const NO_TEXT = /^(?:y|yes|n|no|on|off|true|false|null)$/i;
/** Of the definition, `PLURAL.GROUP`. */
const MAX_NAME_CHARS = 253;

export function toNew(given: Given): NewCommand {
  const [what, name] = given.positionals;
  const example = 'watchmux new operator website-operator';
  if (what === undefined || name === undefined) throw given.error(`expected "operator" and a name, for example: ${example}`);
  if (what !== 'operator') throw given.error(`cannot start ${quote(what)}: expected "operator", for example: ${example}`);
  given.atMost(2, 'new operator takes one name');
  if (!NAME.test(name))
    throw given.error(
      `NAME is ${quote(name)}: expected at most 63 characters of a-z, 0-9 and -, beginning with a letter and not ending with -`,
    );
  if (PACKAGES.includes(name)) throw given.error(`NAME is ${quote(name)}, a package that the project needs: choose another name`);
  if (NO_TEXT.test(name)) throw given.error(`NAME is ${quote(name)}, which YAML does not read as text: choose another name`);
  const [group, kind] = [toGroup(given), toKind(given, name)];
  const plural = pluralOf(kind);
  const length = plural.length + 1 + group.length;
  if (length > MAX_NAME_CHARS)
    throw given.wrong('group', `at most ${MAX_NAME_CHARS} characters together with ${quote(`${plural}.`)}, not ${length}`);
  return { command: 'new', name, group, kind, plural };
}

function toGroup(given: Given): string {
  const group = given.text('group') ?? '';
  const labels = group.split('.');
  // In YAML, a number is not text.
  if (labels.length < 2 || !labels.every((label) => LABEL.test(label)) || !Number.isNaN(Number(group)))
    throw given.wrong('group', 'a domain name in lower case with a dot in it, such as example.com');
  // There, a definition needs an approval in an annotation. Upstream: `apihelpers.IsProtectedCommunityGroup`.
  if (/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(group))
    throw given.wrong('group', 'a domain of your own, outside k8s.io and kubernetes.io');
  return group;
}

function toKind(given: Given, name: string): string {
  const words = name.replace(/(?<=.)-(?:operator|controller)$/, '').split('-');
  const kind = given.text('kind') ?? words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('');
  if (!KIND.test(kind))
    throw given.wrong('kind', 'at most 59 letters and digits, beginning with a capital letter, such as Website', kind);
  if (NAMES_IN_USE.includes(kind)) throw given.wrong('kind', 'a name that the project does not already import', kind);
  const plural = pluralOf(kind);
  if (RESERVED.includes(plural))
    throw given.wrong('kind', `a name whose plural can name a constant, which ${quote(plural)} cannot`, kind);
  if (NO_TEXT.test(kind) || NO_TEXT.test(plural))
    throw given.wrong('kind', 'a name that YAML reads as text (and its plural, too)', kind);
  return kind;
}
