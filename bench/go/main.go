// Command fanout is the Go original as a contender of watchmux's benchmarks: the Broadcaster of k8s.io/apimachinery's watch
// package, with a goroutine per watcher that ranges over ResultChan. Every watcher checks what it reads by number: each event,
// once, in order.
//
//	fanout [--watchers 100] [--burst 64] [--queue 1024] [--deliveries 2000000] [--back-to-back | --burst-by-burst]
//
// prints {"ready":true} once all watchers read. Each line "round" on stdin is answered, when every watcher has got every event of
// that round, with {"deliveries":n,"seconds":s,"ok":true}. It ends at the end of stdin.
//
// There are two ways to publish a round of deliveries/(watchers*burst) bursts:
//
//   - --back-to-back, the default: all bursts in a row, with no wait but at the end of the round. Queues run full while publisher
//     and watchers work at the same time; the broadcaster waits when a queue is full, so nothing is lost. The size of a burst
//     makes no difference then.
//   - --burst-by-burst: every watcher has read a burst before the next one is published. That is how the contenders in TypeScript
//     are driven. Here goroutines go to sleep and are woken for each burst: much the same at bursts of 64, less than half the
//     deliveries at bursts of 1.
//
// The other subcommand measures how long an event takes from its publishing to each of its consumers, one event at a time:
//
//	fanout latency [--watchers 100] [--queue 1024] [--events 10000] [--warmup 1000]
//
// The incoming queue is as long as those of the watchers (NewLongQueueBroadcaster). With the 25 places of NewBroadcaster the figures
// are the same, within their noise. Exit codes: 1 for a wrong answer or a round that takes longer than --limit, 2 for arguments that make no sense.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	maxWatchers     = 100_000
	maxEvents       = 20_000_000    // per round: they are made before the clock runs
	maxSamples      = 20_000_000    // of latency, 8 bytes each
	maxQueueBytes   = 2_000_000_000 // of all watchers together: a Go channel has its room from the start
	eventBytes      = 32            // a watch.Event: a string and an interface
	defaultWatchers = 100
)

type options struct {
	watchers, burst, queue, deliveries int
	burstByBurst                       bool
	events, warmup                     int
	limit                              time.Duration
}

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, func(err error) {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	})
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(2)
	}
}

// run is the whole program. A usage error is returned; fail is called, from any goroutine, for a wrong answer.
func run(args []string, in io.Reader, out, usage io.Writer, fail func(error)) error {
	latency := len(args) > 0 && args[0] == "latency"
	if latency {
		args = args[1:]
	}
	o, err := parse(args, latency, usage)
	if err != nil {
		return err
	}
	if latency {
		return reply(out, measureLatency(o, fail))
	}
	return serve(o, in, out, fail)
}

func parse(args []string, latency bool, usage io.Writer) (options, error) {
	name := "fanout"
	if latency {
		name = "fanout latency"
	}
	var o options
	var backToBack bool
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.watchers, "watchers", defaultWatchers, "how many watchers, each a goroutine")
	flags.IntVar(&o.queue, "queue", 1024, "events that a watcher's queue holds")
	flags.DurationVar(&o.limit, "limit", time.Minute, "how long a round, or all of latency, may take")
	if latency {
		flags.IntVar(&o.events, "events", 10_000, "events that are measured")
		flags.IntVar(&o.warmup, "warmup", 1_000, "events published before, and not measured")
	} else {
		flags.IntVar(&o.burst, "burst", 64, "events per burst")
		flags.IntVar(&o.deliveries, "deliveries", 2_000_000, "deliveries per round, to all watchers together")
		flags.BoolVar(&backToBack, "back-to-back", false, "publish bursts with no wait between them (default)")
		flags.BoolVar(&o.burstByBurst, "burst-by-burst", false, "wait until all have read a burst before the next")
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected %q; see --help", flags.Arg(0))
	}
	if backToBack && o.burstByBurst {
		return o, errors.New("--back-to-back and --burst-by-burst exclude each other")
	}
	return o, o.check(latency)
}

func (o options) check(latency bool) error {
	switch {
	case o.watchers < 1 || o.watchers > maxWatchers:
		return fmt.Errorf("--watchers takes 1 to %d", maxWatchers)
	case o.queue < 1 || o.queue > maxQueueBytes/eventBytes/o.watchers:
		return fmt.Errorf("--queue takes 1 to %d with %d watchers", maxQueueBytes/eventBytes/o.watchers, o.watchers)
	case o.limit <= 0:
		return errors.New("--limit takes a duration above 0, such as 30s")
	case latency && (o.events < 1 || o.events > maxSamples/o.watchers):
		return fmt.Errorf("--events takes 1 to %d with %d watchers", maxSamples/o.watchers, o.watchers)
	case latency && (o.warmup < 0 || o.warmup > maxEvents):
		return fmt.Errorf("--warmup takes 0 to %d", maxEvents)
	case latency:
		return nil
	case o.burst < 1 || o.burst > maxEvents:
		return fmt.Errorf("--burst takes 1 to %d", maxEvents)
	case o.deliveries < 1 || o.bursts() > maxEvents/o.burst:
		return fmt.Errorf("--deliveries takes 1 to %d per watcher", maxEvents)
	}
	return nil
}

// bursts is how many bursts make a round: at least one.
func (o options) bursts() int {
	perBurst := o.watchers * o.burst
	return max(1, (o.deliveries+perBurst/2)/perBurst)
}

type ready struct {
	Ready bool `json:"ready"`
}

type round struct {
	Deliveries int     `json:"deliveries"`
	Seconds    float64 `json:"seconds"`
	OK         bool    `json:"ok"`
}

func serve(o options, in io.Reader, out io.Writer, fail func(error)) error {
	bursts := o.bursts()
	step := o.burst * bursts
	if o.burstByBurst {
		step = o.burst
	}
	f := startFleet(fleetOptions{watchers: o.watchers, queue: o.queue, step: step, limit: o.limit, fail: fail})
	defer f.finish()
	ticks := make([]tick, o.burst*bursts)
	if err := reply(out, ready{true}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if word := lines.Text(); word != "round" {
			return fmt.Errorf("expected the word round on stdin, got %.40q", word)
		}
		seconds := f.round(ticks)
		if err := reply(out, round{o.watchers * len(ticks), seconds, true}); err != nil {
			return err
		}
	}
	return nil
}

func reply(out io.Writer, answer any) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}
