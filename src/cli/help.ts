import { OVERFLOWS, type Overflow } from '../watch/overflow.ts';
import type { CommandName } from './usage.ts';

/** What happens when a client's queue is full. */
const POLICIES: Readonly<Record<Overflow, string>> = {
  disconnect: 'it gets its queued events, then one ERROR event that says how many it missed, then the end',
  wait: 'reading from stdin waits: nothing is lost, but the slowest client sets the pace',
  'drop-newest': 'new events are dropped for this client',
  'drop-oldest': 'its oldest queued events are dropped',
  coalesce:
    'only the latest state of each object (by metadata namespace and name) is kept; a line\n' +
    'without a name counts as an object of its own; a client for which more than --capacity\n' +
    'objects wait gets one ERROR event instead of them, then the end',
};

const POLICY_LINES: string = OVERFLOWS.map(
  (policy) => `${' '.repeat(23)}${policy.padEnd(13)}${POLICIES[policy].replaceAll('\n', `\n${' '.repeat(36)}`)}`,
).join('\n');

const GENERAL = `watchmux: serve and watch streams of events, and collections of Kubernetes objects

Usage
  <program> | watchmux pipe [options]    serve lines from stdin to WebSocket, SSE and HTTP clients
  watchmux watch URL                     print the events of such a server, one per line
  watchmux get URL_OR_RESOURCE           print the objects of a collection, and its changes with --watch
  watchmux serve [options]               serve your own objects to kubectl and other Kubernetes clients
  watchmux new operator NAME             start an operator: a project that builds and passes its test
  watchmux check FILE                    check a file of "watchmux serve --data", or a copy of one
  watchmux types FILE_OR_URL             write TypeScript for the kinds of definitions, or of a server
  watchmux demo [DIR]                    run a demo on real files; needs nothing else

  watchmux <command> --help              show the help of a command
  watchmux --version                     show the version

Write an option as --name VALUE or --name=VALUE. If it is given more than once, the last one counts, unless its help says that
it may be repeated.

Examples
  tail -F /var/log/syslog | watchmux pipe --raw --title 'System log'
  docker events --format '{{json .}}' | watchmux pipe --replay 50
  watchmux watch http://127.0.0.1:8080 | jq .object
`;

const PIPE = `watchmux pipe: serve lines from stdin, with a bounded queue for each client

Usage
  <program> | watchmux pipe [options]

Input: one JSON value per line. A value of the form {"type": ..., "object": ...} is an event and is passed on unchanged. Any
other value becomes {"type":"ADDED","object":<value>}. Blank lines are ignored. A line that is not JSON, or is longer than
16 MiB, is skipped and reported on stderr with its number.

The server prints "listening on http://HOST:PORT" on stdout, and then serves
  /watch   the events: over WebSocket (one message each), HTTP (one line each), or SSE if Accept has text/event-stream
  /        a live page: events with levels, columns and a filter; clients, and their queues, lag and losses
  /stats   the numbers of that page, as JSON
  /metrics the totals of these numbers, for Prometheus

Options
  --port P           port, default 8080; 0 picks a free one
  --host H           address to listen on, default 127.0.0.1 (this machine only)
  --capacity N       events queued per client, default 100
  --overflow POLICY  what happens when a client's queue is full, default disconnect:
${POLICY_LINES}
  --max-queued-bytes N
                     a client for which more bytes are queued is cut, whatever the policy; default 67108864 (64 MiB)
  --replay N         send the last N events to a new client first, if they have at most 8 MiB, and fewer if not; default 0
  --window N         events kept (at most 8 MiB) for clients that reconnect and resume, default 1000 or --replay, whichever is
                     more
  --raw              pass on each line as a string; a blank line is an empty string
  --keep-open        continue to serve after the end of stdin, until a signal
  --title TEXT       heading of the live page
  --keep-alive SECONDS
                     how long an idle connection is kept open for the next request, default 120
  --drain SECONDS    how long clients have at the end to take their queued events, default 5

At the end of stdin, and on SIGINT, SIGTERM or SIGHUP, clients get their queued events, and then their streams end. After a
signal, clients are also told to reconnect within 5 s. A second signal exits at once. To let the server outlive the terminal,
start it with setsid; nohup has no effect on Node. A client that takes nothing for 30 s while bytes wait for it is cut,
whatever the policy.

Exit codes: 0 end; 1 stdin could not be read, or output not written; 2 invalid usage, or cannot listen on this host or port.
`;

