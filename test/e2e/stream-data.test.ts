// A recorded watch stream of real Kubernetes objects, through `pipe` to clients of every kind at once.
import { afterAll, describe, expect, test } from 'vitest';
import { WATCH_STREAM } from '../watch-stream.ts';
import { httpStream, killAll, pipe, run, sse, until, webSocket } from './cli.ts';

afterAll(killAll);

/** A line as it was before the server added its version. */
const unversioned = (line: string): string => line.replace(/,"resourceVersion":"\w+\.\d+"\}$/, '}');

describe('a recorded watch stream', () => {
  test.each([['disconnect'], ['wait']])('reaches five concurrent clients, event by event (%s)', async (overflow) => {
    const input = WATCH_STREAM.toString();
    const lines = input.trimEnd().split('\n');
    const server = await pipe('--overflow', overflow);
    const clients = await Promise.all([webSocket(server.url), webSocket(server.url), httpStream(server.url), sse(server.url)]);
    const watching = run('watch', server.url);
    await until(async () => (await server.stats()).clients.length === 5);
    server.child.stdin.end(input);
    await Promise.all(clients.map((client) => client.ended));
    for (const { texts } of clients) {
      expect(texts).toHaveLength(lines.length);
      for (let at = 0; at < lines.length; at++) expect(unversioned(texts[at] as string)).toBe(lines[at]);
    }
    expect(clients[3]?.ids.map((id) => id.split('.')[1])).toEqual(lines.map((_, index) => String(index + 1)));
    expect(await watching.exit).toBe(0);
    expect(watching.out().split('\n').map(unversioned).join('\n')).toBe(input);
    expect(await server.exit).toBe(0);
    expect(server.err()).toContain(
      `${lines.length} events, 0 lines skipped; 5 clients: ${5 * lines.length} delivered, 0 dropped`,
    );
  });
});
