// The operator of operators.test.ts in controller-runtime: the same as operators/website.ts and python-clients/website.py.
//
//	controller-runtime website URL NAMESPACE REGISTRY
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const finalizer = "example.com/registry"

type websiteReconciler struct {
	client.Client
	recorder record.EventRecorder
	registry string
}

func (r *websiteReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	site := &Website{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	site = site.DeepCopy()
	if !site.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.finalize(ctx, site)
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		if err := r.Update(ctx, site); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, r.publish(ctx, site)
}

func (r *websiteReconciler) finalize(ctx context.Context, site *Website) error {
	if !controllerutil.ContainsFinalizer(site, finalizer) {
		return nil
	}
	entry := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.registry, Name: site.Name}}
	err := r.Delete(ctx, entry)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		r.recorder.Eventf(site, corev1.EventTypeNormal, "Unregistered", "Removed %s from the registry", site.Name)
	}
	controllerutil.RemoveFinalizer(site, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, site))
}

func (r *websiteReconciler) publish(ctx context.Context, site *Website) error {
	name, app := site.Name, map[string]string{"app": site.Name}
	labels := map[string]string{"app": name}
	if team, ok := site.Labels["team"]; ok {
		labels["team"] = team
	}
	about := metav1.ObjectMeta{Namespace: site.Namespace, Name: name, Labels: labels}
	replicas := *site.Spec.Replicas
	if site.Spec.Paused {
		replicas = 0
	}
	entry := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.registry, Name: name},
		Data:       map[string]string{"host": name + ".example.com", "uid": string(site.UID)},
	}
	if err := r.Patch(ctx, entry, client.Apply, client.FieldOwner("website"), client.ForceOwnership); err != nil {
		return err
	}
	page := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: about, Data: map[string]string{"index.html": site.Spec.HTML},
	}
	deployment := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: about}
	deployment.Spec.Replicas = &replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: app}
	deployment.Spec.Template.Labels = app
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "nginx:1.29", VolumeMounts: []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html"}},
	}}
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "page", VolumeSource: corev1.VolumeSource{ConfigMap: source}}}
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: about,
		Spec: corev1.ServiceSpec{Selector: app, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	for _, owned := range []client.Object{page, deployment, service} {
		if err := r.apply(ctx, site, owned); err != nil {
			return err
		}
	}
	return r.status(ctx, site, deployment, replicas)
}

// apply says in an event what it has done, as far as the cache knows what was there.
func (r *websiteReconciler) apply(ctx context.Context, site *Website, owned client.Object) error {
	if err := controllerutil.SetControllerReference(site, owned, r.Scheme()); err != nil {
		return err
	}
	before := owned.DeepCopyObject().(client.Object)
	err := r.Get(ctx, client.ObjectKeyFromObject(owned), before)
	isThere := err == nil && metav1.IsControlledBy(before, site)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	kind := owned.GetObjectKind().GroupVersionKind().Kind
	if err := r.Patch(ctx, owned, client.Apply, client.FieldOwner("website"), client.ForceOwnership); err != nil {
		return err
	}
	if !isThere {
		r.recorder.Eventf(site, corev1.EventTypeNormal, "Created", "Created %s %s", kind, site.Name)
	} else if !equality.Semantic.DeepEqual(contentOf(before), contentOf(owned)) {
		r.recorder.Eventf(site, corev1.EventTypeNormal, "Updated", "Updated %s %s", kind, site.Name)
	}
	return nil
}

func contentOf(object client.Object) []any {
	switch each := object.(type) {
	case *corev1.ConfigMap:
		return []any{each.Labels, each.Data}
	case *appsv1.Deployment:
		return []any{each.Labels, each.Spec}
	default:
		return []any{each.GetLabels(), each.(*corev1.Service).Spec}
	}
}

func (r *websiteReconciler) status(ctx context.Context, site *Website, deployment *appsv1.Deployment, replicas int32) error {
	before := site.Status.DeepCopy()
	ready := deployment.Status.ReadyReplicas
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", ObservedGeneration: site.Generation,
		Message: fmt.Sprintf("%d of %d replicas are ready", ready, replicas),
	}
	kind := corev1.EventTypeWarning
	if site.Spec.Paused {
		condition.Reason, condition.Message, kind = "Paused", "The website is paused", corev1.EventTypeNormal
	} else if deployment.Status.ObservedGeneration == deployment.Generation && ready == replicas {
		condition.Status, condition.Reason, kind = metav1.ConditionTrue, "AllReady", corev1.EventTypeNormal
	}
	old := meta.FindStatusCondition(before.Conditions, "Ready")
	meta.SetStatusCondition(&site.Status.Conditions, condition)
	site.Status.ObservedGeneration, site.Status.Replicas = site.Generation, ready
	if equality.Semantic.DeepEqual(before, &site.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, site); err != nil {
		return err
	}
	if old == nil || old.Reason != condition.Reason {
		r.recorder.Event(site, kind, condition.Reason, condition.Message)
	}
	return nil
}

// operate runs until it is killed.
func operate(url, namespace, registry string) error {
	manager, err := ctrl.NewManager(&rest.Config{Host: url, QPS: -1}, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return err
	}
	scheme.Scheme.AddKnownTypes(websites, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme.Scheme, websites)
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
	reconciler := &websiteReconciler{manager.GetClient(), manager.GetEventRecorderFor("website"), registry}
	err = ctrl.NewControllerManagedBy(manager).For(&Website{}, builder.WithPredicates(changed)).
		Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).Complete(reconciler)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctrl.SetupSignalHandler())
	go func() {
		for input.Scan() {
		}
		cancel() // the test is gone
	}()
	return manager.Start(ctx)
}

func website() {
	if err := operate(os.Args[2], os.Args[3], os.Args[4]); err != nil && !apierrors.IsInternalError(err) {
		panic(err)
	}
}

// What controller-gen and a project's types have.

var websites = schema.GroupVersion{Group: "example.com", Version: "v1"}

type WebsiteSpec struct {
	HTML     string `json:"html"`
	Replicas *int32 `json:"replicas,omitempty"`
	Paused   bool   `json:"paused,omitempty"`
}

type WebsiteStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Replicas           int32              `json:"replicas"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (s *WebsiteStatus) DeepCopy() *WebsiteStatus {
	status := *s
	status.Conditions = append([]metav1.Condition(nil), s.Conditions...)
	return &status
}

type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec   `json:"spec"`
	Status            WebsiteStatus `json:"status,omitempty"`
}

func (w *Website) DeepCopy() *Website {
	copy := &Website{TypeMeta: w.TypeMeta, ObjectMeta: *w.ObjectMeta.DeepCopy(), Spec: w.Spec, Status: *w.Status.DeepCopy()}
	if w.Spec.Replicas != nil {
		replicas := *w.Spec.Replicas
		copy.Spec.Replicas = &replicas
	}
	return copy
}

func (w *Website) DeepCopyObject() runtime.Object { return w.DeepCopy() }

type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

func (l *WebsiteList) DeepCopyObject() runtime.Object {
	list := &WebsiteList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, each := range l.Items {
		list.Items = append(list.Items, *each.DeepCopy())
	}
	return list
}
