// What a kube-apiserver makes of schemas and objects: the packages of k8s.io/apiextensions-apiserver by which it does, without a server.
// Reads lines of JSON from the standard input, each a case, and answers each with one.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

type request struct {
	Schema json.RawMessage `json:"schema"`
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old"`
	Faults bool            `json:"faults"`
	Prune  bool            `json:"prune"`
	Status bool            `json:"status"`
}

type cause struct {
	Reason  string `json:"reason"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

type answer struct {
	Error   string      `json:"error,omitempty"`
	Faults  []cause     `json:"faults"`
	Unknown []string    `json:"unknown"`
	Object  interface{} `json:"object"`
	Causes  []cause     `json:"causes"`
}

func causes(errs field.ErrorList) []cause {
	all := []cause{}
	for _, err := range errs {
		all = append(all, cause{string(err.Type), err.Field, err.ErrorBody()})
	}
	return all
}

func parsed(text json.RawMessage) (map[string]interface{}, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	object := map[string]interface{}{}
	return object, utiljson.Unmarshal(text, &object)
}

func faults(props *v1.JSONSchemaProps, status bool) []cause {
	crd := &v1.CustomResourceDefinition{}
	crd.Name = "orders.example.com"
	sub := &v1.CustomResourceSubresources{}
	if status {
		sub.Status = &v1.CustomResourceSubresourceStatus{}
	}
	crd.Spec = v1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: v1.NamespaceScoped,
		Names:      v1.CustomResourceDefinitionNames{Plural: "orders", Singular: "order", Kind: "Order", ListKind: "OrderList"},
		Conversion: &v1.CustomResourceConversion{Strategy: v1.NoneConverter},
		Versions: []v1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Subresources: sub,
			Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: props}}},
	}
	crd.Status.StoredVersions = []string{"v1"}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
		return []cause{{Message: err.Error()}}
	}
	return causes(apivalidation.ValidateCustomResourceDefinition(context.Background(), internal))
}

func answered(text []byte) (result answer) {
	defer func() {
		if err := recover(); err != nil {
			result.Error = fmt.Sprint(err)
		}
	}()
	in := request{}
	if err := json.Unmarshal(text, &in); err != nil {
		return answer{Error: err.Error()}
	}
	external := &v1.JSONSchemaProps{}
	if err := json.Unmarshal(in.Schema, external); err != nil {
		return answer{Error: err.Error()}
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, props, nil); err != nil {
		return answer{Error: err.Error()}
	}
	if in.Faults {
		result.Faults = faults(external.DeepCopy(), in.Status)
		if len(result.Faults) > 0 {
			return result
		}
	}
	tree, err := schema.NewStructural(props)
	if err != nil {
		return answer{Error: err.Error()}
	}
	if in.Prune {
		if err := defaulting.PruneDefaults(tree); err != nil {
			return answer{Error: err.Error()}
		}
	}
	object, err := parsed(in.Object)
	if err != nil || object == nil {
		if err != nil {
			result.Error = err.Error()
		}
		return result
	}
	old, err := parsed(in.Old)
	if err != nil {
		return answer{Error: err.Error()}
	}
	for at, each := range []map[string]interface{}{object, old} {
		if each == nil {
			continue
		}
		meta := each["metadata"]
		if in.Prune {
			options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
			unknown := pruning.PruneWithOptions(each, tree, true, options)
			defaulting.PruneNonNullableNullsWithoutDefaults(each, tree)
			if each["metadata"] == nil && meta != nil {
				each["metadata"] = meta
			}
			if at == 0 {
				result.Unknown = unknown
			}
			if err, _ := objectmeta.CoerceWithOptions(nil, each, tree, false, objectmeta.CoerceOptions{}); err != nil {
				return answer{Error: err.Error()}
			}
		}
		defaulting.Default(each, tree)
	}
	sort.Strings(result.Unknown)
	result.Object = object
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return answer{Error: err.Error()}
	}
	ctx := context.Background()
	var errs field.ErrorList
	var celOptions []cel.Option
	if old == nil {
		errs = validation.ValidateCustomResource(nil, object, validator)
	} else {
		correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: tree})
		celOptions = append(celOptions, cel.WithRatcheting(correlated))
		errs = validation.ValidateCustomResourceUpdate(nil, object, old, validator, validation.WithRatcheting(correlated))
	}
	errs = append(errs, objectmeta.Validate(ctx, nil, object, tree, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, tree, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, tree, object)...)
	}
	if rules := cel.NewValidator(tree, true, celconfig.PerCallLimit); rules != nil {
		blocked := false
		for _, err := range errs {
			switch err.Type {
			case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
				blocked = true
			}
		}
		if blocked {
			errs = append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		} else {
			var before interface{}
			if old != nil {
				before = old
			}
			broken, _ := rules.Validate(ctx, nil, tree, object, before, celconfig.RuntimeCELCostBudget, celOptions...)
			errs = append(errs, broken...)
		}
	}
	result.Causes = causes(errs)
	return result
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := out.Encode(answered(line)); err != nil {
			return
		}
	}
}
