import { describe, expect, it, vi } from 'vitest';
import { type Decoder, errorToStatus, isBrokenConnection, StreamWatcher } from '../../src/decode/stream-watcher.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { isStatus, type WatchEvent } from '../../src/watch/event.ts';

type Step = WatchEvent | undefined | { fail: unknown };

/** A decoder driven by hand: `give` settles the oldest pending decode, or waits for the next one. `ready` feeds `poll`. */
class HandDecoder implements Decoder<WatchEvent> {
  closes: number = 0;
  decodes: number = 0;
  ready: Step[] = [];
  private readonly steps: Step[] = [];
  private settle: ((step: Step) => void) | undefined = undefined;

  give(...steps: Step[]): this {
    for (const step of steps) {
      const settle = this.settle;
      this.settle = undefined;
      if (settle === undefined) this.steps.push(step);
      else settle(step);
    }
    return this;
  }

  decode(): Promise<WatchEvent | undefined> {
    this.decodes++;
    return new Promise((resolve, reject) => {
      const settle = (step: Step): void => {
        if (step !== undefined && 'fail' in step) reject(step.fail);
        else resolve(step);
      };
      if (this.steps.length > 0) settle(this.steps.shift());
      else this.settle = settle;
    });
  }

  poll(): WatchEvent | undefined {
    const step = this.ready.shift();
    if (step !== undefined && 'fail' in step) throw step.fail;
    return step;
  }

  close(): void {
    this.closes++;
    this.give(undefined);
  }
}

const event = (object: unknown): WatchEvent => ({ type: 'ADDED', object });
const reset = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
const DONE = { done: true, value: undefined };
const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve();
};

async function all(watcher: StreamWatcher<WatchEvent>): Promise<WatchEvent[]> {
  const got: WatchEvent[] = [];
  for (let read = await watcher.next(); read.done !== true; read = await watcher.next()) got.push(read.value);
  expect(await watcher.next()).toEqual(DONE);
  return got;
}

