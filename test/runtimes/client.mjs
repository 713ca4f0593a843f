// A client for runtimes.test.ts: reads a number of events, across any number of disconnections, and prints what it got.
import { connect } from 'watchmux/client';
import { WebSocket as PackagedWebSocket } from 'ws';

const [url, kind, count] = process.argv.slice(2);
const transport = kind === 'http' || kind === 'sse' ? kind : 'websocket';
// A header, or with Deno's own WebSocket, which accepts none, a subprotocol.
const common = {
  transport,
  token: 'me',
  ...(kind === 'ws' ? { WebSocket: PackagedWebSocket } : {}),
  backoff: { minMs: 10, maxMs: 50 },
};

// A client that is stopped before its server has answered.
const abort = new AbortController();
const silent = connect(`${url}/silent`, { ...common, signal: abort.signal });
const read = silent.next();
await fetch(`${url}/asked`); // answered once the server has received the request
abort.abort();
const { done } = await read;

const events = connect(`${url}/watch`, { ...common, resourceVersion: 'e.0', capacity: 20 });
const got = [];
for await (const { object } of events) {
  got.push(object.i);
  // Slower than the server.
  if (got.length % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  if (got.length === Number(count)) break;
}
console.log(JSON.stringify({ done, inOrder: got.every((i, at) => i === at), dropped: events.dropped, state: events.state }));
