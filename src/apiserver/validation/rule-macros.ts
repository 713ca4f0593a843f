/**
 * Macros of rules that cel-js lacks: those with two variables, `sortBy`, and those for optional values. Upstream:
 * `comprehensions.go`, `lists.go` and `library.go` of cel-go. Each iteration costs a step, plus what it evaluates.
 */
import { put } from '../../storage/json.ts';
import { keyOf, type Optional, OVER, spend } from './rule-cost.ts';
import { type Optionals, ORDERED, sortedBy } from './rule-libraries.ts';

/** The parts of cel-js that macros use. */
interface Part {
  readonly op: string;
  readonly args: unknown;
}

interface Type {
  readonly name: string;
  readonly kind: string;
  readonly keyType?: Type;
  readonly valueType?: Type;
}

interface Context {
  forkWithVariable(name: string, type: Type): Context;
  reuse(context: Context): Context;
  setIterValue(value: unknown, evaluator: Evaluator): Context;
}

interface Evaluator {
  run(part: Part, context: Context): unknown;
  /** The type of a value. `fieldLazy`: its member, or undefined. */
  debugType(value: unknown): { fieldLazy(value: unknown, name: unknown, part: Part, evaluator: Evaluator): unknown };
}

interface Checker {
  check(part: Part, context: Context): Type;
  getType(name: string): Type;
  createError(code: string, message: string, part: Part): Error;
  readonly registry: {
    getListType(type: Type): Type;
    getMapType(key: Type, value: Type): Type;
    getOptionalType(type: Type): Type;
  };
}

interface Call {
  readonly ast: Part;
  readonly args: readonly Part[];
  readonly receiver: Part;
}

/** What a call of a macro does. */
export interface Macro {
  readonly typeCheck: (checker: Checker, macro: unknown, context: Context) => Type;
  readonly evaluate: (evaluator: Evaluator, macro: unknown, context: Context) => unknown;
  /** No function of rules is async. Without this, cel-js would check at each call. */
  readonly async: false;
}

type Expander = (call: Call) => Macro;

/** An error whose message is already in upstream's words. */
export const UPSTREAM_WORDS = 'upstream_words';

function variable(checker: Checker, part: Part | undefined, otherwise: string): string {
  if (part?.op === 'id') return String(part.args);
  throw checker.createError(UPSTREAM_WORDS, otherwise, part as Part);
}

const isBool = ({ name, kind }: Type): boolean => name === 'bool' || kind === 'dyn';

/** Upstream expands a macro into calls, and refuses the call that does not fit. */
const noOverload = (checker: Checker, call: string, at: Part): Error =>
  checker.createError(UPSTREAM_WORDS, `found no matching overload for ${call}`, at);

function isTrue(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw new Error('no such overload');
}

/** What a loop iterates over: a list by its indexes, a map by its keys. */
function entriesOf(value: unknown): Iterable<readonly [unknown, unknown]> {
  if (Array.isArray(value)) return indexed(value);
  if (value instanceof Map) return value;
  if (typeof value === 'object' && value !== null) return Object.entries(value);
  throw new Error('no such overload');
}

function* indexed(list: readonly unknown[]): Iterable<readonly [bigint, unknown]> {
  for (const [at, each] of list.entries()) yield [BigInt(at), each];
}

/** An iteration of a macro with two variables. Returns whether the loop ends. */
type Turn = (value: unknown, evaluate: (part: Part) => unknown) => boolean;

interface Terms {
  readonly context: Context;
  readonly key: Type;
  /** The call of the macro. */
  readonly ast: Part;
}

interface Loop {
  /** The type of the result, derived from that of its range. */
  readonly typed: (checker: Checker, parts: readonly Part[], terms: Terms) => Type;
  readonly run: (parts: readonly Part[], turns: (turn: Turn) => void) => unknown;
}

const NO_NAME = 'argument must be a simple name';