describe('StreamWatcher', () => {
  it('delivers decoded events until it is stopped (TestStreamWatcher)', async () => {
    const decoder = new HandDecoder().give(event(1));
    const watcher = new StreamWatcher(decoder);
    expect(await watcher.next()).toEqual({ done: false, value: event(1) });
    const pending = watcher.next();
    decoder.give(event(2));
    expect(await pending).toEqual({ done: false, value: event(2) });
    expect(watcher.stopped).toBe(false);
    expect(decoder.closes).toBe(0);
    watcher.stop();
    expect(watcher.stopped).toBe(true);
    expect(await watcher.next()).toEqual(DONE);
    expect(decoder.closes).toBe(1);
  });

  it('requests nothing before it is read, and one event at a time', async () => {
    const decoder = new HandDecoder();
    const watcher = new StreamWatcher(decoder);
    await turns();
    expect(decoder.decodes).toBe(0);
    const reads = [watcher.next(), watcher.next()];
    await turns();
    expect(decoder.decodes).toBe(1);
    decoder.give(event(1), event(2));
    expect(await Promise.all(reads)).toEqual([
      { done: false, value: event(1) },
      { done: false, value: event(2) },
    ]);
    expect(decoder.decodes).toBe(2);
  });

  it('ends without an ERROR when its stream ends (TestEmptyDecoder)', async () => {
    const decoder = new HandDecoder().give(undefined);
    const watcher = new StreamWatcher(decoder);
    expect(await all(watcher)).toEqual([]);
    expect([decoder.closes, decoder.decodes, watcher.stopped]).toEqual([1, 1, true]);
    watcher.stop();
    await watcher.return();
    expect(decoder.closes).toBe(1);
  });

  it('ends without an ERROR when its connection breaks (TestReadClientTimeout)', async () => {
    for (const error of [reset(), new DOMException('The operation timed out', 'TimeoutError')]) {
      const decoder = new HandDecoder().give(event(1), { fail: error });
      expect(await all(new StreamWatcher(decoder))).toEqual([event(1)]);
      expect(decoder.closes).toBe(1);
    }
  });

  it('reports any other error as one ERROR event, then ends (TestStreamWatcherError)', async () => {
    const error = new Error('test error');
    const object = { reported: true };
    const decoder = new HandDecoder().give(event(1), { fail: error }, event(2));
    const reportError = vi.fn(() => object);
    const watcher = new StreamWatcher(decoder, { reportError });
    expect(await watcher.next()).toEqual({ done: false, value: event(1) });
    expect(await watcher.next()).toEqual({ done: false, value: { type: 'ERROR', object } });
    expect([watcher.stopped, decoder.closes]).toEqual([true, 1]); // before anybody reads the end
    expect(await all(watcher)).toEqual([]);
    expect(reportError.mock.calls).toEqual([[error]]);
    expect([decoder.closes, decoder.decodes]).toEqual([1, 2]);
    watcher.stop();
    expect(await watcher.next()).toEqual(DONE);
    expect(decoder.closes).toBe(1);
  });

  it('reports with a Status by default', async () => {
    const got = await all(new StreamWatcher(new HandDecoder().give({ fail: new Error('odd') })));
    expect(got).toEqual([{ type: 'ERROR', object: errorToStatus(new Error('odd')) }]);
  });

  it('treats a decode that throws like one that rejects', async () => {
    const decoder: Decoder<WatchEvent> = {
      decode: () => {
        throw new Error('at once');
      },
      close: vi.fn(),
    };
    const got = await all(new StreamWatcher(decoder));
    expect(got.map(({ type, object }) => [type, (object as Error).message])).toEqual([
      ['ERROR', 'cannot decode the watch stream: at once'],
    ]);
    expect(decoder.close).toHaveBeenCalledTimes(1);
  });

  it('delivers nothing after stop, and leaves nothing pending, when an error arrives (TestStreamWatcherRace)', async () => {
    const decoder = new HandDecoder();
    const reportError = vi.fn(() => ({}));
    const watcher = new StreamWatcher(decoder, { reportError });
    const pending = [watcher.next(), watcher.next()];
    decoder.give({ fail: new Error('late') });
    watcher.stop();
    expect(await Promise.all(pending)).toEqual([DONE, DONE]);
    await turns();
    expect(reportError).not.toHaveBeenCalled();
    expect(await watcher.next()).toEqual(DONE);
    expect(decoder.closes).toBe(1);
  });

  it.each(['stop', 'return'] as const)('discards on %s an event that is decoded but not read', async (end) => {
    const decoder = new HandDecoder().give(event(1));
    const watcher = new StreamWatcher(decoder);
    expect(watcher.tryNext()).toBeUndefined(); // gets the source moving
    await turns();
    expect(watcher.queued).toBe(1);
    watcher[end]();
    expect([watcher.queued, watcher.dropped, watcher.stopped]).toEqual([0, 1, true]);
    expect(watcher.tryNext()).toBeUndefined();
    expect(await watcher.next()).toEqual(DONE);
    expect([decoder.closes, decoder.decodes]).toEqual([1, 1]);
  });

  it.each(['stop', 'return'] as const)('discards on %s an unread ERROR event', async (end) => {
    const decoder = new HandDecoder().give({ fail: new Error('odd') });
    const watcher = new StreamWatcher(decoder);
    watcher.tryNext();
    await turns();
    expect(watcher.queued).toBe(1);
    watcher[end]();
    expect(await all(watcher)).toEqual([]);
    expect(decoder.closes).toBe(1);
  });

  it('discards an event that a pending decode delivers after stop', async () => {
    const decoder = new HandDecoder();
    const watcher = new StreamWatcher(decoder);
    const pending = watcher.next();
    decoder.give(event(1)); // its decode has resolved, but nobody has heard yet
    watcher.stop();
    expect(await pending).toEqual(DONE);
    await turns();
    expect([watcher.queued, watcher.dropped]).toEqual([0, 1]);
  });

  it('closes its decoder when a loop is left early', async () => {
    const decoder = new HandDecoder().give(event(1), event(2));
    for await (const got of new StreamWatcher(decoder)) {
      expect(got).toEqual(event(1));
      break;
    }
    expect(decoder.closes).toBe(1);
  });

  it('closes its decoder when it is stopped before any read', async () => {
    const decoder = new HandDecoder();
    const watcher = new StreamWatcher(decoder);
    watcher.stop();
    watcher.stop();
    expect(await watcher.next()).toEqual(DONE);
    expect([decoder.closes, decoder.decodes]).toEqual([1, 0]);
  });

  it('rejects once, and leaves no read pending, when reportError throws', async () => {
    const decoder = new HandDecoder().give(event(1), { fail: new Error('odd') });
    const watcher = new StreamWatcher(decoder, {
      reportError: () => {
        throw new Error('mine');
      },
    });
    expect(await watcher.next()).toEqual({ done: false, value: event(1) });
    const pending = [watcher.next(), watcher.next()];
    await expect(pending[0]).rejects.toThrow('mine');
    expect(await pending[1]).toEqual(DONE);
    expect(await watcher.next()).toEqual(DONE);
    expect(decoder.closes).toBe(1);
  });

  it('ends even if close throws', async () => {
    const close = vi.fn(() => {
      throw new Error('close');
    });
    const decoder = (): Decoder<WatchEvent> => ({ decode: () => Promise.reject(new Error('odd')), close });
    expect((await all(new StreamWatcher(decoder()))).length).toBe(1);
    const watcher = new StreamWatcher(decoder());
    watcher.stop();
    expect(await all(watcher)).toEqual([]);
    expect(close).toHaveBeenCalledTimes(2);
  });

  it('can be stopped from inside reportError, and then reports nothing', async () => {
    const decoder = new HandDecoder().give({ fail: new Error('odd') });
    const watcher: StreamWatcher<WatchEvent> = new StreamWatcher(decoder, {
      reportError: () => {
        watcher.stop();
        return {};
      },
    });
    expect(await all(watcher)).toEqual([]);
    expect(decoder.closes).toBe(1);
  });
});

