package main

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	batchapply "k8s.io/client-go/applyconfigurations/batch/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The methods that the clients of all kinds have.
type typedClient[T metav1.Object, L runtime.Object, A any] interface {
	Create(ctx context.Context, object T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error)
	UpdateStatus(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, parts ...string) (T, error)
	Apply(ctx context.Context, configuration A, opts metav1.ApplyOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// use does with one object what clients do, and prints each answer, and what a watch has told of it.
func use[T metav1.Object, L runtime.Object, A any](ctx context.Context, kind string, client typedClient[T, L, A], object T, status func(T), patch string, configuration A) {
	answers := []json.RawMessage{}
	keep := func(answer any) { answers = append(answers, must(json.Marshal(answer))) }
	list := must(client.List(ctx, metav1.ListOptions{}))
	from := must(json.Marshal(list))
	start := struct{ Metadata metav1.ListMeta }{}
	if err := json.Unmarshal(from, &start); err != nil {
		panic(err)
	}
	watching := must(client.Watch(ctx, metav1.ListOptions{ResourceVersion: start.Metadata.ResourceVersion}))
	defer watching.Stop()
	object.SetName("typed")
	current := must(client.Create(ctx, object, metav1.CreateOptions{}))
	keep(current)
	current.SetLabels(map[string]string{"updated": "yes"})
	current = must(client.Update(ctx, current, metav1.UpdateOptions{}))
	keep(current)
	status(current)
	current = must(client.UpdateStatus(ctx, current, metav1.UpdateOptions{}))
	keep(current)
	keep(must(client.Patch(ctx, "typed", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})))
	keep(must(client.Apply(ctx, configuration, metav1.ApplyOptions{FieldManager: "typed", Force: true})))
	keep(must(client.Get(ctx, "typed", metav1.GetOptions{})))
	keep(must(client.List(ctx, metav1.ListOptions{})))
	if err := client.Delete(ctx, "typed", metav1.DeleteOptions{}); err != nil {
		panic(err)
	}
	told := []string{}
	for event := range watching.ResultChan() {
		told = append(told, fmt.Sprintf("%s %T", event.Type, event.Object))
		if event.Type == watch.Deleted {
			break
		}
	}
	say(line{"type": "wrote", "verb": kind, "answers": answers, "events": told})
}

// useTyped uses the typed clients of several kinds, in protobuf alone.
func useTyped(ctx context.Context, config *rest.Config) (func() map[string]string, <-chan struct{}) {
	config.ContentConfig = rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf}
	client := kubernetes.NewForConfigOrDie(config)
	labels := map[string]string{"app": "web"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1"}, {Name: "b", Image: "b:1"}}},
	}
	two := int32(2)
	containers := `"spec":{"containers":[{"name":"b","image":"b:2"}]}`
	inTemplate := `{"spec":{"template":{` + containers + `}}}`
	third := coreapply.PodSpec().WithContainers(coreapply.Container().WithName("c").WithImage("c:1").
		WithPorts(coreapply.ContainerPort().WithContainerPort(80)))
	applied := coreapply.PodTemplateSpec().WithSpec(third)
	done := make(chan struct{})
	go func() {
		defer close(done)
		use(ctx, "Pod", client.CoreV1().Pods(*namespace), &corev1.Pod{Spec: template.Spec},
			func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning },
			"{"+containers+"}", coreapply.Pod("typed", *namespace).WithSpec(third))
		use(ctx, "Service", client.CoreV1().Services(*namespace),
			&corev1.Service{Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{
				{Name: "a", Port: 80, TargetPort: intstr.FromString("http")}, {Name: "b", Port: 81, TargetPort: intstr.FromInt32(8081)},
			}}},
			func(service *corev1.Service) {
				service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.0.0.1"}}
			},
			`{"spec":{"ports":[{"port":81,"targetPort":"other"}]}}`,
			coreapply.Service("typed", *namespace).WithSpec(coreapply.ServiceSpec().WithPorts(coreapply.ServicePort().WithName("c").WithPort(82))))
		use(ctx, "Deployment", client.AppsV1().Deployments(*namespace),
			&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: selector, Template: template}},
			func(deployment *appsv1.Deployment) { deployment.Status.Replicas = 1 },
			inTemplate, appsapply.Deployment("typed", *namespace).WithSpec(appsapply.DeploymentSpec().WithTemplate(applied)))
		use(ctx, "StatefulSet", client.AppsV1().StatefulSets(*namespace),
			&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &two, Selector: selector, Template: template, ServiceName: "web"}},
			func(set *appsv1.StatefulSet) { set.Status.Replicas = 1 },
			inTemplate, appsapply.StatefulSet("typed", *namespace).WithSpec(appsapply.StatefulSetSpec().WithTemplate(applied)))
		use(ctx, "Job", client.BatchV1().Jobs(*namespace),
			&batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &two, Template: template}},
			func(job *batchv1.Job) { now := metav1.Now(); job.Status.StartTime, job.Status.Active = &now, 1 },
			inTemplate, batchapply.Job("typed", *namespace).WithSpec(batchapply.JobSpec().WithTemplate(applied)))
		say(line{"type": "ended"})
	}()
	return func() map[string]string { return nil }, done
}
