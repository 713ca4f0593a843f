/** A program that tests use. */
export interface Peer {
  readonly name: string;
  /** The module or crate whose version is its release. */
  readonly requires: string;
  /** The environment variable that names another binary. */
  readonly variable: string;
  /** Go if it is not said. */
  readonly language?: 'rust';
}
export declare const KUBE_APISERVER: Peer;
export declare const KUBECTL: Peer;
export declare const CLIENT_GO: Peer;
export declare const SCHEMAS: Peer;
export declare const GARBAGE_COLLECTOR: Peer;
export declare const KUBE_RS: Peer;
export declare const OUTPUT: string;
export declare const HOW: string;
export declare const FLAGS: readonly string[];
export declare function moduleOf(peer: Peer): string;
export declare function release(peer?: Peer): string;
export declare function stem(peer?: Peer): string;
export declare function builtBinary(peer?: Peer): string | undefined;