describe('StreamWatcher over a decoder that polls', () => {
  it('reads ready events without waiting, all of them as one batch', async () => {
    const decoder = new HandDecoder();
    const watcher = new StreamWatcher(decoder);
    decoder.ready = [event(1), event(2), event(3)];
    expect(watcher.tryNext()).toEqual(event(1));
    const batches = watcher.batches();
    expect(await batches.next()).toEqual({ done: false, value: [event(2), event(3)] });
    expect(decoder.decodes).toBe(0);
    decoder.give(event(4), undefined);
    expect(await batches.next()).toEqual({ done: false, value: [event(4)] });
    expect(await batches.next()).toEqual(DONE);
  });

  it('reports an error after the events before it, once, and stops polling', async () => {
    const decoder = new HandDecoder();
    const watcher = new StreamWatcher(decoder, { reportError: (error) => error as Error });
    const error = new Error('odd');
    decoder.ready = [event(1), event(2), { fail: error }, event(3)];
    const batches = watcher.batches();
    expect(await batches.next()).toEqual({ done: false, value: [event(1), event(2), { type: 'ERROR', object: error }] });
    expect(watcher.tryNext()).toBeUndefined();
    expect(await batches.next()).toEqual(DONE);
    expect([decoder.closes, decoder.decodes, decoder.ready.length]).toEqual([1, 0, 1]);
  });

  it('ends without an ERROR when a poll finds the connection broken', async () => {
    const decoder = new HandDecoder();
    decoder.ready = [event(1), { fail: reset() }];
    expect(await all(new StreamWatcher(decoder))).toEqual([event(1)]);
    expect([decoder.closes, decoder.decodes]).toEqual([1, 0]);
  });

  it('delivers no ready events after stop', async () => {
    const decoder = new HandDecoder();
    const watcher = new StreamWatcher(decoder);
    decoder.ready = [event(1), event(2), event(3)];
    expect(watcher.tryNext()).toEqual(event(1));
    watcher.stop();
    expect(watcher.tryNext()).toBeUndefined();
    expect(await all(watcher)).toEqual([]);
    expect(decoder.ready.length).toBe(2);
  });

  it('does not report, after stop, an error found by a poll', async () => {
    const decoder = new HandDecoder();
    const reportError = vi.fn(() => ({}));
    const watcher = new StreamWatcher(decoder, { reportError });
    decoder.ready = [event(1), { fail: new Error('odd') }];
    expect(watcher.tryNext()).toEqual(event(1));
    watcher.stop();
    expect(await all(watcher)).toEqual([]);
    expect(reportError).not.toHaveBeenCalled();
  });
});

