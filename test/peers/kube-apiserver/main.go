// One process: a kube-apiserver and, if ETCD_DIR is set, the etcd that it uses. Every argument goes to the kube-apiserver.
// With the single argument `etcd` it is only the etcd, and with ETCD_MEMBERS one member of a cluster. With END_WITH_STDIN it ends with its standard input, so that it never
// outlives a test that has been killed.
package main

import (
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// advertised is the address under which the others know a member: that of a proxy before it, maybe.
func advertised(members, name string) string {
	for _, member := range strings.Split(members, ",") {
		if url, found := strings.CutPrefix(member, name+"="); found {
			return url
		}
	}
	panic("ETCD_MEMBERS has no " + name)
}

// startEtcd resolves when it serves gRPC and its JSON gateway, both on one port.
func startEtcd(dir string) *embed.Etcd {
	client := must(url.Parse(os.Getenv("ETCD_URL"))) // such as http://127.0.0.1:2379
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.UnsafeNoFsync = true // for test data only
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}} // a single member has no peers
	if members := os.Getenv("ETCD_MEMBERS"); members != "" {                 // such as m1=http://127.0.0.1:2380,m2=...
		config.Name = os.Getenv("ETCD_NAME") // such as m1
		config.InitialCluster = members
		config.ListenPeerUrls = []url.URL{*must(url.Parse(os.Getenv("ETCD_PEER_URL")))}
		config.AdvertisePeerUrls = []url.URL{*must(url.Parse(advertised(members, config.Name)))}
	}
	if every := os.Getenv("ETCD_PROGRESS"); every != "" {                    // such as 1s
		config.WatchProgressNotifyInterval = must(time.ParseDuration(every))
	}
	tls := &config.ClientTLSInfo // for an https ETCD_URL; with a CA, clients need a certificate of it
	tls.CertFile, tls.KeyFile, tls.TrustedCAFile = os.Getenv("ETCD_CERT"), os.Getenv("ETCD_KEY"), os.Getenv("ETCD_CLIENT_CA")
	tls.ClientCertAuth = tls.TrustedCAFile != ""
	etcd := must(embed.StartEtcd(config))
	<-etcd.Server.ReadyNotify()
	return etcd
}

func main() {
	if os.Getenv("END_WITH_STDIN") != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	var etcd *embed.Etcd
	if dir := os.Getenv("ETCD_DIR"); dir != "" {
		etcd = startEtcd(dir)
	}
	if len(os.Args) == 2 && os.Args[1] == "etcd" {
		panic(<-etcd.Err())
	}
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
