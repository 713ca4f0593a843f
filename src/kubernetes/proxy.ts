/**
 * The proxy between us and a server. A kubeconfig names it, or the environment does: HTTPS_PROXY and NO_PROXY, with the same
 * meaning as for kubectl. Upstream: Go's `golang.org/x/net/http/httpproxy`.
 */
import type { Agent } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { invalid } from '../watch/errors.ts';
import { optional } from './optional.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the proxy to a server; undefined if there is none. Throws INVALID_ARGUMENT for one that is no URL. */
export function proxyOf(server: URL, proxyUrl?: string, env: Environment = process.env): URL | undefined {
  if (proxyUrl) return toProxy('proxy-url', proxyUrl);
  if (server.protocol !== 'https:') return undefined;
  const name = ['HTTPS_PROXY', 'https_proxy'].find((each) => env[each]);
  if (name === undefined || isExempt(server, env.NO_PROXY || env.no_proxy || '')) return undefined;
  return toProxy(name, env[name] as string);
}

function toProxy(name: string, text: string): URL {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url && /^(https?|socks5h?):$/.test(url.protocol)) return url;
  throw invalid(name, text.replace(/\/\/.*@/, '//'), 'an http, https or socks5 URL');
}

/** Whether a server is asked directly. What is on this machine always is. */
function isExempt(server: URL, noProxy: string): boolean {
  const host = server.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = server.port || '443';
  if (host === 'localhost' || isInside(host, '127.0.0.0/8') || isInside(host, '::1/128')) return true;
  return noProxy.split(',').some((each) => matches(each.trim().toLowerCase(), host, port));
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '' || entry === '*') return entry === '*';
  if (entry.includes('/')) return isInside(host, entry);
  const [, bracketed, plain = '', wanted] = /^(?:\[(.*)\]|([^:]*))(?::(\d*))?$/.exec(entry) ?? [undefined, undefined, entry];
  const name = (bracketed ?? plain).replace(/^\*\./, '.');
  if (name === '' || (wanted && wanted !== port)) return false;
  if (isIP(name)) return isIP(host) !== 0 && isInside(host, `${name}/${isIP(name) === 4 ? 32 : 128}`);
  return name.startsWith('.') ? host.endsWith(name) : host === name || host.endsWith(`.${name}`);
}

/** Whether an address is in a network, such as `10.0.0.0/8`. */
function isInside(host: string, network: string): boolean {
  const [address = '', bits = ''] = network.split('/');
  const [family, of] = [isIP(address), isIP(host)];
  if (!family || !of || !/^\d+$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) return false;
  const block = new BlockList();
  block.addSubnet(address, Number(bits), family === 4 ? 'ipv4' : 'ipv6');
  return block.check(host, of === 4 ? 'ipv4' : 'ipv6');
}

/** Creates an agent for one request through a proxy. An abort ends a connection that the proxy has not answered. */
export async function createProxyAgent(proxy: URL, signal: AbortSignal | undefined): Promise<Agent> {
  const what = `a server behind the proxy ${proxy.host}`;
  if (/^socks/.test(proxy.protocol)) {
    const load = (): Promise<typeof import('socks-proxy-agent')> => import('socks-proxy-agent');
    const { SocksProxyAgent } = await optional('socks-proxy-agent', { load, what });
    // As in Go, the proxy resolves names.
    return new SocksProxyAgent(proxy.href.replace(/^socks5:/, 'socks5h:'));
  }
  const load = (): Promise<typeof import('https-proxy-agent')> => import('https-proxy-agent');
  const { HttpsProxyAgent } = await optional('https-proxy-agent', { load, what });
  return new HttpsProxyAgent(proxy, { ...(signal && { signal }) } as object);
}
