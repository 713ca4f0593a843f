// One hostile client in a process of its own, for `fair.test.ts`: node attacker.mjs PORT CASE. Prints `begun` after its first
// answer, or after two seconds without one.
import { Agent, request } from 'node:http';
import { ATTACKS } from './attacks.mjs';

const [port, which] = process.argv.slice(2).map(Number);
const { connections = 20, leaveAfterBytes = Number.POSITIVE_INFINITY, requests } = ATTACKS[which];
const all = requests();
const agent = new Agent({ keepAlive: true, localAddress: '127.0.0.2', maxSockets: connections });
const codes = new Map();
let sent = 0;
setTimeout(() => console.log('begun'), 2_000);

function ask({ method, path, headers, body }) {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, agent, method, path };
    const length = body === undefined ? {} : { 'content-length': body.length };
    const asked = request({ ...options, headers: { authorization: 'Bearer mallory', ...length, ...headers } }, (response) => {
      codes.set(response.statusCode, (codes.get(response.statusCode) ?? 0) + 1);
      if (codes.size === 1 && codes.get(response.statusCode) === 1) console.log('begun');
      let bytes = 0;
      response.on('data', (chunk) => {
        bytes += chunk.length;
        if (bytes > leaveAfterBytes) response.destroy();
      });
      response.on('close', resolve);
    });
    asked.on('error', () => setTimeout(resolve, 10));
    asked.end(body);
  });
}

for (let at = 0; at < connections; at++) {
  void (async () => {
    for (;;) await ask(all[sent++ % all.length]);
  })();
}
process.on('SIGTERM', () => {
  console.log(JSON.stringify(Object.fromEntries(codes)));
  process.exit(0);
});
