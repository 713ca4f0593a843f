// CustomResourceDefinitions at run time: the same requests to a real kube-apiserver and to ours, answer by answer, words included.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EVENTS, NAMESPACES, ApiServer as OurServer, type ResourceDefinition } from 'watchmux/apiserver';
import { MemoryStorage } from 'watchmux/storage';
import { component, isMissing } from '../components.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { CRDS, STEPS, type Step } from './differential/definitions.ts';
import { PUBLISHED } from './differential/published.ts';
import { TWO_GROUPS, VERSIONS } from './differential/versions.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;
const PATIENCE_MS = 150_000; // a definition whose names have just changed takes its server a minute to delete
const POLL_MS = 100;
/** Its server tries that again after 5 ms, and after twice as long each time. A change of the definition makes it try at once. */
const NUDGE_MS = 10_000;
const FOR_A_SECOND = 'timeoutSeconds=1';
const LONGEST_WATCH_S = 16;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

interface Side {
  readonly url: string;
  readonly fetch: Fetch;
}

interface Answered {
  readonly status: number;
  readonly body: unknown;
  readonly warning?: string;
}

interface Both {
  readonly theirs: Answered;
  readonly ours: Answered;
}

const isDifferent = ({ theirs, ours }: Both): boolean => JSON.stringify(theirs) !== JSON.stringify(ours);

async function ask(side: Side, step: Step): Promise<Answered> {
  const until = Date.now() + PATIENCE_MS;
  const { until: wanted, path } = step;
  for (let nudge = Date.now() + NUDGE_MS; ; ) {
    const { answered, text } = await once(side, step);
    const isSo = typeof wanted === 'number' ? answered.status === wanted : wanted === undefined || text.includes(wanted);
    if (isSo || Date.now() > until) return answered;
    if (wanted === 404 && path.startsWith(`${CRDS}/`) && Date.now() > nudge) {
      nudge += NUDGE_MS;
      const body = { metadata: { annotations: { nudged: `${nudge}` } } };
      await once(side, { method: 'PATCH', path, headers: { 'content-type': 'application/merge-patch+json' }, body });
    }
    await sleep(POLL_MS);
  }
}

async function once({ url, fetch }: Side, step: Step): Promise<{ answered: Answered; text: string }> {
  const { method = 'GET', path, headers, of = (body: unknown) => body } = step;
  const body = step.body === undefined || typeof step.body === 'string' ? step.body : JSON.stringify(step.body);
  const init = {
    method,
    headers: {
      'user-agent': 'differ/1',
      ...(body !== undefined && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  };
  const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) });
  const text = await response.text();
  const parsed = /[?&]watch=/.test(path) && response.status === 200 ? text.split('\n').filter(Boolean).map(parse) : parse(text);
  const seen = normal(step.managers ? withManagers(parsed) : parsed);
  const warning = response.headers.get('warning');
  const isFailure = (parsed as { kind?: string } | null)?.kind === 'Status';
  // Every error is a Status here; upstream has a text for a path that it does not know.
  const shown = response.status === 404 && !path.includes('customresourcedefinitions') ? undefined : isFailure ? seen : of(seen);
  return { answered: { status: response.status, body: shown, ...(warning && { warning }) }, text: JSON.stringify(seen) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const BY_NATURE = ['uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp', 'lastTransitionTime'];
/** What upstream says besides, for which no client is known that goes by it. */
const LEFT_OUT = ['managedFields', 'storageVersionHash', 'remainingItemCount', 'continue'];

/** The managers under a name that is compared: in any order, as it is that of times. */
const withManagers = (parsed: unknown): unknown =>
  JSON.parse(JSON.stringify(parsed), (name, value) => {
    if (name !== 'metadata' || !Array.isArray(value?.managedFields)) return value;
    const texts = value.managedFields.map(({ time: _, ...entry }: { time?: string }) => JSON.stringify(normal(entry)));
    return { ...value, managers: texts.sort() };
  });

/** A value without what differs by nature. */
function normal(value: unknown, name: string = ''): unknown {
  // The last of all columns of time, and what `metadata.name` says of itself.
  if (name === 'columnDefinitions' && Array.isArray(value)) return value.map((each, at) => (at === 0 ? each.name : normal(each)));
  // Upstream tells resources in any order.
  if (name === 'resources' && Array.isArray(value)) return value.map((each) => normal(each)).sort(byName);
  if (Array.isArray(value)) return value.map((each) => normal(each, name));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([key]) => !LEFT_OUT.includes(key));
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, normal(each, key)]));
  }
  if (typeof value !== 'string' || value === '') return value;
  if (name === 'description' && value.startsWith('CreationTimestamp')) return 'CREATION';
  if (BY_NATURE.includes(name)) return name.toUpperCase();
  return value.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID').replace(/^\d+(s|d|h\d*m?|m)$/, 'AGE');
}