/** `range.name(key, value, ...parts)`. */
const ofTwo =
  ({ typed, run }: Loop): Expander =>
  ({ ast, args: [first, second, ...parts], receiver }) => {
    let [outer, inner]: (Context | undefined)[] = [];
    return {
      async: false,
      typeCheck(checker, _macro, context) {
        const range = checker.check(receiver, context);
        const isList = range.kind === 'list';
        if (!isList && range.kind !== 'map' && range.kind !== 'dyn') {
          throw checker.createError(
            'invalid_comprehension_range',
            'a comprehension of two variables needs a list or a map',
            receiver,
          );
        }
        const dyn = checker.getType('dyn');
        const key = isList ? checker.getType('int') : (range.keyType ?? dyn);
        const [name, other] = [variable(checker, first, NO_NAME), variable(checker, second, NO_NAME)];
        if (name === other) throw checker.createError(UPSTREAM_WORDS, `duplicate variable name: ${name}`, second as Part);
        outer = context.forkWithVariable(name, key);
        inner = outer.forkWithVariable(other, range.valueType ?? dyn);
        return typed(checker, parts, { context: inner, key, ast });
      },
      evaluate(evaluator, _macro, context) {
        const range = evaluator.run(receiver, context);
        const [around, inside] = [(outer as Context).reuse(context), inner as Context];
        return run(parts, (turn) => {
          for (const [key, value] of entriesOf(range)) {
            spend(1);
            around.setIterValue(key, evaluator);
            const here = inside.reuse(around).setIterValue(value, evaluator);
            if (turn(key, (part) => evaluator.run(part, here))) return;
          }
        });
      },
    };
  };

/** An error is reported only if no other iteration decides. */
const quantifier = (decisive: boolean): Expander =>
  ofTwo({
    typed(checker, [predicate], { context }) {
      const type = checker.check(predicate as Part, context);
      if (isBool(type)) return checker.getType('bool');
      throw checker.createError(UPSTREAM_WORDS, `expected type 'bool' but found '${type.name}'`, predicate as Part);
    },
    run([predicate], turns) {
      let [isDecided, failure]: [boolean, unknown] = [false, undefined];
      turns((_key, evaluate) => {
        try {
          isDecided = isTrue(evaluate(predicate as Part)) === decisive;
        } catch (error) {
          if (error === OVER) throw error;
          failure ??= error;
        }
        return isDecided;
      });
      if (!isDecided && failure !== undefined) throw failure;
      return isDecided ? decisive : !decisive;
    },
  });

const existsOne: Expander = ofTwo({
  typed(checker, [predicate], { context, ast }) {
    const type = checker.check(predicate as Part, context);
    if (isBool(type)) return checker.getType('bool');
    throw noOverload(checker, `'_?_:_' applied to '(${type.name}, int, int)'`, ast);
  },
  run([predicate], turns) {
    let count = 0;
    turns((_key, evaluate) => {
      if (isTrue(evaluate(predicate as Part))) count++;
      return false;
    });
    return count === 1;
  },
});

/** `(key, value, transform)` or `(key, value, filter, transform)`. */
function transforming(
  typed: (checker: Checker, type: Type, terms: Terms) => Type,
  start: () => { readonly add: (key: unknown, value: unknown) => void; readonly made: () => unknown },
): Expander {
  return ofTwo({
    typed(checker, parts, terms) {
      const filter = parts.length > 1 ? checker.check(parts[0] as Part, terms.context) : undefined;
      const type = typed(checker, checker.check(parts.at(-1) as Part, terms.context), terms);
      if (filter === undefined || isBool(filter)) return type;
      throw noOverload(checker, `'_?_:_' applied to '(${[filter, type, type].map(({ name }) => name).join(', ')})'`, terms.ast);
    },
    run(parts, turns) {
      const { add, made } = start();
      turns((key, evaluate) => {
        if (parts.length > 1 && !isTrue(evaluate(parts[0] as Part))) return false;
        add(key, evaluate(parts.at(-1) as Part));
        return false;
      });
      return made();
    },
  });
}

/** A map that is built step by step: an object if all keys are strings. */
function startMap(): { readonly insert: (key: unknown, value: unknown) => void; readonly made: () => unknown } {
  const entries = new Map<string, readonly [unknown, unknown]>();
  return {
    insert(key, value) {
      const text = keyOf(key);
      if (entries.has(text)) throw new Error(`insert failed: key ${String(key)} already exists`);
      entries.set(text, [key, value]);
    },
    made() {
      const all = [...entries.values()];
      if (all.some(([key]) => typeof key !== 'string')) return new Map(all);
      const object: Record<string, unknown> = {};
      for (const [key, value] of all) put(object, key as string, value);
      return object;
    },
  };
}

const transformList: Expander = transforming(
  (checker, type) => checker.registry.getListType(type),
  () => {
    const list: unknown[] = [];
    return { add: (_key, value) => void list.push(value), made: () => list };
  },
);

const transformMap: Expander = transforming(
  (checker, type, { key }) => checker.registry.getMapType(key, type),
  () => {
    const { insert, made } = startMap();
    return { add: insert, made };
  },
);

