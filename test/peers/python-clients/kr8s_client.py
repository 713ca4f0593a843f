"""kr8s."""

import threading

import kr8s
from kr8s.objects import new_class
from scenario import order, restart, run, server, until

api = kr8s.api(url=server())
Order = new_class("Order", version="example.com/v1", namespaced=True, scalable=True, scalable_spec="count")


def get(name):
    return Order.get(name, namespace="default", api=api)


def names():
    return [each.name for each in api.get(Order, namespace="default")]


def discover():
    assert any(each["kind"] == "Order" for each in api.api_resources())


def create():
    made = [Order(order(name, item="tea"), api=api) for name in "abc"]
    for each in made:
        each.create()
    assert made[0].raw["spec"]["count"] == 1, "the default of the schema"


def list_():
    assert names() == ["a", "b", "c"]


def watch():
    for kind, each in api.watch(Order, namespace="default"):
        if each.name == "a" and each.raw["spec"]["item"] == "tea":
            get("a").patch({"spec": {"item": "coffee"}})
        if each.raw["spec"]["item"] == "coffee":
            assert kind == "MODIFIED"
            return


def patch():
    found = get("a")
    found.patch([{"op": "replace", "path": "/spec/count", "value": 4}], type="json")
    assert found.raw["spec"]["count"] == 4


def status():
    found = get("a")
    found.patch({"status": {"phase": "done"}, "spec": {"count": 9}}, subresource="status")
    assert (found.raw["status"]["phase"], found.raw["spec"]["count"]) == ("done", 4)


def scale():
    found = get("a")
    api_path = {"spec": {"replicas": 7}}
    found.patch(api_path, subresource="scale")
    assert get("a").raw["spec"]["count"] == 7


def delete():
    get("b").delete()
    until(lambda: "b" not in names())


def controller():
    seen = set()

    def loop():
        while True:
            try:
                for _, each in api.watch(Order, namespace="default"):
                    seen.add(each.name)
            except Exception:  # the server is away
                pass

    threading.Thread(target=loop, daemon=True).start()
    until(lambda: "a" in seen)
    restart()
    Order(order("e", item="water"), api=api).create()
    until(lambda: "e" in seen)


run([discover, create, list_, watch, patch, status, scale, delete, controller])
