/**
 * The conditions of webhooks, `matchConditions`: expressions in CEL over a write, with `@marcbachmann/cel-js`, which is loaded when
 * the first webhook has one. Upstream: `apiserver/pkg/admission/plugin/webhook/matchconditions`.
 *
 *     object, oldObject, request ---> one is false: the webhook is not asked
 *                                '--> one fails, and none is false: 403, or it is not asked, as its failurePolicy says
 *
 * There is no `authorizer`: a condition that names it is refused when it is registered.
 */
import { getOrMake } from '../../watch/errors.ts';
import { inPieces, type Work } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';
import { duplicateCause, invalidCause, middleCut, requiredCause } from '../validation/causes.ts';
import { qualifiedFaults } from '../validation/formats.ts';
import { conditionFaults } from '../validation/rule-faults.ts';
import { type Cel, compiled, Evaluation, loadCel, type Program } from '../validation/rules.ts';

/** Upstream: `MatchCondition`. */
export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** What conditions know of a write. */
interface ConditionVariables {
  readonly object: object | undefined;
  readonly oldObject: object | undefined;
  /** An AdmissionRequest without the objects. */
  readonly request: object;
}

/** The most characters of an expression in an error. */
const MAX_SHOWN_CHARS = 1_000;

/** The most conditions of a webhook. */
const MAX_CONDITIONS = 64;

const programs: WeakMap<MatchCondition, Program> = new WeakMap();

/**
 * Resolves with whether all conditions hold. Throws an Error that says what failed, if no other is false. `converted`: objects as
 * expressions see them, for all webhooks of a write.
 *
 * @throws {WatchError} INVALID_ARGUMENT if the package is not installed.
 */
export async function doHold(
  conditions: readonly MatchCondition[],
  variables: ConditionVariables,
  { converted, signal }: { readonly converted: WeakMap<object, unknown>; readonly signal?: AbortSignal | undefined },
): Promise<boolean> {
  const cel = await loadCel(...NEEDED_BY);
  const evaluation = new Evaluation(cel, converted);
  return inPieces(holding(cel, evaluation, { conditions, variables }), { signal });
}

function* holding(
  cel: Cel,
  evaluation: Evaluation,
  { conditions, variables }: { readonly conditions: readonly MatchCondition[]; readonly variables: ConditionVariables },
): Work<boolean> {
  const context: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(variables)) context[name] = yield* evaluation.toCel(undefined, value ?? null, false);
  const failed: string[] = [];
  for (const condition of conditions) {
    yield;
    const { expression } = condition;
    const program = getOrMake(programs, condition, () => compiled(cel.condition, expression, 'bool').program);
    const { value, error } = evaluation.ask(program, context);
    if (value === false) return false;
    if (value !== true)
      failed.push(`expression '${middleCut(expression, MAX_SHOWN_CHARS)}' resulted in error: ${error ?? TOO_DEAR}`);
  }
  if (failed.length > 0) throw new Error(failed.length === 1 ? failed[0] : `[${failed.join(', ')}]`);
  return true;
}

const NEEDED_BY = ['a webhook with conditions', 'matchConditions'] as const;
const TOO_DEAR = 'operation cancelled: actual cost limit exceeded';

/** What is wrong with the conditions of a webhook. Upstream: `validateMatchConditions`. */
export async function conditionCauses(conditions: readonly MatchCondition[], path: string): Promise<FieldCause[]> {
  if (conditions.length > MAX_CONDITIONS) {
    const message = `Too many: ${conditions.length}: must have at most ${MAX_CONDITIONS} items`;
    return [{ field: path, reason: 'FieldValueTooMany', message }];
  }
  const texts = conditions.map(({ expression }) => expression.trim());
  let faults: readonly (string | undefined)[];
  try {
    faults = await conditionFaults(await loadCel(...NEEDED_BY), texts);
  } catch (error) {
    return [{ field: path, reason: 'FieldValueForbidden', message: `Forbidden: ${(error as Error).message}` }];
  }
  const names = new Set<string>();
  return conditions.flatMap(({ name }, at) => {
    const [where, fault, expression] = [`${path}[${at}]`, faults[at], texts[at]];
    const isTwin = names.has(name);
    if (name !== '') names.add(name);
    const wrong =
      expression === ''
        ? requiredCause(`${where}.expression`, '')
        : fault && invalidCause(`${where}.expression`, expression, fault);
    return [
      ...(wrong ? [wrong] : []),
      ...(name === '' ? [requiredCause(`${where}.name`, '')] : []),
      ...(name === '' ? [] : qualifiedFaults(name).map((each) => invalidCause(`${where}.name`, name, each))),
      ...(isTwin ? [duplicateCause(`${where}.name`, name)] : []),
    ];
  });
}
