import type { StreamConfig } from '@nats-io/jetstream';
import { DiscardPolicy, RetentionPolicy, StorageType } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { invalid } from '../watch/errors.ts';
import type { NatsSettings } from './options.ts';

/** The configuration of a new stream. */
export function toConfig({ stream, subject, create = {} }: NatsSettings): Partial<StreamConfig> & { name: string } {
  const { maxItems, maxBytes, maxAgeMs, duplicateWindowMs, replicas = 1, storage = 'file' } = create;
  return {
    name: stream,
    subjects: [subject, `${subject}.>`],
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    storage: storage === 'file' ? StorageType.File : StorageType.Memory,
    num_replicas: replicas,
    ...(maxItems !== undefined && { max_msgs: maxItems }),
    ...(maxBytes !== undefined && { max_bytes: maxBytes }),
    ...(maxAgeMs !== undefined && { max_age: nanos(maxAgeMs) }),
    ...(duplicateWindowMs !== undefined && { duplicate_window: nanos(duplicateWindowMs) }),
  };
}

/** Refuses a stream that would drop events from between others, or that does not listen to the events' subjects. */
export function checkConfig(config: StreamConfig, { stream, subject }: NatsSettings): void {
  const holes = config.retention !== RetentionPolicy.Limits || config.max_msgs_per_subject > 0 || config.allow_msg_ttl === true;
  if (holes) {
    throw invalid('stream', stream, 'a stream that drops events only by limits of items, bytes and age');
  }
  if (config.no_ack) throw invalid('stream', stream, 'a stream that acknowledges');
  const covers = [subject, `${subject}.>`].every((each) => config.subjects?.some((own) => own === each || own === '>'));
  if (!covers) throw invalid('stream', stream, `a stream with the subjects ${subject} and ${subject}.>`);
}

/** The identity of a stream: the nanosecond in which it was created. */
export function toEpoch(created: string): string {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(created) ?? [];
  const nanoseconds = BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0').slice(0, 9));
  return nanoseconds.toString(36);
}
