// Serves the folder of the site on 127.0.0.1, below any base path, compressed, as hosts of static files do.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { gzipSync } from 'node:zlib';

const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};

async function answer(folder, base, url) {
  const path = decodeURIComponent(new URL(url, 'http://site').pathname);
  if (!path.startsWith(base)) return undefined;
  const file = normalize(join(folder, path.slice(base.length), path.endsWith('/') ? 'index.html' : ''));
  if (!file.startsWith(folder)) return undefined;
  return { type: TYPES[extname(file)] ?? 'text/plain; charset=utf-8', bytes: await readFile(file) };
}

/** Listens, and returns the server. `base` begins and ends with a slash. */
export async function serve(folder, { port = 0, base = '/' } = {}) {
  const server = createServer(async ({ url = '/', headers }, response) => {
    const found = await answer(folder, base, url).catch(() => undefined);
    if (found === undefined) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\n');
      return;
    }
    const isSmall = !/gzip/.test(headers['accept-encoding'] ?? '') || found.type === 'image/png';
    response.writeHead(200, {
      'content-type': found.type,
      'cache-control': 'max-age=600',
      ...(isSmall ? {} : { 'content-encoding': 'gzip', vary: 'accept-encoding' }),
    });
    response.end(isSmall ? found.bytes : gzipSync(found.bytes));
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  return server;
}
