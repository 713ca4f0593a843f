import { createHash } from 'node:crypto';
import { UsageError } from '../usage.ts';
import { FromFiles } from './reload.ts';
import { isToken } from './serve-args.ts';

const NAME = /^[\w.@:-]{1,100}$/;

/** Who has which token. Only hashes of tokens are kept: the time of a look-up does not reveal how much of a token is right. */
export class Tokens {
  private readonly names: Map<string, string> = new Map();

  add(token: string, name: string): void {
    this.names.set(hashOf(token), name);
  }

  /** The name of the client that sends this header; undefined if it has no known token. */
  nameOf(authorization: string | undefined): string | undefined {
    const [, token] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
    return token === undefined ? undefined : this.names.get(hashOf(token));
  }

  /** The names that had a token here, and have it no longer among others. */
  lostIn(others: Tokens): Set<string> {
    return new Set([...this.names].flatMap(([hash, name]) => (others.names.get(hash) === name ? [] : [name])));
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

/** The options that name tokens. */
export interface TokenOptions {
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
}

/** The tokens that clients must send: those of `--token-file`, as it is at present, and the one of `--token`. */
export function toTokens({ token, tokenFile }: TokenOptions): FromFiles<Tokens> | undefined {
  if (token === undefined && tokenFile === undefined) return undefined;
  const make = ([content]: readonly Buffer[]): Tokens => {
    const tokens = new Tokens();
    if (content !== undefined) readTokens(content.toString('utf8'), tokens);
    if (token !== undefined) tokens.add(token, 'token');
    return tokens;
  };
  return new FromFiles({ files: tokenFile === undefined ? [] : [{ option: 'token-file', file: tokenFile }], make });
}

/** Adds the tokens of a file: a token and a name in each line; what follows `#` is a comment. Its messages show no token. */
function readTokens(text: string, tokens: Tokens): void {
  let count = 0;
  for (const [at, line] of text.split('\n').entries()) {
    const [token, name, more] = line
      .replace(/(^|\s)#.*$/, '')
      .trim()
      .split(/\s+/);
    if (token === undefined || token === '') continue;
    if (!isToken(token) || name === undefined || !NAME.test(name) || more !== undefined) {
      throw new UsageError(`--token-file: line ${at + 1} is not a token, a space, and the name of its tenant`, 'serve');
    }
    tokens.add(token, name);
    count++;
  }
  if (count === 0) throw new UsageError('--token-file: there is no token in it', 'serve');
}
