import type { HubOptions } from '../../src/bridge/hub/hub.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { Snapshot } from '../../src/bridge/hub/hub-options.ts';

// Hubs with a snapshot, and a source for it.

export const hubOf = (snapshot: Snapshot, more: HubOptions = {}): Hub => new Hub({ epoch: 'e', snapshot, ...more });

/** A source that yields objects when the test says so. */
export function handFed(): { snapshot: Snapshot; give: (object: unknown) => void; finish: () => void; closed: () => boolean } {
  const queue: unknown[] = [];
  let wake: () => void = () => {};
  let over = false;
  let closed = false;
  async function* objects(): AsyncGenerator<unknown> {
    try {
      while (!over || queue.length > 0) {
        if (queue.length > 0) yield queue.shift();
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      closed = true;
    }
  }
  return {
    snapshot: objects,
    give: (object) => {
      queue.push(object);
      wake();
    },
    finish: () => {
      over = true;
      wake();
    },
    closed: () => closed,
  };
}
