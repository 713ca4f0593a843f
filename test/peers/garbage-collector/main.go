// Kubernetes' own garbage collector, without the rest of kube-controller-manager: -server, -ca and -token say where it collects. It
// ends with its standard input, so that it never outlives a test that has been killed.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"time"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	server := flag.String("server", "", "such as https://127.0.0.1:6443")
	ca := flag.String("ca", "", "the file of the certificate that signs the server's")
	token := flag.String("token", "", "of the client")
	flag.Parse()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	config := &rest.Config{Host: *server, BearerToken: *token, QPS: 1000, Burst: 1000}
	config.TLSClientConfig.CAFile = *ca
	kube := must(clientset.NewForConfig(config))
	client := must(metadata.NewForConfig(config))
	known := memory.NewMemCacheClient(kube.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(known)
	shared := informerfactory.NewInformerFactory(
		informers.NewSharedInformerFactory(kube, 0),
		metadatainformer.NewSharedInformerFactory(client, 0),
	)
	started := make(chan struct{})
	close(started)
	collector := must(garbagecollector.NewGarbageCollector(
		ctx, kube, client, mapper, garbagecollector.DefaultIgnoredResources(), shared, started,
	))
	go collector.Sync(ctx, kube.Discovery(), time.Second)
	collector.Run(ctx, 20, 5*time.Second)
}
