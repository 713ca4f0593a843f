//! A watcher of kube-rs that tests drive, with the store that it fills. It prints what it is told, a line of JSON each, and reads
//! lines: `dump` prints what the store has; `quit`, or the end of the input, ends it. Or it applies as two managers, prints what each
//! write came to, and ends.
//!
//!     kube-rs reflector --server URL --namespace NS [--page-size N] [--streaming-list]
//!     kube-rs apply --server URL --namespace NS
//!
//! It is about ConfigMaps.

use std::{
    collections::BTreeMap,
    env,
    io::{self, Write},
    mem, process, thread,
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Client, Config, ResourceExt,
    api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        reflector::store::Writer,
        utils::Backoff,
        watcher::{self, Event, watcher},
    },
};
use serde_json::{Value, json};

/// Versions by `namespace/name`.
type Versions = BTreeMap<String, String>;

/// What the command line says.
struct Arguments {
    mode: String,
    server: String,
    namespace: String,
    config: watcher::Config,
}

impl Arguments {
    fn parse() -> Self {
        let mut words = env::args().skip(1);
        let mut arguments = Arguments {
            mode: words.next().expect("the first argument is reflector or apply"),
            server: String::new(),
            namespace: "default".into(),
            config: watcher::Config::default(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{word} has no value"));
            match word.as_str() {
                "--server" => arguments.server = value(),
                "--namespace" => arguments.namespace = value(),
                "--page-size" => arguments.config.page_size = Some(value().parse().expect("a page has a number of objects")),
                "--streaming-list" => arguments.config = arguments.config.streaming_lists(),
                other => panic!("there is no argument {other}"),
            }
        }
        arguments
    }

    fn maps(&self, resource: &ApiResource) -> Api<DynamicObject> {
        let config = Config::new(self.server.parse().expect("a server has a URL"));
        let client = Client::try_from(config).expect("a client");
        Api::namespaced_with(client, &self.namespace, resource)
    }
}

/// The time before each attempt. kube-rs begins with 800 ms and doubles it, which is too long for tests.
struct Pause;

impl Iterator for Pause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(50))
    }
}

impl Backoff for Pause {
    fn reset(&mut self) {}
}

/// Prints one line.
fn say(what: &Value) {
    if writeln!(io::stdout().lock(), "{what}").is_err() {
        process::exit(1); // nobody listens any more
    }
}

fn entry(object: &DynamicObject) -> (String, String) {
    let key = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    (key, object.resource_version().unwrap_or_default())
}

/// Prints what has happened to objects.
#[derive(Default)]
struct Teller {
    known: Versions,
    /// What a list has said until now: it is complete with `InitDone`.
    listed: Versions,
    synced: bool,
}

impl Teller {
    fn hear(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => self.listed.extend([entry(&object)]),
            Event::InitDone => self.replace(),
            Event::Apply(object) => self.apply(entry(&object)),
            Event::Delete(object) => self.delete(entry(&object)),
        }
    }

    fn apply(&mut self, (key, version): (String, String)) {
        let before = self.known.insert(key.clone(), version.clone());
        let what = if before.is_some() { "modified" } else { "added" };
        if before.as_ref() != Some(&version) {
            say(&json!({ "type": what, "key": key, "resourceVersion": version }));
        }
    }

    fn delete(&mut self, (key, version): (String, String)) {
        self.known.remove(&key);
        say(&json!({ "type": "deleted", "key": key, "resourceVersion": version }));
    }

    fn replace(&mut self) {
        let listed = mem::take(&mut self.listed);
        for gone in self.known.clone().into_iter().filter(|(key, _)| !listed.contains_key(key)) {
            self.delete(gone);
        }
        for each in listed {
            self.apply(each);
        }
        if !mem::replace(&mut self.synced, true) {
            say(&json!({ "type": "synced" }));
        }
    }
}

/// The code of the Status that a server has sent, or 0.
fn code_of(error: &watcher::Error) -> u16 {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        WatchError(status) => status.code,
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status)) => status.code,
        _ => 0,
    }
}

async fn follow(arguments: Arguments, resource: ApiResource, writer: Writer<DynamicObject>) {
    let mut teller = Teller::default();
    let mut events = watcher(arguments.maps(&resource), arguments.config).backoff(Pause).reflect(writer).boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => teller.hear(event),
            Err(error) => say(&json!({ "type": "error", "code": code_of(&error), "message": error.to_string() })),
        }
    }
}

/// Applies the map `shared` twice as one manager, and as another, which is refused until it uses force.
async fn apply_as_two(arguments: Arguments, resource: ApiResource) {
    let api = arguments.maps(&resource);
    for (manager, of, force) in [("a", "1", false), ("a", "1", false), ("b", "2", false), ("b", "2", true)] {
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": "shared" },
            "data": { "of": of, manager: "x" },
        });
        let mut params = PatchParams::apply(manager);
        params.force = force;
        say(&match api.patch("shared", &params, &Patch::Apply(&map)).await {
            Ok(object) => {
                let (key, version) = entry(&object);
                json!({ "type": "wrote", "verb": "apply", "key": key, "resourceVersion": version })
            }
            Err(kube::Error::Api(status)) => json!({ "type": "failed", "verb": "apply", "code": status.code, "message": status.message }),
            Err(error) => json!({ "type": "failed", "verb": "apply", "code": 0, "message": error.to_string() }),
        });
    }
}

fn main() {
    let arguments = Arguments::parse();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let writer = Writer::new(resource.clone());
    let store = writer.as_reader();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    if arguments.mode == "apply" {
        return runtime.block_on(apply_as_two(arguments, resource));
    }
    // A panic there ends the process: see the profile.
    thread::spawn(move || runtime.block_on(follow(arguments, resource, writer)));
    for line in io::stdin().lines() {
        match line.as_deref() {
            Ok("dump") => {
                let objects: Versions = store.state().iter().map(|object| entry(object)).collect();
                say(&json!({ "type": "store", "objects": objects }));
            }
            Ok("quit") | Err(_) => break,
            Ok(_) => {}
        }
    }
}
