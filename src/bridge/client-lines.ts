/** Takes a chunk of bytes, and gives the frames that it completes; without one, what the end of the stream leaves. */
export type Parser = (chunk?: Uint8Array) => Iterable<Frame>;

/** One frame, and its id if it has one. */
export interface Frame {
  readonly text: string;
  readonly id?: string | undefined;
}

/** Refuses what is longer than `maxFrameChars`. */
export function checkLength(length: number, limit: number): void {
  if (length > limit) throw new RangeError(`longer than maxFrameChars, ${limit}`);
}

/**
 * Bytes become lines, which end in LF or CRLF. What is held is the start of one unfinished line. Throws when that is longer
 * than `limit`, and for what is not UTF-8.
 */
function splitter(limit: number): (chunk?: Uint8Array) => string[] {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  return (chunk) => {
    const lines = utf8.decode(chunk, { stream: !!chunk }).split('\n');
    // Joined, not searched again: a long line costs its length however it is cut.
    lines[0] = rest + lines[0];
    rest = chunk ? (lines.pop() as string) : '';
    checkLength(rest.length, limit);
    return lines.map((line) => line.replace(/\r$/, ''));
  };
}

/** A frame per line, blank ones passed over. A last line without its end is one. */
export function jsonLines(limit: number): Parser {
  const split = splitter(limit);
  return function* (chunk) {
    for (const text of split(chunk)) {
      if (text.trim()) yield { text };
    }
  };
}

/**
 * Server-Sent Events: fields, and a blank line that makes a message of the `data` before it; what the end of the stream cuts short
 * is none. Differs from the HTML standard: lines do not end in a bare CR, an id belongs to its own message only, and messages
 * with an `event` name are passed over, as a watch has none. For the rest a property test holds it against eventsource-parser.
 *
 * `onField` gets what is none of a message's own: `retry`, and comments, whose name is empty.
 */
export function serverSentEvents(limit: number, onField: (name: string, value: string) => void): Parser {
  const split = splitter(limit);
  let data = '';
  let type = '';
  let id: string | undefined;
  return function* (chunk) {
    for (const line of chunk ? split(chunk) : []) {
      // `s`, or a value would end at a U+2028, which JSON leaves as it is.
      const [, name, value] = /([^:]*):? ?(.*)/s.exec(line) as unknown as [string, string, string];
      if (!line) {
        if (data && /^(message)?$/.test(type)) yield { text: data.slice(0, -1), id };
        data = type = '';
        id = undefined;
      } else if (name === 'data') {
        checkLength(data.length + value.length, limit);
        data += `${value}\n`;
      } else if (name === 'id') {
        if (!value.includes('\0')) id = value;
      } else if (name === 'event') type = value;
      else onField(name, value);
    }
  };
}
