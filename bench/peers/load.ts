// The clients of the workload `peers`, in a process of their own: watchers, writers and readers of lists, all over TLS.
import { setImmediate } from 'node:timers/promises';
import { APPS, type App, appOf, DEFINITION, DEFINITIONS } from './apps.ts';
import { type Access, headOf, open, Requester, Unchunked } from './connection.ts';
import { changeOf, faultOf, LISTED, listedOf, pathOf, type Settled, WATCHED } from './objects.ts';

export type Order =
  | ({ readonly do: 'connect' } & Access)
  | { readonly do: 'fill'; readonly namespace: string; readonly from: number; readonly count: number; readonly bytes: number }
  | { readonly do: 'join'; readonly watchers: number }
  | {
      readonly do: 'burst';
      readonly namespace: string;
      readonly from: number;
      readonly bursts: number;
      readonly burst: number;
      readonly bytes: number;
    }
  | { readonly do: 'list' }
  | { readonly do: 'define' }
  | { readonly do: 'write'; readonly how: Writing; readonly from: number; readonly count: number };

/** Creations of other objects each time, and changes of one object for each writer. */
export type Writing = 'POST' | 'PUT' | 'apply';

const NEWLINE = 0x0a;

export interface Reply {
  readonly error?: string;
  readonly firstByteMs?: number;
  readonly objects?: number;
}

/** One watch. Of the first one every event is examined, of the others every event is counted. */
class Watcher {
  events: number = 0;
  private readonly kept: Buffer[] | undefined;
  private readonly body: Unchunked = new Unchunked((bytes) => this.read(bytes));

  constructor(examined: boolean) {
    this.kept = examined ? [] : undefined;
  }

  static async open(access: Access, path: string, examined: boolean): Promise<Watcher> {
    const watcher = new Watcher(examined);
    const socket = await open(access);
    socket.write(headOf('GET', path, access));
    await new Promise<void>((resolve, reject) => {
      let head = '';
      const onHead = (chunk: Buffer): void => {
        head += chunk.toString('latin1');
        if (!head.includes('\r\n\r\n')) return;
        socket.off('data', onHead);
        if (!head.startsWith('HTTP/1.1 200 ') || !head.endsWith('\r\n\r\n')) reject(new Error(head.slice(0, 500)));
        socket.on('data', (bytes: Buffer) => watcher.body.read(bytes));
        resolve();
      };
      socket.on('data', onHead).on('close', () => reject(new Error('a watch was closed')));
    });
    return watcher;
  }

  /** The events that were read. */
  take(): readonly unknown[] {
    const lines = Buffer.concat(this.kept ?? [])
      .toString()
      .split('\n')
      .slice(0, -1);
    if (this.kept) this.kept.length = 0;
    this.events = 0;
    return lines.map((line) => JSON.parse(line));
  }

  private read(bytes: Buffer): void {
    this.kept?.push(bytes);
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) this.events++;
  }
}

const WRITERS = 16;

class Load {
  readonly #access: Access;
  readonly #writers: readonly Requester[];
  readonly #watchers: Watcher[] = [];
  #listed: Buffer | undefined;
  #objects: number = 0;
  /** Of what was replaced. */
  readonly #versions: Map<string, string> = new Map();

  private constructor(access: Access, writers: readonly Requester[]) {
    this.#access = access;
    this.#writers = writers;
  }

  static async open(access: Access): Promise<Load> {
    return new Load(access, await Promise.all(Array.from({ length: WRITERS }, () => Requester.open(access))));
  }

