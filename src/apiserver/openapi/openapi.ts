/** Everything under `/openapi`, made at the first request: most clients never ask. */
import type { Document } from '../discovery/discovery.ts';
import { openApiV2, PROTOBUF_TYPE, takesProtobuf } from './openapi-v2.ts';
import { openApiV3 } from './openapi-v3.ts';
import type { Documented } from './schemas.ts';

/** A document whose body may be bytes. */
interface OpenApiDocument extends Omit<Document, 'body'> {
  readonly body: string | Uint8Array;
}

/** The OpenAPI documents of a server. */
export class OpenApi {
  readonly #definitions: readonly Documented[];
  readonly #version: string;
  #v3: Map<string, OpenApiDocument> | undefined;
  #v2: { readonly json: OpenApiDocument; readonly protobuf: OpenApiDocument } | undefined;

  constructor(definitions: readonly Documented[], version: string = 'unversioned') {
    this.#definitions = definitions;
    this.#version = version;
  }

  /** The document at a path; undefined if there is none. */
  document(path: string, accept?: string): OpenApiDocument | undefined {
    if (path !== '/openapi/v2') {
      this.#v3 ??= openApiV3(this.#definitions, this.#version);
      return this.#v3.get(path);
    }
    this.#v2 ??= this.#makeV2();
    return takesProtobuf(accept) ? this.#v2.protobuf : this.#v2.json;
  }

  #makeV2(): { readonly json: OpenApiDocument; readonly protobuf: OpenApiDocument } {
    const { json, protobuf, etag } = openApiV2(this.#definitions, this.#version);
    return {
      json: { contentType: 'application/json', body: json, etag },
      protobuf: { contentType: PROTOBUF_TYPE, body: protobuf, etag: etag.replace(/"$/, '-pb"') },
    };
  }
}
