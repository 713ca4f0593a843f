import { CHUNK_BYTES, PiecesSource } from './sources.ts';
import type { Answer } from './wire.ts';

const encoder = new TextEncoder();

/**
 * The same answer; a long one bit by bit, so that a client that takes nothing of it is noticed, and so is one that waits for its turn:
 * nobody knows when the client will take it.
 */
export function inPieces(answer: Answer, waits: boolean): Answer {
  if (answer.source !== undefined || answer.body === null || (!waits && answer.body.length <= CHUNK_BYTES)) return answer;
  const { code, headers, body } = answer;
  const source = new PiecesSource([typeof body === 'string' ? encoder.encode(body) : body]);
  return { code, headers, source, isWatch: false, sse: false, timeoutMs: 0, slot: undefined };
}
