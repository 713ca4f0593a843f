/** Warnings for a client, in the header that kubectl prints. Upstream: `WithWarningRecorder` and `NewWarningHeader`. */
import type { FieldFaults } from '../validation/field-check.ts';

/**
 * The limit of all warnings together. Proxies refuse an answer whose headers exceed their buffer, which may be 4 KiB: a
 * successful write would seem to fail.
 */
const MAX_BYTES = 2_048;

const encoder = new TextEncoder();

/** The value of the header; undefined if there are no warnings. Those that do not fit are counted. */
export function toWarning({ texts, more }: FieldFaults): string | undefined {
  if (texts.length === 0) return undefined;
  const warnings: string[] = [];
  let room = MAX_BYTES;
  for (const text of texts) {
    const warning = quoted(text);
    room -= warning.length;
    if (room < 0) break;
    warnings.push(warning);
  }
  const left = texts.length - warnings.length + more;
  if (left > 0) warnings.push(quoted(`and ${left} more unknown or duplicate fields`));
  return warnings.join(', ');
}

/** One warning. A character of a header is a byte: those beyond ASCII are encoded in UTF-8, which Kubernetes' clients expect. */
function quoted(text: string): string {
  const bytes = encoder.encode(text.replace(/[\\"]/g, '\\$&'));
  return `299 - "${String.fromCharCode(...bytes)}"`;
}
