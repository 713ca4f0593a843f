"""lightkube."""

import threading

from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.types import PatchType
from scenario import order, restart, run, server, until

NAMED = {"name": "here"}
CONFIG = {
    "clusters": [{**NAMED, "cluster": {"server": server()}}],
    "users": [{**NAMED, "user": {}}],
    "contexts": [{**NAMED, "context": {"cluster": "here", "user": "here"}}],
    "current-context": "here",
}
client = Client(config=KubeConfig.from_dict(CONFIG), field_manager="lightkube")
Order = create_namespaced_resource("example.com", "v1", "Order", "orders")


def create():
    made = [client.create(Order(order(name, item="tea"))) for name in "abc"]
    assert made[0].spec["count"] == 1, "the default of the schema"


def list_():
    assert [each.metadata.name for each in client.list(Order, chunk_size=2)] == ["a", "b", "c"]


def watch():
    version = client.get(Order, "a").metadata.resourceVersion
    client.patch(Order, "a", {"spec": {"item": "coffee"}}, patch_type=PatchType.MERGE)
    for kind, each in client.watch(Order, resource_version=version):
        if each.metadata.name == "a":
            assert (kind, each.spec["item"]) == ("MODIFIED", "coffee")
            return


def update():
    found = client.get(Order, "a")
    found.spec["count"] = 2
    assert client.replace(found).metadata.generation == found.metadata.generation + 1


def conflict():
    found = client.get(Order, "a")
    client.patch(Order, "a", {"spec": {"count": 3}}, patch_type=PatchType.MERGE)
    try:
        client.replace(found)
    except ApiError as error:
        assert error.status.code == 409
    else:
        raise AssertionError("an old version was accepted")


def patch():
    body = [{"op": "replace", "path": "/spec/count", "value": 4}]
    assert client.patch(Order, "a", body, patch_type=PatchType.JSON).spec["count"] == 4


def apply():
    applied = client.apply(Order(order("d", item="milk")))
    assert applied.metadata.managedFields[0].operation == "Apply"
    assert client.apply(Order(order("d", item="cream"))).spec["item"] == "cream"


def status():
    body = {"status": {"phase": "done"}, "spec": {"count": 9}}
    client.patch(Order.Status, "a", body, patch_type=PatchType.MERGE)
    found = client.get(Order, "a")
    assert (found.status["phase"], found.spec["count"]) == ("done", 4)


def scale():
    client.patch(Order.Scale, "a", {"spec": {"replicas": 7}}, patch_type=PatchType.MERGE)
    assert client.get(Order, "a").spec["count"] == 7


def delete():
    client.delete(Order, "b")
    assert "b" not in [each.metadata.name for each in client.list(Order)]


def controller():
    seen = set()

    def loop():
        while True:
            try:
                for _, each in client.watch(Order):
                    seen.add(each.metadata.name)
            except Exception:  # the server is away
                pass

    threading.Thread(target=loop, daemon=True).start()
    until(lambda: "a" in seen)
    restart()
    client.create(Order(order("e", item="water")))
    until(lambda: "e" in seen)


run([create, list_, watch, update, conflict, patch, apply, status, scale, delete, controller])
