import { WatchError } from '../watch/errors.ts';
import type { LabelOperator, Labels } from './condition.ts';
import { canonicalLabels, LabelTest, NOTHING, possibleLabels } from './label-canonical.ts';
import { readConditions } from './label-parser.ts';
import { Requirement } from './requirement.ts';
import { byCodeUnit, type ParseOptions } from './syntax.ts';

/** A label selector as objects write it, in `spec.selector` of a Deployment for example. All its conditions must hold. */
export interface LabelSelectorObject {
  readonly matchLabels?: Readonly<Record<string, string>> | null | undefined;
  readonly matchExpressions?: readonly LabelExpression[] | null | undefined;
}

/** A condition of a {@link LabelSelectorObject}. */
export interface LabelExpression {
  readonly key: string;
  /** `In`, `NotIn`, `Exists` or `DoesNotExist`. */
  readonly operator: string;
  readonly values?: readonly string[] | null | undefined;
}

const EXPRESSION_OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

/**
 * Selects objects by their labels: every requirement must hold. Immutable. Upstream: `labels.Selector`.
 *
 *     parseLabelSelector('app in (web,api),!canary').matches({ app: 'web' })   // true
 */
export class LabelSelector {
  /** Sorted by key; requirements with the same key keep the order in which they were given. */
  readonly requirements: readonly Requirement[];
  private known: string | undefined;
  /** Made at the first use. */
  private test: LabelTest | undefined;

  constructor(requirements: readonly Requirement[] = []) {
    this.requirements = [...requirements].sort((one, other) => byCodeUnit(one.key, other.key));
  }

  /** Selects every object. */
  static everything(): LabelSelector {
    return new LabelSelector();
  }

  /** Selects no object. Printed as `nothing,!nothing`, which parses to a selector that also selects nothing. */
  static nothing(): LabelSelector {
    return parseLabelSelector(NOTHING);
  }

  /**
   * Selects the objects that have all these labels, with these values; every object for null, undefined or no labels.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a key or a value that no label can have.
   */
  static fromLabels(labels: Labels | null | undefined): LabelSelector {
    return new LabelSelector(Object.entries(labels ?? {}).map(([key, value]) => new Requirement(key, '=', [value])));
  }

  /**
   * Converts the form with `matchLabels` and `matchExpressions`. As upstream: an object without conditions selects everything, null
   * and undefined select nothing.
   *
   * @throws {WatchError} INVALID_ARGUMENT for an invalid key or operator, or invalid values.
   */
  static fromObject(object: LabelSelectorObject | null | undefined): LabelSelector {
    if (object === null || object === undefined) return LabelSelector.nothing();
    const { requirements } = LabelSelector.fromLabels(object.matchLabels);
    const expressions = (object.matchExpressions ?? []).map(({ key, operator, values }) => {
      const own = EXPRESSION_OPERATORS.get(operator);
      if (own) return new Requirement(key, own, values ?? []);
      const names = [...EXPRESSION_OPERATORS.keys()].join(', ');
      throw new WatchError('INVALID_ARGUMENT', `operator ${JSON.stringify(operator)?.slice(0, 80)}: expected one of ${names}`);
    });
    return new LabelSelector([...requirements, ...expressions]);
  }

  /** Whether an object with these labels is selected. No labels, null and undefined are the same. */
  matches(labels: Labels | null | undefined): boolean {
    this.test ??= new LabelTest(possibleLabels(this.requirements));
    return this.test.matches(labels);
  }

  /** Whether it has no requirement, and so selects everything. */
  get isEmpty(): boolean {
    return this.requirements.length === 0;
  }

  /** Whether no labels can meet all its requirements, as with `a=1,a=2`. */
  get matchesNothing(): boolean {
    return this.canonical === NOTHING;
  }

  /**
   * The same text for all selectors that select the same labels, and only for them, so it can serve as a key in a map. It parses
   * to an equal selector.
   */
  get canonical(): string {
    this.known ??= canonicalLabels(possibleLabels(this.requirements));
    return this.known;
  }

  /** Whether both select the same labels, however they are written. */
  equals(other: LabelSelector): boolean {
    return this.canonical === other.canonical;
  }

  /**
   * The one value that a label must have to be selected, if the first requirement for its key says so (`=`, `==`, or `in` with
   * one value); otherwise undefined. Use it for an index or a topic: all selected objects are found under this value.
   */
  requiresExactMatch(key: string): string | undefined {
    const { operator, values } = this.requirements.find((each) => each.key === key) ?? {};
    const pins = operator === '=' || operator === '==' || operator === 'in';
    return pins && values?.length === 1 ? values[0] : undefined;
  }

  /** Returns a selector with additional requirements. This one is not changed. */
  add(...requirements: readonly Requirement[]): LabelSelector {
    return new LabelSelector([...this.requirements, ...requirements]);
  }

  /** Text that parses to the same requirements: sorted by key, with the values of each sorted. */
  toString(): string {
    return this.requirements.join(',');
  }

  /** The same as `toString`. */
  toJSON(): string {
    return this.toString();
  }
}

/**
 * Parses a label selector, in the syntax of Kubernetes' `labelSelector` parameter and of `kubectl -l`.
 *
 * | text | selects objects whose label `k` |
 * |---|---|
 * | `k=v`, `k==v`, `k in (v,w)` | has this value, or one of these |
 * | `k!=v`, `k notin (v,w)` | is absent, or has another value |
 * | `k`, `!k` | is present, is absent |
 * | `k>5`, `k<5` | is a 64-bit integer that is greater, less |
 *
 * A comma means AND; an empty selector selects everything. docs/selectors.md lists the deliberate differences from upstream.
 *
 * @throws {WatchError} INVALID_SELECTOR for an invalid text, with the `position` of the character, which the message marks with a
 *   caret; or with the `limit`, for a text longer than `maxChars`.
 */
export function parseLabelSelector(text: string, options: ParseOptions = {}): LabelSelector {
  return new LabelSelector(
    readConditions(text, options).map(({ key, operator, values }) => new Requirement(key, operator, values)),
  );
}
