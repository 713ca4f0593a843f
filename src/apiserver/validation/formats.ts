/** The formats of strings that a kube-apiserver checks. Upstream: `kube-openapi/pkg/validation/strfmt`. */
import { faultOfKey } from '../../selectors/syntax.ts';

/** Whether a text has a format. An unknown format admits any text. No check backtracks. */
export function hasFormat(format: string, text: string): boolean {
  const check = formatCheck(format);
  return check === undefined || (text.length <= MAX_CHARS && check(text));
}

/** The check of a format, for texts of a few thousand characters. */
export const formatCheck = (format: string): Check | undefined => CHECKS[format.replaceAll('-', '')];

/** No text with a format, except `byte`, may be longer. */
const MAX_CHARS = 8_388_608;

type Check = (text: string) => boolean;

const matches =
  (form: RegExp): Check =>
  (text) =>
    form.test(text);

const isIpv4 = (text: string): boolean => {
  const parts = text.split('.');
  return parts.length === 4 && parts.every((part) => /^0*\d{1,3}$/.test(part) && Number(part) <= 255);
};

/** As Go parses it, without a zone. `isSloppy`: as it did long ago, with any number of zeros before a number. */
const isIpv6 = (text: string, isSloppy: boolean = false): boolean => {
  if (text.length > 64) return false;
  const [head = '', tail, ...more] = text.split('::');
  if (more.length > 0) return false;
  const groups = [head, ...(tail === undefined ? [] : [tail])].flatMap((part) => (part === '' ? [] : part.split(':')));
  const last = groups.at(-1) ?? '';
  const hasV4 = last.includes('.') && isIpv4(last) && (isSloppy || !/(^|\.)0\d/.test(last)) && tail !== '';
  const words = hasV4 ? groups.slice(0, -1) : groups;
  const count = words.length + (hasV4 ? 2 : 0);
  const form = isSloppy ? /^0*[0-9a-fA-F]{1,4}$/ : /^[0-9a-fA-F]{1,4}$/;
  return words.every((word) => form.test(word)) && (tail === undefined ? count === 8 : count < 8);
};

const isIp: Check = (text) => (text.includes(':') ? isIpv6(text, true) : isIpv4(text));

const isCidr: Check = (text) => {
  const [address = '', bits = '', ...more] = text.split('/');
  if (more.length > 0 || !isIp(address) || !/^0*\d{1,3}$/.test(bits)) return false;
  return Number(bits) <= (address.includes(':') ? 128 : 32);
};

