//go:build never

// Helm 3: build.mjs builds the command that this imports, for go.mod to name what it needs.
package main

import _ "helm.sh/helm/v3/cmd/helm"
