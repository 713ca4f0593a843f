/**
 * Label and field selectors: parse, match, print, and a canonical form. They run anywhere. Their users are the caches, the storages
 * and the API server; the entry points of those export them.
 */

export {
  escapeFieldValue,
  type FieldRule,
  FieldSelector,
  type Fields,
  type FieldTerm,
  fitsRule,
  parseFieldSelector,
  rulesOf,
} from './field-selector.ts';
export {
  type LabelExpression,
  LabelSelector,
  type LabelSelectorObject,
  parseLabelSelector,
  printLabels,
  Requirement,
} from './label-selector.ts';
export {
  type Attributes,
  attributesOfMeta,
  type IndexHint,
  SelectionPredicate,
  type SelectionPredicateOptions,
} from './predicate.ts';
export { type LabelOperator, type Labels, labelOf, MAX_SELECTOR_CHARS, type ParseOptions } from './syntax.ts';
