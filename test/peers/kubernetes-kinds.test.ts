// Kubernetes' own kinds beside the Go types that they have upstream: the table of their fields, random objects in JSON and in protobuf,
// both ways, and how quantities are written.
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { kubernetesKinds } from '../../src/apiserver/kinds/kubernetes.ts';
import { TABLE } from '../../src/apiserver/kinds/kubernetes-table.ts';
import { quantityOf } from '../../src/apiserver/kinds/quantity.ts';
import { type Shape, zeroOf } from '../../src/apiserver/kinds/shape.ts';
import { typed } from '../../src/apiserver/kinds/tables.ts';
import { envelopeOf, readProtobuf, writingMessage } from '../../src/apiserver/request/protobuf.ts';
import { apiVersionOf } from '../../src/cache/resource-client.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { component, isMissing } from '../components.ts';
import { runs } from '../runs.ts';

const clientGo = component('client-go');
const NAMES = (TABLE.split('\n\n', 1)[0] as string).split('\n').map((line) => {
  const [apiVersion = '', , plural] = line.split(' ');
  const [version, group] = apiVersion.split('/').reverse();
  return `${plural}${group ? `.${group}` : ''}/${version}`;
});

type Answer = Readonly<Partial<Record<'object' | 'zero' | 'protobuf' | 'same' | 'quantity' | 'error', unknown>>>;

let child: ChildProcessWithoutNullStreams | undefined;
const waiting: ((line: string) => void)[] = [];

function upstream(asked: object): Promise<Answer> {
  return new Promise((resolve) => {
    waiting.push((line) => resolve(JSON.parse(line)));
    child?.stdin.write(`${JSON.stringify(asked)}\n`);
  });
}

describe.skipIf(isMissing(clientGo))("Kubernetes' own kinds, beside Go", () => {
  beforeAll(() => {
    child = spawn(clientGo.path, ['kinds']);
    createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line));
  });
  afterAll(() => {
    child?.stdin.end();
  });

  it('the table is what the program makes of the Go types', () => {
    const file = fileURLToPath(new URL('../../src/apiserver/kinds/kubernetes-table.ts', import.meta.url));
    const made = execFileSync(clientGo.path, ['table'], { encoding: 'utf8' });
    expect(readFileSync(file, 'utf8') === made, `${clientGo.path} table > ${file}`).toBe(true);
  });

  it.each(NAMES)('random objects of %s are the same in JSON and protobuf', async (name) => {
    const [kind] = (await kubernetesKinds(name)) as [ResourceDefinition];
    const of = { ...kind, apiVersion: apiVersionOf(kind) };
    const [start, shape] = [{ apiVersion: of.apiVersion, kind: kind.kind }, kind.shape as Shape];
    const property = fc.asyncProperty(fc.nat(), async (seed) => {
      const { object, protobuf, zero } = await upstream({ ...start, seed });
      expect({ metadata: {}, ...zeroOf(shape) }).toEqual(zero);
      const read = atOnce(typed(of, atOnce(readProtobuf(Buffer.from(protobuf as string, 'base64'), kind)))) as object;
      expect(read).toEqual(object);
      expect(atOnce(typed(of, object))).toEqual(object);
      const bytes = atOnce(writingMessage(object as object, shape));
      const { head, tail } = envelopeOf(start, bytes.length);
      const written = Buffer.concat([head, bytes, tail]).toString('base64');
      expect(await upstream({ ...start, seed, protobuf: written })).toEqual({ object, same: true });
    });
    await fc.assert(property, { numRuns: runs(60) });
  });

  it('quantities are written as in Go', async () => {
    const digits = fc.string({ unit: fc.constantFrom('0', '0', '1', '5', '8', '9'), maxLength: 22 });
    const suffix = fc.constantFrom(
      '',
      'n',
      'u',
      'm',
      'k',
      'M',
      'G',
      'T',
      'P',
      'E',
      'Ki',
      'Mi',
      'Gi',
      'Ti',
      'Pi',
      'Ei',
      'e3',
      'E-4',
      'e20',
    );
    const number = fc.tuple(fc.constantFrom('', '', '+', '-'), digits, fc.constantFrom('', '', '.'), digits);
    const wrong = fc.constantFrom('ki', 'mm', 'e', 'i', ' ', '1 2', 'x', '1e', 'Ee1');
    const text = fc.oneof(
      { weight: 8, arbitrary: fc.tuple(number, suffix).map(([parts, end]) => `${parts.join('')}${end}`) },
      { weight: 1, arbitrary: fc.tuple(number, wrong).map(([parts, end]) => `${parts.join('')}${end}`) },
      { weight: 2, arbitrary: fc.tuple(fc.nat(5000), suffix).map((parts) => parts.join('')) },
    );
    const property = fc.asyncProperty(text, async (quantity) => {
      expect([quantity, quantityOf(quantity)]).toEqual([quantity, (await upstream({ quantity })).quantity]);
    });
    await fc.assert(property, { numRuns: runs(6_000) });
  });
});
