// Which documents speak of which exported names. A mention is a span of code: `Hub`, `new Hub()`, `hub.publish()` or `watchmux/http`.
//
// Two entry points may export different things by one name: a document means the one that it imports. And a span such as `filter` may be
// an option: a name in lower case that is also a member of something counts only where it is imported or called.
import { withoutCode } from './pages.mjs';

const SPAN = /^(?:new )?([A-Za-z_$][\w$]*)(?:\.([A-Za-z_$][\w$]*))?(?:<[^<>]*>)?(\(.*\))?$/;

/** The names that a document imports from this package, and from where. */
export function importsOf(text) {
  const imports = new Map();
  for (const [, names, module] of text.matchAll(/import (?:type )?\{([^}]*)\} from '(watchmux(?:\/[\w-]+)?)'/g))
    for (const name of names.split(',')) imports.set(name.replace(/^\s*type\s+|\sas\s.*$/g, '').trim(), module);
  return imports;
}

/** Finds what a span of code means. `modules` has the modules of the project, with their children. */
export class Names {
  #modules = new Map();
  /** Name to what is declared by it, each with its module. */
  #declared = new Map();
  /** Module and name to what it exports, also if another one declares it. */
  #exported = new Map();
  #members = new Set();

  constructor(modules) {
    for (const module of modules) {
      this.#modules.set(module.name, module);
      for (const child of module.children ?? []) this.#add(module, child);
    }
  }

  #add(module, child) {
    const target = child.isReference() ? child.getTargetReflectionDeep() : child;
    // A class whose constructor is a variable of the same name.
    if (this.#exported.get(`${module.name} ${child.name}`)?.children !== undefined) return;
    this.#exported.set(`${module.name} ${child.name}`, target);
    const same = this.#declared.get(child.name) ?? new Set();
    this.#declared.set(child.name, same.add(target));
    for (const member of target.children ?? []) this.#members.add(member.name);
  }

  /** What a span means where `imports` are known and, in a comment, the module that it belongs to. */
  find(span, { imports = new Map(), module } = {}) {
    if (this.#modules.has(span)) return this.#modules.get(span);
    const [, name, member, call] = SPAN.exec(span) ?? [];
    if (name === undefined) return undefined;
    if (member !== undefined) return this.#member(name, member, { imports, module });
    const isClear = /^[A-Z]/.test(name) || call !== undefined || imports.has(name) || !this.#members.has(name);
    return isClear ? this.#declaration(name, { imports, module }) : undefined;
  }

  #declaration(name, { imports, module }) {
    const from = imports.get(name) ?? (this.#exported.has(`${module} ${name}`) ? module : undefined);
    if (from !== undefined) return this.#exported.get(`${from} ${name}`);
    const declared = [...(this.#declared.get(name) ?? [])];
    return declared.length === 1 ? declared[0] : undefined;
  }

  /** `Hub.publish`, or `hub.publish` of a variable that is called as its class. */
  #member(name, member, context) {
    for (const owner of [name, `${name[0].toUpperCase()}${name.slice(1)}`]) {
      const found = this.#declaration(owner, context)?.children?.find((child) => child.name === member);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** What a document speaks of, each with a weight: a heading counts more than an import, and that more than a mention. */
export function mentionsIn(text, names) {
  const imports = importsOf(text);
  const weights = new Map();
  const add = (target, weight) => {
    if (target !== undefined) weights.set(target, (weights.get(target) ?? 0) + weight);
  };
  for (const [name, module] of imports) {
    add(names.find(name, { imports }), 5);
    add(names.find(module), 5);
  }
  for (const line of withoutCode(text).split('\n'))
    for (const [, span] of line.matchAll(/`([^`]+)`/g)) add(names.find(span, { imports }), line.startsWith('#') ? 20 : 1);
  return weights;
}
