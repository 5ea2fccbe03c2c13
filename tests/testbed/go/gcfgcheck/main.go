// Command gcfgcheck reads a driver's configuration with the parser that the driver itself uses and prints what it
// understood as JSON: csi-vsphere.conf (the default) with gcfg, the cloud provider's vsphere.conf ("cpi") with yaml.v2. With "many" as a
// second argument it reads a JSON list of such texts and prints a list.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"gopkg.in/gcfg.v1"
	"gopkg.in/yaml.v2"
)

func main() {
	mode := "csi"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	text, err := io.ReadAll(os.Stdin)
	var value any
	if err == nil && len(os.Args) > 2 && os.Args[2] == "many" {
		value, err = readMany(mode, text)
	} else if err == nil {
		value, err = read(mode, string(text))
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(value)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readMany(mode string, list []byte) (any, error) {
	var texts []string
	if err := json.Unmarshal(list, &texts); err != nil {
		return nil, err
	}
	values := make([]any, len(texts))
	for i, text := range texts {
		value, err := read(mode, text)
		if err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
		values[i] = value
	}
	return values, nil
}

func read(mode, text string) (any, error) {
	switch mode {
	case "csi":
		var config csiConfig
		// The driver ignores what it does not know and stops at everything else.
		err := gcfg.FatalOnly(gcfg.ReadStringInto(&config, text))
		return config, err
	case "cpi":
		var tree map[interface{}]interface{}
		err := yaml.Unmarshal([]byte(text), &tree)
		return stringKeys(tree), err
	default:
		return nil, fmt.Errorf("unknown mode %q: csi or cpi", mode)
	}
}

// stringKeys makes a tree of yaml.v2 fit for JSON.
func stringKeys(v any) any {
	switch v := v.(type) {
	case map[interface{}]interface{}:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[fmt.Sprint(key)] = stringKeys(value)
		}
		return out
	case []interface{}:
		for i := range v {
			v[i] = stringKeys(v[i])
		}
		return v
	default:
		return v
	}
}
