// Command bundlecheck says what the validators of the operator framework think of a bundle's folder: a line of JSON for each fault.
// An error ends it with 1.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/api/pkg/validation/errors"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	"github.com/operator-framework/operator-registry/pkg/lib/bundle"
	"github.com/sirupsen/logrus"
)

// The validators that `operator-sdk bundle validate --select-optional suite=operatorframework` runs, by their names there.
var validators = []struct {
	name string
	one  interfaces.Validator
}{
	{"csv", validation.ClusterServiceVersionValidator},
	{"crd", validation.CustomResourceDefinitionValidator},
	{"bundle", validation.BundleValidator},
	{"objects", validation.ObjectValidator},
	{"operatorhubv2", validation.OperatorHubV2Validator},
	{"capabilities", validation.StandardCapabilitiesValidator},
	{"categories", validation.StandardCategoriesValidator},
	{"good-practices", validation.GoodPracticesValidator},
	{"alpha-deprecated-apis", validation.AlphaDeprecatedAPIsValidator},
}

type fault struct {
	Validator string `json:"validator"`
	Level     string `json:"level"`
	Message   string `json:"message"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bundlecheck DIR")
		os.Exit(2)
	}
	code := 0
	report := func(validator, level string, err error) {
		if level == "error" {
			code = 1
		}
		_ = json.NewEncoder(os.Stdout).Encode(fault{validator, level, err.Error()})
	}
	// The format, the annotations, and which kinds a bundle may hold.
	logger := logrus.New()
	logger.SetOutput(os.Stderr)
	format := bundle.NewImageValidator(nil, logrus.NewEntry(logger))
	each(format.ValidateBundleFormat(os.Args[1]), func(err error) { report("format", "error", err) })
	each(format.ValidateBundleContent(filepath.Join(os.Args[1], "manifests")), func(err error) { report("content", "error", err) })
	read, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		report("read", "error", err)
		os.Exit(code)
	}
	for _, validator := range validators {
		objects := read.ObjectsToValidate()
		if validator.name == "objects" {
			objects = nil
			for _, object := range read.Objects {
				objects = append(objects, object)
			}
		}
		for _, result := range validator.one.Validate(objects...) {
			for _, found := range append(append([]errors.Error{}, result.Errors...), result.Warnings...) {
				level := "warning"
				if found.Level == errors.LevelError {
					level = "error"
				}
				report(validator.name, level, found)
			}
		}
	}
	os.Exit(code)
}

// each calls back for every error of a list of them, or for the one that it is.
func each(err error, call func(error)) {
	switch all := err.(type) {
	case nil:
	case bundle.ValidationError:
		for _, one := range all.Errors {
			call(one)
		}
	default:
		call(err)
	}
}
