// The rights that an operator uses, and those that its manifest grants: they are to be the same.
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** A Role has a namespace. */
interface Role {
  readonly kind: string;
  readonly metadata: { readonly namespace?: string };
  readonly rules?: readonly Rule[];
}

/** What was asked of a server, by `VERB RESOURCE`: the namespaces. */
export class UsedRights {
  readonly #asked: Map<string, Set<string | undefined>> = new Map();

  /** Allows everything, and remembers it. */
  readonly authorize: NonNullable<ApiServerOptions['authorize']> = (verb, resource, namespace) => {
    if (resource.startsWith('/')) return true; // discovery, which everybody may ask for
    const name = `${verb} ${resource}`;
    this.#asked.set(name, (this.#asked.get(name) ?? new Set()).add(namespace));
    return true;
  };

  has(right: string): boolean {
    return this.#asked.has(right);
  }

  /** What was asked that a manifest does not grant, and what it grants that was not asked. */
  compare(file: string): { readonly missing: readonly string[]; readonly unused: readonly string[] } {
    const granted = rightsOf(file);
    const missing = Array.from(this.#asked, ([name, namespaces]) =>
      [...namespaces]
        .filter((each) => !granted.has(name) && !granted.has(`${name} in ${each}`))
        .map((each) => `${name} in ${each}`),
    ).flat();
    const unused = [...granted].filter((right) => {
      const [, name = '', namespace] = /^(\S+ \S+)(?: in (.*))?$/.exec(right) ?? [];
      const asked = this.#asked.get(name);
      return !asked || (namespace !== undefined && !asked.has(namespace));
    });
    return { missing, unused };
  }
}

function rightsOf(file: string): Set<string> {
  const documents = [parseAllDocuments(readFileSync(file, 'utf8'))].flat();
  const roles = documents.map((document) => document.toJS() as Role).filter(({ kind }) => ['ClusterRole', 'Role'].includes(kind));
  const rights = roles.flatMap(({ metadata: { namespace }, rules = [] }) =>
    rules.flatMap(({ apiGroups, resources, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => {
          const [plural, part] = resource.split('/');
          const name = `${plural}${group && `.${group}`}${part === undefined ? '' : `/${part}`}`;
          return verbs.map((verb) => `${verb} ${name}${namespace === undefined ? '' : ` in ${namespace}`}`);
        }),
      ),
    ),
  );
  return new Set(rights);
}