describe('isBrokenConnection', () => {
  const coded = (code: unknown): Error => Object.assign(new Error('x'), { code });

  it.each([
    'ECONNRESET',
    'ECONNABORTED',
    'EPIPE',
    'ETIMEDOUT',
    'UND_ERR_SOCKET',
    'UND_ERR_BODY_TIMEOUT',
    'UND_ERR_HEADERS_TIMEOUT',
    'UND_ERR_CONNECT_TIMEOUT',
    'ERR_STREAM_PREMATURE_CLOSE',
    'ERR_HTTP2_GOAWAY_SESSION',
    'Z_BUF_ERROR',
  ])('is true for the code %s, also as a cause', (code) => {
    expect(isBrokenConnection(coded(code))).toBe(true);
    expect(isBrokenConnection({ code })).toBe(true);
    expect(isBrokenConnection(new Error('outer', { cause: new Error('inner', { cause: coded(code) }) }))).toBe(true);
  });

  it.each([
    'ECONNREFUSED',
    'ENOTFOUND',
    'XECONNRESET',
    'ECONNRESETX',
    'UND_ERR_ABORTED',
    'UND_ERR_TIMEOUT',
    'XUND_ERR_SOCKET',
    'ERR_HTTP2_GOAWAY_SESSIONS',
    7,
    undefined,
  ])('is false for the code %s', (code) => {
    expect(isBrokenConnection(coded(code))).toBe(false);
  });

  it.each([
    'terminated',
    'network error',
    'NetworkError when attempting to fetch resource.',
    'Error in input stream',
    'Load failed',
    'The network connection was lost.',
  ])('is true for a TypeError of "%s", and for no other error of that text', (message) => {
    expect(isBrokenConnection(new TypeError(message))).toBe(true);
    expect(isBrokenConnection(new Error('outer', { cause: new TypeError(message) }))).toBe(true);
    expect(isBrokenConnection(new Error(message))).toBe(false);
    expect(isBrokenConnection(new TypeError(`not: ${message}`))).toBe(false);
  });

  it.each(['Z_DATA_ERROR', 'ZSTD_error_corruption_detected', 'ERR__ERROR_FORMAT_HUFFMAN_SPACE', 'HPE_INVALID_CHUNK_SIZE'])(
    'is false for a fetch that was terminated because its bytes were bad: %s',
    (code) => {
      expect(isBrokenConnection(new TypeError('terminated', { cause: coded(code) }))).toBe(false);
      expect(isBrokenConnection(new TypeError('terminated', { cause: coded('UND_ERR_INFO') }))).toBe(true);
      expect(isBrokenConnection(new TypeError('terminated', { cause: new Error(code) }))).toBe(true);
      expect(isBrokenConnection(new TypeError('terminated', { cause: null }))).toBe(true);
    },
  );

  it('is true where the parser, or the decompressor, says that the bytes end too early', () => {
    // Undici parses on to the end of the connection if the server has sent `connection: close`. Some releases give no code.
    const message = 'Response does not match the HTTP/1.1 protocol (Invalid EOF state)';
    const early = [
      { name: 'HTTPParserError' },
      { name: 'HTTPParserError', code: 'HPE_INVALID_EOF_STATE' },
      { code: 'Z_BUF_ERROR' },
    ];
    for (const cause of early.map((own) => Object.assign(new Error(message), own)))
      expect(isBrokenConnection(new TypeError('terminated', { cause }))).toBe(true);
  });

  it('is false for a fetch that the HTTP parser terminated, also where undici gives it no code', () => {
    const cause = Object.assign(new Error('x'), { name: 'HTTPParserError', code: undefined });
    expect(isBrokenConnection(new TypeError('terminated', { cause }))).toBe(false);
  });

  it('is true for a timeout, not for an abort', () => {
    expect(isBrokenConnection(AbortSignal.abort().reason)).toBe(false);
    expect(isBrokenConnection(new DOMException('x', 'TimeoutError'))).toBe(true);
  });

  it.each([undefined, null, 'ECONNRESET', 7, new TypeError('terminated early'), new SyntaxError('terminated'), {}])(
    'is false for %s',
    (value) => {
      expect(isBrokenConnection(value)).toBe(false);
    },
  );

  it('looks at five nested causes, and no deeper', () => {
    const nested = (depth: number): Error => (depth === 0 ? reset() : new Error('outer', { cause: nested(depth - 1) }));
    expect(isBrokenConnection(nested(5))).toBe(true);
    expect(isBrokenConnection(nested(6))).toBe(false);
    const loop: { cause?: unknown } = {};
    loop.cause = loop;
    expect(isBrokenConnection(loop)).toBe(false);
    expect(isBrokenConnection(new Error('outer', { cause: 'ECONNRESET' }))).toBe(false);
  });
});

