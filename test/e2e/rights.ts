// The rights that an operator uses, and those that its manifest grants: they are to be the same.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { ApiServer, BUILT_IN_KINDS, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';

const WORKLOADS: readonly ResourceDefinition[] = [
  { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', status: true },
  { group: '', version: 'v1', plural: 'services', kind: 'Service', status: true },
];

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

/** What a server may be asked in between: `VERB RESOURCE`. */
type Hook = (right: string) => void | Promise<void>;

/** A server in this process with what a cluster has, for an operator in another one. */
export class OperatorServer {
  readonly api: ApiServer;
  readonly #server: Server;
  readonly #namespace: string;
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'watchmux-rights-'));
  readonly #children: Set<ChildProcess> = new Set();
  /** By `VERB RESOURCE`: the namespaces. */
  readonly #asked: Map<string, Set<string | undefined>> = new Map();

  constructor(namespace: string, hook: Hook) {
    this.#namespace = namespace;
    this.api = new ApiServer({
      storage: new MemoryStorage(),
      resources: [...BUILT_IN_KINDS, ...WORKLOADS],
      customResourceDefinitions: true,
      authorize: async (verb, resource, at) => {
        if (resource.startsWith('/')) return true; // discovery, which everybody may ask for
        const right = `${verb} ${resource}`;
        this.#asked.set(right, (this.#asked.get(right) ?? new Set()).add(at));
        await hook(right);
        return true;
      },
    });
    this.#server = createServer(this.api.handler);
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const config = {
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}` } }],
      contexts: [{ name: 'x', context: { cluster: 'c', namespace: this.#namespace } }],
      'current-context': 'x',
    };
    writeFileSync(join(this.#folder, 'config'), JSON.stringify(config));
  }

  /** Starts an operator's program; `stop` resolves with its exit code and with what it printed. */
  start(
    program: string,
    env: Record<string, string> = {},
  ): { readonly stop: () => Promise<{ readonly code: number | null; readonly out: string }> } {
    const child = spawn(process.execPath, [program], {
      env: { ...process.env, KUBECONFIG: join(this.#folder, 'config'), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#children.add(child);
    let out = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        out += text;
      });
    }
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    return {
      stop: async () => {
        child.kill('SIGTERM');
        return { code: await ended, out };
      },
    };
  }

  has(right: string): boolean {
    return this.#asked.has(right);
  }

  kill(): void {
    for (const child of this.#children) child.kill('SIGKILL');
    this.#server.close().closeAllConnections();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async close(): Promise<void> {
    await this.api.shutdown();
    this.kill();
  }

  /** What was asked that a manifest does not grant, and what it grants that was not asked. */
  compare(file: string): Compared {
    return compareRights(this.#asked, file);
  }
}

/** By `VERB RESOURCE.GROUP/PART`: in which namespaces that was asked. */
export type Asked = ReadonlyMap<string, ReadonlySet<string | undefined>>;

interface Compared {
  readonly missing: readonly string[];
  readonly unused: readonly string[];
}

/** What was asked that a manifest does not grant, and what it grants that was not asked. */
export function compareRights(asked: Asked, file: string): Compared {
  const granted = rightsOf(file);
  const missing = Array.from(asked, ([name, namespaces]) =>
    [...namespaces]
      .filter((each) => !granted.has(name) && !granted.has(`${name} in ${each}`))
      .map((each) => `${name} in ${each}`),
  ).flat();
  const unused = [...granted].filter((right) => {
    const [, name = '', namespace] = /^(\S+ \S+)(?: in (.*))?$/.exec(right) ?? [];
    // Lists come as the beginning of watches, but not from servers before Kubernetes 1.32.
    const found = asked.get(name.replace(/^list /, 'watch '));
    return !found || (namespace !== undefined && !found.has(namespace));
  });
  return { missing, unused };
}

/** Starts a server with the definition in a file, if there is one, and with the namespace of the operator's lease. */
export async function serveOperator(
  crd: string | undefined,
  { namespace, hook = () => {} }: { readonly namespace: string; readonly hook?: Hook },
): Promise<OperatorServer> {
  const server = new OperatorServer(namespace, hook);
  const { api } = server;
  await api.ready;
  if (namespace !== 'default') await api.resource('namespaces/v1').create({ metadata: { name: namespace } });
  const definitions = api.resource('customresourcedefinitions.apiextensions.k8s.io/v1');
  if (crd !== undefined) await definitions.create(parse(readFileSync(crd, 'utf8')));
  await server.listen();
  return server;
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
