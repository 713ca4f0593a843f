import { invalid } from '../watch/errors.ts';

/**
 * The subjects of a stream. An event without topics is published to the stream's own subject, one with topics to a subject below
 * it, with one token per topic:
 *
 *     no topics            chat
 *     'lobby'              chat.lobby
 *     'lobby', 'a.b *'     chat.lobby.a=2Eb=20=2A
 *
 * In a subject, dots separate tokens, and `*` and `>` stand for any of them. So every byte of a topic except letters, digits, `-`
 * and `_` becomes `=` and two hex digits, and no topic can reach a subject that is not its own.
 */

/** NATS limits a line of its protocol to 4 KiB, and a subject is only part of one. */
const MAX_SUBJECT_CHARS = 1_024;
const ESCAPED = /[.!~*'()]/g;

/**
 * Returns the subject of an event with these topics. Throws INVALID_ARGUMENT for topics that are too long together, or that UTF-8
 * cannot represent.
 */
export function toSubject(root: string, topics: readonly string[]): string {
  const subject = [root, ...topics.map(toToken)].join('.');
  if (subject.length > MAX_SUBJECT_CHARS) {
    throw invalid('topics', topics.join(), `topics whose subject has at most ${MAX_SUBJECT_CHARS} characters`);
  }
  return subject;
}

/**
 * Returns the topics of a subject, or undefined if it is not below this root. A topic that another program wrote is taken as it
 * is.
 */
export function toTopics(root: string, subject: string): readonly string[] | undefined {
  if (subject === root) return [];
  return subject.startsWith(`${root}.`)
    ? subject
        .slice(root.length + 1)
        .split('.')
        .map(fromToken)
    : undefined;
}

function toToken(topic: string): string {
  // A token cannot be empty.
  if (topic === '') return '=';
  let escaped: string;
  try {
    escaped = encodeURIComponent(topic);
  } catch {
    throw invalid('topics', topic, 'text without lone surrogates');
  }
  const hex = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return escaped.replace(ESCAPED, hex).replaceAll('%', '=');
}

function fromToken(token: string): string {
  if (token === '=') return '';
  try {
    const topic = decodeURIComponent(token.replaceAll('%', '%25').replaceAll('=', '%'));
    return toToken(topic) === token ? topic : token;
  } catch {
    return token;
  }
}

/** Whether a stream can be kept under this subject: tokens without wildcards or white space. */
export function isSubject(subject: unknown): subject is string {
  return typeof subject === 'string' && subject.length <= 256 && /^[\w-]+(\.[\w-]+)*$/.test(subject);
}
