"""Runs the steps of a client in order, and prints what came of each: the other half is clients.test.ts."""

import json
import sys
import time
import traceback


def say(**line):
    print(json.dumps(line), flush=True)


def server():
    """The URL of the server, which is the only argument."""
    return sys.argv[1]


def restart():
    """Has the server restarted: its data stay."""
    say(type="restart")
    sys.stdin.readline()


def until(condition):
    """Waits for what a loop of the client does, which the test's own limit ends."""
    while not condition():
        time.sleep(0.05)


def order(name, **spec):
    return {"apiVersion": "example.com/v1", "kind": "Order", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def run(steps):
    for step in steps:
        name = step.__name__.rstrip("_")
        try:
            step()
            say(type="passed", verb=name)
        except Exception as error:  # each step tells of itself
            traceback.print_exc()
            say(type="failed", verb=name, message=f"{type(error).__name__}: {error}"[:600])
