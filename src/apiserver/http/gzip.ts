/**
 * Long answers, compressed for clients that ask for it. zlib runs off the event loop, and no faster than the client reads: the
 * next part of a list is made when there is room for it.
 *
 *     list --chunk--> gzip --chunk--> session --> client
 *          <--room---      <--next---
 */
import { pipeline } from 'node:stream';
import { createGzip, type Gzip } from 'node:zlib';
import { LINE } from '../../bridge/events/forms.ts';
import type { Source } from './sources.ts';
import type { Answer } from './wire.ts';

/** As upstream: a list of objects shrinks nearly as much as at higher levels, in a fraction of the time. */
const LEVEL = 1;

/** Decides whether an answer is compressed. */
interface Asked {
  /** The header `Accept-Encoding`. */
  readonly accepted: string | undefined;
  /** The size of the shortest answer that is compressed; 0: none is. */
  readonly minBytes: number;
}

/** The answer, compressed if it is long and its client accepts that. Watches never are: each event would wait for the next. */
export function compressed(answer: Answer, { accepted, minBytes }: Asked): Answer {
  const { source } = answer;
  if (source === undefined || answer.isWatch || minBytes === 0 || (source.atLeast ?? 0) < minBytes) return answer;
  if (!acceptsGzip(accepted)) return answer;
  const headers = { ...answer.headers, 'content-encoding': 'gzip', vary: 'Accept-Encoding' };
  return { ...answer, headers, source: new GzipSource(source) };
}

function acceptsGzip(accepted: string = ''): boolean {
  return accepted.split(',').some((each) => {
    const [coding, ...parameters] = each.split(';').map((part) => part.trim().toLowerCase());
    return coding === 'gzip' && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

class GzipSource implements Source {
  readonly joins: boolean = false;
  private readonly source: Source;
  private readonly gzip: Gzip = createGzip({ level: LEVEL });
  private readonly chunks: AsyncIterator<Uint8Array>;

  constructor(source: Source) {
    this.source = source;
    // If the source fails, so does the reader.
    pipeline(reading(source), this.gzip, () => {});
    this.chunks = this.gzip[Symbol.asyncIterator]();
  }

  next(): Promise<Uint8Array | undefined> {
    return this.chunks.next().then(({ done, value }) => (done ? undefined : value));
  }

  close(): void {
    this.gzip.destroy();
    this.source.close();
  }
}

const NOBODY = { readable: (): void => {} };

async function* reading(source: Source): AsyncGenerator<Uint8Array> {
  for (;;) {
    const bytes = await source.next(LINE, NOBODY);
    if (!(bytes instanceof Uint8Array)) return;
    yield bytes;
  }
}
