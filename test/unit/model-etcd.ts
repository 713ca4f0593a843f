// An etcd in memory, over the wire of the fake one: revisions, compaction, guarded writes, watches, leases. For what needs an etcd
// that remembers; its time is that of a clock. The real one is in test/peers.
import { LEASE_GRANT, RANGE, TXN, WATCH } from '../../src/storage/etcd/wire/channel.ts';
import { ProtoReader, ProtoWriter } from '../../src/storage/etcd/wire/messages.ts';
import type { Clock } from '../../src/watch/clock.ts';
import { type Answers, type FakeCall, header, watchResponse } from './fake-etcd.ts';

/** What a key had from a revision on; without a value, nothing. Keys are texts of a character per byte, so their order is that of etcd. */
interface Version {
  readonly key: string;
  readonly value: Uint8Array | undefined;
  readonly created: number;
  readonly modified: number;
  readonly lease: number;
}

interface Watching {
  readonly call: FakeCall;
  readonly covers: (key: string) => boolean;
  readonly previous: boolean;
}

interface Put {
  readonly value: Uint8Array;
  readonly lease: number;
}

const FUTURE = 'etcdserver: mvcc: required revision is a future revision';
const COMPACTED = 'etcdserver: mvcc: required revision has been compacted';
const NO_LEASE = 'etcdserver: requested lease not found';
const NOTHING = new Uint8Array(0);

