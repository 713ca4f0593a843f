// Kubernetes' own server-side apply, for tests: structured-merge-diff with apimachinery's managed fields, as a kube-apiserver puts
// them together for custom resources. Each line of its input is a story of one object in JSON; each line of its output says what
// was stored after each step, or why nothing was.
//
// Times are those of the steps: the library knows only the time of the machine, so what it marks as of now is set to the step's.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/spec3"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const group = "example.com"

type step struct {
	// apply, update, extract, or schemas, which has other schemas from then on.
	Op          string                     `json:"op"`
	Version     string                     `json:"version"`
	Manager     string                     `json:"manager"`
	Subresource string                     `json:"subresource"`
	Force       bool                       `json:"force"`
	Time        string                     `json:"time"`
	Object      map[string]interface{}     `json:"object"`
	Schemas     map[string]json.RawMessage `json:"schemas"`
}

type story struct {
	// By version; null: there is none, so types are deduced.
	Schemas map[string]json.RawMessage `json:"schemas"`
	// By subresource: the members that its writes do not own.
	Reset map[string][]string `json:"reset"`
	Steps []step              `json:"steps"`
	// How often the last step is done to measure it.
	Repeat int `json:"repeat"`
}

type outcome struct {
	Object    map[string]interface{} `json:"object"`
	Conflicts []metav1.StatusCause   `json:"conflicts,omitempty"`
	Message   string                 `json:"message,omitempty"`
	Error     string                 `json:"error,omitempty"`
	Code      int32                  `json:"code,omitempty"`
	Micros    float64                `json:"micros,omitempty"`
}

// converter changes only the version, as CustomResourceDefinitions without a webhook do.
type converter struct{ versions map[string]bool }

func (c converter) Convert(in, out, context interface{}) error { return errors.New("not used") }
func (c converter) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("not used")
}
func (c converter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{in.GetObjectKind().GroupVersionKind()})
	if !ok || !c.versions[gvk.Version] {
		return nil, runtime.NewNotRegisteredErrForTarget("oracle", nil, target)
	}
	out := in.DeepCopyObject()
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out, nil
}

type nothing struct{}

func (nothing) Default(runtime.Object) {}
func (nothing) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(gvk)
	return out, nil
}

type world struct {
	converter converter
	types     managedfields.TypeConverter
	reset     map[string][]string
	managers  map[string]*managedfields.FieldManager
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func newWorld(schemas map[string]json.RawMessage, reset map[string][]string) (*world, error) {
	w := &world{
		converter: converter{versions: map[string]bool{}},
		reset:     reset,
		managers:  map[string]*managedfields.FieldManager{},
	}
	deduced := true
	for version, raw := range schemas {
		w.converter.versions[version] = true
		deduced = deduced && isNull(raw)
	}
	if deduced {
		w.types = managedfields.NewDeducedTypeConverter()
		return w, nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "things." + group
	crd.Spec.Group = group
	crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"}
	for version, raw := range schemas {
		props := &apiextensionsv1.JSONSchemaProps{}
		if !isNull(raw) {
			if err := json.Unmarshal(raw, props); err != nil {
				return nil, err
			}
		}
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
		})
	}
	specs := []*spec3.OpenAPI{}
	for version := range schemas {
		built, err := builder.BuildOpenAPIV3(crd, version, builder.Options{})
		if err != nil {
			return nil, err
		}
		specs = append(specs, built)
	}
	all, err := builder.MergeSpecsV3(specs...)
	if err != nil {
		return nil, err
	}
	w.types, err = managedfields.NewTypeConverter(all.Components.Schemas, false)
	return w, err
}

func (w *world) manager(version, subresource string) (*managedfields.FieldManager, error) {
	key := version + " " + subresource
	if known, ok := w.managers[key]; ok {
		return known, nil
	}
	kind := schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"}
	ignored := fieldpath.NewSet()
	for _, path := range w.reset[subresource] {
		parts := []interface{}{}
		for _, name := range strings.Split(path, ".") {
			parts = append(parts, name)
		}
		ignored.Insert(fieldpath.MakePathOrDie(parts...))
	}
	filters := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(kind.GroupVersion().String()): ignored})
	made, err := managedfields.NewDefaultCRDFieldManager(w.types, w.converter, nothing{}, nothing{}, kind, schema.GroupVersion{Group: group, Version: "v1"}, subresource, filters)
	w.managers[key] = made
	return made, err
}

