// Uses the entry points that it is given, for both formats.
exports.exercise = async function exercise(given) {
  const { assert, root, cache, http, kubernetes, nats, nodeStream, rxjs, testing, workqueue, ws } = given;
  const event = { type: 'ADDED', object: { metadata: { name: 'a' } } };

  const broadcaster = new root.Broadcaster({ overflow: 'drop-oldest' });
  const watch = root.filter(broadcaster.watch(), (each) => each);
  const stream = nodeStream.toReadable(broadcaster.watch());
  const observed = [];
  rxjs.observe(broadcaster).subscribe((each) => observed.push(each));
  await broadcaster.publish(event);
  assert.deepEqual((await watch.next()).value, event);
  assert.deepEqual((await nodeStream.fromReadable(stream).next()).value, event);
  assert.deepEqual((await rxjs.fromObservable(given.of(event)).next()).value, event);

  const decoded = new root.StreamWatcher(
    root.toDecoder(
      (async function* () {
        yield `${JSON.stringify(event)}\n`;
      })(),
    ),
  );
  assert.deepEqual((await decoded.next()).value, event);

  const fake = new testing.FakeWatcher();
  const added = fake.add('b');
  assert.deepEqual(await fake.next(), { done: false, value: { type: 'ADDED', object: 'b' } });
  assert.equal(await added, true);

  // There is no server: it is enough that it takes a stream, and ends.
  const events = new nats.NatsStream({ servers: '127.0.0.1:1', stream: 'orders' });
  const shared = new http.Hub({ source: events });
  assert.equal(shared.stats().source.phase, 'waiting');
  await shared.shutdown();
  await events.close();

  const hub = new http.Hub({ replay: 1, epoch: 'e', telemetry: new given.opentelemetry.OpenTelemetry() });
  const server = given.createServer(http.createHttpHandler(hub));
  ws.attachWebSocket(server, hub);
  await hub.publish(event);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${server.address().port}`;
  const line = new Promise((resolve, reject) => {
    given.get(`http://${address}`, { agent: false }, (response) => response.once('data', resolve)).on('error', reject);
  });
  const socket = new given.WebSocket(`ws://${address}/watch`);
  const message = new Promise((resolve, reject) => socket.once('message', resolve).once('error', reject));
  const sent = { ...event, resourceVersion: 'e.1' };
  assert.deepEqual(JSON.parse(String(await line)), sent);
  assert.deepEqual(JSON.parse(String(await message)), sent);

  const remote = given.client.connect(`http://${address}/watch`);
  assert.deepEqual((await remote.next()).value, sent);
  await remote.return();
  const List = () => String(given.react.useCollection(`http://${address}/watch`).items.length);
  assert.equal(given.renderToString(given.createElement(List)), '0');
  const answer = await given.fetch.createFetchHandler(hub)(new Request(`http://${address}/watch`));
  const reader = answer.body.getReader();
  assert.deepEqual(JSON.parse(Buffer.from((await reader.read()).value).toString()), sent);
  await reader.cancel();

  const storage = new given.storage.MemoryStorage();
  const api = new given.apiserver.ApiServer({ storage, resources: [] });
  await api.ready;
  const operator = new given.operator.Operator({ cluster: api, name: 'exercise' });
  await assert.rejects(operator.run(), /call controller\(\) first/);
  await api.shutdown();
  await storage.close();
  // There is no server here, either.
  const etcd = new given.etcd.EtcdStorage({ endpoints: ['http://127.0.0.1:1'], onError: () => {} });
  await etcd.close();
  const sqlite = () => new given.sqlite.SqliteStorage({ file: 'unused' });
  if (process.getBuiltinModule('node:sqlite')) await sqlite().close();
  else assert.throws(sqlite, /expected a runtime with node:sqlite/);

  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { a: 'b' } };
  const applied = given.apply.applyConfiguration(undefined, config, { manager: 'me' });
  assert.equal(applied.metadata.managedFields.length, 1);

  const store = new cache.Store();
  store.add(event.object);
  const queue = new workqueue.WorkQueue();
  queue.add(store.keys()[0]);
  assert.equal(await queue.get(), 'a');
  queue.shutDown();
  const cluster = new kubernetes.Cluster({
    getCurrentContext: () => 'c',
    getContextObject: () => ({ namespace: 'n' }),
    getCurrentCluster: () => ({ server: `http://${address}` }),
    getCurrentUser: () => null,
    applyToHTTPSOptions: async () => {},
  });
  assert.equal(cluster.resource('pods').in(cluster.namespace).url.href, `http://${address}/api/v1/namespaces/n/pods`);
  cluster.close();

  await broadcaster.shutdown();
  await hub.shutdown();
  await new Promise((resolve) => server.close(resolve));
  assert.deepEqual(observed, [event]);
};
