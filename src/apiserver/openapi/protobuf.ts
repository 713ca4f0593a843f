/** The part of protobuf's encoding that an OpenAPI v2 document needs. Upstream: gnostic's `OpenAPIv2.proto`. */
const utf8 = new TextEncoder();
const LENGTH_DELIMITED = 2;

/** Writes fields one after the other. */
export class Message {
  readonly #bytes: number[] = [];

  /** A text. Undefined: nothing is written. */
  text(field: number, value: string | undefined): this {
    return value === undefined || value === '' ? this : this.bytes(field, utf8.encode(value));
  }

  /** A message within this one. */
  message(field: number, value: Message): this {
    return this.bytes(field, value.#bytes);
  }

  bytes(field: number, value: ArrayLike<number>): this {
    this.#number(field * 8 + LENGTH_DELIMITED);
    this.#number(value.length);
    // Not by spreading: a long array has more elements than a call may have arguments.
    for (let at = 0; at < value.length; at++) this.#bytes.push(value[at] as number);
    return this;
  }

  toBytes(): Uint8Array {
    return Uint8Array.from(this.#bytes);
  }

  /** A number in groups of seven bits, the lowest first. */
  #number(value: number): void {
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128)) this.#bytes.push((rest % 128) + 128);
    this.#bytes.push(rest);
  }
}
