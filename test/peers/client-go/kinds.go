package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// The kinds, each with its plural, what is true of it (c: cluster-scoped, s: status, r: scale, g: generations are counted), its short names and its categories.
const kindNames = `
v1 Endpoints endpoints - ep
v1 LimitRange limitranges - limits
v1 Node nodes cs no
v1 PersistentVolume persistentvolumes cs pv
v1 PersistentVolumeClaim persistentvolumeclaims s pvc
v1 Pod pods sg po all
v1 PodTemplate podtemplates g
v1 ReplicationController replicationcontrollers srg rc all
v1 ResourceQuota resourcequotas s quota
v1 Service services s svc all
apps/v1 ControllerRevision controllerrevisions
apps/v1 DaemonSet daemonsets sg ds all
apps/v1 Deployment deployments srg deploy all
apps/v1 ReplicaSet replicasets srg rs all
apps/v1 StatefulSet statefulsets srg sts all
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers sg hpa all
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers sg hpa all
batch/v1 CronJob cronjobs sg cj all
batch/v1 Job jobs sg - all
discovery.k8s.io/v1 EndpointSlice endpointslices g
networking.k8s.io/v1 IPAddress ipaddresses c ip
networking.k8s.io/v1 Ingress ingresses sg ing
networking.k8s.io/v1 IngressClass ingressclasses cg
networking.k8s.io/v1 NetworkPolicy networkpolicies g netpol
networking.k8s.io/v1 ServiceCIDR servicecidrs cs
node.k8s.io/v1 RuntimeClass runtimeclasses c
policy/v1 PodDisruptionBudget poddisruptionbudgets sg pdb
rbac.authorization.k8s.io/v1 ClusterRole clusterroles c
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings c
rbac.authorization.k8s.io/v1 Role roles
rbac.authorization.k8s.io/v1 RoleBinding rolebindings
scheduling.k8s.io/v1 PriorityClass priorityclasses cg pc
storage.k8s.io/v1 CSIDriver csidrivers c
storage.k8s.io/v1 CSINode csinodes cs
storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities
storage.k8s.io/v1 StorageClass storageclasses c sc
storage.k8s.io/v1 VolumeAttachment volumeattachments cs
storage.k8s.io/v1 VolumeAttributesClass volumeattributesclasses c vac
`

func kindsOfTable() (kinds []schema.GroupVersionKind) {
	for _, line := range strings.Split(strings.TrimSpace(kindNames), "\n") {
		words := strings.Fields(line)
		kinds = append(kinds, schema.FromAPIVersionAndKind(words[0], words[1]))
	}
	return kinds
}

// A table is what is known of Go types: a line each.
type table struct {
	schema *smd.Schema
	names  map[reflect.Type]string
	taken  map[string]reflect.Type
	lines  []string
}

// Types that are a value in JSON, and the letter by which the table calls them.
var values = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "t",
	reflect.TypeFor[metav1.MicroTime]():     "m",
	reflect.TypeFor[runtime.RawExtension](): "j",
	reflect.TypeFor[intstr.IntOrString]():   "IntOrString",
	reflect.TypeFor[resource.Quantity]():    "Quantity",
	reflect.TypeFor[metav1.ObjectMeta]():    "ObjectMeta",
}

var scalars = map[reflect.Kind]string{
	reflect.String: "s", reflect.Int32: "i", reflect.Int64: "l", reflect.Float64: "d", reflect.Bool: "o",
}

// nameOf names a type, and writes its line before those that refer to it.
func (t *table) nameOf(of reflect.Type, atom smd.Atom) string {
	if name, ok := values[of]; ok {
		return name
	}
	if name, ok := scalars[of.Kind()]; ok {
		return name
	}
	if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8 {
		return "b"
	}
	if of.Kind() != reflect.Struct {
		panic(fmt.Sprintf("a field of %v", of))
	}
	if name, ok := t.names[of]; ok {
		return name
	}
	name := of.Name()
	if other, ok := t.taken[name]; ok && other != of {
		parts := strings.Split(of.PkgPath(), "/")
		name = strings.Join(append(parts[len(parts)-2:], name), ".")
	}
	t.taken[name], t.names[of] = of, name
	line := name
	if atom.Map != nil && atom.Map.ElementRelationship == smd.Atomic {
		line += " %"
	}
	for at := range of.NumField() {
		line += t.row(of.Field(at), atom)
	}
	t.lines = append(t.lines, line)
	return name
}

