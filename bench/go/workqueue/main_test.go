package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestRounds(t *testing.T) {
	for _, what := range []string{"adds", "pairs"} {
		var out bytes.Buffer
		// 25 is no multiple of 10: the second round of pairs begins in the middle.
		err := run([]string{what, "--keys", "10", "--count", "25"}, strings.NewReader("round\nround\n"), &out, io.Discard)
		if err != nil {
			t.Fatal(what, err)
		}
		if lines := strings.Count(out.String(), `"operations":25,`); lines != 2 || strings.Count(out.String(), `"ok":true`) != 2 {
			t.Error(what, out.String())
		}
	}
}

func TestWrongAnswers(t *testing.T) {
	b := newBench(3)
	key, _ := b.queue.Get()
	b.queue.Done(key)
	if err := b.adds(0); !errors.Is(err, errWrong) {
		t.Error("a key is missing:", err)
	}
	b.queue.Add(key)
	if err := b.pairs(1); !errors.Is(err, errWrong) {
		t.Error("another key is first:", err)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"gets"}, {"adds", "--keys", "0"}, {"adds", "--count", "0"}, {"adds", "more"}, {"adds", "--no"}} {
		if err := run(args, strings.NewReader(""), io.Discard, io.Discard); err == nil {
			t.Error(args)
		}
	}
	if err := run([]string{"adds", "--keys", "1"}, strings.NewReader("go\n"), io.Discard, io.Discard); err == nil {
		t.Error("a word that is not round")
	}
}
