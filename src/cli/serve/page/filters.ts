import { parseLabelSelector } from '../../../selectors/label-selector.ts';
import { byId, say } from '../../page/elements.ts';
import { count, visible } from '../../page/words.ts';

/** Namespaces that are offered. */
export const MAX_NAMESPACES = 500;
/** The longest selector that the server takes. */
const MAX_SELECTOR_CHARS = 4_096;
/** A user who is still typing has not finished. */
const TYPING_MS = 400;

/** What is wrong with a label selector, with a mark below the place; undefined: nothing. */
export function faultOf(selector: string): string | undefined {
  try {
    parseLabelSelector(selector, { maxChars: MAX_SELECTOR_CHARS });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** What a user wants to see of a collection. */
export interface Filter {
  /** Empty for all. */
  readonly namespace: string;
  readonly labelSelector: string;
}

/** The namespace and the label selector, which the server applies. An invalid selector is not requested. */
export class Filters {
  private readonly namespace: HTMLSelectElement = byId<HTMLSelectElement>('namespace');
  private readonly selector: HTMLInputElement = byId<HTMLInputElement>('selector');
  private readonly onFilter: (filter: Filter) => void;
  private applied: string = '';
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(onFilter: (filter: Filter) => void) {
    this.onFilter = onFilter;
    this.namespace.addEventListener('change', () => onFilter(this.filter));
    this.selector.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.select(), TYPING_MS);
    });
    this.selector.addEventListener('change', () => this.select());
  }

  /** The filter as it is now. */
  get filter(): Filter {
    return { namespace: this.namespace.value, labelSelector: this.applied };
  }

  /** Whether a resource has namespaces to choose from. */
  show(namespaced: boolean): void {
    this.namespace.toggleAttribute('hidden', !namespaced);
  }

  /** Offers namespaces, of which there are `total`. The chosen one stays, even if it is gone. */
  offer(names: readonly string[], total: number): void {
    const { namespace } = this;
    const chosen = namespace.value;
    const offered = names.slice(0, MAX_NAMESPACES);
    if (chosen !== '' && !offered.includes(chosen)) offered.push(chosen);
    const options = offered.map((name) => new Option(visible(name), name));
    const rest = new Option(`and ${count(total - names.length)} more`, '');
    rest.disabled = true;
    namespace.replaceChildren(new Option('all namespaces', ''), ...options, ...(total > names.length ? [rest] : []));
    namespace.value = chosen;
  }

  private select(): void {
    clearTimeout(this.timer);
    const text = this.selector.value.trim();
    const fault = faultOf(text);
    this.selector.setAttribute('aria-invalid', String(fault !== undefined));
    byId('fault').toggleAttribute('hidden', fault === undefined);
    say(byId('fault'), fault ?? '');
    if (fault !== undefined || text === this.applied) return;
    this.applied = text;
    this.onFilter(this.filter);
  }
}