export class ModelEtcd {
  readonly answers: Answers;
  revision: number = 1;
  readonly #clock: Clock;
  /** In the order in which it happened. */
  #history: Version[] = [];
  #compacted: number = 0;
  readonly #watching: Set<Watching> = new Set();
  readonly #leases: Map<number, () => void> = new Map();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.answers = {
      [RANGE]: (call) => call.each((message) => this.#range(call, message)),
      [TXN]: (call) => call.each((message) => this.#write(call, message)),
      [LEASE_GRANT]: (call) => call.each((message) => this.#grant(call, message)),
      [WATCH]: (call) => call.open().each((message) => this.#watch(call, message)),
    };
  }

  /** How many leases there are. */
  get leases(): number {
    return this.#leases.size;
  }

  /** Forgets what was before now. */
  compact(): void {
    this.#compacted = this.revision;
    const now = this.#at(this.revision);
    this.#history = this.#history.filter((version) => now.get(version.key) === version);
  }

  /** Writes as somebody else does. */
  put(key: string, value: string): void {
    this.#change([[latin1(Buffer.from(key)), { value: Buffer.from(value), lease: 0 }]]);
  }

  /** Ends a lease before its time. */
  revoke(lease: number): void {
    this.#leases.get(lease)?.();
    this.#leases.delete(lease);
    const own = [...this.#at(this.revision).values()].filter((each) => each.lease === lease);
    if (own.length > 0) this.#change(own.map(({ key }) => [key, undefined]));
  }

  /** What was there at a revision. */
  #at(revision: number): Map<string, Version> {
    const state = new Map<string, Version>();
    for (const version of this.#history) {
      if (version.modified > revision) break;
      if (version.value) state.set(version.key, version);
      else state.delete(version.key);
    }
    return state;
  }

  #range(call: FakeCall, message: Uint8Array): void {
    const {
      1: key = NOTHING,
      2: end,
      3: limit = 0,
      4: revision = 0,
      8: keysOnly,
      9: countOnly,
    } = parse(message, [3, 4, 7, 8, 9]);
    const refusal = revision > this.revision ? FUTURE : revision > 0 && revision < this.#compacted ? COMPACTED : undefined;
    if (refusal !== undefined) {
      call.refuse(11, refusal);
      return;
    }
    const covers = coverOf(key, end);
    const all = [...this.#at(revision || this.revision).values()].filter((version) => covers(version.key));
    all.sort((one, other) => (one.key < other.key ? -1 : 1));
    const sent = countOnly ? [] : all.slice(0, limit || all.length);
    const writer = new ProtoWriter().message(1, header(this.revision));
    for (const version of sent) writer.message(2, toKeyValue(keysOnly ? { ...version, value: NOTHING } : version));
    call.answer(
      writer
        .bool(3, !countOnly && sent.length < all.length)
        .int64(4, all.length)
        .finish(),
    );
  }

  #write(call: FakeCall, message: Uint8Array): void {
    const { 1: compare, 2: operation } = parse(message);
    const { 3: name, 6: expected = 0 } = parse(compare, [1, 2, 6]);
    const { 2: request, 3: removal } = parse(operation);
    const key = latin1(name);
    const there = this.#at(this.revision).get(key);
    const succeeded = (there?.modified ?? 0) === expected;
    if (succeeded && removal) {
      // A removal of nothing is no change.
      if (there) this.#change([[key, undefined]]);
    } else if (succeeded) {
      const { 2: value = NOTHING, 3: lease = 0 } = parse(request, [3]);
      if (lease > 0 && !this.#leases.has(lease)) {
        call.refuse(5, NO_LEASE);
        return;
      }
      this.#change([[key, { value, lease }]]);
    }
    const writer = new ProtoWriter().message(1, header(this.revision)).bool(2, succeeded);
    if (!succeeded) {
      const read = new ProtoWriter().message(1, header(this.revision));
      if (there) read.message(2, toKeyValue(there));
      writer.message(3, new ProtoWriter().message(1, read.finish()).finish());
    }
    call.answer(writer.finish());
  }

  #grant(call: FakeCall, message: Uint8Array): void {
    const { 1: ttl = 0 } = parse(message, [1]);
    const id = 1_000 + this.#leases.size;
    this.#leases.set(
      id,
      this.#clock.schedule(ttl * 1_000, () => this.revoke(id)),
    );
    call.answer(new ProtoWriter().message(1, header(this.revision)).int64(2, id).int64(3, ttl).finish());
  }

  #watch(call: FakeCall, message: Uint8Array): void {
    const { 1: create, 3: progress } = parse(message);
    if (progress) call.send(watchResponse(this.revision));
    if (!create) return;
    const { 1: key = NOTHING, 2: end, 3: start = this.revision + 1, 6: previous } = parse(create, [3, 4, 6, 8]);
    call.send(watchResponse(this.revision, [], { created: true }));
    if (start < this.#compacted) return void call.send(watchResponse(this.revision, [], { compacted: this.#compacted }));
    const watching = { call, covers: coverOf(key, end), previous: previous === 1 };
    this.#watching.add(watching);
    call.stream.on('close', () => this.#watching.delete(watching));
    this.#tell(
      watching,
      this.#history.filter(({ modified }) => modified >= start),
    );
  }

  /** Everything at one revision. */
  #change(changes: readonly (readonly [key: string, put: Put | undefined])[]): void {
    const now = this.#at(this.revision++);
    const made = changes.map(([key, put]): Version => {
      const created = now.get(key)?.created ?? this.revision;
      return { key, value: put?.value, created: put ? created : 0, modified: this.revision, lease: put?.lease ?? 0 };
    });
    this.#history.push(...made);
    for (const watching of this.#watching) this.#tell(watching, made);
  }

  #tell({ call, covers, previous }: Watching, versions: readonly Version[]): void {
    const events = versions
      .filter(({ key }) => covers(key))
      .map((version) => {
        const before = previous && this.#at(version.modified - 1).get(version.key);
        const writer = new ProtoWriter().int64(1, version.value ? 0 : 1).message(2, toKeyValue(version));
        return writer.bytes(3, before ? toKeyValue(before) : undefined).finish();
      });
    if (events.length > 0) call.send(watchResponse(this.revision, events));
  }
}

const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

function coverOf(key: Uint8Array, end: Uint8Array | undefined): (key: string) => boolean {
  const [from, to] = [latin1(key), end && latin1(end)];
  return (other) => (to === undefined ? other === from : other >= from && other < to);
}

function toKeyValue({ key, value, created, modified, lease }: Version): Uint8Array {
  const writer = new ProtoWriter().bytes(1, Buffer.from(key, 'latin1')).int64(2, created).int64(3, modified);
  return writer.bytes(5, value).int64(6, lease).finish();
}

/** The last value of each field: bytes, or numbers where that is said. */
// biome-ignore lint/suspicious/noExplicitAny: the caller knows what a field has
function parse(message: Uint8Array, numbers: readonly number[] = []): Record<number, any> {
  const fields: Record<number, unknown> = {};
  for (const reader = new ProtoReader(message); reader.next(); ) {
    fields[reader.field] = numbers.includes(reader.field) ? Number(reader.int64()) : reader.bytes();
  }
  return fields;
}
