import type { IncomingMessage, ServerResponse } from 'node:http';
import { readAccept } from '../../apiserver/request/accept.ts';
import { pathOf } from '../../bridge/transport/upgrades.ts';
import type { LivePage } from '../../pages/document.ts';
import { queryOf, sendWhole } from '../server/server.ts';

/**
 * Whether a request is for the page, and not for the API: at `/`, by a client that prefers HTML to JSON, as browsers do. Clients
 * of the API, and curl, which takes anything, do not.
 */
export function wantsPage({ method, url, headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): boolean {
  if (pathOf(url) !== '/' || (method !== 'GET' && method !== 'HEAD')) return false;
  // The API refuses it.
  if (queryOf({ url }) === undefined) return false;
  const first = readAccept(headers.accept).find(({ type }) => type === HTML || /^application\/(json|\*)$/.test(type));
  return first?.type === HTML;
}

const HTML = 'text/html';

/** Answers a request for which {@link wantsPage} is true. */
export function sendPage({ html, policy }: LivePage, request: IncomingMessage, response: ServerResponse): void {
  sendWhole(request, response, {
    code: 200,
    body: Buffer.from(html),
    headers: {
      'content-type': `${HTML}; charset=utf-8`,
      vary: 'Accept',
      'referrer-policy': 'no-referrer',
      'content-security-policy': policy,
    },
  });
}
