// SPDX-License-Identifier: MIT

// Metrics on standard input, read and written again by Prometheus' own parser for Go.
package main

import (
	"fmt"
	"os"

	"github.com/prometheus/common/expfmt"
)

func main() {
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(os.Stdin)
	for _, family := range families {
		if err == nil {
			_, err = expfmt.MetricFamilyToText(os.Stdout, family)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
