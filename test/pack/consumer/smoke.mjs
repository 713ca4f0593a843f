// Run by check-tarball.mjs in an empty project: sends one event through every entry point, imported as an ES module.
import assert from 'node:assert/strict';
import { createServer, get } from 'node:http';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { of } from 'rxjs';
import { Broadcaster, filter, StreamWatcher, toDecoder } from 'watchmux';
import { ApiServer } from 'watchmux/apiserver';
import { applyConfiguration } from 'watchmux/apply';
import { Store } from 'watchmux/cache';
import { connect } from 'watchmux/client';
import { EtcdStorage } from 'watchmux/etcd';
import { createFetchHandler } from 'watchmux/fetch';
import { createHttpHandler, Hub } from 'watchmux/http';
import { Cluster } from 'watchmux/kubernetes';
import { NatsStream } from 'watchmux/nats';
import { fromReadable, toReadable } from 'watchmux/node-stream';
import { OpenTelemetry } from 'watchmux/opentelemetry';
import { Operator } from 'watchmux/operator';
import { testOperator } from 'watchmux/operator-testing';
import { useCollection } from 'watchmux/react';
import { fromObservable, observe } from 'watchmux/rxjs';
import { SqliteStorage } from 'watchmux/sqlite';
import { MemoryStorage } from 'watchmux/storage';
import { FakeWatcher } from 'watchmux/testing';
import { WorkQueue } from 'watchmux/workqueue';
import { attachWebSocket } from 'watchmux/ws';
import { WebSocket } from 'ws';
import { exercise } from './exercise.cjs';

await exercise({
  assert,
  createServer,
  get,
  createElement,
  renderToString,
  of,
  WebSocket,
  root: { Broadcaster, filter, StreamWatcher, toDecoder },
  apiserver: { ApiServer },
  apply: { applyConfiguration },
  cache: { Store },
  client: { connect },
  etcd: { EtcdStorage },
  fetch: { createFetchHandler },
  http: { createHttpHandler, Hub },
  kubernetes: { Cluster },
  nats: { NatsStream },
  nodeStream: { fromReadable, toReadable },
  opentelemetry: { OpenTelemetry },
  operator: { Operator },
  operatorTesting: { testOperator },
  react: { useCollection },
  rxjs: { fromObservable, observe },
  sqlite: { SqliteStorage },
  storage: { MemoryStorage },
  testing: { FakeWatcher },
  workqueue: { WorkQueue },
  ws: { attachWebSocket },
});
console.log('ok');
