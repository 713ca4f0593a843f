// Run by check-tarball.mjs in an empty project: sends one event through every entry point, imported as an ES module.
import assert from 'node:assert/strict';
import { createServer, get } from 'node:http';
import { of } from 'rxjs';
import { Broadcaster, filter, StreamWatcher, toDecoder } from 'watchmux';
import { createHttpHandler, Hub } from 'watchmux/http';
import { fromReadable, toReadable } from 'watchmux/node-stream';
import { fromObservable, observe } from 'watchmux/rxjs';
import { FakeWatcher } from 'watchmux/testing';
import { attachWebSocket } from 'watchmux/ws';
import { WebSocket } from 'ws';
import { exercise } from './exercise.cjs';

await exercise({
  assert,
  createServer,
  get,
  of,
  WebSocket,
  root: { Broadcaster, filter, StreamWatcher, toDecoder },
  http: { createHttpHandler, Hub },
  nodeStream: { fromReadable, toReadable },
  rxjs: { fromObservable, observe },
  testing: { FakeWatcher },
  ws: { attachWebSocket },
});
console.log('ok');
