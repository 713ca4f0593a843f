/** The formula beside what was measured: it has to explain one, two and three replicas with the costs of one. */
import { costOf, type Load, totalOf } from './formula.ts';
import { type ByReplicas, FEW, type Figures, LISTED, LONG_BYTES, MANY, UNIT_BYTES, type Units } from './units.ts';

/** A figure that was measured, and what the formula says. */
export interface Check {
  readonly what: string;
  readonly of: 'replicas' | 'etcd';
  readonly replicas: number;
  readonly measured: number;
  readonly predicted: number;
  /** (predicted - measured) / measured. */
  readonly error: number;
}

/**
 * By how much the formula may be off, as a share. They were chosen with figures of a busy machine, where mixed load cost up to twice its
 * parts, and stay as they were for those of a quiet one.
 */
export const MOST_ERROR: Readonly<Record<Check['of'], number>> = { replicas: 0.35, etcd: 0.5 };

const NOTHING: Load = { changes: 0, writes: 0, bytes: UNIT_BYTES, deliveries: 0, lists: 0, listed: LISTED, joins: 0 };

export function checksOf(figures: Figures, units: Units): Check[] {
  const rows = (what: string, measured: ByReplicas, predict: (replicas: number) => number): Check[] =>
    measured.map((value, at) => {
      const predicted = predict(at + 1);
      const of = what.endsWith('of etcd') ? 'etcd' : 'replicas';
      return { what, of, replicas: at + 1, measured: value, predicted, error: (predicted - value) / value };
    });
  const all = (load: Partial<Load>) => (replicas: number) => totalOf(costOf({ ...NOTHING, ...load }, units, replicas), replicas);
  const etcd = (load: Partial<Load>) => (replicas: number) => costOf({ ...NOTHING, ...load }, units, replicas).etcd;
  const change = (watchers: number, objectBytes: number): ByReplicas =>
    figures.replicas({ what: 'watch', watchers, objectBytes, of: 'event' });
  const shape = figures.shapeOf('replicas', { what: 'mixed', of: 'replicas' });
  const step: Partial<Load> = {
    changes: 1,
    writes: 1,
    deliveries: Number(shape.watchers),
    lists: 1 / Number(shape.listEvery),
    joins: 1 / Number(shape.joinEvery),
  };
  return [
    ...rows(`a change, ${FEW} watchers`, change(FEW, UNIT_BYTES), all({ changes: 1, deliveries: FEW })),
    ...rows(`a change, ${MANY} watchers`, change(MANY, UNIT_BYTES), all({ changes: 1, deliveries: MANY })),
    ...rows('the same, 10 KB', change(MANY, LONG_BYTES), all({ changes: 1, deliveries: MANY, bytes: LONG_BYTES })),
    ...rows('a write', figures.replicas({ what: 'write', of: 'replicas' }), all({ changes: 1, writes: 1 })),
    ...rows('a watch', figures.replicas({ what: 'join', of: 'watch' }), all({ joins: 1 })),
    ...rows('a mixed step', figures.replicas({ what: 'mixed', of: 'replicas' }), all(step)),
    ...rows('a write, of etcd', figures.replicas({ what: 'write', of: 'etcd' }), etcd({ changes: 1, writes: 1 })),
    ...rows('a mixed step, of etcd', figures.replicas({ what: 'mixed', of: 'etcd' }), etcd(step)),
  ];
}
