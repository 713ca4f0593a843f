// Clients of client-go that tests drive. Each prints what it is told, a line of JSON each, and reads lines: `dump` prints what it has;
// `quit`, or the end of the input, ends it.
//
//	client-go informer      --server URL --namespace NS [--dynamic] [--watch-list=false]
//	client-go retry-watcher --server URL --namespace NS --from VERSION
//	client-go writer        --server URL --namespace NS --seed N
//	client-go elect         --server URL --namespace NS --name LEASE --identity ID
//	client-go scale         --server URL --namespace NS --name FLEET
//	client-go record        --server URL --namespace NS --name MAP
//	client-go typed         --server URL --namespace NS
//	client-go table         prints what is known of Kubernetes' own types
//	client-go kinds         makes and reads objects of them, in JSON and protobuf
//
// The first three are about ConfigMaps; scale reads and writes how many a fleet of example.com is.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	clientscale "k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	watchtools "k8s.io/client-go/tools/watch"
)

var (
	server    = flag.String("server", "", "the URL of the server")
	namespace = flag.String("namespace", "default", "where the objects are")
	watchList = flag.Bool("watch-list", true, "whether informers stream their first list")
	isDynamic = flag.Bool("dynamic", false, "whether the informer has objects without a type, and so speaks JSON alone")
	from      = flag.String("from", "", "the version after which a retry-watcher begins")
	seed      = flag.Uint64("seed", 1, "of what a writer does")
	name      = flag.String("name", "leader", "of the Lease")
	identity  = flag.String("identity", "", "of a candidate")
)

// Short, so that tests are, and long enough for a busy machine. A Lease counts whole seconds.
const (
	leaseDuration = 4 * time.Second
	renewDeadline = 3 * time.Second
	retryPeriod   = 300 * time.Millisecond
)

type line map[string]any

var output sync.Mutex

// say prints one line.
func say(what line) {
	output.Lock()
	defer output.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(what); err != nil {
		os.Exit(1) // nobody listens any more
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// keep is what a client knows: versions by key.
type keep struct {
	sync.Mutex
	versions map[string]string
}

func (k *keep) dump() map[string]string {
	k.Lock()
	defer k.Unlock()
	copied := make(map[string]string, len(k.versions))
	for key, version := range k.versions {
		copied[key] = version
	}
	return copied
}

// tell prints what has happened to an object.
func tell(what string, object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	accessor := must(meta.Accessor(object))
	say(line{"type": what, "key": keyOf(accessor), "resourceVersion": accessor.GetResourceVersion()})
}

func keyOf(object metav1.Object) string {
	return object.GetNamespace() + "/" + object.GetName()
}

// A mode starts a client. It returns what prints its store, and a channel that closes when the client has ended.
type mode func(ctx context.Context, config *rest.Config) (dump func() map[string]string, done <-chan struct{})

func inform(ctx context.Context, config *rest.Config) (func() map[string]string, <-chan struct{}) {
	var informer cache.SharedIndexInformer
	if *isDynamic {
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0, *namespace, nil)
		informer = factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer()
	} else {
		client := kubernetes.NewForConfigOrDie(config)
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(*namespace))
		informer = factory.Core().V1().ConfigMaps().Informer()
	}
	registration := must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell("added", object) },
		UpdateFunc: func(_, object any) { tell("modified", object) },
		DeleteFunc: func(object any) { tell("deleted", object) },
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			say(line{"type": "synced"})
		}
	}()
	return func() map[string]string {
		versions := map[string]string{}
		for _, object := range informer.GetStore().List() {
			accessor := must(meta.Accessor(object))
			versions[keyOf(accessor)] = accessor.GetResourceVersion()
		}
		return versions
	}, done
}

func retryWatch(ctx context.Context, config *rest.Config) (func() map[string]string, <-chan struct{}) {
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(*namespace)
	watcher := must(watchtools.NewRetryWatcherWithContext(ctx, *from, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}))
	known := &keep{versions: map[string]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			if event.Type == watch.Error {
				say(line{"type": "error", "code": codeOf(apierrors.FromObject(event.Object))})
				continue
			}
			accessor := must(meta.Accessor(event.Object))
			known.Lock()
			if event.Type == watch.Deleted {
				delete(known.versions, keyOf(accessor))
			} else {
				known.versions[keyOf(accessor)] = accessor.GetResourceVersion()
			}
			known.Unlock()
			tell(strings.ToLower(string(event.Type)), event.Object)
		}
		say(line{"type": "ended"})
	}()
	return known.dump, done
}

