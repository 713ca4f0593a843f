/** The schemas of a server's resources, each compiled once. */
import { inPieces, paceOf } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { compileSchema, type SchemaCheck } from './schema.ts';

type AnyObject = Parameters<SchemaCheck>[0];
type Schema = NonNullable<ResourceInfo['schema']>;

export class Schemas {
  readonly #compiled: Map<Schema, Promise<SchemaCheck>> = new Map();

  /**
   * Compiles all of them, so that their owner learns of an invalid schema, or of the missing package, before any client does.
   * Rejects with that error.
   */
  async prepare(resources: readonly Pick<ResourceInfo, 'schema'>[]): Promise<void> {
    for (const { schema } of resources) if (schema !== undefined) await this.#compile(schema);
  }

  /** The check of a resource's objects; undefined for a resource without a schema. */
  checkOf({ schema }: Pick<ResourceInfo, 'schema'>): ((object: AnyObject) => Promise<readonly FieldCause[]>) | undefined {
    if (schema === undefined) return undefined;
    return async (object) => inPieces((await this.#checked(schema))(object), { pace: paceOf(undefined) });
  }

  /** A schema that cannot be compiled is the server's error, not that of a client that writes an object. */
  #checked(schema: Schema): Promise<SchemaCheck> {
    return this.#compile(schema).catch((cause: unknown) => {
      throw new Error((cause as Error).message, { cause });
    });
  }

  #compile(schema: Schema): Promise<SchemaCheck> {
    const compiled = this.#compiled.get(schema) ?? compileSchema(schema);
    this.#compiled.set(schema, compiled);
    return compiled;
  }
}
