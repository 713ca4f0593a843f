// The object cases of Kubernetes' end-to-end suite, without the checks of nodes and system pods that the whole suite begins with.
//
//	e2e-suite --list                                             the name of every case of these packages, one line of JSON each
//	e2e-suite --results FILE --kubeconfig FILE --ginkgo.focus RE runs some, and writes a line of JSON for each into a file
//
// All other flags are the suite's and ginkgo's.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"

	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e/apps"
	_ "k8s.io/kubernetes/test/e2e/common/node"
	_ "k8s.io/kubernetes/test/e2e/instrumentation"
	_ "k8s.io/kubernetes/test/e2e/node"
)

// result is what is told of a case: its name alone in a list.
type result struct {
	Name    string  `json:"name"`
	State   string  `json:"state,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Failure string  `json:"failure,omitempty"`
}

// testing stands for the *testing.T that ginkgo wants.
type testing struct{}

func (testing) Fail() {}

func name(report types.SpecReport) string {
	return strings.Join(append(report.ContainerHierarchyTexts, report.LeafNodeText), " ")
}

func main() {
	list := flag.Bool("list", false, "print the names of all cases, and run none")
	results := flag.String("results", "", "file that gets a line of JSON for each case that has run")
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	out := json.NewEncoder(os.Stdout)
	if *list {
		for _, spec := range ginkgo.PreviewSpecs("cases", suite, reporter).SpecReports {
			_ = out.Encode(result{Name: name(spec)})
		}
		return
	}
	if *results != "" {
		file, err := os.Create(*results)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		out = json.NewEncoder(file)
	}
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
		if report.State == types.SpecStateSkipped && report.Failure.Message == "" {
			return // was not asked for
		}
		_ = out.Encode(result{name(report), report.State.String(), report.RunTime.Seconds(), report.FailureMessage()})
	})
	if !ginkgo.RunSpecs(testing{}, "Kubernetes' end-to-end suite", suite, reporter) {
		os.Exit(1)
	}
}