  async fill({
    namespace,
    from,
    count,
    bytes,
  }: {
    namespace: string;
    from: number;
    count: number;
    bytes: number;
  }): Promise<void> {
    const at = { next: from };
    await Promise.all(
      this.#writers.map(async (writer) => {
        while (at.next < from + count) {
          const number = at.next++;
          const object = namespace === LISTED ? listedOf(number) : changeOf(number, bytes);
          const { code, body } = await writer.ask('POST', pathOf(namespace), object);
          if (code !== 201) throw new Error(`a creation was answered with ${code} ${body.toString().slice(0, 300)}`);
        }
      }),
    );
    if (namespace === LISTED) this.#objects = from + count;
  }

  async join(count: number): Promise<void> {
    const { body } = await (this.#writers[0] as Requester).ask('GET', `${pathOf(WATCHED)}?limit=1`);
    const version = /"resourceVersion":"([0-9]+)"/.exec(body.toString('latin1'))?.[1];
    const path = `${pathOf(WATCHED)}?watch=true&timeoutSeconds=3600&resourceVersion=${version}`;
    for (let at = 0; at < count; at += 50) {
      const some = Array.from({ length: Math.min(50, count - at) }, (_, i) => Watcher.open(this.#access, path, at + i === 0));
      this.#watchers.push(...(await Promise.all(some)));
    }
  }

  /** Writes bursts. The next one comes when all watchers have been told of the one before. */
  async burst(order: { namespace: string; from: number; bursts: number; burst: number; bytes: number }): Promise<void> {
    const { namespace, from, bursts, burst, bytes } = order;
    const isWatched = namespace === WATCHED;
    for (let at = 0; at < bursts; at++) {
      await Promise.all(Array.from({ length: burst }, (_, i) => this.#put(namespace, changeOf(from + at * burst + i, bytes), i)));
      if (isWatched) await this.#told((at + 1) * burst);
    }
    if (!isWatched) return;
    const events = (this.#watchers[0] as Watcher).take();
    for (const watcher of this.#watchers) watcher.events = 0;
    // Writes of one burst reach the storage in any order.
    const turn = (event: unknown): number => Number((event as { readonly object: Settled }).object.data.turn);
    const sorted = [...events].sort((a, b) => turn(a) - turn(b));
    if (sorted.length !== bursts * burst) throw new Error(`${sorted.length} events instead of ${bursts * burst}`);
    for (const [at, event] of sorted.entries()) {
      const fault = faultOf(event, from + at, bytes);
      if (fault !== undefined) throw new Error(fault);
    }
  }

  async #put(namespace: string, object: Settled, writer: number): Promise<void> {
    const path = `${pathOf(namespace)}/${object.metadata.name}`;
    const { code, body } = await (this.#writers[writer % WRITERS] as Requester).ask('PUT', path, object);
    if (code !== 200) throw new Error(`a write was answered with ${code} ${body.toString().slice(0, 300)}`);
  }

  async #told(events: number): Promise<void> {
    const limit = performance.now() + 60_000;
    while (!this.#watchers.every((watcher) => watcher.events >= events)) {
      if (performance.now() > limit) {
        const told = this.#watchers.map((watcher) => watcher.events).slice(0, 20);
        throw new Error(`after a minute, watchers have been told ${told} of ${events} changes`);
      }
      await setImmediate();
    }
    if (!this.#watchers.every((watcher) => watcher.events === events)) throw new Error('a watcher was told more than there is');
  }

  /** Tells the server of a kind. It is served when an object of it can be created. */
  async define(): Promise<void> {
    const [writer] = this.#writers as [Requester];
    const { code, body } = await writer.ask('POST', DEFINITIONS, DEFINITION);
    if (code !== 201) throw new Error(`the definition was answered with ${code} ${body.toString().slice(0, 500)}`);
    const limit = performance.now() + 30_000;
    while ((await writer.ask('GET', APPS)).code !== 200) {
      if (performance.now() > limit) throw new Error('the kind is not served');
      await setImmediate();
    }
  }

  async write({ how, from, count }: { how: Writing; from: number; count: number }): Promise<void> {
    let next = from;
    await Promise.all(
      this.#writers.map(async (writer, at) => {
        while (next < from + count) {
          const name = `${how.toLowerCase()}-${how === 'POST' ? next : at}`;
          const app = appOf(name, next++);
          // A replacement says what it replaces; the first one is a creation.
          const version = how === 'PUT' ? this.#versions.get(name) : undefined;
          if (version !== undefined) app.metadata.resourceVersion = version;
          this.#versions.set(name, await written(writer, how === 'PUT' && version === undefined ? 'POST' : how, app));
        }
      }),
    );
  }

  async list(): Promise<Reply> {
    const { code, body, firstByteMs } = await (this.#writers[0] as Requester).ask('GET', pathOf(LISTED));
    if (code !== 200) throw new Error(`a list was answered with ${code}`);
    if (this.#listed === undefined) this.#examine(body);
    else if (this.#listed.length !== body.length)
      throw new Error(`a list has ${body.length} bytes, and had ${this.#listed.length}`);
    this.#listed = body;
    return { firstByteMs, objects: this.#objects };
  }

  #examine(body: Buffer): void {
    const found = new Set(textOf(body).match(/"name":"listed-[0-9]{5}"/g));
    if (found.size !== this.#objects) throw new Error(`the list has ${found.size} of ${this.#objects} objects`);
  }
}

/** The text of a body. An answer that has a length has no chunks. */
function textOf(body: Buffer): string {
  const parts: Buffer[] = [];
  if (body[0] !== 0x7b) new Unchunked((bytes) => parts.push(bytes)).read(body);
  return (parts.length === 0 ? body : Buffer.concat(parts)).toString('latin1');
}

/** Writes an object, and returns its version. */
async function written(writer: Requester, how: Writing, app: App): Promise<string> {
  const path = `${APPS}/${app.metadata.name}`;
  const request = { POST: ['POST', APPS], PUT: ['PUT', path], apply: ['PATCH', `${path}?fieldManager=bench`] } as const;
  const [method, target] = request[how];
  const { code, body } = await writer.ask(method, target, app);
  const { metadata, spec } = JSON.parse(textOf(body)) as Partial<App>;
  const managers = JSON.stringify(metadata?.managedFields ?? []);
  const isManaged = managers.includes('"manager":"bench","operation":"Apply"');
  if (code < 300 && metadata?.name === app.metadata.name && spec?.turn === app.spec.turn && isManaged === (how === 'apply'))
    return metadata?.resourceVersion ?? '';
  throw new Error(`${how} was answered with ${code} ${body.toString().slice(0, 500)}`);
}

let load: Load;

async function obey(order: Order): Promise<Reply> {
  if (order.do === 'connect') load = await Load.open(order);
  else if (order.do === 'fill') await load.fill(order);
  else if (order.do === 'join') await load.join(order.watchers);
  else if (order.do === 'burst') await load.burst(order);
  else if (order.do === 'define') await load.define();
  else if (order.do === 'write') await load.write(order);
  else return load.list();
  return {};
}

process.on('disconnect', () => process.exit());
process.on('message', (order: Order) => {
  obey(order)
    .catch((error): Reply => ({ error: String(error?.stack ?? error) }))
    .then((reply) => process.send?.(reply));
});
