// SPDX-License-Identifier: MIT

// A dashboard on standard input, read by Grafana's types of dashboards. Unknown fields, missing ones and wrong values are errors.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	var read dashboard.Dashboard
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = read.UnmarshalJSONStrict(text)
	}
	if err == nil || err.Error() == "" { // it returns an empty list for none
		err = read.Validate()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
