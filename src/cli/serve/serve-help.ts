export const SERVE = `watchmux serve: an API server for your own objects, for kubectl and other Kubernetes clients

Usage
  watchmux serve [options]
  kubectl --server http://127.0.0.1:8080 get configmaps --watch

The server prints "listening on http://HOST:PORT" on stdout, and then serves Kubernetes' HTTP protocol: get, list, watch,
create, update, patch, delete, discovery and OpenAPI, and also /healthz, /readyz, /metrics and /stats. Browsers get a page
at / that shows objects as they change. The configmaps and namespaces of v1 are always served; --resource adds kinds of your
own. Objects are in memory, and lost when the server ends, unless --data, --sqlite or --etcd keeps them.

Options
  --port P           port, default 8080, which is also kubectl's default; 0 picks a free one
  --host H           address to listen on, default 127.0.0.1 (this machine only); any other needs --token
  --resource R       serve a kind: PLURAL.GROUP/VERSION=Kind[:cluster], such as orders.example.com/v1=Order; its objects are
                     in namespaces unless you append :cluster; may be repeated
  --token T          clients must send this bearer token. kubectl sends tokens over HTTPS only. Other users of this machine
                     may see the token in the list of processes
  --tls-cert FILE, --tls-key FILE
                     serve HTTPS with this certificate and its key, both in PEM
  --data FILE        keep the objects in this file, so that they survive a restart, and a crash
  --sqlite FILE      keep the objects in this file of SQLite, which several servers of this machine may share; needs Node
                     22.13 or newer
  --etcd URL         keep the objects in etcd; may be repeated for the members of one cluster
  --prefix P         prefix of all keys in etcd, default /watchmux/
  --etcd-ca FILE     trust the certificates of this CA, in PEM, for etcd's https: URLs; default: the host's
  --etcd-cert FILE, --etcd-key FILE
                     show etcd this certificate, both in PEM
  --etcd-user NAME   the user in etcd. The password is in --etcd-password-file, or in the environment variable
                     WATCHMUX_ETCD_PASSWORD. Other users of this machine may see one that is in the URL
  --etcd-password-file FILE
                     the file with that password

Operation
  --token-file F     file of tokens and their tenants, one "TOKEN TENANT" per line; each tenant has its own limits
  --keep-alive S     how many seconds a connection is kept that waits for its next request. Default 120: longer than clients
                     and load balancers keep theirs, so that none of them uses one that has just been closed
  --metrics [HOST:]PORT
                     also serve /metrics, /healthz, /livez and /readyz there, without a token; default host 127.0.0.1
  --log FORMAT       one line per noteworthy event on stderr: text (the default), or json
  --drain S          seconds that a shutdown may take; whatever has not ended by then is cut. Default 10
  --drain-delay S    how many of these seconds /readyz fails while all is served as before, so that load balancers notice.
                     Default 0
  --client-address H behind a proxy: the header in which it passes on the client's address, such as x-forwarded-for, whose
                     last entry counts. Clients that bypass the proxy can forge it
  --max-watchers N, --max-watchers-per-address N, --max-requests-per-address N
                     limits, beyond which clients get a 429. Default 10000, 1000 and 200
  --max-watchers-per-tenant N, --max-requests-per-tenant N, --max-writes-per-second-per-tenant N
                     the same for each tenant of --token-file. Default 2000, 100 and 1000; 0 writes: no limit

On SIGINT or SIGTERM, /readyz fails, running requests are answered, watches end one after the other, and the exit code is
0; or 1, if the disk has failed. A second signal exits at once.

The files of tokens, certificates, keys and the password are read again when they change, within 5 s, and on SIGHUP, which
does not end the server. A file that has become invalid is reported on stderr, and what was read before remains in use.

Exit codes: 0 end; 1 the storage failed; 2 invalid usage, cannot open the storage, or cannot listen on this host or port.
`;
