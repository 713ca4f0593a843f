// kubectl against our API server over memory: Debian's 1.20, and a current one. Every command with its exit code and what it prints.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiServer, CONFIG_MAPS, NAMESPACES, type ResourceDefinition } from 'watchmux/apiserver';
import { MemoryStorage } from 'watchmux/storage';
import { component, isMissing } from '../components.ts';
import { killAll, until } from '../e2e/cli.ts';
import { type Listening, listening } from '../listening.ts';

interface Order {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly count?: number; readonly color?: string };
  readonly status?: { readonly phase?: string };
}

const ORDERS: ResourceDefinition<Order> = {
  ...{
    group: 'example.com',
    version: 'v1',
    plural: 'orders',
    kind: 'Order',
    shortNames: ['ord'],
    categories: ['all'],
    status: true,
    scale: { specReplicasPath: '.spec.count', statusReplicasPath: '.status.count', labelSelectorPath: '.status.selector' },
  },
  schema: {
    description: 'An order of something.',
    type: 'object',
    required: ['spec'],
    properties: {
      spec: {
        description: 'What is ordered.',
        type: 'object',
        properties: {
          count: { description: 'How many.', type: 'integer', minimum: 1 },
          color: { type: 'string', enum: ['red', 'blue'] },
        },
      },
      status: { type: 'object', properties: { phase: { type: 'string' } } },
    },
  },
  columns: [
    { name: 'Count', type: 'integer', value: ({ spec }) => spec?.count },
    { name: 'Color', type: 'string', value: ({ spec }) => spec?.color, priority: 1 },
  ],
  fields: { 'spec.color': ({ spec }) => spec?.color },
};
const ZONES: ResourceDefinition = { group: 'example.com', version: 'v1', plural: 'zones', kind: 'Zone', namespaced: false };

const folder = mkdtempSync(join(tmpdir(), 'watchmux-kubectl-'));
const START_MS = 60_000;

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** A running kubectl. */
interface Running {
  readonly out: () => string;
  readonly ended: Promise<Ended>;
  readonly kill: () => void;
}

