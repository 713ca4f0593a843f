/**
 * An exec plugin: a program that issues credentials. Upstream: client-go's `plugin/pkg/client/auth/exec`.
 *
 *     KUBERNETES_EXEC_INFO ---> the program ---> an ExecCredential on its standard output: a token, or a certificate and its key
 *
 * - When does it run? When there is no answer yet, when its answer has expired, and when the server has refused the answer with
 *   401. An answer without an expiry is kept until then. {@link Credentials} asks once for requests that start together.
 * - What does it read? Nothing: its standard input is empty, so a program that would ask a person ends instead of waiting.
 * - What does a person see? What it writes to standard error, immediately: logins show their URLs there.
 * - How long may it take? Until the time limit; then it is killed. The error names it, and repeats the end of its output.
 */
import { spawn } from 'node:child_process';
import type { Clock } from '../watch/clock.ts';
import { oneLine } from '../watch/failures.ts';
import type { ExecEntry } from './kube-config.ts';

const MAX_OUTPUT_BYTES = 1_048_576;
/** How much of its output is in the error. */
const MAX_SAID_CHARS = 500;

/** What a plugin has issued. */
export interface PluginAnswer {
  readonly token?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** What a plugin needs, besides its entry in the kubeconfig. */
interface PluginOptions {
  /** Information about the cluster, if it asks for it. */
  readonly clusterInfo: () => Promise<object>;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export class ExecPlugin {
  readonly #entry: ExecEntry;
  readonly #options: PluginOptions;
  #kept: (PluginAnswer & { readonly untilMs: number }) | undefined;

  constructor(entry: ExecEntry, options: PluginOptions) {
    this.#entry = entry;
    this.#options = options;
  }

  /** Returns its last answer if that is still valid; otherwise runs it. */
  async answer(): Promise<PluginAnswer> {
    if (this.#kept && Date.now() < this.#kept.untilMs) return this.#kept;
    const kept = this.#read(await this.#run(await this.#environment()));
    this.#kept = kept;
    return kept;
  }

  /** The server has refused this answer. A newer one is kept. */
  forget({ token, cert }: PluginAnswer): void {
    const { token: ours = token, cert: certificate = cert } = this.#kept ?? {};
    if (ours === token && certificate === cert) this.#kept = undefined;
  }

  async #environment(): Promise<NodeJS.ProcessEnv> {
    const { apiVersion = 'client.authentication.k8s.io/v1', provideClusterInfo, interactiveMode, env = [] } = this.#entry;
    if (interactiveMode === 'Always') throw this.#failed('needs a terminal (interactiveMode: Always), and has none here');
    const own: NodeJS.ProcessEnv = {};
    for (const each of env as readonly ({ name?: unknown; value?: unknown } | null)[]) {
      if (typeof each?.name === 'string') own[each.name] = String(each.value ?? '');
    }
    const spec = { ...(provideClusterInfo && { cluster: await this.#options.clusterInfo() }), interactive: false };
    return { ...process.env, ...own, KUBERNETES_EXEC_INFO: JSON.stringify({ kind: 'ExecCredential', apiVersion, spec }) };
  }

  #run(env: NodeJS.ProcessEnv): Promise<string> {
    const { command = '', args = [] } = this.#entry;
    const { timeoutMs, clock } = this.#options;
    return new Promise<string>((resolve, reject) => {
      const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true });
      const parts: Buffer[] = [];
      let bytes = 0;
      let said = '';
      const stop = (why: string): void => {
        cancel();
        child.kill('SIGKILL');
        // A program that it started may keep the other ends open.
        child.stdout?.destroy();
        child.stderr?.destroy();
        reject(this.#failed(why, said));
      };
      child.on('error', (error: NodeJS.ErrnoException) => {
        cancel();
        reject(error.code === 'ENOENT' ? this.#missing() : this.#failed(`cannot be run: ${error.message}`));
      });
      const cancel = timeoutMs ? clock.schedule(timeoutMs, () => stop(`has not answered within ${timeoutMs} ms`)) : () => {};
      // If no file descriptors are left, there are no streams yet, and the error follows.
      child.stdout?.on('data', (part: Buffer) => {
        bytes += part.length;
        if (bytes > MAX_OUTPUT_BYTES) stop(`has written more than ${MAX_OUTPUT_BYTES} bytes`);
        else parts.push(part);
      });
      child.stderr?.on('data', (part: Buffer) => {
        process.stderr.write(part);
        said = `${said}${part.toString()}`.slice(-MAX_SAID_CHARS);
      });
      child.on('close', (code, signal) => {
        cancel();
        if (code === 0) resolve(Buffer.concat(parts).toString());
        else reject(this.#failed(code === null ? `was ended by ${signal}` : `has exited with code ${code}`, said));
      });
    });
  }

  #read(output: string): PluginAnswer & { readonly untilMs: number } {
    let status: Record<string, unknown> | null | undefined;
    try {
      ({ status } = JSON.parse(output) ?? {});
    } catch {
      throw this.#failed('has not written JSON'); // the error of JSON.parse would show a part of it
    }
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp: until } = status ?? {};
    for (const each of [token, cert, key, until]) {
      if (each !== undefined && each !== null && typeof each !== 'string') throw this.#failed('has written no ExecCredential');
    }
    if (!token && !cert && !key) throw this.#failed('has handed out neither a token nor a certificate');
    if (!cert !== !key) throw this.#failed('has handed out a certificate or a key, not both');
    const untilMs = until ? Date.parse(until as string) : Infinity;
    if (Number.isNaN(untilMs)) throw this.#failed(`has written an expirationTimestamp that is not a time: ${clean(`${until}`)}`);
    return {
      token: (token as string) || undefined,
      cert: (cert as string) || undefined,
      key: (key as string) || undefined,
      untilMs,
    };
  }

  #missing(): Error {
    const { installHint } = this.#entry;
    return this.#failed(`was not found${installHint ? `. ${clean(installHint)}` : ''}`);
  }

  #failed(what: string, said: string = ''): Error {
    const last = clean(said);
    return new Error(`the exec plugin "${clean(this.#entry.command ?? '')}" ${what}${last && `: ${last}`}`);
  }
}

const clean = (text: string): string => oneLine(text).trim();