const nameOf = (each: unknown): string => {
  const { name, resource } = each as { name?: string; resource?: string };
  return String(name ?? resource);
};
const byName = (one: unknown, other: unknown): number => (nameOf(one) < nameOf(other) ? -1 : 1);

/** The places in which two answers differ, with what is there. */
function* places(theirs: unknown, ours: unknown, path: string = ''): Generator<string> {
  const [one, other] = [JSON.stringify(theirs) ?? 'nothing', JSON.stringify(ours) ?? 'nothing'];
  if (one === other) return;
  const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
  if (!isObject(theirs) || !isObject(ours)) yield `${path}: ${one.slice(0, 400)} | ${other.slice(0, 400)}`;
  else
    for (const key of new Set([...Object.keys(theirs), ...Object.keys(ours)]))
      yield* places(theirs[key], ours[key], `${path}.${key}`);
}

const WIDGETS_V2 = '/apis/versions.example.com/v2/namespaces/default/widgets';

/** What differs on purpose. */
const DIFFERENCES: readonly { readonly reason: string; readonly of: readonly string[] }[] = [
  {
    reason: 'What is wrong with the metadata is told first, and alone',
    of: [`POST ${CRDS} a group in upper case`, `POST ${CRDS} a plural`],
  },
  {
    reason: 'What cannot be read is told in other words, and no list is an empty one',
    of: [
      `POST ${CRDS} versions as a text`,
      `POST ${CRDS} served as a text`,
      `POST ${CRDS} no spec`,
      'POST /apis/run.example.com/v2beta1/namespaces/default/gadgets in another version than it says',
    ],
  },
  { reason: 'A write without a version has no condition', of: [`PUT ${CRDS}/gadgets.run.example.com without a version`] },
  {
    reason: 'Upstream writes this in lower case only for definitions',
    of: [`DELETE ${CRDS}/gadgets.run.example.com {"preconditions":{"uid":"other"}}`],
  },
  {
    reason: 'There is no warning of formats that upstream does not know',
    of: [`POST ${CRDS} {"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"tools.`],
  },
  {
    reason: 'Why a patch is refused is told',
    of: [
      `PATCH ${WIDGETS_V2}/a [{"op":"test","path":"/apiVersion","value":"versions.example.com/v1"}]`,
      `PATCH ${WIDGETS_V2}/a [{"op":"test","path":"/spec/shape","value":"round"},{"op":"add","path":"/spec/new","value":"patched"`,
    ],
  },
  {
    reason: 'A patch to another version is refused before its fields are looked at, and for a part of an object as well',
    of: [
      `PATCH ${WIDGETS_V2}/a {"apiVersion":"versions.example.com/v1","spec":{"new":"other"}}`,
      `PATCH ${WIDGETS_V2}/a [{"op":"replace","path":"/apiVersion","value":"versions.example.com/v1"}]`,
      `PATCH ${WIDGETS_V2}/a/status {"apiVersion":"versions.example.com/v1","status":{"phase":"Ready"}}`,
    ],
  },
  {
    reason: 'The members of the object that is shown are in another order',
    of: [`PATCH ${WIDGETS_V2}/a?fieldValidation=Strict {"spec":{"old":"unknown here"}}`],
  },
  {
    reason: 'A second deletion changes nothing',
    of: [
      `DELETE ${CRDS}/gadgets.run.example.com again`,
      `GET ${CRDS}/gadgets.run.example.com until "InstanceDeletionInProgress"`,
    ],
  },
];

const titleOf = ({ title, method = 'GET', path, body, until = '' }: Step): string =>
  `${method} ${path} ${title ?? (body === undefined ? until && `until ${until}` : JSON.stringify(body).slice(0, 100))}`.trim();

