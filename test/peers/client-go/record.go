package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// A recorder tells this often of the same event.
const repetitions = 3

// recordEvents tells of the same events several times, with the recorder of each API, and works with the other built-in kinds by a typed
// client: all of it in protobuf.
func recordEvents(ctx context.Context, config *rest.Config) (func() map[string]string, <-chan struct{}) {
	client := kubernetes.NewForConfigOrDie(config)
	about := must(client.CoreV1().ConfigMaps(*namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: *name},
	}, metav1.CreateOptions{}))
	about.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	// Each repetition waits for the answer to the one before: otherwise a recorder would tell of several at once.
	written := func(reason string, count int) {
		for {
			list := must(client.CoreV1().Events(*namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason}))
			if len(list.Items) == 1 {
				event := list.Items[0]
				seen := int(event.Count)
				if event.Series != nil {
					seen = int(event.Series.Count)
				} else if seen == 0 {
					seen = 1
				}
				if seen >= count {
					say(line{"type": "wrote", "verb": reason, "key": event.InvolvedObject.Name, "replicas": seen})
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		old := record.NewBroadcaster()
		defer old.Shutdown()
		old.StartRecordingToSink(&typedSink{client, ctx})
		recorder := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "program"})
		for at := range repetitions {
			recorder.Event(about, corev1.EventTypeNormal, "Repeated", "it has happened")
			written("Repeated", at+1)
		}
		current := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
		defer current.Shutdown()
		if err := current.StartRecordingToSinkWithContext(ctx); err != nil {
			panic(err)
		}
		series := current.NewRecorder(scheme.Scheme, "example.com/program")
		for at := range 2 {
			series.Eventf(about, nil, corev1.EventTypeWarning, "Again", "Do", "it has %s", "happened")
			written("Again", at+1)
		}
		kinds(ctx, client)
		say(line{"type": "ended"})
	}()
	return func() map[string]string { return nil }, done
}

// typedSink is what record.EventSinkImpl of typed/core/v1 is, with a context.
type typedSink struct {
	client kubernetes.Interface
	ctx    context.Context
}

func (s *typedSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).CreateWithEventNamespaceWithContext(s.ctx, event)
}

func (s *typedSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).UpdateWithEventNamespaceWithContext(s.ctx, event)
}

func (s *typedSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).PatchWithEventNamespaceWithContext(s.ctx, event, data)
}

var _ record.EventSink = &typedSink{}
var _ runtime.Object = &corev1.Event{}

// kinds writes a secret and a service account, and tells what they have become.
func kinds(ctx context.Context, client kubernetes.Interface) {
	secrets := client.CoreV1().Secrets(*namespace)
	created := must(secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: *name},
		StringData: map[string]string{"a": "b"},
		Data:       map[string][]byte{"c": {0, 255}},
	}, metav1.CreateOptions{}))
	created.Data["d"] = []byte("e")
	updated := must(secrets.Update(ctx, created, metav1.UpdateOptions{}))
	read := must(secrets.Get(ctx, *name, metav1.GetOptions{}))
	same := string(read.Data["a"]) == "b" && len(read.Data["c"]) == 2 && string(read.Data["d"]) == "e"
	if !same || read.ResourceVersion != updated.ResourceVersion || read.Type != corev1.SecretTypeOpaque {
		panic(read)
	}
	no := false
	account := must(client.CoreV1().ServiceAccounts(*namespace).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Name: *name},
		AutomountServiceAccountToken: &no,
	}, metav1.CreateOptions{}))
	if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		panic(account)
	}
	if err := client.CoreV1().ServiceAccounts(*namespace).Delete(ctx, *name, metav1.DeleteOptions{}); err != nil {
		panic(err)
	}
	say(line{"type": "wrote", "verb": "kinds", "key": keyOf(read), "resourceVersion": read.ResourceVersion})
}
