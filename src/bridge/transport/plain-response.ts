import { ServerResponse } from 'node:http';

/** Whether bytes written to the socket equal those written to the response: chunked, and not transformed by anyone. */
export function isPlain(response: ServerResponse): boolean {
  const { socket } = response;
  return (
    response instanceof ServerResponse &&
    socket !== null &&
    response.chunkedEncoding &&
    response.write === ServerResponse.prototype.write &&
    response.end === ServerResponse.prototype.end &&
    !response.hasHeader('content-encoding') &&
    response.writableCorked === 0 &&
    // The headers are being sent, and nothing else waits inside the response.
    response.writableLength === socket.writableLength
  );
}