const WATCH = `watchmux watch: print the events of a server, one per line

Usage
  watchmux watch URL [options]

URL is what "watchmux pipe" printed, or any address that responds with one JSON event per line. A URL without a path means
its /watch. Each event is printed as it was received, on one line. It reads no faster than its own output is read.

If the connection breaks, the command reconnects, after a delay that grows up to 5 s, and resumes: no event is printed twice
or missed. If it cannot resume, because the server has restarted or no longer keeps the missed events, the last line is an
ERROR with code 410. Ctrl-C ends the command.

Options
  --transport T      http, sse, or websocket, which needs the package ws; default websocket for a ws: or wss: URL, else http
  --resume VERSION   start after this version: the resourceVersion of the last event that you have
  --no-reconnect     end when the connection breaks

Exit codes: 0 the stream ended, or the output is no longer read; 1 no connection could be made, it broke and could not be
resumed, the last event was an ERROR, or the output could not be written; 2 invalid usage; 128 and the number of the signal
that ended it, such as 130 for Ctrl-C.
`;

const GET = `watchmux get: print the objects of a collection, now or as they change

Usage
  watchmux get URL [options]
  watchmux get RESOURCE [NAME] [options]

URL is the address of a collection on any server that speaks Kubernetes' list/watch protocol, such as
http://127.0.0.1:8080/api/v1/pods. RESOURCE is a resource of the cluster in your kubeconfig, by any name that kubectl accepts:
pods, deploy, deployments.apps, orders.example.com/v1. A kubeconfig in YAML needs the package yaml.

The list is read in pages of 500, and printed page by page. A server that makes tables, as a kube-apiserver does, chooses the
columns; otherwise, the name and the age are printed.

With --watch, the current objects are printed first, and then each change. If the connection breaks, or the server no longer
has the missed changes (410), the command reconnects or lists again, and prints what has changed in the meantime. If the output
is read slowly, several changes of one object may become one. Ctrl-C ends the command.

Options
  -w, --watch              continue with changes, until a signal
  -o, --output FORMAT      table, the default; json: one List object, or with NAME the object, or with --watch one event per
                           line; name: NAMESPACE/NAME, or NAME; with --watch, after the type of the change
  -l, --selector S         only objects with these labels, such as app=web,tier!=db
      --field-selector S   only objects with these fields, such as status.phase=Running
      --limit N            print at most N objects
      --kubeconfig FILE    default: $KUBECONFIG, ~/.kube/config, or the service account of a pod
      --context NAME       the context in it; default: its current one
  -n, --namespace NAME     default: the context's
  -A, --all-namespaces     the objects in all namespaces
      --token TOKEN        send this bearer token; other users of this machine may see it, so prefer a kubeconfig
      --header 'NAME: VALUE'
                           send this header; may be repeated
      --timeout SECONDS    time for the server to answer, default 60; 0: no limit

To trust a server with a private CA, set NODE_EXTRA_CA_CERTS to a file with the CA's certificate. A URL is requested
directly. For a cluster, the proxy-url in the kubeconfig is used, or else HTTPS_PROXY and NO_PROXY.

Exit codes: 0 end, or the output is no longer read; 1 the server cannot be reached or refuses, there is no object NAME, or the
output could not be written; 2 invalid usage, no such resource, or no kubeconfig.
`;

const DEMO = `watchmux demo: real files, watched by a fast reader and a slow one

Usage
  watchmux demo [DIR] [--seconds N]

A worker adds, changes and removes files in a temporary directory. All changes of *.txt files go through a Broadcaster, a
filter and an HTTP bridge. One watcher reads at full speed, over HTTP. The other one is slow on purpose: its queue is short,
and it is told exactly how many events it lost. [##..] shows how full a queue is. At the end, the numbers of both add up. The
server has a page, whose address is printed; a button there slows that page down on purpose.

  DIR            use this directory, to see your own edits as well; the worker touches only its own files, demo-*
  --seconds N    duration, default 10; Ctrl-C ends it earlier

Exit codes: 0 end; 1 the numbers do not add up, or the output could not be written; 2 invalid usage, or no directory.
`;

