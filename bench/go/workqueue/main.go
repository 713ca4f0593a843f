// Command workqueue is client-go's work queue as a contender of watchmux's benchmarks: the rate limiting queue that controllers use,
// with its default rate limiter, driven by one goroutine.
//
//	workqueue adds|pairs [--keys 10000] [--count 1000000]
//
// fills the queue with that many keys and prints {"ready":true}. Each line "round" on stdin is answered with
// {"operations":n,"seconds":s,"ok":true} when the round is over, in seconds of processor time. It ends at the end of stdin.
//
//   - adds: Add of keys that are queued already, in turn.
//   - pairs: Get, Done and Add of the key again. Keys must come in the order in which they were added.
//
// Exit codes: 1 for a wrong answer, 2 for arguments that make no sense.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const maxKeys = 1_000_000

type round struct {
	Operations int     `json:"operations"`
	Seconds    float64 `json:"seconds"`
	OK         bool    `json:"ok"`
}

// errWrong is a wrong answer of the queue, unlike an argument that makes no sense.
var errWrong = errors.New("wrong answer")

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "workqueue:", err)
	if errors.Is(err, errWrong) {
		os.Exit(1)
	}
	os.Exit(2)
}

func run(args []string, in io.Reader, out, usage io.Writer) error {
	if len(args) == 0 || (args[0] != "adds" && args[0] != "pairs") {
		return errors.New("expected adds or pairs")
	}
	flags := flag.NewFlagSet("workqueue "+args[0], flag.ContinueOnError)
	flags.SetOutput(usage)
	count := flags.Int("count", 1_000_000, "operations per round")
	size := flags.Int("keys", 10_000, "how many keys")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *size < 1 || *size > maxKeys || *count < 1 || flags.NArg() > 0 {
		return fmt.Errorf("--keys takes 1 to %d, --count at least 1, and there is nothing else", maxKeys)
	}
	b := newBench(*size)
	defer b.queue.ShutDown()
	work := b.adds
	if args[0] == "pairs" {
		work = b.pairs
	}
	return serve(func() (round, error) { return measure(work, *count) }, in, out)
}

func serve(next func() (round, error), in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	if err := answers.Encode(map[string]bool{"ready": true}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if word := lines.Text(); word != "round" {
			return fmt.Errorf("expected the word round on stdin, got %.40q", word)
		}
		answer, err := next()
		if err != nil {
			return err
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

func measure(work func(int) error, count int) (round, error) {
	before, err := processorTime()
	if err != nil {
		return round{}, err
	}
	if err := work(count); err != nil {
		return round{}, err
	}
	after, err := processorTime()
	return round{count, (after - before).Seconds(), err == nil}, err
}

// processorTime is that of this process so far, with the work of its garbage collector.
func processorTime() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

type bench struct {
	queue workqueue.TypedRateLimitingInterface[string]
	keys  []string
	// The place of the key that is next in the queue.
	next int
}

func newBench(size int) *bench {
	b := &bench{queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	for at := range size {
		key := fmt.Sprintf("namespace-%d/name-%d", at%10, at)
		b.keys = append(b.keys, key)
		b.queue.Add(key)
	}
	return b
}

func (b *bench) adds(count int) error {
	for at := range count {
		b.queue.Add(b.keys[at%len(b.keys)])
	}
	return b.check()
}

func (b *bench) pairs(count int) error {
	for range count {
		key, _ := b.queue.Get()
		if key != b.keys[b.next] {
			return fmt.Errorf("%w: %q instead of %q", errWrong, key, b.keys[b.next])
		}
		b.queue.Done(key)
		b.queue.Add(key)
		b.next = (b.next + 1) % len(b.keys)
	}
	return b.check()
}

func (b *bench) check() error {
	if b.queue.Len() != len(b.keys) {
		return fmt.Errorf("%w: %d keys, and %d are due", errWrong, b.queue.Len(), len(b.keys))
	}
	return nil
}
