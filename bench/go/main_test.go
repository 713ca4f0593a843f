package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// answers runs the program on some input and answers its lines, decoded.
func answers(t *testing.T, input string, args ...string) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := run(args, strings.NewReader(input), &out, io.Discard, func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	var lines []map[string]any
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var line map[string]any
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestRoundsAreAnswered(t *testing.T) {
	for _, mode := range []string{"--back-to-back", "--burst-by-burst"} {
		before := runtime.NumGoroutine()
		// 12,800 deliveries are 20 bursts; a queue shorter than a burst has to be waited for.
		lines := answers(t, "round\nround\nround\n", mode, "--watchers=10", "--burst=64", "--queue=16", "--deliveries=12900")
		if len(lines) != 4 || lines[0]["ready"] != true {
			t.Fatalf("%s: %v", mode, lines)
		}
		for _, line := range lines[1:] {
			if line["deliveries"] != 12_800.0 || line["ok"] != true || line["seconds"].(float64) <= 0 {
				t.Errorf("%s: %v", mode, line)
			}
		}
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%s: %d goroutines stay", mode, after-before)
		}
	}
}

func TestARoundHasAtLeastOneBurst(t *testing.T) {
	lines := answers(t, "round\n", "--watchers=7", "--burst=3", "--deliveries=1")
	if lines[1]["deliveries"] != 21.0 {
		t.Error(lines)
	}
}

func TestLatencyHasASamplePerEventAndWatcher(t *testing.T) {
	line := answers(t, "", "latency", "--watchers=5", "--events=200", "--warmup=10")[0]
	if line["samples"] != 1000.0 || line["ok"] != true {
		t.Error(line)
	}
	p50, p99, p999, most := line["p50Us"].(float64), line["p99Us"].(float64), line["p999Us"].(float64), line["maxUs"].(float64)
	if p50 <= 0 || p50 > p99 || p99 > p999 || p999 > most {
		t.Error(line)
	}
}

func TestWrongAnswersAreSeen(t *testing.T) {
	for name, numbers := range map[string][]int{
		"skipped": {0, 2}, "twice": {0, 0}, "out of order": {1, 0, 2}, "too few": {0, 1}, "too many": {0, 1, 2, 3},
	} {
		var failures []string
		f := &fleet{stepped: make(chan struct{}, 1), published: 3}
		f.fleetOptions = fleetOptions{step: 100, fail: func(err error) { failures = append(failures, err.Error()) }}
		events := make(chan watch.Event, len(numbers))
		for _, number := range numbers {
			events <- watch.Event{Type: watch.Modified, Object: &tick{number: number}}
		}
		close(events)
		f.consume(0, events)
		if len(failures) != 1 || !strings.HasPrefix(failures[0], "wrong answer: watcher 0 got ") {
			t.Errorf("%s: %q", name, failures)
		}
	}
}

func TestALateRoundFails(t *testing.T) {
	failed := make(chan error, 1)
	release := make(chan struct{})
	f := startFleet(fleetOptions{
		watchers: 1, queue: 1, step: 1, limit: time.Millisecond,
		fail:   func(err error) { failed <- err; close(release) },
		onTick: func(int, *tick) { <-release },
	})
	f.round(make([]tick, 1))
	f.finish()
	if err := <-failed; err.Error() != "a round took longer than 1ms" {
		t.Error(err)
	}
}

func TestArgumentsThatMakeNoSense(t *testing.T) {
	for _, line := range []string{
		"--watchers=0", "--watchers=100001", "--burst=0", "--queue=0", "--queue=1000000 --watchers=1000", "--deliveries=0", "--what",
		"--deliveries=100000000 --watchers=1", "--back-to-back --burst-by-burst", "--limit=0s", "round", "latency --events=0",
		"latency --burst=1", "latency --warmup=-1", "latency --watchers=100000 --queue=100 --events=201",
	} {
		fail := func(err error) { t.Errorf("%s: %v", line, err) }
		if err := run(strings.Fields(line), strings.NewReader(""), io.Discard, io.Discard, fail); err == nil {
			t.Errorf("%s is taken", line)
		}
	}
	err := run(nil, strings.NewReader("rond\n"), io.Discard, io.Discard, func(err error) { t.Error(err) })
	if err == nil || !strings.Contains(err.Error(), `"rond"`) {
		t.Error(err)
	}
}

func TestQuantile(t *testing.T) {
	sorted := make([]time.Duration, 1000)
	for i := range sorted {
		sorted[i] = time.Duration(i+1) * time.Microsecond
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 500, 0.99: 990, 0.999: 999, 1: 1000} {
		if got := quantile(sorted, q); got != want {
			t.Error(fmt.Sprint(q), got, want)
		}
	}
	if got := quantile(sorted[:1], 0.5); got != 1 {
		t.Error(got)
	}
}
