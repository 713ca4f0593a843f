/** The control: ready bytes by the same transport, Node's HTTP/2 client, and nothing but a look at how each call has ended. */
import { type ClientHttp2Session, connect } from 'node:http2';
import { toFrame } from '../../src/storage/etcd/wire/call-stream.ts';

const PATH = '/etcdserverpb.KV/Txn';

export class RawCalls {
  readonly #session: ClientHttp2Session;

  constructor(url: string) {
    this.#session = connect(url);
  }

  /** Sends a message, and resolves when it was answered with OK. */
  send(message: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      const stream = this.#session.request({
        ...{ ':method': 'POST', ':path': PATH },
        ...{ 'content-type': 'application/grpc', te: 'trailers' },
      });
      let status: unknown;
      let bytes = 0;
      stream.on('trailers', (trailers) => {
        status = trailers['grpc-status'];
      });
      stream.on('data', (chunk: Uint8Array) => {
        bytes += chunk.length;
      });
      stream.on('error', reject);
      stream.on('close', () => (status === '0' && bytes > 0 ? resolve() : reject(new Error(`gRPC status ${status}`))));
      stream.end(toFrame(message));
    });
  }

  end(): void {
    this.#session.destroy();
  }
}