// row is a field: its name, its number, how many values it has, their type, and how a list is merged.
func (t *table) row(field reflect.StructField, parent smd.Atom) string {
	tag, ok := field.Tag.Lookup("protobuf")
	if !ok {
		if field.Type != reflect.TypeFor[metav1.TypeMeta]() {
			panic(fmt.Sprintf("%v has no number", field))
		}
		return ""
	}
	number := strings.Split(tag, ",")[1]
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" {
		if !field.Anonymous {
			panic(fmt.Sprintf("%v has no name", field))
		}
		atom := parent
		if found, ok := t.schema.FindNamedType(modelName(field.Type)); ok {
			atom = found.Atom
		}
		return fmt.Sprintf(" :%s^%s", number, t.nameOf(field.Type, atom))
	}
	known := smd.StructField{}
	if parent.Map != nil {
		if found, ok := parent.Map.FindField(name); ok {
			known = found
		}
	}
	atom := t.atomOf(known.Type)
	form, of, more := "", field.Type, ""
	always := !strings.Contains(options, "omit")
	switch of.Kind() {
	case reflect.Pointer:
		form, of = "?", of.Elem()
	case reflect.Slice:
		if of.Elem().Kind() != reflect.Uint8 {
			form, of = "[]", of.Elem()
			if atom.List == nil {
				panic(fmt.Sprintf("%v is no list", field))
			}
			if atom.List.ElementRelationship == smd.Associative {
				more = "@" + strings.Join(atom.List.Keys, ",")
			}
			atom = t.atomOf(atom.List.ElementType)
		}
	case reflect.Map:
		form, of = "{}", of.Elem()
		if atom.Map == nil {
			panic(fmt.Sprintf("%v is no map", field))
		}
		if atom.Map.ElementRelationship == smd.Atomic {
			more = "%"
		}
		atom = t.atomOf(atom.Map.ElementType)
	default:
		// Go leaves out no struct.
		if of.Kind() == reflect.Struct && !strings.Contains(options, "omitzero") {
			always = values[of] != "" && values[of] != "ObjectMeta"
		} else if of.Kind() == reflect.Struct {
			panic(fmt.Sprintf("%v is left out", field))
		}
	}
	if always {
		form += "!"
	}
	if strings.Contains(field.Tag.Get("patchStrategy"), "merge") {
		more += "~" + field.Tag.Get("patchMergeKey")
	}
	if of == reflect.TypeFor[runtime.RawExtension]() {
		more = "%" // as a server has it, which reads schemas of another version than clients
	} else if relationship := known.Type.ElementRelationship; relationship != nil && of.Kind() == reflect.Struct {
		more += map[smd.ElementRelationship]string{smd.Atomic: "%", smd.Separable: "+"}[*relationship]
	}
	if text, ok := known.Default.(string); ok && text != "" {
		more += "=" + text
	}
	return fmt.Sprintf(" %s:%s%s%s%s", name, number, form, t.nameOf(of, atom), more)
}

// modelName is how schemas name a type.
func modelName(of reflect.Type) string {
	return "io." + strings.ReplaceAll(strings.Replace(of.PkgPath(), "k8s.io", "k8s", 1), "/", ".") + "." + of.Name()
}

func (t *table) atomOf(ref smd.TypeRef) smd.Atom {
	if atom, ok := t.schema.Resolve(ref); ok {
		return atom
	}
	return smd.Atom{}
}

// printTable prints the fields of Kubernetes' own kinds, as the server's sources have them.
func printTable() {
	t := table{names: map[reflect.Type]string{}, taken: map[string]reflect.Type{}}
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	kinds := kindsOfTable()
	lines := []string{}
	for at, line := range strings.Split(strings.TrimSpace(kindNames), "\n") {
		object := must(scheme.Scheme.New(kinds[at]))
		object.GetObjectKind().SetGroupVersionKind(kinds[at])
		typed := must(converter.ObjectToTyped(object))
		t.schema = typed.Schema()
		ref := typed.TypeRef()
		for strings.Count(line, " ") < 5 {
			line += " -"
		}
		lines = append(lines, line+" "+t.nameOf(reflect.TypeOf(object).Elem(), t.atomOf(ref)))
	}
	fmt.Println("// Written by test/peers/client-go/kinds.go from Kubernetes' own types: see kubernetes.ts, which reads it.")
	fmt.Printf("export const TABLE: string = `%s\n\n%s`;\n", strings.Join(lines, "\n"), strings.Join(t.lines, "\n"))
}

// A question about one kind: what a random object is in JSON and in protobuf, and whether this protobuf is the same object. Or about a
// quantity: how it is written.
type question struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Seed       int64  `json:"seed"`
	Protobuf   []byte `json:"protobuf"`
	Quantity   string `json:"quantity"`
}

// fuzzed makes the random object of a seed, always the same.
func fuzzed(kind schema.GroupVersionKind, seed int64) runtime.Object {
	own := func(serializer.CodecFactory) []any {
		return []any{
			func(q *resource.Quantity, c randfill.Continue) {
				formats := []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}
				*q = *resource.NewMilliQuantity(c.Int63n(1<<40), formats[c.Intn(3)])
			},
			func(value *intstr.IntOrString, c randfill.Continue) {
				if c.Bool() {
					*value = intstr.FromInt32(c.Int31())
				} else {
					*value = intstr.FromString(c.String(10))
				}
			},
			func(value *int64, c randfill.Continue) { *value = c.Int63() >> 12 }, // as JavaScript counts
			func(value *runtime.RawExtension, c randfill.Continue) {
				value.Raw = must(json.Marshal(map[string]any{"a": []any{c.Int31(), c.Bool(), nil}}))
			},
		}
	}
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, own)
	filler := fuzzer.FuzzerFor(funcs, rand.NewSource(seed), scheme.Codecs).NumElements(1, 2).NilChance(0.4)
	object := must(scheme.Scheme.New(kind))
	filler.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object
}

func answer(asked question) line {
	if asked.Kind == "" {
		read := resource.Quantity{}
		if err := json.Unmarshal(must(json.Marshal(asked.Quantity)), &read); err != nil {
			return line{"error": err.Error()}
		}
		return line{"quantity": read.String()}
	}
	kind := schema.FromAPIVersionAndKind(asked.APIVersion, asked.Kind)
	object := fuzzed(kind, asked.Seed)
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if asked.Protobuf == nil {
		buffer := bytes.Buffer{}
		if err := codec.Encode(object, &buffer); err != nil {
			panic(err)
		}
		return line{"object": object, "protobuf": buffer.Bytes(), "zero": must(scheme.Scheme.New(kind))}
	}
	read, _, err := codec.Decode(asked.Protobuf, nil, nil)
	if err != nil {
		return line{"error": err.Error()}
	}
	return line{"object": read, "same": equality.Semantic.DeepEqual(read, object)}
}

// answerKinds answers each question of the input, a line each.
func answerKinds() {
	input := json.NewDecoder(os.Stdin)
	for {
		asked := question{}
		if input.Decode(&asked) != nil {
			return
		}
		say(answer(asked))
	}
}
