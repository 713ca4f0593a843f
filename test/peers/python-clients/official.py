"""The official client `kubernetes`, by its dynamic client and its typed CustomObjectsApi."""

import threading

from kubernetes import client, dynamic, watch
from scenario import order, restart, run, server, until

api = client.ApiClient(client.Configuration(host=server()))
objects = client.CustomObjectsApi(api)
kinds = dynamic.DynamicClient(api)
HERE = {"group": "example.com", "version": "v1", "namespace": "default", "plural": "orders"}


def orders():
    return kinds.resources.get(api_version="example.com/v1", kind="Order")


def discover():
    assert "status" in orders().subresources and "scale" in orders().subresources


def create():
    made = [objects.create_namespaced_custom_object(**HERE, body=order(name, item="tea")) for name in "abc"]
    assert made[0]["spec"]["count"] == 1, "the default of the schema"


def list_():
    first = objects.list_namespaced_custom_object(**HERE, limit=2)
    rest = objects.list_namespaced_custom_object(**HERE, limit=2, _continue=first["metadata"]["continue"])
    assert [each["metadata"]["name"] for each in first["items"] + rest["items"]] == ["a", "b", "c"]


def watch_():
    version = objects.list_namespaced_custom_object(**HERE)["metadata"]["resourceVersion"]
    objects.patch_namespaced_custom_object(**HERE, name="a", body={"spec": {"item": "coffee"}})
    for event in watch.Watch().stream(objects.list_namespaced_custom_object, **HERE, resource_version=version):
        assert (event["type"], event["object"]["spec"]["item"]) == ("MODIFIED", "coffee")
        return


def update():
    found = objects.get_namespaced_custom_object(**HERE, name="a")
    found["spec"]["count"] = 2
    updated = objects.replace_namespaced_custom_object(**HERE, name="a", body=found)
    assert updated["metadata"]["generation"] == found["metadata"]["generation"] + 1


def conflict():
    found = objects.get_namespaced_custom_object(**HERE, name="a")
    objects.patch_namespaced_custom_object(**HERE, name="a", body={"spec": {"count": 3}})
    try:
        objects.replace_namespaced_custom_object(**HERE, name="a", body=found)
    except client.ApiException as error:
        assert error.status == 409
    else:
        raise AssertionError("an old version was accepted")


def patch():
    body = [{"op": "replace", "path": "/spec/count", "value": 4}]
    orders().patch(name="a", namespace="default", body=body, content_type="application/json-patch+json")
    assert objects.get_namespaced_custom_object(**HERE, name="a")["spec"]["count"] == 4


def apply():
    applied = orders().server_side_apply(order("d", item="milk"), field_manager="python", namespace="default")
    assert applied.metadata.managedFields[0].operation == "Apply"


def status():
    body = {"status": {"phase": "done"}, "spec": {"count": 9}}
    objects.patch_namespaced_custom_object_status(**HERE, name="a", body=body)
    found = objects.get_namespaced_custom_object(**HERE, name="a")
    assert (found["status"]["phase"], found["spec"]["count"]) == ("done", 4)


def scale():
    objects.patch_namespaced_custom_object_scale(**HERE, name="a", body={"spec": {"replicas": 7}})
    assert objects.get_namespaced_custom_object(**HERE, name="a")["spec"]["count"] == 7


def delete():
    objects.delete_namespaced_custom_object(**HERE, name="b")
    names = [each["metadata"]["name"] for each in objects.list_namespaced_custom_object(**HERE)["items"]]
    assert "b" not in names


def controller():
    seen = set()

    def loop():
        while True:
            try:
                for event in watch.Watch().stream(objects.list_namespaced_custom_object, **HERE):
                    seen.add(event["object"]["metadata"]["name"])
            except Exception:  # the server is away
                pass

    threading.Thread(target=loop, daemon=True).start()
    until(lambda: "a" in seen)
    restart()
    objects.create_namespaced_custom_object(**HERE, body=order("e", item="water"))
    until(lambda: "e" in seen)


run([discover, create, list_, watch_, update, conflict, patch, apply, status, scale, delete, controller])