const NEW = `watchmux new: start an operator

Usage
  watchmux new operator NAME [options]

Writes a project into the folder NAME, which must be new or empty: the definition of a kind, a controller, a test of it that
needs no cluster, a Dockerfile, and manifests with the rights that the operator uses, and no others. It installs nothing, and
does not use the network.

  NAME               the name of the folder, of the package, and of the operator in a cluster, such as website-operator

Options
  --kind KIND        the kind, such as Website. Default: NAME without -operator, as in Website
  --group GROUP      the group of the kind: a domain name that you own. Default example.com

Exit codes: 0 end; 1 the files or the output could not be written; 2 invalid usage, or the folder is not empty.
`;

const CHECK = `watchmux check: check a data file of "watchmux serve", or a copy of one

Usage
  watchmux check FILE

Reads the whole file, verifies its checksums, and checks each object. It changes nothing, and the file may be in use. It
prints a line, which begins with
  whole    and says what is in the file. A copy that was made while the server was writing may end with part of a write that
           was not yet confirmed: such a copy is whole, too, and a second line says how long that part is
  damaged  and says where, and why

Exit codes: 0 the file is whole; 1 it is damaged, or the output could not be written; 2 invalid usage, or the file cannot be
read.
`;

const TYPES = `watchmux types: write TypeScript interfaces for kinds

Usage
  watchmux types FILE_OR_DIR... [options]
  watchmux types URL [options]
  watchmux types --kind KIND [--context NAME] [options]

Reads CustomResourceDefinitions and OpenAPI v3 documents from YAML or JSON files, which may have several documents each, or
from all such files in a folder; or the OpenAPI v3 documents of a server: the one at the URL, or the cluster in your
kubeconfig. YAML needs the package yaml.

For each kind, it writes an interface with its documentation, interfaces for nested objects, and a constant that names the
kind, for an operator or a cluster of watchmux. The same input always gives the same bytes.

Options
  --kind KIND        only this kind, by kind or plural, such as Website, websites.example.com or deployments.apps/v1; a name
                     without a group means that of the first group that has it; may be repeated. Default: all kinds
  --out FILE         write this file; default: stdout
  --kubeconfig FILE  default: $KUBECONFIG, ~/.kube/config, or the service account of a pod
  --context NAME     the context in it; default: its current one
  --token TOKEN      send this bearer token; other users of this machine may see it, so prefer a kubeconfig
  --header 'NAME: VALUE'
                     send this header; may be repeated
  --timeout SECONDS  time for the server to answer, default 60; 0: no limit

A file, or a document of a server, may have up to 64 MiB.

Exit codes: 0 written; 1 the server cannot be reached or refuses, or the output could not be written; 2 invalid usage, no such
kind, no kubeconfig, or a file that cannot be read.
`;

