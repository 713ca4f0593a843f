// Publishers of one stream, in a process of their own. Each publishes one event after the other, and each event until it is stored.
import { Hub } from '../../../src/bridge/http.ts';
import { NatsStream } from '../../../src/nats/index.ts';
import { answer } from './peer.ts';
import { now } from './tick.ts';

export interface Write {
  readonly nats: string;
  readonly stream: string;
  readonly writers: number;
  /** Of each writer. */
  readonly perSecond: number;
  readonly eventBytes: number;
}

/** What was acknowledged: how many events of each writer, and how often one had to be published again. */
export interface Written {
  readonly acknowledged: readonly number[];
  readonly failures: number;
}

let writing = true;
let failures = 0;
const acknowledged: number[] = [];
let done: Promise<unknown> = Promise.resolve();

function start({ nats, stream, writers, perSecond, eventBytes }: Write): void {
  const filler = 'x'.repeat(Math.max(0, eventBytes - 130));
  done = Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      const source = new NatsStream({ servers: nats, stream, create: {} });
      const hub = new Hub({ source, replayItems: 0 });
      acknowledged[writer] = 0;
      const began = performance.now();
      for (let n = 1; writing; n++) {
        const wait = began + (n * 1_000) / perSecond - performance.now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        const event = { type: 'MODIFIED', object: { writer, n, at: now(), filler } };
        await persist(hub, event, `${writer}-${n}`);
        acknowledged[writer] = n;
      }
      await hub.shutdown();
      await source.close();
    }),
  );
}

/** The same id, however often: it is stored once. */
async function persist(hub: Hub, event: { type: string; object: unknown }, id: string): Promise<void> {
  for (;;) {
    try {
      await hub.publish(event, { id });
      return;
    } catch {
      failures++;
    }
  }
}

async function stop(): Promise<Written> {
  writing = false;
  await done;
  return { acknowledged, failures };
}

answer({ start, stop, count: () => acknowledged.reduce((sum, n) => sum + n, 0) });
