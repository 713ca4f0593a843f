import type { ClientStats } from '../bridge/hub/connection.ts';
import type { HubTotals } from '../bridge/hub/tally.ts';
import { tried } from '../watch/errors.ts';
import type { Overflow } from '../watch/overflow.ts';

/** Numbers, times and texts in readable form, in a page and in a terminal. */
const whole = new Intl.NumberFormat('en');

/** `12,345`. */
export function count(value: number): string {
  return whole.format(value);
}

/** `1 event`, `12,345 events`. */
export function plural(value: number, noun: string, nouns: string = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : nouns}`;
}

/** Short enough for a tile: `12,345`, `1.23 M`. */
export function short(value: number): string {
  return value < 1_000_000 ? count(value) : `${(value / 1_000_000).toFixed(value < 10_000_000 ? 2 : 1)} M`;
}

/** A rate, with one decimal while that is significant. */
export function rate(value: number): string {
  return value > 0 && value < 10 ? value.toFixed(1) : short(Math.round(value));
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `640 bytes`, `1.4 MiB`. */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1_024 && unit < UNITS.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${unit === 0 ? count(Math.round(value)) : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** Returns a value as JSON. Browsers can parse deeper nesting than they can stringify. */
export function jsonOf(value: unknown, indent?: number): string {
  return tried(() => JSON.stringify(value, null, indent) ?? '') ?? '(nested too deeply to be shown)';
}

/** `JSON.rawJSON`, where there is one: Chrome 114, Firefox 135, Safari 18.4. */
const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };

/**
 * Parses JSON whose numbers `jsonOf` returns as they were written, if the browser can: an id beyond 2^53 must not turn into a
 * different one.
 */
export function parseExactly(text: string): unknown {
  // Only long numbers lose digits, and the other way to parse is slow.
  if (rawJSON !== undefined && /\d{16}/.test(text)) {
    const exact = (_key: string, value: unknown, { source }: { source?: string }): unknown =>
      typeof value === 'number' && source !== undefined && String(value) !== source ? rawJSON(source) : value;
    try {
      return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
    } catch {
      // Nested too deeply for this way, or not JSON at all.
    }
  }
  return JSON.parse(text);
}

/**
 * Returns a text with escapes for characters that are invisible, or would reorder those around them: an event must not look
 * like a different one. Line breaks and tabs stay.
 */
export function visible(text: string): string {
  return text.replace(UNSEEN, (unseen) => `\\u${unseen.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const UNSEEN = /[^\P{Cc}\t\n\r]|[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/gu;

/** A text on one line, without characters that a terminal would act on. */
export function dotted(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '.');
}

/** Returns the start of such a text. */
export function excerpt(text: string, length: number = 80): string {
  return dotted(text.slice(0, length)) + (text.length > length ? '...' : '');
}

/** The query of a URL with other values of some parameters, and with whatever else was in it. Empty ones are left out. */
export function queryWith(search: string, values: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(values)) {
    if (value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text && `?${text}`;
}

/** The time of day, in the reader's zone: `14:03:09`. */
export function timeOf(date: Date): string {
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}

/**
 * Returns the sequence in a version, which the page shows. Versions are opaque to other clients; this page belongs to the server.
 */
export function placeOf(version: string | undefined): number | undefined {
  const sequence = Number(version?.slice(version.lastIndexOf('.') + 1));
  return version === undefined || !Number.isSafeInteger(sequence) ? undefined : sequence;
}

/** Returns the epoch of a version: the lifetime of the server it belongs to. */
export function epochOf(version: string | undefined): string | undefined {
  return version?.slice(0, Math.max(0, version.lastIndexOf('.')));
}

export interface PipeClient extends ClientStats {
  /** Events that earlier connections of this client dropped, and that it has received since. */
  readonly recovered: number;
}

/** The content of `/stats`. */
export interface PipeStats {
  readonly version: string;
  readonly accepted: number;
  /** The queue length of every client, and what happens when a queue is full. */
  readonly capacity: number;
  readonly overflow: Overflow;
  /** Dropped events that clients received after all, because they reconnected and resumed. */
  readonly recovered: number;
  readonly clients: readonly PipeClient[];
  readonly total: HubTotals;
}

/** The parameter with which the page limits how fast it is served, in bytes per second; 0 means no limit. */
export const SLOW = 'slow';

/** The header that tells a page which of the clients it is. */
export const CLIENT_HEADER = 'watchmux-client';
