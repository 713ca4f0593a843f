// A client for runtimes.test.ts: reads so many events of a server, however often it is cut off, and says what it got.
import { connect } from 'watchmux/client';
import { WebSocket as PackagedWebSocket } from 'ws';

const [url, kind, count] = process.argv.slice(2);
const transport = kind === 'http' || kind === 'sse' ? kind : 'websocket';
const common = { transport, ...(kind === 'ws' ? { WebSocket: PackagedWebSocket } : {}), backoff: { minMs: 10, maxMs: 50 } };
// Deno's own WebSocket takes none.
const headers = kind === 'websocket' && globalThis.Deno !== undefined ? {} : { authorization: 'Bearer me' };

// One that is given up before its server has said anything.
const abort = new AbortController();
const silent = connect(`${url}/silent`, { ...common, headers, signal: abort.signal });
const read = silent.next();
await fetch(`${url}/asked`); // is answered when the server has been asked
abort.abort();
const { done } = await read;

const events = connect(`${url}/watch`, { ...common, headers, resourceVersion: 'e.0', capacity: 20 });
const got = [];
for await (const { object } of events) {
  got.push(object.i);
  // Slower than its server.
  if (got.length % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  if (got.length === Number(count)) break;
}
console.log(JSON.stringify({ done, inOrder: got.every((i, at) => i === at), dropped: events.dropped, state: events.state }));
