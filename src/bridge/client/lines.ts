/**
 * Takes a chunk of bytes and returns the frames that it completes. Without a chunk, it returns what is left at the end of the
 * stream.
 */
export type Parser = (chunk?: Uint8Array) => Iterable<Frame>;

/** A frame, and its id if it has one. */
export interface Frame {
  readonly text: string;
  readonly id?: string | undefined;
}

/** Throws if a frame is longer than `maxFrameChars`. */
export function checkLength(length: number, limit: number): void {
  if (length > limit) throw new RangeError(`longer than maxFrameChars (${limit})`);
}

/**
 * Splits bytes into lines, which end in LF or CRLF. Buffers only the start of one unfinished line. Throws if that is longer than
 * `limit`, and `extra` characters around a frame, and for invalid UTF-8.
 */
function splitter(limit: number, extra: number = 0): (chunk?: Uint8Array) => string[] {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  return (chunk) => {
    const lines = utf8.decode(chunk, { stream: !!chunk }).split('\n');
    // Only the new chunk is searched for line ends, so a long line costs O(length) however it is cut into chunks.
    lines[0] = rest + lines[0];
    rest = chunk ? (lines.pop() as string) : '';
    checkLength(rest.length - extra, limit);
    return lines.map((line) => line.replace(/\r$/, ''));
  };
}

/** Parses one frame per line and skips blank lines. The last line needs no line end. */
export function jsonLines(limit: number): Parser {
  const split = splitter(limit);
  return function* (chunk) {
    for (const text of split(chunk)) {
      if (text.trim()) yield { text };
    }
  };
}

/**
 * Parses Server-Sent Events. A blank line completes a message. An incomplete message at the end of the stream is discarded.
 *
 * Differs from the HTML standard in three points: a bare CR does not end a line, an id belongs to its own message only, and
 * messages with an `event` name are skipped, because a watch has none. A property test compares the rest with eventsource-parser.
 *
 * `onField` receives what does not belong to a message: `retry`, and comments, which have an empty name.
 */
export function serverSentEvents(limit: number, onField: (name: string, value: string) => void): Parser {
  const split = splitter(limit, 'data: '.length);
  let data = '';
  let type = '';
  let id: string | undefined;
  return function* (chunk) {
    for (const line of chunk ? split(chunk) : []) {
      // The flag `s` is needed because JSON may contain an unescaped U+2028, at which `.` would stop.
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
