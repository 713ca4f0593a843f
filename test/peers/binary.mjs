// Where the programs of these tests lie once they are built. Shared by the build and by the tests.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));

/** A kube-apiserver with an etcd inside. A peer in Go has a module: main.go, go.mod and go.sum in a folder of its name. */
export const KUBE_APISERVER = { name: 'kube-apiserver', requires: 'k8s.io/kubernetes', variable: 'WATCHMUX_KUBE_APISERVER' };

/** A kubectl of the same release. */
export const KUBECTL = { name: 'kubectl', requires: 'k8s.io/kubectl', variable: 'WATCHMUX_KUBECTL' };

/** Clients of the same release: see its main.go. */
export const CLIENT_GO = {
  name: 'client-go',
  more: ['kinds.go', 'record.go', 'typed.go'],
  requires: 'k8s.io/client-go',
  variable: 'WATCHMUX_CLIENT_GO',
};

/** What a kube-apiserver makes of schemas: see its main.go. */
export const SCHEMAS = { name: 'schemas', requires: 'k8s.io/apiextensions-apiserver', variable: 'WATCHMUX_SCHEMAS' };

/** Kubernetes' own garbage collector, of the same release. */
export const GARBAGE_COLLECTOR = {
  name: 'garbage-collector',
  requires: 'k8s.io/kubernetes',
  variable: 'WATCHMUX_GARBAGE_COLLECTOR',
};

/** Server-side apply of the same release, without a server: see its main.go. */
export const STRUCTURED_MERGE = {
  name: 'structured-merge',
  requires: 'k8s.io/apimachinery',
  variable: 'WATCHMUX_STRUCTURED_MERGE',
};

/** Restores the data of an etcd from a snapshot. */
export const ETCDUTL = { name: 'etcdutl', requires: 'go.etcd.io/etcd/etcdutl/v3', variable: 'WATCHMUX_ETCDUTL' };

/** The watcher of kube-rs. A peer in Rust has a crate: src/main.rs, Cargo.toml and Cargo.lock. */
export const KUBE_RS = { name: 'kube-rs', requires: 'kube', variable: 'WATCHMUX_KUBE_RS', language: 'rust' };

/** A manager of controller-runtime, and an operator. */
export const CONTROLLER_RUNTIME = {
  name: 'controller-runtime',
  more: ['helpers.go', 'website.go'],
  requires: 'sigs.k8s.io/controller-runtime',
  variable: 'WATCHMUX_CONTROLLER_RUNTIME',
};

/** Helm's commands, of both lines. */
export const HELM_3 = {
  name: 'helm-3',
  requires: 'helm.sh/helm/v3',
  variable: 'WATCHMUX_HELM_3',
  command: 'helm.sh/helm/v3/cmd/helm',
};
export const HELM_4 = { name: 'helm-4', requires: 'helm.sh/helm/v4', variable: 'WATCHMUX_HELM_4' };

/** Kubernetes' end-to-end suite. */
export const E2E_SUITE = { name: 'e2e-suite', requires: 'k8s.io/kubernetes', variable: 'WATCHMUX_E2E_SUITE' };

/** Folders with what clients of other languages consist of: the official one of Python, fabric8's and kubernetes-fluent-client. */
export const PYTHON_CLIENTS = {
  name: 'python-clients',
  requires: 'kubernetes',
  variable: 'WATCHMUX_PYTHON_CLIENTS',
  language: 'python',
};
export const JAVA_CLIENTS = {
  name: 'java-clients',
  requires: 'operator-framework-core',
  variable: 'WATCHMUX_JAVA_CLIENTS',
  language: 'java',
};
export const NPM_CLIENTS = {
  name: 'npm-clients',
  requires: 'kubernetes-fluent-client',
  variable: 'WATCHMUX_NPM_CLIENTS',
  language: 'npm',
};

/** The older version of React that watchmux/react supports. */
export const REACT_18 = { name: 'react-18', requires: 'react-dom', variable: 'WATCHMUX_REACT_18', language: 'npm' };