const transformMapEntry: Expander = transforming(
  (checker, type, { ast }) => {
    if (type.kind === 'map' || type.kind === 'dyn') return type;
    throw noOverload(checker, `'cel.@mapInsert' applied to '(map<dyn, dyn>, ${type.name})'`, ast);
  },
  () => {
    const { insert, made } = startMap();
    const add = (_key: unknown, value: unknown): void => {
      if (Array.isArray(value)) throw new Error('no such overload');
      for (const [key, each] of entriesOf(value)) insert(key, each);
    };
    return { add, made };
  },
);

/** `list.sortBy(variable, key)`. */
const sortBy: Expander = ({ ast, args: [name, by], receiver }) => {
  let inner: Context | undefined;
  return {
    async: false,
    typeCheck(checker, _macro, context) {
      const range = checker.check(receiver, context);
      if (range.kind !== 'list' && range.kind !== 'map' && range.kind !== 'dyn') {
        throw checker.createError('invalid_comprehension_range', 'sortBy needs a list', receiver);
      }
      inner = context.forkWithVariable(
        variable(checker, name, 'argument is not an identifier'),
        (range.kind === 'map' ? range.keyType : range.valueType) ?? checker.getType('dyn'),
      );
      const key = checker.check(by as Part, inner);
      if (range.kind !== 'map' && (key.kind === 'dyn' || ORDERED.includes(key.name))) return range;
      throw noOverload(checker, `'@sortByAssociatedKeys' applied to '${range.name}.(list<${key.name}>)'`, ast);
    },
    evaluate(evaluator, _macro, context) {
      const list = evaluator.run(receiver, context);
      if (!Array.isArray(list)) throw new Error('no such overload');
      const here = (inner as Context).reuse(context);
      const keys = list.map((each: unknown) => {
        spend(1);
        return evaluator.run(by as Part, here.setIterValue(each, evaluator));
      });
      return sortedBy(list, keys);
    },
  };
};

/** `optional.optMap(variable, value)`; `isFlat`: the value itself is optional. */
const optMap =
  (isFlat: boolean, optional: Optionals): Expander =>
  ({ ast, args: [name, value], receiver }) => {
    let inner: Context | undefined;
    return {
      async: false,
      typeCheck(checker, _macro, context) {
        const type = checker.check(receiver, context);
        if (type.kind !== 'optional' && type.kind !== 'dyn')
          throw noOverload(checker, `'hasValue' applied to '${type.name}.()'`, ast);
        const otherwise = `${isFlat ? 'optFlatMap' : 'optMap'}() variable name must be a simple identifier`;
        inner = context.forkWithVariable(variable(checker, name, otherwise), type.valueType ?? checker.getType('dyn'));
        const made = checker.check(value as Part, inner);
        if (!isFlat) return checker.registry.getOptionalType(made);
        if (made.kind === 'optional' || made.kind === 'dyn') return made;
        throw noOverload(checker, `'_?_:_' applied to '(bool, ${made.name}, optional<dyn>)'`, ast);
      },
      evaluate(evaluator, _macro, context) {
        const given = evaluator.run(receiver, context) as Optional;
        if (typeof given?.hasValue !== 'function') throw new Error('no such overload');
        if (!given.hasValue()) return given;
        const here = (inner as Context).reuse(context).setIterValue(given.value(), evaluator);
        const made = evaluator.run(value as Part, here);
        return isFlat ? made : optional.of(made);
      },
    };
  };

/** By signature. */
export function macrosWith(optional: Optionals): Readonly<Record<string, Expander>> {
  return {
    'list.all(ast, ast, ast): bool': quantifier(false),
    'list.exists(ast, ast, ast): bool': quantifier(true),
    'list.existsOne(ast, ast, ast): bool': existsOne,
    'list.exists_one(ast, ast, ast): bool': existsOne,
    'list.transformList(ast, ast, ast): list<dyn>': transformList,
    'list.transformList(ast, ast, ast, ast): list<dyn>': transformList,
    'list.transformMap(ast, ast, ast): map<dyn, dyn>': transformMap,
    'list.transformMap(ast, ast, ast, ast): map<dyn, dyn>': transformMap,
    'list.transformMapEntry(ast, ast, ast): map<dyn, dyn>': transformMapEntry,
    'list.transformMapEntry(ast, ast, ast, ast): map<dyn, dyn>': transformMapEntry,
    'list.sortBy(ast, ast): list<dyn>': sortBy,
    'optional.optMap(ast, ast): optional<dyn>': optMap(false, optional),
    'optional.optFlatMap(ast, ast): optional<dyn>': optMap(true, optional),
  };
}
