// Client-go's SharedInformer as a contender of the workload "stack". It prints a line of JSON when the initial list is in its
// store and its handler has been called for all of it, then one for every line "updates VERSION" that it reads: when the update of
// that version has been handled.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// answer has the figures of one step, and what the bench compares with the truth.
type answer struct {
	WallMs  float64 `json:"wallMs"`
	CPUMs   float64 `json:"cpuMs"`
	PeakMB  float64 `json:"peakMB"`
	Size    int     `json:"size"`
	Added   int64   `json:"added"`
	Updated int64   `json:"updated"`
	Sum     string  `json:"sum"`
}

type stopwatch struct {
	began time.Time
	cpu   float64
}

func started() stopwatch { return stopwatch{began: time.Now(), cpu: cpuMs()} }

func cpuMs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

// peakMB reads VmHWM: unlike ru_maxrss, it does not start at what the parent process had.
func peakMB() float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for _, line := range strings.Split(string(status), "\n") {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
				kilobytes, _ := strconv.ParseFloat(fields[1], 64)
				return kilobytes * 1024 / 1e6
			}
		}
	}
	return 0
}

// sumOf is a hash over the names and versions of everything in the store.
func sumOf(store cache.Store) string {
	all := store.List()
	lines := make([]string, 0, len(all))
	for _, object := range all {
		pod := object.(*corev1.Pod)
		lines = append(lines, pod.Namespace+"/"+pod.Name+" "+pod.ResourceVersion+"\n")
	}
	sort.Strings(lines)
	hash := fnv.New32a()
	for _, line := range lines {
		_, _ = hash.Write([]byte(line))
	}
	return fmt.Sprintf("%08x", hash.Sum32())
}

func main() {
	url := flag.String("url", "", "the server")
	flag.Parse()
	client := kubernetes.NewForConfigOrDie(&rest.Config{
		Host:          *url,
		QPS:           -1,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON},
	})

	var added, updated atomic.Int64
	var wanted atomic.Pointer[string]
	reached := make(chan struct{}, 1)
	watch := started()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added.Add(1) },
		UpdateFunc: func(_, object any) {
			updated.Add(1)
			if version := wanted.Load(); version != nil && object.(*corev1.Pod).ResourceVersion == *version {
				reached <- struct{}{}
			}
		},
	})
	if err != nil {
		panic(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	for !registration.HasSynced() {
		time.Sleep(time.Millisecond)
	}

	say := func(watch stopwatch) {
		now := answer{WallMs: float64(time.Since(watch.began).Nanoseconds()) / 1e6, CPUMs: cpuMs() - watch.cpu, PeakMB: peakMB()}
		store := informer.GetStore()
		now.Size, now.Added, now.Updated, now.Sum = len(store.ListKeys()), added.Load(), updated.Load(), sumOf(store)
		if err := json.NewEncoder(os.Stdout).Encode(now); err != nil {
			panic(err)
		}
	}
	say(watch)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		version := strings.TrimPrefix(lines.Text(), "updates ")
		wanted.Store(&version)
		watch = started()
		fmt.Println(`{"ready":true}`)
		<-reached
		say(watch)
	}
}