/** The days of a month from 1 to 12. A Date would take longer than all the rest. */
function daysOf(year: number, month: number): number {
  if (month !== 2) return 30 + ((month + (month > 7 ? 1 : 0)) % 2);
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

const isDay = (year: string, month: string, day: string): boolean =>
  Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= daysOf(Number(year), Number(month));

const isDate: Check = (text) => {
  const [, year, month = '', day = ''] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? [];
  return year !== undefined && isDay(year, month, day);
};

/** Anything after another `t` is ignored. */
const DATE_TIME = /^(\d{4})-(\d{2})-(\d{2})t(\d{2}):(\d{2}):(\d{2})(?:[^t\n]\d+)?(?:z|[+-]\d{2}:\d{2})(?:t|$)/;

const isDateTime: Check = (text) => {
  const [, year, month = '', day = '', hours = '', minutes = '', seconds = ''] = DATE_TIME.exec(text.toLowerCase()) ?? [];
  return year !== undefined && isDay(year, month, day) && hours <= '23' && minutes <= '59' && seconds <= '59';
};

const GO_DURATION = /^[-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/;
const UNIT = /^(?:ns|us|µs|ms|[smhdw]|hr|wk)$|^(?:nano|micro|milli|sec|min|hour|day|week)/i;
/** Longer texts of a format without a limit of its own take too long to look at, and are not meant. */
const MAX_MEANT_CHARS = 1_024;

const MAX_INT64 = 2n ** 63n - 1n;

const GO_UNITS: Readonly<Record<string, bigint>> = {
  ...{ ns: 1n, us: 1_000n, µs: 1_000n, μs: 1_000n, ms: 1_000_000n },
  ...{ s: 1_000_000_000n, m: 60_000_000_000n, h: 3_600_000_000_000n },
};

/** Go has 64 bits for the nanoseconds of all parts together. Upstream: `time.ParseDuration`. */
function isGoDuration(text: string): boolean {
  if (!GO_DURATION.test(text)) return false;
  let sum = text.startsWith('-') ? -1n : 0n;
  for (const [, whole = '', fraction = '', unit = ''] of text.matchAll(/(\d*)\.?(\d{0,18})\d*([a-zµμ]+)/g)) {
    const ns = GO_UNITS[unit] as bigint;
    sum += BigInt(whole) * ns + (BigInt(fraction) * ns) / 10n ** BigInt(fraction.length);
  }
  return sum <= MAX_INT64;
}

/** As Go has it, or with words for some of its units, whose numbers may have 64 bits each. */
const isDuration: Check = (text) => {
  if (text.length > MAX_MEANT_CHARS) return false;
  if (isGoDuration(text)) return true;
  const parts = Array.from(text.matchAll(/(\d+)[\t\n\f\r ]*([A-Za-zµ]+)/g));
  const fit = parts.every(([, digits = '']) => BigInt(digits) <= MAX_INT64);
  return fit && parts.some(([, , unit = '']) => UNIT.test(unit));
};

const LABEL = /^[a-zA-Z0-9\p{S}\p{L}](?:[-a-zA-Z0-9\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?$/u;
const ALONE_LABEL = /^[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})$/u;

const utf8 = new TextEncoder();

const isHostname: Check = (text) => {
  if (text.length > 255 || utf8.encode(text).length > 255) return false;
  const labels = text.split('.');
  if (labels.some((label) => utf8.encode(label).length > 63)) return false;
  if (labels.length === 1) return ALONE_LABEL.test(text);
  return labels.slice(0, -1).every((label) => LABEL.test(label)) && /^[a-zA-Z\p{L}]{2,63}$/u.test(labels.at(-1) as string);
};

const isUri: Check = (text) => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they make it invalid.
  if (text === '' || /[\0-\x1f\x7f]/.test(text)) return false;
  if (text === '*') return true;
  const [scheme] = /^[a-zA-Z][a-zA-Z0-9+.-]*:/.exec(text) ?? [''];
  const rest = text.slice(scheme.length).split('?', 1)[0] as string;
  if (!rest.startsWith('/')) return scheme !== '';
  // Without a scheme, even `//host` is a path.
  const [, authority, path = ''] = (scheme && /^\/\/([^/]*)(.*)$/s.exec(rest)) || ['', undefined, rest];
  return !/%(?![0-9a-fA-F]{2})/.test(path) && (authority === undefined || isAuthority(authority, scheme));
};

/** Perhaps a user, a host, or an IPv6 address in brackets, perhaps with a zone, and perhaps a port. */
function isAuthority(text: string, scheme: string): boolean {
  const at = text.lastIndexOf('@');
  if (at >= 0 && !/^(?:[A-Za-z0-9._:~!$&'()*+,;=@-]|%[0-9a-fA-F]{2})*$/.test(text.slice(0, at))) return false;
  const host = text.slice(at + 1);
  // Other schemes may have more colons.
  const colon = /^https?:$/i.test(scheme) ? host.indexOf(':') : host.lastIndexOf(':');
  const [, address, zone = ''] = /^\[([^%]*?)(?:%25(.+))?\](?::\d*)?$/s.exec(host) ?? [];
  if (address !== undefined) return isIpv6(address) && HOST.test(zone.replace(/%[0-9a-fA-F]{2}/g, ''));
  return HOST.test(host) && (colon < 0 || /^:\d*$/.test(host.slice(colon)));
}

/** Go minds neither quotes nor angle brackets. */
const HOST = /^(?:[^\0-\x7f]|[A-Za-z0-9_.~!$&'()*+,;=:\]<>"-]|%25|%[89a-fA-F][0-9a-fA-F])*$/;

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u0080-\\u{10ffff}-]+";
const QTEXT = '[^\\0-\\x08\\x0a-\\x1f\\x7f"\\\\]';
const ADDRESS = `[ \\t]*(?:${ATOM}(?:\\.${ATOM})*|"(?:${QTEXT}|\\\\.)+")@[ \\t]*(?:${ATOM}(?:\\.${ATOM})*|\\[([^\\[\\]\\\\]+)\\])`;
const COMMENT = '\\((?:[^()\\\\]|\\\\.)*\\)';
const WORD = `(?:"(?:${QTEXT}|\\\\.)*"|[^\\0-\\x20\\x7f"(),:;<>@[\\\\\\]])`;
const DISPLAY_NAME = `[ \\t]*(?:${WORD}(?:[ \\t]|${COMMENT}|${WORD})*)?`;
const EMAIL = new RegExp(`^(?:${ADDRESS}|${DISPLAY_NAME}<${ADDRESS}>)(?:[ \\t]|${COMMENT})*$`, 'u');

/** Not those of a group, and no comments in comments. Words may be encoded in any character set. */
const isEmail: Check = (text) => {
  const found = text.length > MAX_MEANT_CHARS ? null : EMAIL.exec(text);
  const literal = found?.[1] ?? found?.[2];
  return found !== null && (literal === undefined || isIpv6(literal) || (isIpv4(literal) && !/(^|\.)0\d/.test(literal)));
};

const MAC =
  /^(?:[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40})$|^[0-9a-f]{2}(?:(:|-)[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}(?:(?:\1[0-9a-f]{2}){2}|(?:\1[0-9a-f]{2}){14})?$/i;
const MAC_DOTTED = /^[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:\.[0-9a-f]{4}|(?:\.[0-9a-f]{4}){7})?$/i;

const sum = (text: string, weight: (at: number) => number): number =>
  Array.from(text).reduce((total, char, at) => total + weight(at) * (char === 'X' ? 10 : Number(char)), 0);

/** A number without what stands between its digits. */
const ungrouped = (text: string, apart: RegExp): string => (text.length > MAX_MEANT_CHARS ? '' : text.replace(apart, ''));

const isIsbn10: Check = (text) => {
  const digits = ungrouped(text, /[\t\n\f\r -]+/g);
  return /^\d{9}[\dX]$/.test(digits) && sum(digits, (at) => at + 1) % 11 === 0;
};

const isIsbn13: Check = (text) => {
  const digits = ungrouped(text, /[\t\n\f\r -]+/g);
  return /^\d{13}$/.test(digits) && sum(digits, (at) => (at % 2 === 0 ? 1 : 3)) % 10 === 0;
};

const CARD =
  /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/;

const isCard: Check = (text) => {
  const digits = ungrouped(text, /\D+/g);
  if (!CARD.test(digits)) return false;
  const doubled = (digit: number): number => (digit > 4 ? digit * 2 - 9 : digit * 2);
  const total = Array.from(digits)
    .reverse()
    .reduce((all, char, at) => all + (at % 2 === 1 ? doubled(Number(char)) : Number(char)), 0);
  return total % 10 === 0;
};

const BYTE = '[\\t\\n\\f\\r ]*(?:0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])[\\t\\n\\f\\r ]*';
const uuid = (version: string, variant: string): Check =>
  matches(new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, 'i'));

const isBase64: Check = (text) => text.length % 4 === 0 && text !== '' && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
const SHORT_NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;

const CHECKS: Readonly<Record<string, Check>> = {
  bsonobjectid: matches(/^[0-9a-fA-F]{24}$/),
  uri: isUri,
  email: isEmail,
  hostname: isHostname,
  ipv4: (text) => text.includes('.') && isIp(text),
  ipv6: (text) => text.includes(':') && isIpv6(text),
  cidr: isCidr,
  mac: (text) => MAC.test(text) || MAC_DOTTED.test(text),
  uuid: uuid('[0-9a-f]', '[0-9a-f]'),
  uuid3: uuid('3', '[0-9a-f]'),
  uuid4: uuid('4', '[89ab]'),
  uuid5: uuid('5', '[89ab]'),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  creditcard: isCard,
  ssn: (text) => text.length === 11 && /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text),
  hexcolor: matches(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/),
  rgbcolor: matches(new RegExp(`^rgb\\(${[BYTE, BYTE, BYTE].join(',')}\\)$`)),
  byte: isBase64,
  password: () => true,
  date: isDate,
  duration: isDuration,
  datetime: isDateTime,
  k8sshortname: (text) => text.length <= 63 && SHORT_NAME.test(text),
  k8slongname: (text) => text.length <= 253 && text.split('.').every((part) => SHORT_NAME.test(part)),
};

/** The forms of names. The messages are Kubernetes', because people search for them. Upstream: `apimachinery/util/validation`. */

const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const NAME = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const NAMES =
  "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const NAME_FAULT = `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character ${NAMES}`;
const LABEL_FAULT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_FAULT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE_FAULT =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const DATA_KEY = /^[-._a-zA-Z0-9]+$/;
const DATA_KEY_FAULT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

const tooLong = (text: string, most: number, unit: 'bytes' | 'characters' = 'characters'): string[] =>
  text.length > most || utf8.encode(text).length > most ? [`must be no more than ${most} ${unit}`] : [];
/** A longer text is too long for any of these: nothing else is checked, as that would take long for megabytes. */
const MAX_LOOKED_AT = 1_024;
const isOf = (form: RegExp, text: string): boolean => text.length > MAX_LOOKED_AT || form.test(text);
export const unless = (isSo: boolean, fault: string): string[] => (isSo ? [] : [fault]);

/** What is wrong with the name of a namespace. */
export const labelFaults = (text: string): string[] => [
  ...tooLong(text, 63),
  ...unless(isOf(DNS_LABEL, text), isOf(SUBDOMAIN, text) ? 'must not contain dots' : LABEL_FAULT),
];

/** The message for a name that is not a label. */
export const LABEL_1035: string =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const LABEL_OF_1035 = /^[a-z](?:[-a-z0-9]*[a-z0-9])?$/;

/** What is wrong with the name of a kind, or of a part of its URLs. */
export const label1035Faults = (text: string): string[] => [
  ...tooLong(text, 63),
  ...unless(LABEL_OF_1035.test(text), LABEL_1035),
];

/** What is wrong with the name of any other object. */
export const subdomainFaults = (text: string, unit: 'bytes' | 'characters' = 'characters'): string[] => [
  ...tooLong(text, 253, unit),
  ...unless(isOf(SUBDOMAIN, text), SUBDOMAIN_FAULT),
];

/** What is wrong with a key of a ConfigMap or a Secret. Upstream: `IsConfigMapKey`. */
export const dataKeyFaults = (text: string): string[] => [
  ...tooLong(text, 253),
  ...unless(isOf(DATA_KEY, text), DATA_KEY_FAULT),
  ...(text === '.' || text === '..' ? [`must not be '${text}'`] : unless(!text.startsWith('..'), "must not start with '..'")),
];

/** What is wrong with the key of a label. */
export function qualifiedFaults(text: string): string[] {
  if (faultOfKey(text) === undefined) return [];
  const [first = '', second, ...more] = text.split('/', 3);
  if (more.length > 0)
    return [`a valid label key ${NAME_FAULT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  const name = second ?? first;
  const ofPrefix = second === undefined ? [] : first === '' ? ['must be non-empty'] : subdomainFaults(first, 'bytes');
  const ofName = [...(name === '' ? ['must be non-empty'] : tooLong(name, 63, 'bytes')), ...unless(isOf(NAME, name), NAME_FAULT)];
  return [...ofPrefix.map((fault) => `prefix part ${fault}`), ...ofName.map((fault) => `name part ${fault}`)];
}

/** What is wrong with the value of a label. */
export const labelValueFaults = (text: string): string[] =>
  text === '' ? [] : [...tooLong(text, 63, 'bytes'), ...unless(isOf(NAME, text), VALUE_FAULT)];
