// Webhooks over HTTPS, for webhooks.test.ts: with the certificate and the key of two files. Prints its port; SIGTERM ends it, and `slow`
// objects are admitted only then.
import { WebhookServer, Webhooks } from 'watchmux/operator';

const [certFile, keyFile] = process.argv.slice(2);
const end = new AbortController();
const ending = new Promise((resolve) => end.signal.addEventListener('abort', resolve));
process.on('SIGTERM', () => end.abort());

const webhooks = new Webhooks({
  timeoutMs: 60_000, // however long it takes until new certificates are in use
  mutate: ({ object }) => ({ ...object, spec: { ...object.spec, replicas: 1 } }),
  validate: async ({ name, deny }) => {
    if (name === 'bad') deny('not this');
    if (name === 'slow') {
      console.log('waits');
      await ending;
    }
  },
});
const server = new WebhookServer({ webhooks, certFile, keyFile, host: '127.0.0.1', port: 0 });
const ran = server.run(end.signal);
console.log(new URL(await server.ready).port);
await ran;
console.log('ended');
