"""The operator of operators.test.ts in kopf: the same as operators/website.ts and controller-runtime/website.go.

website.py URL NAMESPACE REGISTRY
"""

import asyncio
import collections
import datetime
import json
import os
import sys
import threading

import aiohttp
import kopf

URL, NAMESPACE, REGISTRY = sys.argv[1:]
SITES = f"apis/example.com/v1/namespaces/{NAMESPACE}/websites"
locks = collections.defaultdict(asyncio.Lock)


class Refused(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


async def send(method, path, body=None, kind="application/json", **query):
    data = None if body is None else json.dumps(body)
    async with aiohttp.request(method, f"{URL}/{path}", data=data, headers={"content-type": kind}, params=query) as answer:
        if answer.status >= 400:
            raise Refused(answer.status, await answer.text())
        return await answer.json()


async def get(path):
    try:
        return await send("GET", path)
    except Refused as error:
        if error.code != 404:
            raise


def patch(path, body):
    return send("PATCH", f"{path}/{body['metadata']['name']}", body, "application/apply-patch+yaml", fieldManager="website", force="true")


def collection(api, plural):
    return f"{api}/namespaces/{NAMESPACE}/{plural}"


@kopf.on.login()
def login(**_):
    return kopf.ConnectionInfo(server=URL)


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "example.com/registry"
    settings.posting.loggers = False


@kopf.on.create("websites.example.com", backoff=1)
@kopf.on.update("websites.example.com", backoff=1)
@kopf.on.resume("websites.example.com", backoff=1)
async def changed(name, **_):
    await reconcile(name)


@kopf.on.event("configmaps")
@kopf.on.event("deployments.apps")
@kopf.on.event("services")
async def owned(type, meta, **_):
    for owner in meta.get("ownerReferences", []):
        # The first list says nothing that on.resume does not.
        if owner.get("controller") and owner["kind"] == "Website" and type is not None:
            while True:
                try:
                    return await reconcile(owner["name"], owner["uid"])
                except (Refused, aiohttp.ClientError):
                    await asyncio.sleep(0.5)


@kopf.on.delete("websites.example.com", backoff=1)
async def deleted(name, body, **_):
    async with locks[name]:
        try:
            await send("DELETE", f"api/v1/namespaces/{REGISTRY}/configmaps/{name}")
        except Refused as error:
            if error.code != 404:
                raise
        else:
            kopf.event(body, type="Normal", reason="Unregistered", message=f"Removed {name} from the registry")


async def reconcile(name, uid=None):
    async with locks[name]:
        while True:
            site = await get(f"{SITES}/{name}")
            if site is None or uid not in (None, site["metadata"]["uid"]) or "deletionTimestamp" in site["metadata"]:
                return
            try:
                return await publish(site)
            except Refused as error:
                if error.code != 409:
                    raise


async def publish(site):
    name, uid, app = site["metadata"]["name"], site["metadata"]["uid"], {"app": site["metadata"]["name"]}
    spec, labels = site["spec"], dict(app)
    if "team" in site["metadata"].get("labels", {}):
        labels["team"] = site["metadata"]["labels"]["team"]
    replicas = 0 if spec.get("paused") else spec["replicas"]
    entry = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"host": f"{name}.example.com", "uid": uid},
    }
    await patch(f"api/v1/namespaces/{REGISTRY}/configmaps", entry)
    volume = {"name": "page", "configMap": {"name": name}}
    mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
    pod = {"containers": [{"name": "web", "image": "nginx:1.29", "volumeMounts": [mount]}], "volumes": [volume]}
    wanted = [
        ("v1", "ConfigMap", collection("api/v1", "configmaps"), {"data": {"index.html": spec["html"]}}),
        (
            "apps/v1",
            "Deployment",
            collection("apis/apps/v1", "deployments"),
            {"spec": {"replicas": replicas, "selector": {"matchLabels": app}, "template": {"metadata": {"labels": app}, "spec": pod}}},
        ),
        (
            "v1",
            "Service",
            collection("api/v1", "services"),
            {"spec": {"selector": app, "ports": [{"name": "http", "port": 80}]}},
        ),
    ]
    for version, kind, path, content in wanted:
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}, **content}
        kopf.append_owner_reference(body, site)
        before = await get(f"{path}/{name}")
        after = await patch(path, body)
        if before is None or all(each["uid"] != uid for each in before["metadata"].get("ownerReferences", [])):
            kopf.event(site, type="Normal", reason="Created", message=f"Created {kind} {name}")
        elif content_of(before) != content_of(after):
            kopf.event(site, type="Normal", reason="Updated", message=f"Updated {kind} {name}")
        if kind == "Deployment":
            deployment = after
    await report(site, deployment, replicas)


def content_of(body):
    return body["metadata"].get("labels"), body.get("spec"), body.get("data")


async def report(site, deployment, replicas):
    before, found = site.get("status", {}), deployment.get("status", {})
    ready, generation = found.get("readyReplicas", 0), site["metadata"]["generation"]
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "Progressing",
        "message": f"{ready} of {replicas} replicas are ready",
        "observedGeneration": generation,
    }
    kind = "Warning"
    if site["spec"].get("paused"):
        condition.update(reason="Paused", message="The website is paused")
        kind = "Normal"
    elif found.get("observedGeneration") == deployment["metadata"]["generation"] and ready == replicas:
        condition.update(status="True", reason="AllReady")
        kind = "Normal"
    old = next(iter(before.get("conditions", [])), {})
    same = old.get("status") == condition["status"]
    condition["lastTransitionTime"] = old["lastTransitionTime"] if same else f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
    status = {"observedGeneration": generation, "replicas": ready, "conditions": [condition]}
    if status == before:
        return
    await send("PUT", f"{SITES}/{site['metadata']['name']}/status", {**site, "status": status})
    if old.get("reason") != condition["reason"]:
        kopf.event(site, type=kind, reason=condition["reason"], message=condition["message"])


def end_with_input():
    sys.stdin.read()
    os._exit(0)  # the test is gone


threading.Thread(target=end_with_input, daemon=True).start()
asyncio.run(kopf.operator(namespaces=[NAMESPACE], standalone=True))
