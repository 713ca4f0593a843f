import { CHUNK_BYTES, PiecesSource } from './sources.ts';
import type { Answer } from './wire.ts';

const encoder = new TextEncoder();

/**
 * The same answer, but a long one as a stream, so that a client that stops reading is noticed. So is any answer that must wait
 * for earlier ones on its connection, because nobody knows when the client will read those.
 */
export function inPieces(answer: Answer, waits: boolean): Answer {
  if (answer.source !== undefined || answer.body === null || (!waits && answer.body.length <= CHUNK_BYTES)) return answer;
  const { code, headers, body } = answer;
  const source = new PiecesSource([typeof body === 'string' ? encoder.encode(body) : body]);
  return { code, headers, source, isWatch: false, sse: false, timeoutMs: 0, slot: undefined };
}
