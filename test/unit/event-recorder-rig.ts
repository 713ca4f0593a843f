// A recorder on a server in process, between which the network fails as a test says.
import { ApiServer, type CoreEvent, EVENTS, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import type { ResourceClient } from '../../src/cache/resource-client.ts';
import { type EventFailure, EventRecorder, type EventRecorderOptions } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { toStatus } from '../../src/watch/event.ts';
import { nextTurn } from '../../src/watch/turn.ts';

/** What becomes of a request: it is carried out; it is, but the answer is lost; it is not; it is refused with a code. */
export type Fate = 'ok' | 'lost' | 'cut' | number;

export interface SentRequest {
  readonly verb: 'create' | 'patch' | 'get';
  readonly name: string;
  readonly namespace: string;
  readonly body: object;
}

export interface EventRig {
  readonly clock: FakeClock;
  readonly server: ApiServer;
  readonly recorder: EventRecorder;
  readonly sent: SentRequest[];
  readonly told: { readonly message: string; readonly failure: EventFailure }[];
  /** Decides about each request. */
  fate: (request: SentRequest) => Fate | Promise<Fate>;
  /** The events on the server, oldest first. */
  events(): Promise<readonly CoreEvent[]>;
}

export const website = (name: string = 'web', namespace: string = 'default'): KubernetesObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Website',
  metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: '7' },
});

export const turn = (): Promise<void> => new Promise(nextTurn);

export function eventRig(options: Partial<EventRecorderOptions> = {}): EventRig {
  const clock = new FakeClock();
  const now = (): number => Date.UTC(2026, 0, 2, 3, 4, 5) + clock.now();
  const server = new ApiServer({
    ...{ storage: new MemoryStorage(), resources: [...EVENTS, NAMESPACES] as readonly ResourceDefinition[] },
    ...{ clock: new FakeClock(), now, eventTtlMs: 0 }, // so that all timers of the clock are the recorder's
  });
  const through =
    (namespace: string, verb: 'create' | 'patch' | 'get', run: (...args: [never, never, never]) => Promise<object>) =>
    async (...args: [never, never, never]): Promise<object> => {
      const [name, body] = verb !== 'create' ? args : [(args[0] as KubernetesObject).metadata?.name, args[0]];
      const request = { verb, name: name as string, namespace, body };
      rig.sent.push(request);
      const fate = await rig.fate(request);
      if (fate === 'cut') throw new Error('cut off');
      if (typeof fate === 'number') throw refusal(fate);
      const answer = await run(...args);
      if (fate === 'lost') throw new Error('the answer was lost');
      return answer;
    };
  const faulty = (client: ResourceClient, own: string = ''): ResourceClient =>
    ({
      in: (namespace: string) => faulty(client.in(namespace), namespace),
      create: through(own, 'create', client.create.bind(client) as never),
      patch: through(own, 'patch', client.patch.bind(client) as never),
      get: through(own, 'get', client.get.bind(client) as never),
    }) as unknown as ResourceClient;
  const told: EventRig['told'] = [];
  const recorder = new EventRecorder({
    cluster: { resource: ((name: string) => faulty(server.resource(name))) as never },
    ...{ name: 'example.com/websites', instance: 'one', clock, now, random: () => 0.5 },
    onError: (error, failure) => void told.push({ message: (error as Error).message, failure }),
    ...options,
  });
  const events = async (): Promise<readonly CoreEvent[]> => (await server.resource<CoreEvent>('events/v1').list()).items;
  const rig: EventRig = { clock, server, recorder, sent: [], told, fate: () => 'ok', events };
  return rig;
}

export function refusal(code: number): WatchError {
  return new WatchError('REFUSED', `refused with ${code}`, {
    status: toStatus({ code, reason: '', message: `refused with ${code}` }),
  });
}

/** How often an event says that it happened. */
export const countOf = ({ series, count }: CoreEvent): number => series?.count ?? (count || 1);
