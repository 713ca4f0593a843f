/**
 * What all clients of one server have read, stored once.
 *
 *     kept      |===================|      as far as the client that is ahead
 *     client 0  |--------------|
 *     client 1  |-------------------|
 *     client 2  |------|
 *
 * All clients are sent the same bytes. What the first one reads is kept, and what the others read is compared with it. So every
 * byte of every client is checked at the price of a memory comparison, and decoded only once.
 */
export class SharedStream {
  private kept: Buffer = Buffer.allocUnsafe(1 << 16);
  private length = 0;
  private readonly ends: Float64Array;
  private wrong: string | undefined = undefined;

  constructor(clients: number) {
    this.ends = new Float64Array(clients);
  }

  read(client: number, chunk: Uint8Array): void {
    const from = this.ends[client] as number;
    const end = from + chunk.length;
    const known = Math.min(this.length, end) - from;
    if (this.kept.compare(chunk, 0, known, from, from + known) !== 0)
      this.wrong ??= `client ${client} reads something else than the others from byte ${from} on`;
    if (end > this.length) {
      this.keep(chunk.subarray(known));
      this.length = end;
    }
    this.ends[client] = end;
  }

  /** How much the client has read that is ahead. */
  get longest(): number {
    return this.length;
  }

  /** Whether each client has read this much. Throws if one has read more, or other bytes. */
  all(bytes: number): boolean {
    if (this.wrong !== undefined) throw new Error(this.wrong);
    if (this.length > bytes) throw new Error(`a client has read ${this.length} bytes, and ${bytes} were sent to each`);
    return this.ends.every((end) => end === bytes);
  }

  /** Returns what each client has read, and starts over. */
  take(): Buffer {
    const bytes = Buffer.from(this.kept.subarray(0, this.length));
    this.length = 0;
    this.ends.fill(0);
    return bytes;
  }

  private keep(bytes: Uint8Array): void {
    if (this.length + bytes.length > this.kept.length) {
      const larger = Buffer.allocUnsafe(2 * (this.length + bytes.length));
      this.kept.copy(larger, 0, 0, this.length);
      this.kept = larger;
    }
    this.kept.set(bytes, this.length);
  }
}
