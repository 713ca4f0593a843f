// The load of the workload `peers` reads what servers send, however they cut it.
import { expect, test } from 'vitest';
import { Requester, Unchunked } from './peers/connection.ts';
import { changeOf, faultOf, listedOf, pathOf, WATCHED } from './peers/objects.ts';
import { ours } from './peers/stage.ts';

test('what is in chunks is found, whatever the borders of chunks and of reads are', () => {
  const body = Buffer.from('5\r\n{"a"\n\r\nb\r\n{"b"}\n{"c"}\r\n1\r\n\n\r\n');
  for (let size = 1; size <= body.length; size++) {
    let text = '';
    const chunks = new Unchunked((bytes) => {
      text += bytes.toString();
    });
    for (let at = 0; at < body.length; at += size) chunks.read(body.subarray(at, at + size));
    expect(text).toBe('{"a"\n{"b"}\n{"c"}\n');
  }
});

test('ours answers over TLS, to whoever has the token', async () => {
  const peer = await ours();
  const requester = await Requester.open(peer.access);
  expect((await requester.ask('POST', pathOf(WATCHED), changeOf(3, 1_000))).code).toBe(201);
  expect((await requester.ask('PUT', `${pathOf(WATCHED)}/changing-3`, changeOf(19, 1_000))).code).toBe(200);
  const { code, body } = await requester.ask('GET', pathOf(WATCHED));
  expect([code, JSON.parse(body.toString()).items[0].data.turn]).toEqual([200, '19']);
  const stranger = await Requester.open({ ...peer.access, token: 'other' });
  expect((await stranger.ask('GET', pathOf(WATCHED))).code).toBe(401);
  requester.end();
  stranger.end();
  await peer.end();
});

test('a wrong event is detected', () => {
  const event = (number: number, type: string): object => ({ type, object: changeOf(number, 1_000) });
  expect(faultOf(event(7, 'MODIFIED'), 7, 1_000)).toBeUndefined();
  expect(faultOf(event(7, 'ADDED'), 7, 1_000)).toContain('event 7 is wrong');
  expect(faultOf(event(23, 'MODIFIED'), 7, 1_000)).toContain('event 7 is wrong');
  expect(Object.keys(listedOf(1).data)).toHaveLength(40);
});
