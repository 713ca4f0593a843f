// The helpers of operators: each line of the input is a question, and each line of the output its answer. See operator-helpers.test.ts.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

type question struct {
	// Of conditions: those that there are, and what is done to them, one after the other. Those without a status are removed.
	Conditions []metav1.Condition `json:"conditions"`
	Set        []metav1.Condition `json:"set"`
	// Of owners: an object, and what is done to it.
	Object map[string]any `json:"object"`
	Owners []struct {
		Owner      map[string]any `json:"owner"`
		Controller bool           `json:"controller"`
		Block      *bool          `json:"block"`
		Remove     bool           `json:"remove"`
	} `json:"owners"`
	// Two objects that are equal, or not.
	Pods []corev1.Pod `json:"pods"`
}

func (asked *question) owned() map[string]any {
	object := &unstructured.Unstructured{Object: asked.Object}
	scheme := runtime.NewScheme()
	results := []string{}
	for _, step := range asked.Owners {
		owner := &unstructured.Unstructured{Object: step.Owner}
		options := []controllerutil.OwnerReferenceOption{}
		if step.Block != nil {
			options = append(options, controllerutil.WithBlockOwnerDeletion(*step.Block))
		}
		before := object.DeepCopy()
		var err error
		switch {
		case step.Remove:
			// That there is none is an error there, and no news here.
			_ = controllerutil.RemoveOwnerReference(owner, object, scheme)
		case step.Controller:
			err = controllerutil.SetControllerReference(owner, object, scheme, options...)
		default:
			err = controllerutil.SetOwnerReference(owner, object, scheme, options...)
		}
		switch {
		case err != nil:
			results = append(results, "refused")
		case equality.Semantic.DeepEqual(before.GetOwnerReferences(), object.GetOwnerReferences()):
			results = append(results, "unchanged")
		default:
			results = append(results, "changed")
		}
	}
	return map[string]any{"results": results, "owners": object.GetOwnerReferences(), "controller": metav1.GetControllerOf(object)}
}

func (asked *question) conditioned() map[string]any {
	changed := []bool{}
	for _, each := range asked.Set {
		if each.Status == "" {
			changed = append(changed, meta.RemoveStatusCondition(&asked.Conditions, each.Type))
		} else {
			changed = append(changed, meta.SetStatusCondition(&asked.Conditions, each))
		}
	}
	return map[string]any{"changed": changed, "conditions": asked.Conditions}
}

func helpers() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		asked := question{}
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			say(map[string]any{"failed": err.Error()})
		} else if asked.Pods != nil {
			say(map[string]any{"equal": equality.Semantic.DeepEqual(asked.Pods[0], asked.Pods[1])})
		} else if asked.Object != nil {
			say(asked.owned())
		} else {
			say(asked.conditioned())
		}
	}
}