const SERVE = `watchmux serve: an API server for your own objects, for kubectl and other Kubernetes clients

Usage
  watchmux serve [options]
  kubectl --server http://127.0.0.1:8080 get configmaps --watch

The server prints "listening on http://HOST:PORT" on stdout, and then serves Kubernetes' HTTP protocol: get, list, watch,
create, update, patch, delete, discovery and OpenAPI, and also /healthz, /readyz, /metrics and /stats. Browsers get a page
at / that shows objects as they change. ConfigMaps, events, leases, namespaces, secrets, service accounts and reviews of
one's own rights are always served. Clients can add kinds with CustomResourceDefinitions, as in a cluster; --resource,
--crd and --kubernetes-kinds add them at the start. When an object is deleted, so is everything that it owns. Objects are in
memory, and lost when the server ends, unless --data, --sqlite or --etcd keeps them.

Options
  --port P           port, default 8080, which is also kubectl's default; 0 picks a free one
  --host H           address to listen on, default 127.0.0.1 (this machine only); any other needs a token:
                     --token or --token-file
  --resource R       serve a kind: PLURAL[.GROUP]/VERSION=Kind[:cluster][:status][:scale], such as
                     orders.example.com/v1=Order:status, or pods/v1=Pod of the core group; its objects are in namespaces
                     unless you append :cluster; :status and :scale make these subresources. Of Kubernetes' own kinds, all
                     of this is known, and their fields; may be repeated
  --kubernetes-kinds
                     serve Kubernetes' own kinds, too: Pods, Services, Deployments, Jobs, Nodes, roles and all other stable
                     ones. Nothing acts on them but the controllers that you start
  --crd FILE_OR_DIR  create the CustomResourceDefinitions in a YAML or JSON file, or in all such files of a folder; update
                     those that exist but differ; may be repeated. YAML needs the package yaml
  --managed-fields M the new objects whose fields have managers: named (the default), those whose creator names itself as
                     kubectl does; or always, as in a cluster
  --webhooks         clients may register webhooks, with Mutating- and ValidatingWebhookConfigurations: they are asked before
                     anything is written, at the URLs that the client has chosen
  --webhook-service NAMESPACE/NAME=HOST:PORT
                     the same, and where the webhooks of this service listen; may be repeated
  --token T          clients must send this bearer token. kubectl sends tokens over HTTPS only. Other users of this machine
                     may see the token in the list of processes
  --tls-cert FILE, --tls-key FILE
                     serve HTTPS with this certificate and its key, both in PEM
  --data FILE        keep the objects in this file, so that they survive a restart, and a crash
  --sqlite FILE      keep the objects in this SQLite file, which several servers on this machine may share; needs Node
                     22.13 or newer
  --etcd URL         keep the objects in etcd; may be repeated for the members of one cluster
  --prefix P         prefix of all keys in etcd, default /watchmux/
  --etcd-ca FILE     trust the certificates of this CA, in PEM, for etcd's https: URLs; default: the host's
  --etcd-cert FILE, --etcd-key FILE
                     the client certificate for etcd and its key, both in PEM
  --etcd-user NAME   the user in etcd. The password comes from --etcd-password-file, or from the environment variable
                     WATCHMUX_ETCD_PASSWORD. Other users of this machine may see a password that is in the URL
  --etcd-password-file FILE
                     the file with that password

Operation
  --token-file F     file of tokens and their tenants, one "TOKEN TENANT" per line; each tenant has its own limits
  --keep-alive S     seconds for which an idle connection is kept open for the next request. Default 120: longer than clients
                     and load balancers keep theirs, so that none of them uses one that has just been closed
  --metrics [HOST:]PORT
                     also serve /metrics, /healthz, /livez and /readyz there, without a token; default host 127.0.0.1
  --log FORMAT       one line per noteworthy event on stderr: text (the default), or json
  --drain S          seconds that a shutdown may take; whatever has not ended by then is cut. Default 10
  --drain-delay S    how many of these seconds /readyz already fails while everything is still served, so that load balancers
                     notice. Default 0
  --client-address H behind a proxy: the header in which it passes on the client's address, such as x-forwarded-for, whose
                     last entry counts. Clients that bypass the proxy can forge it
  --max-watchers N, --max-watchers-per-address N, --max-requests-per-address N
                     limits; a client beyond them gets a 429. Default 10000, 1000 and 200
  --max-watchers-per-tenant N, --max-requests-per-tenant N, --max-writes-per-second-per-tenant N
                     the same for each tenant of --token-file. Default 2000, 100 and 1000; 0 writes: no limit

On SIGINT or SIGTERM, /readyz fails, running requests are answered, watches end one after the other, and the exit code is
0; or 1, if the disk has failed. A second signal exits at once.

Files with tokens, certificates, keys and the password are read again within 5 s of a change, and on SIGHUP, which does not
end the server. If a file has become invalid, that is reported on stderr, and its last valid content remains in use.

Exit codes: 0 end; 1 the storage failed; 2 invalid usage, cannot open the storage, or cannot listen on this host or port.
`;

/** Returns the help text of a command, or the general one. */
export function helpText(topic: CommandName | undefined): string {
  if (topic === undefined) return GENERAL;
  return { pipe: PIPE, watch: WATCH, get: GET, serve: SERVE, new: NEW, check: CHECK, types: TYPES, demo: DEMO }[topic];
}