afterAll(() => {
  killAll();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(['kubectl', 'kubectl of Debian'] as const)('%s', (name) => {
  const peer = component(name);
  const old = name !== 'kubectl';
  let at: Listening | undefined;

  beforeAll(async () => {
    if (isMissing(peer)) return;
    const resources = [CONFIG_MAPS, NAMESPACES, ORDERS, ZONES] as ResourceDefinition[];
    const api = new ApiServer({ storage: new MemoryStorage(), resources });
    await api.ready;
    at = await listening(api);
  }, START_MS);

  afterAll(() => at?.close());

  function start(args: readonly string[], stdin: string = ''): Running {
    // A cache of discovery that an earlier test left behind would hide what this server says; and nobody's kubeconfig is read.
    const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'none') };
    const all = ['--server', at?.url ?? '', '--cache-dir', join(folder, name, 'cache'), ...args];
    const child = spawn(peer.path, all, { env });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (err += text));
    child.stdin.on('error', () => {});
    child.stdin.end(stdin);
    const ended = new Promise<Ended>((resolve, reject) => {
      child.on('error', reject).on('close', (code) => resolve({ code, out, err: err.replace(/^W.*Config not found.*\n/gm, '') }));
    });
    return { out: () => out, ended, kill: () => void child.kill('SIGINT') };
  }

  /** What a command prints, which must end well and say nothing beside. */
  async function kubectl(line: string, stdin: string = ''): Promise<string> {
    const { code, out, err } = await start(words(line), stdin).ended;
    expect([line, code, err]).toEqual([line, 0, '']);
    return out;
  }

  /** What a command complains about. */
  async function failed(line: string, stdin: string = ''): Promise<string> {
    const { code, err } = await start(words(line), stdin).ended;
    expect([line, code]).toEqual([line, 1]);
    return err;
  }

  const test = it.skipIf(isMissing(peer));
  const manifest = (count: number, value: string): string =>
    [
      ...['apiVersion: v1', 'kind: ConfigMap', 'metadata: {name: applied, labels: {app: web}}', `data: {k: ${value}}`, '---'],
      ...['apiVersion: example.com/v1', 'kind: Order', 'metadata: {name: applied}', `spec: {count: ${count}}`, '---'],
      ...['apiVersion: example.com/v1', 'kind: Zone', 'metadata: {name: north}', 'anything: [goes, {here: true}]', ''],
    ].join('\n');

  test('api-resources, api-versions, version', async () => {
    const table = (await kubectl('api-resources')).split('\n').map((line) => line.split(/ {2,}/).join(' '));
    expect(table).toEqual([
      'NAME SHORTNAMES APIVERSION NAMESPACED KIND',
      'configmaps cm v1 true ConfigMap',
      'namespaces ns v1 false Namespace',
      'orders ord example.com/v1 true Order',
      'zones example.com/v1 false Zone',
      '',
    ]);
    expect(await kubectl('api-versions')).toBe('example.com/v1\nv1\n');
    expect(await kubectl('version -o json')).toContain('"gitVersion": "v1.37.2+watchmux"');
  });

  test('create: a ConfigMap, a namespace, from a file; twice; without a namespace; what is invalid', async () => {
    expect(await kubectl('create configmap made --from-literal=a=1 --from-literal=b=2')).toBe('configmap/made created\n');
    expect(await failed('create configmap made')).toContain('configmaps "made" already exists');
    expect(await kubectl('create namespace other')).toBe('namespace/other created\n');
    expect(await kubectl('create -f - -n other', manifest(1, 'v'))).toMatch(
      /configmap\/applied created\norder.*created\nzone.*created\n/,
    );
    const [configMap = '', order = ''] = manifest(1, 'v').split('---\n');
    expect(await kubectl('delete -f - -n other', `${configMap}---\n${order}`)).toMatch(/"applied" deleted/);
    expect(await kubectl('delete zone north')).toMatch(/"north" deleted/);
    expect(await failed('create configmap lost -n nowhere')).toContain('namespaces "nowhere" not found');
    expect(await failed('create configmap BAD')).toContain('BAD');
    const bad = '{"apiVersion":"example.com/v1","kind":"Order","metadata":{"name":"bad"},"spec":{"count":0}}';
    expect(await failed('create -f -', bad)).toContain('The Order "bad" is invalid: spec.count: Invalid value: 0');
  });

  test('apply: created, unchanged, changed; a member that is taken away', async () => {
    const outcomes = async (text: string): Promise<string[]> =>
      (await kubectl('apply -f -', text)).split('\n').map((line) => line.split(' ')[1] ?? '');
    expect(await outcomes(manifest(1, 'one'))).toEqual(['created', 'created', 'created', '']);
    expect(await outcomes(manifest(1, 'one'))).toEqual(['unchanged', 'unchanged', 'unchanged', '']);
    expect(await outcomes(manifest(2, 'two'))).toEqual(['configured', 'configured', 'unchanged', '']);
    expect(await kubectl('get cm applied -o jsonpath={.data}')).toMatch(/"?k"?:"?two"?/);
    const gone = manifest(2, 'two').replace('labels: {app: web}', 'annotations: {p: q}');
    expect(await outcomes(gone)).toEqual(['configured', 'unchanged', 'unchanged', '']);
    expect(await kubectl('get cm applied -o jsonpath={.metadata.labels}')).toBe('');
    expect(await kubectl('diff -f -', gone)).toBe('');
    expect(await kubectl('apply --dry-run=server -f -', manifest(9, 'nine'))).toContain('configured (server dry run)');
    expect(await kubectl('diff -f -', gone)).toBe('');
  });

  it.skipIf(isMissing(peer) || old)('apply --server-side: of its own, after a client-side one, and in conflict', async () => {
    const map = (value: string): string => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ssa}\ndata: {k: ${value}}\n`;
    expect(await kubectl('apply -f -', map('one'))).toBe('configmap/ssa created\n');
    expect(await kubectl('apply view-last-applied cm ssa -o json')).toContain('"k": "one"');
    expect(await kubectl('apply --server-side -f -', map('two'))).toBe('configmap/ssa serverside-applied\n');
    expect(await kubectl('apply view-last-applied cm ssa -o json')).toContain('"k": "two"');
    const managers = 'get cm ssa --show-managed-fields -o jsonpath={.metadata.managedFields[*].manager}';
    // The second keeps the annotation of the client-side apply.
    expect((await kubectl(managers)).split(' ').sort()).toEqual(['kubectl', 'kubectl-last-applied']);
    expect(await kubectl('get cm ssa -o yaml')).not.toContain('managedFields');
    expect(await kubectl('diff --server-side -f -', map('two'))).toBe('');
    const changed = await start(words('diff --server-side -f -'), map('three')).ended;
    expect([changed.code, /\n\+ +k: three\n/.test(changed.out)]).toEqual([1, true]);
    expect(await kubectl('apply --server-side --dry-run=server -f -', map('three'))).toContain(
      'serverside-applied (server dry run)',
    );
    expect(await kubectl('patch cm ssa --type merge --field-manager other -p {"data":{"k":"x"}}')).toBe(
      'configmap/ssa patched\n',
    );
    const conflict = await failed('apply --server-side -f -', map('three'));
    expect(conflict).toContain('error: Apply failed with 1 conflict: conflict with "other" using v1: .data.k\n');
    expect(conflict).toContain('Please review the fields above--they currently have other managers.');
    expect(await kubectl('apply --server-side --force-conflicts -f -', map('three'))).toBe('configmap/ssa serverside-applied\n');
    const order = 'apiVersion: example.com/v1\nkind: Order\nmetadata: {name: ssa}\nspec: {count: 1}\n';
    expect(await kubectl('apply --server-side --field-manager mine -f -', order)).toBe(
      'order.example.com/ssa serverside-applied\n',
    );
    expect(await kubectl('scale order ssa --replicas 2')).toBe('order.example.com/ssa scaled\n');
    expect(await failed('apply --server-side --field-manager mine -f -', order)).toMatch(
      /conflict with "kubectl[^"]*" with subresource "scale" using example.com\/v1: \.spec\.count/,
    );
    expect(await kubectl('delete order,cm ssa')).toContain('deleted');
  });

  test('apply --prune of the kinds that are named; describe; a number with too many digits', async () => {
    const pruned = (name: string): string => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, labels: {p: q}}\n`;
    await kubectl('apply -f -', `${pruned('kept')}---\n${pruned('left')}`);
    const allow = old ? '--prune-whitelist' : '--prune-allowlist';
    const said = await start(words(`apply -f - --prune -l p=q ${allow}=core/v1/ConfigMap`), pruned('kept')).ended;
    expect(said).toMatchObject({ code: 0, out: 'configmap/kept unchanged\nconfigmap/left pruned\n' });
    expect(await failed('describe cm kept')).toContain('(NotFound)');
    expect(await kubectl('delete cm kept')).toContain('"kept" deleted');
    expect(await kubectl('describe order applied')).toMatch(/Count: +2/);
    const large = '{"apiVersion":"example.com/v1","kind":"Zone","metadata":{"name":"large"},"nanos":1732406400000000001}';
    expect(await failed('create -f -', large)).toContain('the number 1732406400000000001 cannot be kept as it is');
  });

  test('get: as a table, wide, JSON, YAML, names, jsonpath; by labels and fields; what there is not', async () => {
    expect(await kubectl('get cm applied')).toMatch(/^NAME +DATA +AGE\napplied +1 +\d+s\n$/);
    expect(await kubectl('get ord')).toMatch(/^NAME +COUNT\napplied +2\n$/);
    expect(await kubectl('get orders.example.com -o wide')).toMatch(/^NAME +COUNT +COLOR\napplied +2 +\n$/);
    expect(await kubectl('get orders -A')).toMatch(/^NAMESPACE +NAME +COUNT\ndefault +applied +2\n$/);
    expect(await kubectl('get zones --no-headers')).toMatch(/^north +\d+s\n$/);
    expect(await kubectl('get ns')).toMatch(/^NAME +STATUS +AGE\ndefault +Active +\d+s\nother +Active +\d+s\n$/);
    expect(JSON.parse(await kubectl('get cm applied -o json'))).toMatchObject({ kind: 'ConfigMap', data: { k: 'two' } });
    const list = JSON.parse(await kubectl('get cm,zones -o json'));
    expect(list.items.map(({ metadata }: Order) => metadata?.name)).toEqual(['applied', 'made', 'north']);
    expect(await kubectl('get order applied -o yaml')).toMatch(/^apiVersion: example.com\/v1\nkind: Order\n/);
    expect(await kubectl('get cm -o name')).toBe('configmap/applied\nconfigmap/made\n');
    expect(await kubectl('get cm -o jsonpath={.items[*].metadata.name}')).toBe('applied made');
    expect(await kubectl('get cm -o custom-columns=N:.metadata.name --sort-by=.metadata.name')).toBe('N\napplied\nmade\n');
    expect(await kubectl('get all -o name')).toBe('order.example.com/applied\n');
    expect(await kubectl('get cm --field-selector metadata.name=made -o name')).toBe('configmap/made\n');
    expect(await kubectl('get cm --chunk-size=1 -o name')).toBe('configmap/applied\nconfigmap/made\n');
    expect(await kubectl('get --raw /readyz')).toBe('ok');
    expect(await failed('get cm missing')).toBe('Error from server (NotFound): configmaps "missing" not found\n');
    expect(await failed('get cm --field-selector nothing=1')).toContain('nothing');
    expect(await failed('get pods')).toContain(`the server doesn't have a resource type "pods"`);
  });

  test('label, annotate, -l', async () => {
    expect(await kubectl('label cm made app=web tier=db')).toMatch(/^configmap\/made labeled\n/);
    expect(await kubectl('label cm made tier-')).toMatch(/^configmap\/made (un)?labeled\n/);
    expect(await failed('label cm made app=other')).toContain('--overwrite is false');
    expect(await kubectl('annotate cm made note=x')).toMatch(/^configmap\/made annotated\n/);
    expect(await kubectl('get cm -l app=web -o name')).toBe('configmap/made\n');
    expect(await kubectl('get cm -l app!=web -o name')).toBe('configmap/applied\n');
    expect(await kubectl('get cm -l app=web -L app')).toMatch(/^NAME +DATA +AGE +APP\nmade +2 +\d+s +web\n$/);
    expect(await failed('label cm made app=bad/value --overwrite')).toMatch(/invalid label value|Invalid value/);
  });

  test('patch: strategic, merge, JSON; replace; edit of a version that is old', async () => {
    expect(await kubectl('patch cm made -p {"data":{"c":"3"}}')).toMatch(/^configmap\/made patched\n/);
    expect(await kubectl('patch cm made --type merge -p {"data":{"b":null}}')).toMatch(/patched/);
    expect(
      await kubectl(
        'patch cm made --type json -p [{"op":"test","path":"/data/c","value":"3"},{"op":"add","path":"/data/d","value":"4"}]',
      ),
    ).toMatch(/patched/);
    await kubectl('patch cm made --type json -p [{"op":"replace","path":"/data/f","value":"6"}]');
    expect(JSON.parse(await kubectl('get cm made -o jsonpath={.data}'))).toEqual({ a: '1', c: '3', d: '4', f: '6' });
    expect(await failed('patch cm made --type json -p [{"op":"test","path":"/data/c","value":"x"}]')).toMatch(
      /rejected our request|The request is invalid/,
    );
    expect(await failed('patch order applied -p {"spec":{"count":3}}')).toMatch(
      /strategic-merge-patch\+json is not supported|unknown format/,
    );
    expect(await kubectl('patch order applied --type merge -p {"spec":{"count":3,"color":"red"}}')).toMatch(/patched/);
    expect(await failed('patch order applied --type merge -p {"spec":{"color":"green"}}')).toContain('Unsupported value');
    expect(await kubectl('get orders --field-selector spec.color=red -o name')).toBe('order.example.com/applied\n');
    const object = await kubectl('get cm made -o json');
    expect(await kubectl('replace -f -', object)).toBe('configmap/made replaced\n');
    await kubectl('patch cm made -p {"data":{"e":"5"}}');
    expect(await failed('replace -f -', object)).toContain('the object has been modified');
  });

  test('explain: a kind with a schema, and one without', async () => {
    const shown = await kubectl('explain orders');
    expect(shown).toMatch(/KIND: +Order/);
    expect(shown).toContain('An order of something.');
    expect(shown).toMatch(/spec\t<Object> -required-/);
    expect(await kubectl('explain order.spec.count')).toMatch(/How many\./);
    expect(await kubectl('explain cm.metadata.finalizers')).toContain('Must be empty before');
    expect(await kubectl('explain cm.metadata.managedFields.manager')).toMatch(/manager +<string>/);
    expect(await kubectl('explain cm.data')).toMatch(/data\s+<map\[string\]string>/);
    expect(await kubectl('explain zones')).toMatch(/KIND: +Zone/);
    expect(await failed('explain orders.nothing')).toMatch(/field "nothing" does not exist/);
  });

  test('a misspelt field: refused in the words of a cluster, or warned of, or not looked for', async () => {
    const order = (name: string, spec: object): string =>
      JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name }, spec });
    const misspelt = order('misspelt', { colour: 'red', lines: [{}] });
    const [warned, dry] = ['Warning: unknown field "spec.colour"\nWarning: unknown field "spec.lines"\n', '--dry-run=server'];
    const refused = [await failed('apply -f -', misspelt), await failed('create -f -', misspelt)];
    // Without a parameter for it, as from kubectl 1.20, it is warned of.
    const unchecked = await start(words(`create -f - ${dry} --validate=false`), misspelt).ended;
    expect(unchecked).toMatchObject({ code: 0, err: old ? warned : '' });
    if (old) {
      // It looks by itself, and tells the first.
      for (const said of refused) expect(said).toMatch(/ValidationError\(Order\.spec\): unknown field "(colour|lines)"/);
      return;
    }
    const why = 'strict decoding error: unknown field "spec.colour", unknown field "spec.lines"';
    const said = `Order in version "v1" cannot be handled as a Order: ${why}\n`;
    const expected = `Error from server (BadRequest): error when creating "STDIN": ${said}`;
    expect(refused).toEqual([expected, expected]);
    const told = await start(words(`create -f - ${dry} --validate=warn`), misspelt).ended;
    expect(told).toMatchObject({ code: 0, err: warned });
    const change = order('applied', { count: 3, colour: 'red' });
    expect(await failed('apply -f -', change)).toMatch(
      /^The request is invalid: patch: Invalid value: ".*: strict decoding error: unknown field "spec\.colour"\n$/,
    );
    expect(await failed('replace -f -', change)).toContain('strict decoding error: unknown field "spec.colour"');
  });

  test('scale: with the number that there is, with another one, with a version; what the schema refuses', async () => {
    const order = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'scaled' }, spec: { count: 2 } };
    await kubectl('create -f -', JSON.stringify(order));
    const count = (): Promise<string> => kubectl('get order scaled -o jsonpath={.spec.count}');
    expect(await kubectl('scale order scaled --replicas=3')).toBe('order.example.com/scaled scaled\n');
    expect(await count()).toBe('3');
    expect(await kubectl('scale orders/scaled --replicas=4 --current-replicas=3')).toBe('order.example.com/scaled scaled\n');
    expect(await count()).toBe('4');
    expect(await failed('scale order scaled --replicas=5 --current-replicas=3')).toMatch(/xpected replicas to be 3, was 4/);
    const version = await kubectl('get order scaled -o jsonpath={.metadata.resourceVersion}');
    await kubectl(`scale order scaled --replicas=6 --resource-version=${version}`);
    expect(await failed(`scale order scaled --replicas=7 --resource-version=${version}`)).toMatch(
      /xpected resource version to be/,
    );
    await kubectl('scale order scaled --replicas=9 --dry-run=server');
    expect(await count()).toBe('6');
    expect(await failed('scale order scaled --replicas=0')).toMatch(/spec\.count/);
    expect(await failed('scale zone north --replicas=1')).toMatch(/could not find|not found|NotFound/);
    if (!old)
      expect(await kubectl('get order scaled --subresource=scale')).toMatch(/^NAME +DESIRED +AVAILABLE +AGE\nscaled +6 +0 +/);
    await kubectl('delete order scaled');
  });

  test('get -w: the state, then each change', async () => {
    const watch = start(words('get orders -w -l watched=yes --output-watch-events'));
    await kubectl('apply -f -', manifest(2, 'two'));
    await kubectl('label order applied watched=yes');
    await until(() => watch.out().includes('ADDED'));
    await kubectl('patch order applied --type merge -p {"spec":{"count":7}}');
    await until(() => watch.out().includes('MODIFIED'));
    await kubectl('label order applied watched-');
    await until(() => watch.out().includes('DELETED'));
    watch.kill();
    await watch.ended;
    const rows = watch
      .out()
      .trim()
      .split('\n')
      .map((line) => line.split(/ +/));
    expect(rows).toEqual([
      ['EVENT', 'NAME', 'COUNT'],
      ['ADDED', 'applied', '2'],
      ['MODIFIED', 'applied', '7'],
      ['DELETED', 'applied', '7'],
    ]);
  });

  test('wait: for a condition, for a value, for deletion; in vain', async () => {
    if (!old) expect(await kubectl('wait --for=jsonpath={.spec.count}=7 order/applied --timeout=10s')).toContain('condition met');
    const condition = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}';
    await kubectl(`patch zone north --type merge -p ${condition}`);
    expect(await kubectl('wait --for=condition=Ready zone/north --timeout=10s')).toContain(
      'zone.example.com/north condition met',
    );
    const waiting = start(words('wait --for=delete cm/made --timeout=20s'));
    expect(await failed('wait --for=delete cm/applied --timeout=1s')).toContain('timed out waiting for the condition');
    expect(await kubectl('delete cm made')).toMatch(/^configmap "made" deleted/);
    expect(await waiting.ended).toMatchObject({ code: 0, out: 'configmap/made condition met\n' });
  });

  test('delete: by labels, by a file, of a finalizer, of a namespace with what is in it', async () => {
    await kubectl('create configmap one -n other');
    await kubectl('label cm applied doomed=yes');
    expect(await kubectl('delete cm -l doomed=yes')).toMatch(/^configmap "applied" deleted/);
    expect(await kubectl('delete --ignore-not-found -f -', manifest(1, 'v'))).toMatch(/^order.example.com "applied" deleted/);
    await kubectl('create configmap held');
    await kubectl('patch cm held -p {"metadata":{"finalizers":["x.io/y"]}}');
    await kubectl('delete cm held --wait=false');
    expect(await kubectl('get cm held -o jsonpath={.metadata.deletionTimestamp}')).toMatch(/^20/);
    await kubectl('patch cm held -p {"metadata":{"$deleteFromPrimitiveList/finalizers":["x.io/y"]}}');
    expect(await failed('get cm held')).toContain('not found');
    expect(await kubectl('delete namespace other')).toMatch(/^namespace "other" deleted/);
    expect(await failed('get ns other')).toContain('not found');
    expect(await kubectl('get cm,orders,zones -A --ignore-not-found')).toBe('');
  });
});

/** A command line without quotes: a blank separates. */
function words(line: string): string[] {
  return line.split(' ');
}
