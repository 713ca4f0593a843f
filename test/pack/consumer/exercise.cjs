// Uses the entry points that it is given, for both formats.
exports.exercise = async function exercise(given) {
  const { assert, root, http, nodeStream, rxjs, testing, ws } = given;
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

  const hub = new http.Hub({ replay: 1, epoch: 'e' });
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

  await broadcaster.shutdown();
  await hub.shutdown();
  await new Promise((resolve) => server.close(resolve));
  assert.deepEqual(observed, [event]);
};
