import type { Msg } from '@nats-io/transport-node';
import type { SourceEvent } from '../bridge/hub/source/source.ts';
import { toTopics } from './subjects.ts';

/** What a message of a consumer says about itself in its reply subject. */
interface MessageInfo {
  readonly sequence: number;
  readonly mark: string;
}

const decoder = new TextDecoder();

/** Returns the event of a message from a consumer. A stream may also have other subjects: their messages are not events. */
export function toEvent(message: Msg, root: string): SourceEvent {
  const { sequence, mark } = readMessageInfo(message);
  const topics = toTopics(root, message.subject);
  return { sequence, mark, json: topics ? decoder.decode(message.data) : '', topics: topics ?? [] };
}

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<own sequence>.<time>.<pending>`; newer servers have a domain and an
 * account before the stream, and one more token at the end.
 */
function readMessageInfo({ reply = '' }: Msg): MessageInfo {
  const tokens = reply.split('.');
  const at = tokens.length > 9 ? 7 : 5;
  const [sequence = '', , time = ''] = tokens.slice(at);
  if (!reply.startsWith('$JS.ACK.') || !/^\d+$/.test(sequence) || !/^\d{7,}$/.test(time)) {
    throw new Error(`not a message from a consumer: ${reply.slice(0, 80)}`);
  }
  return { sequence: Number(sequence), mark: toMark(Number(time.slice(0, -6))) };
}

/** The mark of an event: the millisecond in which the stream stored it. */
export function toMark(milliseconds: number): string {
  return milliseconds.toString(36);
}

/** Returns the milliseconds of a time such as `2026-11-23T16:23:59.424831858Z`, truncated like those of a message. */
export function millisecondsOf(time: string): number {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(time) ?? [];
  return Date.parse(`${seconds}Z`) + Number(fraction.padEnd(3, '0').slice(0, 3));
}
