/**
 * What a load costs replicas and etcd. All of it is one sum:
 *
 *     all replicas =  changes/s * replicas * event              each replica learns of every change
 *                   + deliveries/s * (delivery + byte * more)   each client is told by one replica
 *                   + writes/s * write + lists/s * objects * listed + watches/s * join
 *     etcd         =  writes/s * (etcdWrite + replicas * etcdWatch) + lists/s * etcdList
 *
 * The first term is the only one that more replicas do not share: it limits how far they scale.
 */
import { UNIT_BYTES, type Units } from './units.ts';

/** A load, per second or per step of something. */
export interface Load {
  /** Writes that succeed; each is a change. */
  readonly changes: number;
  /** Writes that pass through a replica; others write to etcd. */
  readonly writes: number;
  /** Bytes of an object. */
  readonly bytes: number;
  /** Clients that are told of a change, all together. */
  readonly deliveries: number;
  /** Lists, and how many objects one has. */
  readonly lists: number;
  readonly listed: number;
  /** Watches that are opened. */
  readonly joins: number;
}

/** Processor time in µs. */
export interface Cost {
  /** Of every replica, whatever its clients do. */
  readonly each: number;
  /** Of all replicas together, beside that. */
  readonly shared: number;
  readonly etcd: number;
}

export function costOf(load: Load, units: Units, replicas: number): Cost {
  const more = Math.max(0, load.bytes - UNIT_BYTES) * units.byte;
  return {
    each: load.changes * units.event,
    shared:
      load.deliveries * (units.delivery + more) +
      load.writes * units.write +
      load.lists * load.listed * (units.listed * (load.bytes / UNIT_BYTES)) +
      load.joins * units.join,
    etcd: load.changes * (units.etcdWrite + replicas * units.etcdWatch) + load.lists * units.etcdList,
  };
}

/** Of all replicas. */
export const totalOf = ({ each, shared }: Cost, replicas: number): number => replicas * each + shared;
