#!/usr/bin/env node
// Lets playwright drive Debian's Firefox. Playwright starts this instead of Firefox, and gets the address of a WebSocket that
// passes everything on, except emulation commands that this Firefox does not support yet: those are answered as done.
import { spawn } from 'node:child_process';
import { WebSocket, WebSocketServer } from 'ws';

const LISTENING = /WebDriver BiDi listening on (ws:\S+)/;

const browser = spawn('/usr/bin/firefox-esr', process.argv.slice(2), { stdio: ['ignore', 'inherit', 'pipe'] });
browser.on('exit', (code) => process.exit(code ?? 1));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => browser.kill(signal));

let said = '';
const onSaid = (text) => {
  said += text;
  const address = LISTENING.exec(said)?.[1];
  if (address === undefined) return;
  browser.stderr.off('data', onSaid).resume();
  serve(address);
};
browser.stderr.setEncoding('utf8').on('data', onSaid);

function serve(address) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  server.on('listening', () => console.error(`WebDriver BiDi listening on ws://127.0.0.1:${server.address().port}`));
  server.on('connection', (near, { url }) => pass(near, new WebSocket(address + url, { perMessageDeflate: false })));
}

function pass(near, far) {
  const opened = new Promise((resolve) => far.once('open', resolve));
  const emulations = new Set();
  near.on('message', async (data) => {
    const text = String(data);
    const { id, method } = JSON.parse(text);
    if (method.startsWith('emulation.')) emulations.add(id);
    await opened;
    far.send(text);
  });
  far.on('message', (data) => {
    const text = String(data);
    const unknown = emulations.size > 0 && text.includes('"unknown command"') ? JSON.parse(text).id : undefined;
    near.send(emulations.delete(unknown) ? JSON.stringify({ type: 'success', id: unknown, result: {} }) : text);
  });
  near.on('close', () => far.close());
  far.on('close', () => near.close());
  far.on('error', () => near.close());
}