func (w *world) do(live *unstructured.Unstructured, s step) (out *unstructured.Unstructured, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	manager, err := w.manager(s.Version, s.Subresource)
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind{Group: group, Version: s.Version, Kind: "Thing"}
	if live == nil {
		made, _ := nothing{}.New(kind)
		live = made.(*unstructured.Unstructured)
	} else {
		// Storages hold one version, and handlers see that of the request.
		live = live.DeepCopy()
		live.SetGroupVersionKind(kind)
	}
	sent := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.Object)}
	if s.Op == "apply" {
		out, err := manager.Apply(live, sent, s.Manager, s.Force)
		if err != nil {
			return nil, err
		}
		// It is in the version that is stored, and the server answers in that of the request.
		merged := out.(*unstructured.Unstructured)
		merged.SetGroupVersionKind(kind)
		return merged, nil
	}
	return manager.UpdateNoErrors(live, sent, s.Manager).(*unstructured.Unstructured), nil
}

func (w *world) extract(live *unstructured.Unstructured, s step) (*unstructured.Unstructured, error) {
	if live == nil {
		return &unstructured.Unstructured{Object: map[string]interface{}{}}, nil
	}
	live = live.DeepCopy()
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: s.Version, Kind: "Thing"})
	value, err := w.types.ObjectToTyped(live)
	if err != nil {
		return nil, err
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != s.Manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != s.Subresource {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, err
		}
		found, _ := value.ExtractItems(set.Leaves()).AsValue().Unstructured().(map[string]interface{})
		return &unstructured.Unstructured{Object: found}, nil
	}
	return &unstructured.Unstructured{Object: map[string]interface{}{}}, nil
}

func retime(object *unstructured.Unstructured, since time.Time, at string) error {
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return err
	}
	entries := object.GetManagedFields()
	for i := range entries {
		if entries[i].Time != nil && !entries[i].Time.Time.Before(since) {
			entries[i].Time = &metav1.Time{Time: when}
		}
	}
	if entries != nil {
		object.SetManagedFields(entries)
	}
	return nil
}

func shown(err error) outcome {
	out := outcome{Error: err.Error(), Code: 500}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		out.Code = status.Status().Code
		if out.Code == 409 {
			out.Conflicts = status.Status().Details.Causes
			out.Message, out.Error = out.Error, ""
		}
	}
	return out
}

func tell(s story) ([]outcome, error) {
	w, err := newWorld(s.Schemas, s.Reset)
	if err != nil {
		return nil, err
	}
	var live *unstructured.Unstructured
	outcomes := []outcome{}
	for i, each := range s.Steps {
		if each.Op == "schemas" {
			if w, err = newWorld(each.Schemas, s.Reset); err != nil {
				return nil, err
			}
			outcomes = append(outcomes, outcome{})
			continue
		}
		if each.Op == "extract" {
			found, err := w.extract(live, each)
			if err != nil {
				outcomes = append(outcomes, shown(err))
			} else {
				if found.Object == nil {
					found.Object = map[string]interface{}{}
				}
				outcomes = append(outcomes, outcome{Object: found.Object})
			}
			continue
		}
		since := time.Now().UTC().Truncate(time.Second)
		next, err := w.do(live, each)
		var micros float64
		if s.Repeat > 0 && i == len(s.Steps)-1 {
			started := time.Now()
			for n := 0; n < s.Repeat; n++ {
				if _, err := w.do(live, each); err != nil {
					return nil, err
				}
			}
			micros = float64(time.Since(started).Microseconds()) / float64(s.Repeat)
		}
		if err != nil {
			outcomes = append(outcomes, shown(err))
			continue
		}
		if err := retime(next, since, each.Time); err != nil {
			return nil, err
		}
		live = next
		outcomes = append(outcomes, outcome{Object: live.DeepCopy().Object, Micros: micros})
	}
	return outcomes, nil
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var s story
		decoder := json.NewDecoder(strings.NewReader(string(line)))
		decoder.UseNumber()
		if err := decoder.Decode(&s); err != nil {
			_ = out.Encode(map[string]string{"broken": err.Error()})
			continue
		}
		for i := range s.Steps {
			s.Steps[i].Object, _ = numbers(s.Steps[i].Object).(map[string]interface{})
		}
		outcomes, err := tell(s)
		if err != nil {
			_ = out.Encode(map[string]string{"broken": fmt.Sprint(err)})
			continue
		}
		_ = out.Encode(map[string]interface{}{"outcomes": outcomes})
	}
}

// numbers makes int64 or float64 of all numbers, as a server reads them.
func numbers(v interface{}) interface{} {
	switch t := v.(type) {
	case map[string]interface{}:
		for k := range t {
			t[k] = numbers(t[k])
		}
	case []interface{}:
		for i := range t {
			t[i] = numbers(t[i])
		}
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i
		}
		f, _ := t.Float64()
		return f
	}
	return v
}
