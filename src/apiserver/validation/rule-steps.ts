/**
 * How the steps of an expression are run: what is changed in a tree of cel-js before it is, so that each step is charged and none
 * leaves anything behind.
 *
 *     parsed tree ---> metered: spend(1), what the step reads, what its call makes of it ---> checked, run
 */
import { compared, costOf, isOptional, OVER, spend, type Use, usesIn } from './rule-cost.ts';
import type { Macro } from './rule-macros.ts';

interface Checker {
  check(node: Node, ctx: unknown): unknown;
}

/** A part of an expression. */
export interface Node {
  readonly op: string;
  /** Depends on `op`: other parts, names, a value. */
  readonly args: unknown[] | string;
  readonly start: number;
  readonly end: number;
  /** The whole expression. */
  readonly input: string;
  /** Set once it has been checked. */
  readonly checkedType?: { readonly name: string; readonly kind: string; readonly keyType?: { readonly name: string } };
  /** The functions with its name; set once it has been checked. */
  readonly candidates?: { readonly declarations: { readonly length: number } };
  /** `macro`: of a call of one. */
  readonly meta: { readonly macro?: { -readonly [K in keyof Macro]: Macro[K] } };
  check: (checker: Checker, node: Node, ctx: unknown) => unknown;
  evaluate: (...args: unknown[]) => unknown;
}

/** What evaluates the expressions of an environment: only functions get to see it. */
interface Evaluator {
  debugType(value: unknown): unknown;
  /** The type of a value, with the types of its parts. */
  debugTypeDeep(value: unknown): unknown;
}

/** How deep the types of values tell what is in them: no function asks for more. */
const TYPE_DEPTH = 3;
export const TELL_LESS = 'tellLess';

/** cel-js keeps all types that it has met, forever, and values without a schema would be of new ones again and again. */
export function tellLess(this: Evaluator): boolean {
  const tell = this.debugTypeDeep.bind(this);
  let depth = 0;
  this.debugTypeDeep = (value) => {
    if (depth === TYPE_DEPTH) return this.debugType(value);
    depth++;
    try {
      return tell(value);
    } finally {
      depth--;
    }
  };
  return true;
}

const DEEP: ReadonlySet<string> = new Set(['==', '!=', 'in']);

/** Functions of CEL that are replaced by others, which charge their cost. */
const INSTEAD: ReadonlyMap<unknown, string> = new Map([
  ['matches', 'matchesRe2'],
  ['join', 'joinMetered'],
  ['trim', 'trimSpace'],
  ['lowerAscii', 'toLowerAscii'],
  ['upperAscii', 'toUpperAscii'],
]);

/** What an error costs: it takes 10 us or more to be made, and some macros go on after one. */
const ERROR_COST = 128;
let lastError: unknown;

/** Charges every step of an expression, and makes its patterns linear. Returns the names that it uses. */
export function metered(node: unknown, use: Use | undefined, names: Set<string>): void {
  if (Array.isArray(node)) {
    for (const each of node) metered(each, use, names);
    return;
  }
  if (typeof (node as Partial<Node> | null | undefined)?.evaluate !== 'function') return;
  const each = node as Node;
  if (each.op === 'id') names.add(String(each.args));
  if (each.op === 'call' && each.args[0] === 'has') lookInto(each);
  let inner = each.evaluate;
  const step = function (this: unknown, ...args: unknown[]): unknown {
    spend(1);
    let value: unknown;
    try {
      value = inner.apply(each, args);
    } catch (error) {
      if (error !== OVER && error !== lastError) {
        lastError = error;
        spend(ERROR_COST);
      }
      throw error;
    }
    if (typeof value === 'string' || Array.isArray(value) || value instanceof Uint8Array) spend(costOf(value));
    use?.(value);
    return value;
  };
  Object.defineProperty(each, 'evaluate', {
    get: () => step,
    set: (made: Node['evaluate']) => {
      inner = made;
    },
  });
  if ((each.op !== 'call' && each.op !== 'rcall') || !Array.isArray(each.args)) {
    metered(each.args, DEEP.has(each.op) ? compared : undefined, names);
    return;
  }
  const isMethod = each.op === 'rcall';
  const { target, first } = usesIn(String(each.args[0]), isMethod);
  const [arg, ...others] = each.args[isMethod ? 2 : 1] as readonly unknown[];
  if (isMethod) metered(each.args[1], target, names);
  metered(arg, first, names);
  metered(others, undefined, names);
  if (isMethod) each.args[0] = INSTEAD.get(each.args[0]) ?? each.args[0];
}

/** `has` of cel-js looks only below a name, and does not check the members on its path. Returns what it looks for. */
export function lookInto(call: Node): Node | undefined {
  const [, [argument]] = call.args as unknown as [string, readonly Node[]];
  const { macro } = call.meta;
  if (macro === undefined || argument?.op !== '.') return undefined;
  const [operand, name] = argument.args;
  macro.typeCheck = (checker, _macro, context) => {
    checker.check(argument, context);
    return checker.getType('bool');
  };
  macro.evaluate = (evaluator, _macro, context) => {
    const given = evaluator.run(operand as Node, context);
    if (isOptional(given) && !given.hasValue()) return false;
    const value = isOptional(given) ? given.value() : given;
    return evaluator.debugType(value).fieldLazy(value, name, argument, evaluator) !== undefined;
  };
  return argument;
}
