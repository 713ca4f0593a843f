import type { ResourceDefinition, SchemaDefinition } from '../../apiserver/definition.ts';
import type { ApiServerOptions } from '../../apiserver/options.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { KindName } from '../../operator/kinds.ts';
import type { Log, OperatorControllerOptions, OperatorFailure } from '../../operator/operator-options.ts';

/** What a test says that its server has: a definition, of the server or of a cluster, or the name of a kind of Kubernetes. */
export type TestResource = ResourceDefinition<never> | SchemaDefinition | KubernetesObject | KindName;

/** Options of `testOperator`. */
export interface TestOperatorOptions {
  readonly controllers: readonly OperatorControllerOptions[];
  /**
   * Kinds that the server has: definitions for an `ApiServer`, CustomResourceDefinitions, and names of Kubernetes' own kinds. Those of
   * Kubernetes that controllers or `objects` name need not be listed, nor those that they name with all that there is to say. Kinds
   * that are not in `BUILT_IN_KINDS`, such as deployments, have no schema.
   */
  readonly resources?: readonly TestResource[] | undefined;
  /** Objects that are there before the operator runs, with apiVersion and kind; their namespaces are created if need be. */
  readonly objects?: readonly KubernetesObject[] | undefined;
  /** The operator's name, which is its field manager. Default `test`. */
  readonly name?: string | undefined;
  /** As for an `Operator`. */
  readonly namespace?: string | undefined;
  /** At which time of day the clock starts, in ms since 1970. All timestamps are of this clock. Default: that of 2026-01-01. */
  readonly startMs?: number | undefined;
  /** More options of the server, such as `admission`. */
  readonly server?: Partial<Omit<ApiServerOptions, 'storage' | 'resources' | 'clock' | 'now'>> | undefined;
  /** Called with each failure, which is the test's matter from then on: `settled` no longer rejects with it. Default: it does. */
  readonly onError?: ((error: unknown, failure: OperatorFailure) => void) | undefined;
  /** Default: nothing is logged. */
  readonly log?: Log | undefined;
  /** How often a key may be reconciled at one time of the clock, until it counts as one that never settles; default 1,000. */
  readonly maxReconciles?: number | undefined;
  /** How long nothing may happen while something is being waited for, in milliseconds of real time; default 4,000. */
  readonly timeoutMs?: number | undefined;
}

/** A failure that an operator has told. */
export interface TestFailure extends OperatorFailure {
  readonly error: unknown;
}
