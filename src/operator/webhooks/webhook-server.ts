import type { ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { limitConnections } from '../../bridge/transport/upgrades.ts';
import { Latch, whenAborted } from '../../watch/abort.ts';
import { type Clock, gaveUp, systemClock, upkeepClock } from '../../watch/clock.ts';
import { callable, checkOptions, checkSignal, checkText, requireMethod, WatchError, wholeNumber } from '../../watch/errors.ts';
import { reporter } from '../../watch/failures.ts';
import { EVERY_MS, type FromFiles, fromPemFiles, type Pair, type PemFile } from './from-files.ts';
import type { Webhooks } from './webhooks.ts';

/** Options of {@link WebhookServer}. */
export interface WebhookServerOptions {
  /** What is served. */
  readonly webhooks: Pick<Webhooks, 'handler'>;
  /** The certificate and its chain, in PEM; in a mounted secret, `tls.crt`. Read again when it changes. */
  readonly certFile: string;
  /** Its key in PEM; in a mounted secret, `tls.key`. Read again when it changes. */
  readonly keyFile: string;
  /** Clients must have a certificate of this CA. Read again when it changes. Default: they need none. */
  readonly clientCaFile?: string | undefined;
  /** Default 9443, as upstream; 0: any that is free. */
  readonly port?: number | undefined;
  /** The address to listen on. Default: all. */
  readonly host?: string | undefined;
  /** How long requests may take to end at shutdown, in ms; default 10,000. */
  readonly shutdownTimeoutMs?: number | undefined;
  /**
   * Called if certificates cannot be read again, and if requests were cut at shutdown. Default: `console.error`, once per kind.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
}

const NAMES = [
  ...(['webhooks', 'certFile', 'keyFile', 'clientCaFile', 'port', 'host'] as const),
  ...(['shutdownTimeoutMs', 'onError', 'clock'] as const),
] as const;

const PORT = 9_443;
const SHUTDOWN_TIMEOUT_MS = 10_000;
const SLOTS = { maxClients: 4_000, maxClientsPerAddress: 1_000 };
const PATIENCE = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  handshakeTimeout: 10_000,
  /** Longer than a kube-apiserver keeps idle connections, so that the client closes them and not the server. */
  keepAliveTimeout: 120_000,
} as const;

interface Tls extends Pair {
  readonly ca?: Buffer;
}

/**
 * Serves webhooks over HTTPS, for a kube-apiserver. New certificates are in use a few seconds after their files have changed;
 * until both match, or if they are invalid, the previous ones remain in use, and `onError` gets the reason.
 *
 *     const server = new WebhookServer({ webhooks, certFile: '/certs/tls.crt', keyFile: '/certs/tls.key' });
 *     await server.run(signal);
 */
export class WebhookServer {
  readonly #options: WebhookServerOptions;
  readonly #tls: FromFiles<Tls>;
  readonly #clock: Clock;
  readonly #shutdownTimeoutMs: number;
  readonly #onError: (error: unknown) => void;
  #server: Server;
  /** Servers with earlier certificates, until their connections have ended. */
  readonly #former: Set<Promise<void>> = new Set();
  /** All connections, and those that are past the TLS handshake. */
  readonly #sockets: Set<Socket> = new Set();
  readonly #secured: Set<Socket> = new Set();
  /** Responses that have not been sent. */
  readonly #open: Set<ServerResponse> = new Set();
  #state: 'new' | 'running' | 'leaving' = 'new';
  #cancel: () => void = () => {};
  #fail: (error: unknown) => void = () => {};
  readonly #ready: Latch<string> = new Latch();

  /**
   * @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and for files that cannot be read, or do not match.
   */
  constructor(options: WebhookServerOptions) {
    const { webhooks, certFile, keyFile, clientCaFile, port = PORT, host = '' } = checkOptions(options, NAMES);
    const { clock = systemClock, shutdownTimeoutMs = SHUTDOWN_TIMEOUT_MS, onError } = options;
    requireMethod('webhooks', webhooks, 'handler', 'Webhooks');
    wholeNumber('port', port);
    checkText('host', host);
    callable('onError', onError);
    this.#options = options;
    this.#shutdownTimeoutMs = wholeNumber('shutdownTimeoutMs', shutdownTimeoutMs);
    this.#clock = clock;
    this.#onError = reporter('webhook server', options);
    const files: PemFile[] = [
      { option: 'certFile', file: checkText('certFile', certFile), part: 'cert' },
      { option: 'keyFile', file: checkText('keyFile', keyFile), part: 'key' },
    ];
    const ca = clientCaFile !== undefined && checkText('clientCaFile', clientCaFile);
    if (ca !== false) files.push({ option: 'clientCaFile', file: ca, part: 'ca' });
    this.#tls = fromPemFiles<Tls>(files);
    this.#server = this.#create();
    this.#tls.onChange = (tls) => this.#renew(tls);
  }

  /** Resolves with its URL, such as `https://127.0.0.1:9443`, when it listens. Rejects if it cannot. */
  get ready(): Promise<string> {
    return this.#ready.promise;
  }

  /**
   * Serves until the signal aborts. Then it accepts no more connections, and resolves when all requests are answered, or cut
   * after `shutdownTimeoutMs`. A server runs once.
   *
   * @throws The host's error if it cannot listen. {WatchError} INVALID_ARGUMENT if it ran before.
   */
  async run(signal?: AbortSignal): Promise<void> {
    checkSignal(signal);
    if (this.#state !== 'new') throw new WatchError('INVALID_ARGUMENT', 'a webhook server runs once');
    this.#state = 'running';
    const end = new Latch();
    const leave = whenAborted(signal, () => end.open());
    this.#fail = (error) => {
      this.#ready.reject(error);
      end.reject(error);
    };
    try {
      if (signal?.aborted) return;
      this.#listen(this.#options.port ?? PORT);
      await this.#ready.promise;
      this.#wait();
      await end.promise;
    } finally {
      leave();
      this.#cancel();
      await this.#close();
      this.#ready.reject(new WatchError('CLOSED', 'the webhook server has ended'));
    }
  }

  #create(): Server {
    const { webhooks, clientCaFile } = this.#options;
    const verified = clientCaFile !== undefined && { requestCert: true, rejectUnauthorized: true };
    const server = createServer({ ...PATIENCE, ...this.#tls.value, ...verified }, (request, response) => {
      this.#open.add(response);
      response.once('close', () => this.#open.delete(response));
      if (this.#state === 'leaving') response.shouldKeepAlive = false;
      webhooks.handler(request, response);
    });
    // Once it listens, an error is of a connection that could not be accepted.
    server.on('error', (error) => (server.listening ? this.#onError(error) : this.#fail(error)));
    server.on('secureConnection', (socket) => {
      if (this.#state === 'leaving') socket.destroy();
      this.#secured.add(socket);
      socket.once('close', () => this.#secured.delete(socket));
    });
    limitConnections(server, SLOTS, { sockets: this.#sockets });
    return server;
  }

  #renew(tls: Tls): void {
    if (this.#state === 'leaving') return;
    const { setSecureContext } = this.#server as Partial<Server>;
    if (setSecureContext) {
      setSecureContext.call(this.#server, tls);
      return;
    }
    // Bun does not have it: another server replaces this one.
    const { port } = this.#server.address() as AddressInfo;
    const ended = closed(this.#server).finally(() => this.#former.delete(ended));
    this.#former.add(ended);
    this.#server = this.#create();
    this.#listen(port);
  }

  #listen(port: number): void {
    const { host } = this.#options;
    this.#server.listen({ port, ...(host && { host }) }, () => {
      const { address, port: actual, family } = this.#server.address() as AddressInfo;
      const any = address === '::' || address === '0.0.0.0';
      this.#ready.open(`https://${any ? 'localhost' : family === 'IPv6' ? `[${address}]` : address}:${actual}`);
    });
  }

  /** Reads the certificates again after a while. */
  #wait(): void {
    this.#cancel = upkeepClock(this.#clock).schedule(EVERY_MS, async () => {
      const news = await this.#tls.refresh(false);
      if (this.#state !== 'running') return;
      if (news instanceof Error) this.#onError(news);
      this.#wait();
    });
  }

  async #close(): Promise<void> {
    this.#state = 'leaving';
    const ended = [closed(this.#server), ...this.#former];
    const busy = new Set(Array.from(this.#open, ({ req }) => req.socket));
    for (const response of this.#open) response.shouldKeepAlive = false;
    // The host's own method leaves open those that have not had a request yet.
    for (const socket of this.#secured) if (!busy.has(socket)) socket.destroy();
    const cancel = this.#clock.schedule(this.#shutdownTimeoutMs, () => {
      const { size } = this.#open;
      if (size > 0) this.#onError(gaveUp(this.#shutdownTimeoutMs, size === 1 ? 'a request' : `${size} requests`));
      for (const socket of this.#sockets) socket.destroy();
    });
    await Promise.all(ended);
    cancel();
  }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()));
}