/** Those that .ci/run builds. */
export const PEERS = [
  KUBE_APISERVER,
  KUBECTL,
  CLIENT_GO,
  GARBAGE_COLLECTOR,
  SCHEMAS,
  STRUCTURED_MERGE,
  CONTROLLER_RUNTIME,
  KUBE_RS,
];
/** Those that only .ci/full builds: the tests that use them are not in .ci/run. */
export const MORE_PEERS = [ETCDUTL, HELM_3, HELM_4, E2E_SUITE, PYTHON_CLIENTS, JAVA_CLIENTS, NPM_CLIENTS, REACT_18];

/** Where users' caches are. */
const CACHE = process.env.XDG_CACHE_HOME || join(homedir() || tmpdir(), '.cache');

/** Where binaries are, by the hash of their sources. It is outside of the clone, so that the next clone builds nothing. */
export const OUTPUT = resolve(process.env.WATCHMUX_PEERS || join(CACHE, 'watchmux', 'peers'));

/** What tells how to get the binary, in one line. */
export const HOW =
  'run "node test/peers/build.mjs", which needs Go 1.26 and four to nine minutes once, or name a binary in WATCHMUX_KUBE_APISERVER';

/** The flags of a compile in Go. Without optimization it takes three quarters of the time, once, and each start of a server twice. */
export const FLAGS = ['-trimpath', '-buildvcs=false', '-gcflags=all=-dwarf=false'];

/** The folder of a peer's sources. */
export function moduleOf({ name }) {
  return join(HERE, name);
}

/** What a peer of a language consists of, and which of its files says its release, beside the name of what it requires. */
const SOURCES = {
  go: { files: ['main.go', 'go.mod', 'go.sum'], manifest: 'go.mod', release: (name) => `^\\s*(?:require )?${name} v(\\S+)$` },
  rust: {
    files: ['src/main.rs', 'Cargo.toml', 'Cargo.lock'],
    manifest: 'Cargo.toml',
    release: (name) => `^${name} = .*"=(\\d[^"]*)"`,
  },
  python: { files: ['requirements.txt'], manifest: 'requirements.txt', release: (name) => `^${name}==(\\S+)$` },
  java: {
    files: ['pom.xml', 'Clients.java'],
    manifest: 'pom.xml',
    release: (name) => `<artifactId>${name}</artifactId>\\s*<version>([^<]+)<`,
  },
  npm: { files: ['package.json'], manifest: 'package.json', release: (name) => `"${name}": "([^"]+)"` },
};

/** The release that a peer requires, such as `1.37.2`. Parts of Kubernetes call it 0.37.2. */
export function release({ requires, language = 'go', ...peer } = KUBE_APISERVER) {
  const version = versionOf({ ...peer, language }, requires);
  return /^(k8s\.io|kube$)/.test(requires) ? version.replace(/^0\./, '1.') : version;
}

/** The version that a peer's manifest names of something. */
export function versionOf({ language = 'go', ...peer }, name) {
  const { manifest: file, release } = SOURCES[language];
  const manifest = readFileSync(join(moduleOf(peer), file), 'utf8');
  const [, version] = new RegExp(release(name.replaceAll('.', '\\.')), 'm').exec(manifest) ?? [];
  if (version === undefined) throw new Error(`${file} of ${peer.name} requires no ${name}`);
  return version;
}

/** The first part of the binary's name: it changes with the sources and the flags. */
export function stem(peer = KUBE_APISERVER) {
  const { language = 'go' } = peer;
  const hash = createHash('sha256');
  if (language === 'go') hash.update(JSON.stringify(FLAGS));
  for (const file of [...SOURCES[language].files, ...(peer.more ?? [])]) hash.update(readFileSync(join(moduleOf(peer), file)));
  return `${peer.name}-${release(peer)}-${hash.digest('hex').slice(0, 12)}-`;
}

/** The built binary, or undefined. It needs no compiler, so a binary from a cache will do. */
export function builtBinary(peer = KUBE_APISERVER) {
  const named = process.env[peer.variable];
  if (named !== undefined && named !== '') return existsSync(named) ? named : undefined;
  if (!existsSync(OUTPUT)) return undefined;
  const wanted = stem(peer);
  const found = readdirSync(OUTPUT).find((name) => name.startsWith(wanted) && !name.endsWith('.part'));
  return found === undefined ? undefined : join(OUTPUT, found);
}