describe.skipIf(missing)('definitions of a kube-apiserver and ours', () => {
  let real: ApiServer;
  let our: OurServer;
  let server: Server;
  const told: (Both & { title: string })[] = [];

  beforeAll(async () => {
    real = await startApiServer();
    our = new OurServer({
      storage: new MemoryStorage(),
      resources: [NAMESPACES, ...EVENTS] as ResourceDefinition[],
      customResourceDefinitions: true,
      managedFields: 'always',
    });
    await our.ready;
    server = createServer(our.handler);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const sides: readonly [Side, Side] = [
      { url: real.url, fetch: real.fetch as unknown as Fetch },
      { url, fetch },
    ];
    const both = async (step: Step): Promise<Both> => {
      const [theirs, ours] = await Promise.all(sides.map((side) => ask(side, step)));
      return { theirs: theirs as Answered, ours: ours as Answered };
    };
    for (const step of [...STEPS, ...PUBLISHED, ...VERSIONS, ...TWO_GROUPS]) {
      let answers = await both(step);
      // A watch may be over before a busy server has told everything.
      for (
        let seconds = 2;
        step.path.includes(FOR_A_SECOND) && isDifferent(answers) && seconds <= LONGEST_WATCH_S;
        seconds *= 2
      ) {
        answers = await both({ ...step, path: step.path.replace(FOR_A_SECOND, `timeoutSeconds=${seconds}`) });
      }
      told.push({ title: titleOf(step), ...answers });
    }
  }, START_MS * 4);

  afterAll(async () => {
    await our?.shutdown();
    server?.closeAllConnections();
    server?.close();
    await real?.stop();
  }, START_MS);

  const differing = (): typeof told => told.filter(isDifferent);
  const isListed = (title: string): boolean => DIFFERENCES.some(({ of }) => of.includes(title));

  it('answer alike, but for what differs on purpose', () => {
    const wrong = differing().filter(({ title }) => !isListed(title));
    const shown = wrong.map(({ title, theirs, ours }) => [title, ...places(theirs, ours)].join('\n  '));
    expect(shown.join('\n')).toBe('');
  });

  it('every difference that is listed is there', () => {
    const met = new Set(differing().map(({ title }) => title));
    expect(DIFFERENCES.flatMap(({ of }) => of).filter((title) => !met.has(title))).toEqual([]);
  });
});

describe('kubectl and definitions', () => {
  const peer = component('kubectl');
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-definitions-'));
  const test = it.skipIf(isMissing(peer));
  let our: OurServer;
  let server: Server;

  beforeAll(async () => {
    our = new OurServer({ storage: new MemoryStorage(), resources: [], customResourceDefinitions: true });
    server = createServer(our.handler);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  });

  afterAll(async () => {
    await our.shutdown();
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function kubectl(line: string, stdin: string = ''): Promise<string> {
    const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'none') };
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const child = spawn(peer.path, ['--server', url, '--cache-dir', join(folder, 'cache'), ...line.split(' ')], { env });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (more) => (text += more));
    child.stdin.end(stdin);
    const code = await new Promise((resolve, reject) => void child.on('error', reject).on('close', resolve));
    expect([line, code, code === 0 ? '' : text]).toEqual([line, 0, '']);
    return text;
  }

  const crd = {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'tools.example.com' } },
    spec: {
      ...{ group: 'example.com', scope: 'Namespaced' },
      names: { plural: 'tools', kind: 'Tool', shortNames: ['tl'], categories: ['all'] },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
          additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: { type: 'object', properties: { size: { type: 'integer', minimum: 1, description: 'How large it is.' } } },
                status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              },
            },
          },
        },
      ],
    },
  };
  const tool = { apiVersion: 'example.com/v1', kind: 'Tool', metadata: { name: 'saw' }, spec: { size: 3 } };

  test(
    'apply, use, explain and delete one',
    async () => {
      expect(await kubectl('apply -f -', JSON.stringify(crd))).toContain('created');
      await kubectl('wait --for=condition=Established crd/tools.example.com --timeout=20s');
      expect(await kubectl('apply -f -', JSON.stringify(crd))).toContain('unchanged');
      expect(await kubectl('apply -f -', JSON.stringify(tool))).toContain('tool.example.com/saw created');
      expect(await kubectl('get tl')).toMatch(/^NAME +SIZE\nsaw +3\n$/);
      expect(await kubectl('get all')).toMatch(/^NAME +SIZE\nsaw/);
      expect(await kubectl('explain tools.spec.size')).toContain('How large it is.');
      expect(await kubectl('get crd')).toMatch(/tools\.example\.com +Namespaced +v1\(storage\)/);
      expect(await kubectl('delete crd tools.example.com')).toContain('deleted');
      expect(await kubectl('get crd')).toContain('No resources found');
      expect(await kubectl('api-resources')).not.toContain('tools');
    },
    START_MS,
  );
});
