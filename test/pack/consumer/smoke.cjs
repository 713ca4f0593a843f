// Run by check-tarball.mjs in an empty project: sends one event through every entry point, loaded as CommonJS.
const { exercise } = require('./exercise.cjs');

exercise({
  assert: require('node:assert/strict'),
  createServer: require('node:http').createServer,
  get: require('node:http').get,
  of: require('rxjs').of,
  WebSocket: require('ws').WebSocket,
  root: require('watchmux'),
  apiserver: require('watchmux/apiserver'),
  apply: require('watchmux/apply'),
  cache: require('watchmux/cache'),
  client: require('watchmux/client'),
  etcd: require('watchmux/etcd'),
  fetch: require('watchmux/fetch'),
  http: require('watchmux/http'),
  kubernetes: require('watchmux/kubernetes'),
  nats: require('watchmux/nats'),
  nodeStream: require('watchmux/node-stream'),
  operator: require('watchmux/operator'),
  operatorTesting: require('watchmux/operator-testing'),
  rxjs: require('watchmux/rxjs'),
  sqlite: require('watchmux/sqlite'),
  storage: require('watchmux/storage'),
  testing: require('watchmux/testing'),
  workqueue: require('watchmux/workqueue'),
  ws: require('watchmux/ws'),
}).then(() => console.log('ok'));