describe('errorToStatus', () => {
  it('is a 500 with both causes', () => {
    const status = errorToStatus(new WatchError('INVALID_FRAME', 'bad frame'));
    expect(status).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      code: 500,
      reason: 'InternalError',
      message: 'cannot decode the watch stream: bad frame',
      details: {
        causes: [
          { reason: 'UnexpectedServerResponse', message: 'bad frame' },
          { reason: 'ClientWatchDecoding', message: 'bad frame' },
        ],
      },
    });
    expect(isStatus(status)).toBe(true);
  });

  it('is a 413 for a frame over the limit', () => {
    const status = errorToStatus(new WatchError('FRAME_TOO_LARGE', 'too long', { limit: 3 }));
    expect([status.code, status.reason, status.message]).toEqual([
      413,
      'RequestEntityTooLarge',
      'cannot decode the watch stream: too long',
    ]);
    expect(status.details?.causes?.length).toBe(2);
  });

  it.each([
    ['text', 'text'],
    [undefined, 'undefined'],
    [null, 'null'],
    [Symbol('s'), 'Symbol(s)'],
    [{ status: 5 }, 'Object {status}'],
  ])('returns what it can about %s', (error, what) => {
    expect(errorToStatus(error).message).toBe(`cannot decode the watch stream: ${what}`);
  });
});

describe('what is no decoder, or no function', () => {
  it.each([
    ['the body of a response', new Response('{}').body, 'decoder: expected a Decoder (see toDecoder), got ReadableStream {}'],
    ['nothing', undefined, 'decoder: expected a Decoder (see toDecoder), got undefined'],
  ])('%s is refused at once', (_, decoder, message) => {
    const refused = expect(() => new StreamWatcher(decoder as never));
    refused.toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
  });

  it('a reportError that is no function is refused at once', () => {
    const reportError = 'yes' as never;
    expect(() => new StreamWatcher(new HandDecoder(), { reportError })).toThrow('reportError: expected a function, got "yes"');
  });
});
