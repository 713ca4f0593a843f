/**
 * Label and field selectors: parse, match, print, and a canonical form. They run anywhere. Their users are the caches, the storages
 * and the API server; the entry points of those export them.
 */

export { type LabelOperator, type Labels, labelOf } from './syntax.ts';
export { escapeFieldValue, unescapeFieldValue } from './field-selector.ts';
export {
  type FieldRule,
  FieldSelector,
  type Fields,
  type FieldTerm,
  fitsRule,
  parseFieldSelector,
  rulesOf,
} from './field-selector.ts';
export { type LabelExpression, LabelSelector, type LabelSelectorObject, parseLabelSelector } from './label-selector.ts';
export { conflicts, mergeLabels, parseLabels, printLabels } from './label-selector.ts';
export {
  type Attributes,
  attributesOfMeta,
  type IndexHint,
  SelectionPredicate,
  type SelectionPredicateOptions,
} from './predicate.ts';
export { Requirement } from './label-selector.ts';
export { MAX_SELECTOR_CHARS, type ParseOptions } from './syntax.ts';
