"""kopf: an operator whose handlers note the orders that they see, and whose status and finalizer kopf keeps with patches."""

import asyncio
import threading

import kopf
import requests
from scenario import order, restart, run, server, until

URL = f"{server()}/apis/example.com/v1/namespaces/default/orders"
seen, deleted = set(), set()


@kopf.on.login()
def login(**_):
    return kopf.ConnectionInfo(server=server())


@kopf.on.create("orders.example.com")
@kopf.on.update("orders.example.com")
def note(name, spec, **_):
    seen.add((name, spec.get("item")))
    return {"item": spec.get("item")}


@kopf.on.delete("orders.example.com")
def forget(name, **_):
    deleted.add(name)


def operate():
    asyncio.run(kopf.operator(namespaces=["default"], standalone=True))


def send(method, path="", **body):
    answer = requests.request(method, URL + path, json=body or None, timeout=10)
    answer.raise_for_status()
    return answer.json()


def create():
    threading.Thread(target=operate, daemon=True).start()
    send("POST", **order("a", item="tea"))
    until(lambda: ("a", "tea") in seen)


def update():
    found = send("GET", "/a")
    found["spec"]["item"] = "coffee"
    while True:
        try:
            send("PUT", "/a", **found)
            break
        except requests.HTTPError:  # kopf was faster
            found = send("GET", "/a")
            found["spec"]["item"] = "coffee"
    until(lambda: ("a", "coffee") in seen)


def patch():
    """kopf adds its finalizer, and an annotation of what it has handled."""
    until(lambda: "kopf.zalando.org/last-handled-configuration" in send("GET", "/a")["metadata"].get("annotations", {}))
    assert send("GET", "/a")["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]


def delete():
    send("DELETE", "/a")
    until(lambda: "a" in deleted)
    until(lambda: requests.get(f"{URL}/a", timeout=10).status_code == 404)


def controller():
    restart()
    send("POST", **order("e", item="water"))
    until(lambda: ("e", "water") in seen)


run([create, update, patch, delete, controller])
