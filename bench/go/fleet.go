package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// tick is what is published: small, and checkable for order by its number.
type tick struct {
	number    int
	published time.Time // only where latency is measured
}

func (t *tick) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (t *tick) DeepCopyObject() runtime.Object   { return t }

type fleetOptions struct {
	watchers, queue int
	step            int           // events after which each watcher reports
	limit           time.Duration // for a round
	fail            func(error)   // for the first wrong answer; it ends the program
	// onTick is called by a watcher's goroutine for each event. Optional.
	onTick func(watcher int, t *tick)
}

// fleet is a broadcaster with its watchers. Its publisher is one goroutine; it hands out numbers and waits for steps.
type fleet struct {
	fleetOptions
	broadcaster *watch.Broadcaster
	published   int           // the next number
	left        atomic.Int64  // watchers that have not read the step under way
	stepped     chan struct{} // the last of them has
	ended       sync.WaitGroup
}

func startFleet(o fleetOptions) *fleet {
	f := &fleet{
		fleetOptions: o,
		broadcaster:  watch.NewLongQueueBroadcaster(o.queue, watch.WaitIfChannelFull),
		stepped:      make(chan struct{}, 1),
	}
	for i := range o.watchers {
		w, err := f.broadcaster.Watch()
		if err != nil {
			f.fail(err)
			return f
		}
		f.ended.Go(func() { f.consume(i, w.ResultChan()) })
	}
	return f
}

// consume reads a watch to its end. Each event must have the number after the one before it.
func (f *fleet) consume(watcher int, events <-chan watch.Event) {
	next, due := 0, f.step
	for event := range events {
		t, ok := event.Object.(*tick)
		if !ok || t.number != next {
			f.fail(fmt.Errorf("wrong answer: watcher %d got %+v where number %d was due", watcher, event.Object, next))
			return
		}
		if f.onTick != nil {
			f.onTick(watcher, t)
		}
		next++
		if next == due {
			due += f.step
			if f.left.Add(-1) == 0 {
				f.stepped <- struct{}{}
			}
		}
	}
	if next != f.published {
		f.fail(fmt.Errorf("wrong answer: watcher %d got %d events of %d", watcher, next, f.published))
	}
}

// round publishes ticks, step after step, and answers how many seconds it took until all watchers had all.
func (f *fleet) round(ticks []tick) float64 {
	for i := range ticks {
		ticks[i].number = f.published + i
	}
	// A timer beside the loop, as a select in it would slow every step.
	late := time.AfterFunc(f.limit, func() { f.fail(fmt.Errorf("a round took longer than %s", f.limit)) })
	defer late.Stop()
	began := time.Now()
	for step := range slices.Chunk(ticks, f.step) {
		f.left.Store(int64(f.watchers))
		for i := range step {
			f.publish(&step[i])
		}
		<-f.stepped
	}
	return time.Since(began).Seconds()
}

func (f *fleet) publish(t *tick) {
	f.published++
	if err := f.broadcaster.Action(watch.Modified, t); err != nil {
		f.fail(err)
	}
}

// finish ends all watches and waits for their goroutines, which check that they got everything.
func (f *fleet) finish() {
	f.broadcaster.Shutdown()
	f.ended.Wait()
}

type latency struct {
	Watchers int     `json:"watchers"`
	Events   int     `json:"events"`
	Samples  int     `json:"samples"`
	P50Us    float64 `json:"p50Us"`
	P99Us    float64 `json:"p99Us"`
	P999Us   float64 `json:"p999Us"`
	MaxUs    float64 `json:"maxUs"`
	OK       bool    `json:"ok"`
}

// measureLatency publishes one event at a time, each after all watchers have read the one before. A sample is the time from right
// before Action to the watcher's hand, one per event and watcher.
func measureLatency(o options, fail func(error)) latency {
	samples := make([][]time.Duration, o.watchers)
	for i := range samples {
		samples[i] = make([]time.Duration, 0, o.events)
	}
	f := startFleet(fleetOptions{
		watchers: o.watchers, queue: o.queue, step: 1, limit: o.limit, fail: fail,
		onTick: func(watcher int, t *tick) {
			if t.number >= o.warmup {
				samples[watcher] = append(samples[watcher], time.Since(t.published))
			}
		},
	})
	late := time.AfterFunc(o.limit, func() { fail(fmt.Errorf("measuring took longer than %s", o.limit)) })
	defer late.Stop()
	for number := range o.warmup + o.events {
		f.left.Store(int64(o.watchers))
		f.publish(&tick{number: number, published: time.Now()})
		<-f.stepped
	}
	f.finish()
	all := slices.Concat(samples...)
	slices.Sort(all)
	return latency{
		Watchers: o.watchers, Events: o.events, Samples: len(all),
		P50Us: quantile(all, 0.5), P99Us: quantile(all, 0.99), P999Us: quantile(all, 0.999), MaxUs: quantile(all, 1),
		OK: len(all) == o.watchers*o.events,
	}
}

// quantile is the least sample that a share q of all samples does not exceed, in microseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	at := min(len(sorted)-1, max(0, int(float64(len(sorted))*q+0.999999)-1))
	return float64(sorted[at].Nanoseconds()) / 1000
}
