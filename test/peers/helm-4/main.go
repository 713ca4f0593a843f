// Helm 4, of whose command this is a copy: the registry of modules has its sources, and no binary.
package main

import (
	"log/slog"
	"os"

	helmcmd "helm.sh/helm/v4/pkg/cmd"
)

func main() {
	cmd, err := helmcmd.NewRootCmd(os.Stdout, os.Args[1:], helmcmd.SetupLogging)
	if err != nil {
		slog.Warn("command failed", slog.Any("error", err))
		os.Exit(1)
	}
	if err := cmd.Execute(); err != nil {
		os.Exit(1)
	}
}
