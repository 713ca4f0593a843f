import type { CommandName } from './args.ts';

const GENERAL = `watchmux: one stream of events, many bounded watchers

Usage
  <program> | watchmux pipe [options]    serve lines from stdin to WebSocket, SSE and HTTP clients
  watchmux watch URL                     print the events of such a server, one line each
  watchmux demo [DIR]                    see it work on real files, with nothing else installed

  watchmux <command> --help              all about a command
  watchmux --version                     which watchmux this is

Try
  tail -F /var/log/syslog | watchmux pipe --raw
  docker events --format '{{json .}}' | watchmux pipe --replay 50
  watchmux watch http://127.0.0.1:8080 | jq .object
`;

const PIPE = `watchmux pipe: serve lines from stdin, each client with a bounded queue of its own

Usage
  <program> | watchmux pipe [options]

What goes in: JSON, a value per line. {"type": ..., "object": ...} is passed as it is, any other value becomes
{"type":"ADDED","object":<value>}. Blank lines are passed over. A line that is not JSON, or longer than 16 MiB, is reported
on stderr with its number and skipped.

What is served, once "listening on http://HOST:PORT" stands on stdout
  /watch   WebSocket: a text message per event. HTTP: a line per event. SSE for who accepts text/event-stream
  /        a live page: events, their rate, clients, their queues, lag and drops; it can make itself slow, to see the policy work
  /stats   the numbers of that page, as JSON

Options
  --port P           port, default 8080; 0 picks a free one
  --host H           address to listen at, default 127.0.0.1: this machine only
  --capacity N       events queued per client, default 100
  --overflow POLICY  what happens when a client's queue is full, default disconnect:
                       disconnect   it gets its queue, then one ERROR event that says how much it missed, then the end
                       wait         stdin waits for it: nothing is lost, and the slowest client sets the pace
                       drop-newest  new events are dropped for this client
                       drop-oldest  its oldest queued events are dropped
                       coalesce     only the latest state of each object (by metadata namespace and name) is kept
  --replay N         a new client first gets the last N events, default 0
  --window N         events kept, 8 MiB at most, for clients that come back and go on where they were, default 1000
  --raw              any line is passed as a string; a blank one as an empty string
  --keep-open        go on serving after the end of stdin, until a signal
  --drain SECONDS    at the end, how long clients have to take what is queued for them, default 5

At the end of stdin, and on SIGINT or SIGTERM, clients get what is queued for them, and the streams end; after a signal
clients are asked to come back within 5 s. A second signal exits at once. A client that takes nothing for 30 s while bytes
wait for it is cut, whatever the policy.

Exit codes: 0 the end, 1 stdin could not be read, 2 bad option or no such address or port.
`;

const WATCH = `watchmux watch: print the events of a server as lines

Usage
  watchmux watch URL [options]

URL is what "watchmux pipe" printed, or any address that answers with a JSON event per line. A URL without a path means
its /watch. Each event is printed as it came, on a line of its own. Reading waits for whoever reads the output.

A connection that breaks is made again, after a wait that grows up to 5 s, and the stream goes on where it was: nothing is
printed twice, and nothing is missed. Where that is not possible, because the server has started again or keeps what was missed
no more, the last line is an ERROR of code 410. Ctrl-C ends it.

Options
  --transport T      http (default), sse, or websocket, which needs the package ws
  --resume VERSION   begin after this version: the resourceVersion of the last event that you have
  --no-reconnect     a connection that breaks is the end

Exit codes: 0 the stream ended, or nobody reads the output any more; 1 no connection to begin with, one that broke and could not
be continued, or a stream whose last event was an ERROR; 2 bad usage.
`;

const DEMO = `watchmux demo: real files, watched by a fast and by a slow reader

Usage
  watchmux demo [DIR] [--seconds N]

A worker adds, changes and removes files in a temporary directory; everything that happens to *.txt there goes through a
Broadcaster, a filter and an HTTP bridge. One watcher reads at full speed, over HTTP. One is slow on purpose: its queue is
short, and it is told exactly what it lost. The sum at the end adds up.

  DIR            use this directory, and see your own edits, too; the worker touches only its own files, demo-*
  --seconds N    how long, default 10; Ctrl-C ends it before

Exit codes: 0 the end, 1 the sum did not add up, 2 bad usage or no such directory.
`;

/** Returns the help text of a command, or the general one. */
export function helpText(topic: CommandName | undefined): string {
  if (topic === undefined) return GENERAL;
  return { pipe: PIPE, watch: WATCH, demo: DEMO }[topic];
}
