/** Quantities, such as `500m` of a processor or `1Gi` of memory. Upstream: `resource.Quantity`. */

const FORM = /^([+-]?)(0*)(\d*)(?:\.(\d*))?([numkMGTPE]?|[KMGTPE]i|[eE][+-]?\d{1,9})$/;
const DECIMAL = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const MAX_CHARS = 1_000;
/** The power of ten in which nothing smaller is counted. */
const NANO = -9;
const MAX_INT64 = 2n ** 63n - 1n;
/** As many digits fit an integer of 64 bits; behind a binary suffix, one less for each time that 2^n has three of them. */
const [MAX_DIGITS, MAX_BINARY_DIGITS] = [18, 14];

/** An absolute amount: `digits` times the power of ten `scale`. */
interface Amount {
  readonly digits: bigint;
  readonly scale: number;
}

/** A quantity as it is written: `digits` times the powers of two and of ten that its suffix and its fraction stand for. */
interface Written {
  readonly sign: string;
  /** Without zeros in front, unless it is less than one. */
  readonly digits: string;
  readonly power: number;
  readonly scale: number;
  /** Whether it has an exponent as its suffix. */
  readonly isExponent: boolean;
  readonly hasFraction: boolean;
  /** Whether Go reads it as an integer, and not as a decimal of any length. */
  readonly isShort: boolean;
  /** Whether there is a digit at all: Go takes `m` for zero. */
  readonly isNumber: boolean;
}

/** Reads a quantity; undefined if it is none. */
export function readQuantity(text: string): Written | undefined {
  const found = text === '' || text.length > MAX_CHARS ? null : FORM.exec(text);
  if (found === null) return undefined;
  const [, sign = '', zeros = '', whole = '', fraction = '', suffix = ''] = found;
  const power = 10 * Math.max(0, BINARY.indexOf(suffix));
  const isExponent = suffix.length > 1 && power === 0;
  const exponent = power > 0 ? 0 : isExponent ? Number(suffix.slice(1)) : 3 * (DECIMAL.indexOf(suffix) - 3);
  const digits = `${whole || '0'}${fraction}`;
  const hasFraction = fraction !== '';
  const room = power === 0 ? MAX_DIGITS : hasFraction ? -1 : MAX_BINARY_DIGITS - Math.trunc(power * 0.3);
  return {
    ...{ sign, digits, power, scale: exponent - fraction.length, isExponent, hasFraction },
    ...{ isShort: digits.length <= room, isNumber: `${zeros}${whole}${fraction}` !== '' },
  };
}

/** A quantity as Go writes one that it has read: in canonical form, unless what was given is close to it. Undefined if it is none. */
export function quantityOf(given: string): string | undefined {
  const text = given.trim();
  const read = readQuantity(text);
  if (read === undefined) return undefined;
  const { sign, power, scale, isExponent, isShort, isNumber } = read;
  const digits = BigInt(read.digits) * 2n ** BigInt(power);
  const isQuick = isShort && scale >= NANO;
  if (!isQuick && !isNumber) return undefined;
  const isKept = power === 0 ? scale % 3 === 0 && !/^0|000$/.test(read.digits) : BigInt(read.digits) % 8n !== 0n;
  if (isQuick && isKept) return text;
  const amount = isQuick ? { digits, scale } : bounded({ digits, scale }, power > 0);
  if (amount.digits === 0n) return '0';
  const written = (power > 0 && asBinary(amount)) || asDecimal(amount, isExponent);
  return sign === '-' ? `-${written}` : written;
}

/** Rounded up, and at most as large as Go's integers if it is binary. */
function bounded({ digits, scale }: Amount, isBinary: boolean): Amount {
  let amount = { digits, scale };
  if (scale < NANO) {
    // What is smaller than one of the last digit counts as one.
    const unit = 10n ** BigInt(Math.min(NANO - scale, digits.toString().length));
    amount = { digits: (digits + unit - 1n) / unit, scale: NANO };
  }
  const isOver = isBinary && amount.digits > MAX_INT64 * 10n ** BigInt(-amount.scale);
  return isOver ? { digits: MAX_INT64, scale: 0 } : amount;
}

/** With a binary suffix, if it is a whole number and large enough. */
function asBinary({ digits, scale }: Amount): string | undefined {
  const unit = 10n ** BigInt(-scale);
  if (digits < 1_024n * unit || digits % unit !== 0n) return undefined;
  let [number, times] = [digits / unit, 0];
  for (; number % 1_024n === 0n; number /= 1_024n) times++;
  return `${number}${BINARY[times]}`;
}

/** With an exponent that is a multiple of three. */
function asDecimal({ digits, scale }: Amount, isExponent: boolean): string {
  const number = digits.toString().replace(/0+$/, '');
  const exponent = scale + digits.toString().length - number.length;
  const more = ((exponent % 3) + 3) % 3;
  const power = exponent - more;
  const suffix = isExponent ? power !== 0 && `e${power}` : DECIMAL[power / 3 + 3];
  return `${number}${'0'.repeat(more)}${suffix || ''}`;
}
