// controller-runtime, with a manager that lives through a restart of the server. It prints what came of each step of clients.test.ts.
//
//	controller-runtime CRD_FOLDER URL
//
// With the word website it is an operator instead: see website.go; with the word helpers it answers questions: see helpers.go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	ctx    = context.Background()
	config *rest.Config
	orders client.WithWatch
	input  = bufio.NewScanner(os.Stdin)
)

func say(line map[string]any) { _ = json.NewEncoder(os.Stdout).Encode(line) }

func order(name, item string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"item": item}}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Order"})
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

func get(name string) (*unstructured.Unstructured, error) {
	object := order(name, "")
	return object, orders.Get(ctx, client.ObjectKeyFromObject(object), object)
}

func listOf() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "OrderList"})
	return list
}

func countOf(object *unstructured.Unstructured) int64 {
	count, _, _ := unstructured.NestedInt64(object.Object, "spec", "count")
	return count
}

// expect is an error unless both are the same.
func expect[T comparable](found, wanted T) error {
	if found != wanted {
		return fmt.Errorf("expected %v, found %v", wanted, found)
	}
	return nil
}

// install does what envtest does with a folder of CRDs, and waits until discovery has them.
func install() error {
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{os.Args[1]}, ErrorIfPathMissing: true})
	if err != nil {
		return err
	}
	orders, err = client.NewWithWatch(config, client.Options{})
	return err
}

func create() error {
	var first *unstructured.Unstructured
	for _, name := range []string{"c", "b", "a"} {
		first = order(name, "tea")
		if err := orders.Create(ctx, first); err != nil {
			return err
		}
	}
	return expect(countOf(first), 1) // the default of the schema
}

func list() error {
	names := ""
	for page := listOf(); ; {
		if err := orders.List(ctx, page, client.InNamespace("default"), client.Limit(2), client.Continue(page.GetContinue())); err != nil {
			return err
		}
		for _, each := range page.Items {
			names += each.GetName()
		}
		if page.GetContinue() == "" {
			return expect(names, "abc")
		}
	}
}

func watch() error {
	events, err := orders.Watch(ctx, listOf(), client.InNamespace("default"))
	if err != nil {
		return err
	}
	defer events.Stop()
	change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"item":"coffee"}}`))
	if err := orders.Patch(ctx, order("a", ""), change); err != nil {
		return err
	}
	for event := range events.ResultChan() {
		item, _, _ := unstructured.NestedString(event.Object.(*unstructured.Unstructured).Object, "spec", "item")
		if item == "coffee" {
			return nil
		}
	}
	return errors.New("the watch ended")
}

func update() error {
	object, err := get("a")
	if err != nil {
		return err
	}
	before := object.GetGeneration()
	_ = unstructured.SetNestedField(object.Object, int64(2), "spec", "count")
	return errors.Join(orders.Update(ctx, object), expect(object.GetGeneration(), before+1))
}

func conflict() error {
	stale, err := get("a")
	if err != nil {
		return err
	}
	fresh := stale.DeepCopy()
	_ = unstructured.SetNestedField(fresh.Object, int64(3), "spec", "count")
	if err := orders.Update(ctx, fresh); err != nil {
		return err
	}
	_ = unstructured.SetNestedField(stale.Object, int64(5), "spec", "count")
	return expect(apierrors.IsConflict(orders.Update(ctx, stale)), true)
}

func patch() error {
	object := order("a", "")
	change := []byte(`[{"op":"replace","path":"/spec/count","value":4}]`)
	err := orders.Patch(ctx, object, client.RawPatch("application/json-patch+json", change))
	return errors.Join(err, expect(countOf(object), 4))
}

func apply() error {
	object := order("d", "milk")
	err := orders.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("go"), client.ForceOwnership)
	if err != nil {
		return err
	}
	found, err := get("d")
	if err != nil || len(found.GetManagedFields()) == 0 {
		return errors.Join(err, errors.New("nobody owns a field"))
	}
	return expect(found.GetManagedFields()[0].Operation, metav1.ManagedFieldsOperationApply)
}

func status() error {
	object, err := get("a")
	if err != nil {
		return err
	}
	_ = unstructured.SetNestedField(object.Object, "done", "status", "phase")
	_ = unstructured.SetNestedField(object.Object, int64(9), "spec", "count")
	if err := orders.Status().Update(ctx, object); err != nil {
		return err
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return errors.Join(expect(phase, "done"), expect(countOf(object), 4))
}

func scale() error {
	object, scale := order("a", ""), &unstructured.Unstructured{}
	scale.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	if err := orders.SubResource("scale").Get(ctx, object, scale); err != nil {
		return err
	}
	_ = unstructured.SetNestedField(scale.Object, int64(7), "spec", "replicas")
	if err := orders.SubResource("scale").Update(ctx, object, client.WithSubResourceBody(scale)); err != nil {
		return err
	}
	found, err := get("a")
	return errors.Join(err, expect(countOf(found), 7))
}

func remove() error {
	if err := orders.Delete(ctx, order("b", "")); err != nil {
		return err
	}
	_, err := get("b")
	return expect(apierrors.IsNotFound(err), true)
}

// controller runs a manager that notes every order that it is asked to reconcile.
func controller() error {
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	var seen sync.Map
	note := reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
		seen.Store(request.Name, true)
		return reconcile.Result{}, nil
	})
	if err := ctrl.NewControllerManagedBy(manager).Named("orders").For(order("", "")).Complete(note); err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { _ = manager.Start(running) }()
	until := func(name string) {
		for _, ok := seen.Load(name); !ok; _, ok = seen.Load(name) {
			time.Sleep(50 * time.Millisecond)
		}
	}
	until("a")
	say(map[string]any{"type": "restart"})
	input.Scan()
	if err := orders.Create(ctx, order("e", "water")); err != nil {
		return err
	}
	until("e")
	return nil
}

func main() {
	log.SetLogger(zap.New())
	if os.Args[1] == "helpers" {
		helpers()
		return
	}
	if os.Args[1] == "website" {
		website()
		return
	}
	config = &rest.Config{Host: os.Args[2], QPS: -1}
	steps := []struct {
		name string
		do   func() error
	}{
		{"discover", install}, {"create", create}, {"list", list}, {"watch", watch}, {"update", update}, {"conflict", conflict}, {"patch", patch},
		{"apply", apply}, {"status", status}, {"scale", scale}, {"delete", remove}, {"controller", controller},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			say(map[string]any{"type": "failed", "verb": step.name, "message": err.Error()})
		} else {
			say(map[string]any{"type": "passed", "verb": step.name})
		}
	}
}
