// What a user wants to see of a collection: kind, namespace, labels, fields and version, which the server applies. All of it is in
// the URL.
import { apiVersionOf } from '../../cache/resource-client.ts';
import { parseFieldSelector } from '../../selectors/field-selector.ts';
import { parseLabelSelector, type Requirement } from '../../selectors/label-selector.ts';
import { byId, make, say } from '../elements.ts';
import { count, visible } from '../words.ts';
import type { PageResource } from './api.ts';
import type { Scope } from './follower.ts';
import { goTo, type PagePlace } from './place.ts';

/** Namespaces that are offered. */
export const MAX_NAMESPACES = 500;
/** The longest selector that the server accepts. */
const MAX_SELECTOR_CHARS = 4_096;
/** A user who is still typing has not finished. */
const TYPING_MS = 400;

/** What is wrong with a selector, with a mark below the place; undefined: nothing. */
export function faultOf(selector: string, kind: 'label' | 'field' = 'label'): string | undefined {
  try {
    const parse = kind === 'label' ? parseLabelSelector : parseFieldSelector;
    parse(selector, { maxChars: MAX_SELECTOR_CHARS });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** The conditions of a label selector; none if it is wrong. */
function termsOf(selector: string): readonly Requirement[] {
  return faultOf(selector) === undefined ? parseLabelSelector(selector).requirements : [];
}

/** The label, such as `app=web`, that a condition asks for; undefined if it is of another kind. */
const labelOf = ({ key, operator, values: [value = ''] }: Requirement): string | undefined =>
  operator === '=' || operator === '==' ? `${key}=${value}` : undefined;

export function labelsIn(selector: string): ReadonlySet<string> {
  return new Set(termsOf(selector).flatMap((term) => labelOf(term) ?? []));
}

/** The selector that also asks for this label, instead of other values of its key; without it, if it asked for that. */
export function toggleLabel(selector: string, label: string): string {
  const terms = termsOf(selector);
  const others = terms.filter((term) => labelOf(term) !== label);
  if (others.length < terms.length) return others.join(',');
  const key = label.slice(0, label.indexOf('='));
  const kept = others.filter((term) => term.key !== key || !['=', '==', 'in'].includes(term.operator));
  return [...kept, label].join(',');
}

/** The digits of a version, however it was copied: `12,345`, or `resourceVersion: "12345"`. */
export function versionIn(text: string): string {
  return text
    .replace(/\D/g, '')
    .replace(/^0+(?=\d)/, '')
    .slice(0, 20);
}

/** The server applies this. */
type Filter = Omit<Scope, 'resource'>;

const NONE: Filter = { namespace: '', labelSelector: '', fieldSelector: '', version: '' };

/** The fields of the filter. An invalid selector is not requested. */
export class Filters {
  private readonly namespace: HTMLSelectElement = byId<HTMLSelectElement>('namespace');
  private readonly labels: HTMLInputElement = byId<HTMLInputElement>('selector');
  private readonly fields: HTMLInputElement = byId<HTMLInputElement>('fields');
  private readonly version: HTMLInputElement = byId<HTMLInputElement>('version');
  private readonly onFilter: () => void;
  private applied: Filter = NONE;
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(onFilter: () => void) {
    this.onFilter = onFilter;
    this.namespace.addEventListener('change', () => this.apply());
    for (const input of [this.labels, this.fields, this.version]) {
      input.addEventListener('input', () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.apply(), TYPING_MS);
      });
      input.addEventListener('change', () => this.apply());
    }
  }

  get filter(): Filter {
    return this.applied;
  }

  /** Takes over what a URL says, without announcing it. */
  restore({ namespace, labelSelector, fieldSelector, resourceVersion }: PagePlace): void {
    clearTimeout(this.timer);
    this.setNamespace(namespace);
    this.labels.value = labelSelector;
    this.fields.value = fieldSelector;
    this.version.value = versionIn(resourceVersion);
    this.applied = { ...NONE, namespace, ...this.checked() };
  }

  /** Whether a resource has namespaces to choose from. */
  show(namespaced: boolean): void {
    this.namespace.toggleAttribute('hidden', !namespaced);
  }

  /** Asks for a label, or no longer. */
  toggle(label: string): void {
    this.labels.value = toggleLabel(this.labels.value, label);
    this.apply();
  }

  /** The collection as it is. */
  goLive(): void {
    this.version.value = '';
    this.apply();
  }

  /** Says what is wrong with the request. Empty: nothing. */
  fail(words: string): void {
    byId('fault').toggleAttribute('hidden', words === '');
    say(byId('fault'), words);
  }

  /** Offers namespaces, of which there are `total`. The chosen one stays, even if it is gone. */
  offer(names: readonly string[], total: number): void {
    const { namespace } = this;
    const chosen = namespace.value;
    const options = names.slice(0, MAX_NAMESPACES).map((name) => new Option(visible(name), name));
    const rest = new Option(`and ${count(total - names.length)} more`, '');
    rest.disabled = true;
    namespace.replaceChildren(new Option('all namespaces', ''), ...options, ...(total > names.length ? [rest] : []));
    this.setNamespace(chosen);
  }

  private setNamespace(name: string): void {
    const { namespace } = this;
    if (name !== '' && ![...namespace.options].some(({ value }) => value === name))
      namespace.add(new Option(visible(name), name));
    namespace.value = name;
  }

  /** What the fields say; for an invalid selector, its last valid text. */
  private checked(): Omit<Filter, 'namespace'> {
    const { labels, fields, version, applied } = this;
    const text = { labels: labels.value.trim(), fields: fields.value.trim() };
    const faults = { labels: faultOf(text.labels), fields: faultOf(text.fields, 'field') };
    labels.setAttribute('aria-invalid', String(faults.labels !== undefined));
    fields.setAttribute('aria-invalid', String(faults.fields !== undefined));
    this.fail([faults.labels, faults.fields].filter((fault) => fault !== undefined).join('\n'));
    return {
      labelSelector: faults.labels === undefined ? text.labels : applied.labelSelector,
      fieldSelector: faults.fields === undefined ? text.fields : applied.fieldSelector,
      version: versionIn(version.value),
    };
  }

  private apply(): void {
    clearTimeout(this.timer);
    const next = { namespace: this.namespace.value, ...this.checked() };
    const before = JSON.stringify(this.applied);
    if (JSON.stringify(next) === before) return;
    this.applied = next;
    const { version, ...rest } = next;
    goTo({ ...rest, resourceVersion: version }, { step: true });
    this.onFilter();
  }
}

/** The kinds to choose from, by group. */
export class KindList {
  private readonly select: HTMLSelectElement = byId<HTMLSelectElement>('kind');

  constructor(onChoose: (id: string) => void) {
    this.select.addEventListener('change', () => onChoose(this.select.value));
  }

  /** There are these resources. */
  list(resources: readonly PageResource[], chosen: string | undefined): void {
    const groups = new Map<string, HTMLOptGroupElement>();
    for (const { id, group, version, plural } of resources) {
      const label = visible(apiVersionOf({ group, version }));
      const options = groups.get(label) ?? make('optgroup');
      options.label = label;
      options.append(new Option(visible(plural), id));
      groups.set(label, options);
    }
    this.select.replaceChildren(...groups.values());
    this.choose(chosen);
  }

  choose(id: string | undefined): void {
    if (id !== undefined) this.select.value = id;
  }
}