func codeOf(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

// write creates, changes and deletes a few objects until it is told to end: every verb that a typed client sends a body with.
func write(ctx context.Context, config *rest.Config) (func() map[string]string, <-chan struct{}) {
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(*namespace)
	random := rand.New(rand.NewPCG(*seed, 0))
	done := make(chan struct{})
	wrote := func(verb string, object *corev1.ConfigMap, err error) {
		switch {
		case err == nil:
			say(line{"type": "wrote", "verb": verb, "key": keyOf(object), "resourceVersion": object.ResourceVersion})
		case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsConflict(err), ctx.Err() != nil:
			// Somebody else was there before.
		default:
			say(line{"type": "failed", "verb": verb, "code": codeOf(err), "message": err.Error()})
		}
	}
	turn := func() {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: *namespace, Name: fmt.Sprintf("n%d", random.IntN(24))},
			Data:       map[string]string{"text": strings.Repeat("x", random.IntN(200))},
			BinaryData: map[string][]byte{"bytes": {0, 255, byte(random.IntN(256))}},
		}
		switch what := random.Float64(); {
		case what < 0.4:
			created, err := maps.Create(ctx, object, metav1.CreateOptions{})
			wrote("create", created, err)
		case what < 0.75:
			current, err := maps.Get(ctx, object.Name, metav1.GetOptions{})
			if err != nil {
				wrote("get", nil, err)
				return
			}
			object.ObjectMeta = current.ObjectMeta
			updated, err := maps.Update(ctx, object, metav1.UpdateOptions{})
			wrote("update", updated, err)
		default:
			grace, policy := int64(0), metav1.DeletePropagationBackground
			options := metav1.DeleteOptions{GracePeriodSeconds: &grace, PropagationPolicy: &policy}
			if what < 0.85 {
				current, err := maps.Get(ctx, object.Name, metav1.GetOptions{})
				if err != nil {
					wrote("get", nil, err)
					return
				}
				options.Preconditions = &metav1.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion}
			}
			wrote("delete", object, maps.Delete(ctx, object.Name, options))
		}
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			turn()
			time.Sleep(10 * time.Millisecond) // to write all the time, not to keep a machine busy
		}
	}()
	return nothing, done
}

func nothing() map[string]string { return map[string]string{} }

func elect(ctx context.Context, config *rest.Config) (func() map[string]string, <-chan struct{}) {
	done := make(chan struct{})
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *name},
		Client:     kubernetes.NewForConfigOrDie(config).CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
	}
	elector := must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { say(line{"type": "leading"}) },
			OnStoppedLeading: func() { say(line{"type": "stopped"}) },
			OnNewLeader:      func(leader string) { say(line{"type": "leader", "identity": leader}) },
		},
	}))
	go func() {
		defer close(done)
		elector.Run(ctx)
	}()
	return nothing, done
}

// scale does what an autoscaler does: discovery tells it of which kind the subresource is. Each step is told, with the numbers after it.
func scale(ctx context.Context, config *rest.Config) (func() map[string]string, <-chan struct{}) {
	done := make(chan struct{})
	close(done)
	discovered := memory.NewMemCacheClient(kubernetes.NewForConfigOrDie(config).Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovered)
	kinds := clientscale.NewDiscoveryScaleKindResolver(discovered)
	client := must(clientscale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, kinds))
	fleets := schema.GroupResource{Group: "example.com", Resource: "fleets"}
	scales := client.Scales(*namespace)
	told := func(verb string, object *autoscalingv1.Scale, err error) *autoscalingv1.Scale {
		if err != nil {
			say(line{"type": "failed", "verb": verb, "code": codeOf(err), "message": err.Error()})
			return object
		}
		say(line{"type": "wrote", "verb": verb, "key": keyOf(object), "resourceVersion": object.ResourceVersion,
			"replicas": object.Spec.Replicas, "selector": object.Status.Selector})
		return object
	}
	write := func(object *autoscalingv1.Scale, replicas int32) {
		changed := object.DeepCopy()
		changed.Spec.Replicas = replicas
		updated, err := scales.Update(ctx, fleets, changed, metav1.UpdateOptions{})
		told("update", updated, err)
	}
	first, err := scales.Get(ctx, fleets, *name, metav1.GetOptions{})
	told("get", first, err)
	write(first, 3)
	write(first, 4) // which is stale now
	patch := []byte(`{"spec":{"replicas":5}}`)
	patched, err := scales.Patch(ctx, fleets.WithVersion("v1"), *name, types.MergePatchType, patch, metav1.PatchOptions{})
	told("patch", patched, err)
	write(patched, -1)
	_, err = scales.Get(ctx, fleets, "gone", metav1.GetOptions{})
	told("get", nil, err)
	return func() map[string]string { return nil }, done
}

func main() {
	if plain := map[string]func(){"table": printTable, "kinds": answerKinds}; len(os.Args) == 2 && plain[os.Args[1]] != nil {
		plain[os.Args[1]]()
		return
	}
	modes := map[string]mode{"informer": inform, "retry-watcher": retryWatch, "writer": write, "elect": elect, "scale": scale, "record": recordEvents, "typed": useTyped}
	if len(os.Args) < 2 || modes[os.Args[1]] == nil {
		panic("the first argument is informer, retry-watcher, writer, elect, scale, record or typed")
	}
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		panic(err)
	}
	// As users do: client-go reads its feature gates from the environment, once, when it first asks for one.
	if err := os.Setenv("KUBE_FEATURE_"+string(features.WatchListClient), fmt.Sprint(*watchList)); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	dump, done := modes[os.Args[1]](ctx, &rest.Config{Host: *server, QPS: -1})
	for lines := bufio.NewScanner(os.Stdin); lines.Scan() && lines.Text() != "quit"; {
		if lines.Text() == "dump" {
			say(line{"type": "store", "objects": dump()})
		}
	}
	cancel()
	<-done
}
