/** What names may look like. The messages are Kubernetes', because people search for them. Upstream: `apimachinery/validation`. */

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_LABEL_CHARS = 63;
const MAX_SUBDOMAIN_CHARS = 253;

/** What is wrong with a name of an object: RFC 1123, a subdomain. */
export function faultOfSubdomain(name: string): string | undefined {
  if (name.length > MAX_SUBDOMAIN_CHARS) return `Invalid value: ${shown(name)}: must be no more than 253 characters`;
  if (SUBDOMAIN.test(name)) return undefined;
  return `Invalid value: ${shown(name)}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`;
}

/** What is wrong with a name of a namespace: RFC 1123, a label. */
export function faultOfLabel(name: string): string | undefined {
  if (name.length > MAX_LABEL_CHARS) return `Invalid value: ${shown(name)}: must be no more than 63 characters`;
  if (LABEL.test(name)) return undefined;
  return `Invalid value: ${shown(name)}: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`;
}

/** A value in a message: short, and without characters that could forge log lines. */
export function shown(value: string): string {
  const short = value.length > 300 ? `${value.slice(0, 300)}...` : value;
  return JSON.stringify(short.replace(/\p{C}/gu, '.'));
}

/** The characters that generated names end with: no vowels, and none that look alike. Upstream: `rand.String`. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const RANDOM_CHARS = 5;

/** A name with the given beginning. Upstream: `names.SimpleNameGenerator`. */
export function generateName(base: string, random: () => number): string {
  const start = base.slice(0, MAX_LABEL_CHARS - RANDOM_CHARS);
  const end = Array.from({ length: RANDOM_CHARS }, () => ALPHABET.charAt(Math.floor(random() * ALPHABET.length)));
  return start + end.join('');
}

/** How many bytes a text has on the wire. */
export function utf8Bytes(value: string): number {
  let bytes = value.length;
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at);
    // A surrogate is half of four bytes.
    bytes += unit < 0x80 ? 0 : unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 1 : 2;
  }
  return bytes;
}
