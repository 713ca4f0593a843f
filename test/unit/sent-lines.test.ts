import { expect, test } from 'vitest';
import { SentLines } from '../../src/bridge/transport/websocket-connection.ts';

test('sends one message per line, and emits drain after the last one is sent', () => {
  const sent: string[] = [];
  const waiting: (() => void)[] = [];
  const client = {
    get bufferedAmount() {
      return waiting.length;
    },
    send(bytes: Uint8Array, options: object, callback: () => void) {
      expect(options).toEqual({ binary: false, compress: false });
      sent.push(new TextDecoder().decode(bytes));
      waiting.push(callback);
    },
  };
  const lines = new SentLines(client);
  let drains = 0;
  const onDrain = (): void => void drains++;
  expect(lines.write(new TextEncoder().encode('{"a":1}\n{"b":"é"}\n'))).toBe(false);
  lines.on('drain', onDrain);
  lines.write(new TextEncoder().encode('3\n'));
  expect(sent).toEqual(['{"a":1}', '{"b":"é"}', '3']);
  expect(lines.writableLength).toBe(3);
  waiting.shift()?.();
  waiting.shift()?.();
  expect(drains).toBe(0);
  waiting.shift()?.();
  expect([drains, lines.writableLength]).toEqual([1, 0]);
  lines.write(new TextEncoder().encode('4\n'));
  lines.off('drain', onDrain);
  waiting.shift()?.();
  expect(drains).toBe(1);
});
