/** A program that tests use. */
export interface Peer {
  readonly name: string;
  /** The module or crate whose version is its release. */
  readonly requires: string;
  /** The environment variable that names another binary. */
  readonly variable: string;
  /** Go if it is not said. */
  readonly language?: 'rust' | 'python' | 'java' | 'npm';
  /** The package of a command in Go, if it is not the module's own. */
  readonly command?: string;
  /** Sources beside those that each peer of its language has. */
  readonly more?: readonly string[];
}
export declare const KUBE_APISERVER: Peer;
export declare const KUBECTL: Peer;
export declare const CLIENT_GO: Peer;
export declare const SCHEMAS: Peer;
export declare const GARBAGE_COLLECTOR: Peer;
export declare const KUBE_RS: Peer;
export declare const CONTROLLER_RUNTIME: Peer;
export declare const HELM_3: Peer;
export declare const HELM_4: Peer;
export declare const E2E_SUITE: Peer;
export declare const PYTHON_CLIENTS: Peer;
export declare const JAVA_CLIENTS: Peer;
export declare const NPM_CLIENTS: Peer;
export declare const REACT_18: Peer;
export declare const STRUCTURED_MERGE: Peer;
export declare const ETCDUTL: Peer;
export declare const PEERS: readonly Peer[];
export declare const MORE_PEERS: readonly Peer[];
export declare const OUTPUT: string;
export declare const HOW: string;
export declare const FLAGS: readonly string[];
export declare function moduleOf(peer: Peer): string;
export declare function release(peer?: Peer): string;
export declare function versionOf(peer: Peer, name: string): string;
export declare function stem(peer?: Peer): string;
export declare function builtBinary(peer?: Peer): string | undefined;
