// Command gitopscheck says what GitOps tools make of objects that it reads as JSON: "kstatus", as Flux and kpt do, with the library that defines it;
// "argocd", as Argo CD does with a health check in Lua.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// request is what is read: the objects, and for Argo CD the script of their kind.
type request struct {
	Script  string            `json:"script"`
	Objects []json.RawMessage `json:"objects"`
}

// health is what is said of an object. The names of the fields are those of Argo CD's HealthStatus.
type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: gitopscheck kstatus|argocd < REQUEST")
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var asked request
	if err := json.Unmarshal(text, &asked); err != nil {
		return err
	}
	all := make([]health, len(asked.Objects))
	for i, object := range asked.Objects {
		// With its own reader a whole number is an int64, as clients of the API server have it.
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(object); err != nil {
			return err
		}
		switch os.Args[1] {
		case "kstatus":
			result, err := status.Compute(&u)
			if err != nil {
				return err
			}
			all[i] = health{Status: result.Status.String(), Message: result.Message}
		case "argocd":
			if all[i], err = argocd(&u, asked.Script); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown mode %q", os.Args[1])
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// argocd follows VM.runLua and VM.ExecuteHealthLua of github.com/argoproj/argo-cd/v3 v3.5.7, util/lua/lua.go: the same interpreter, without the standard
// library but for package, base and table; a second of time; the object as the global obj; a table as the result, of which an unknown status is
// Unknown. Argo CD opens a part of os besides, which a check of health does not need.
func argocd(u *unstructured.Unstructured, script string) (health, error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(library.open), Protect: true}, lua.LString(library.name)); err != nil {
			return health{}, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	l.SetGlobal("obj", decoded(l, u.Object))
	if err := l.DoString(script); err != nil {
		return health{}, err
	}
	value := l.Get(-1)
	if value.Type() != lua.LTTable {
		return health{}, fmt.Errorf("expect table output from Lua script, not %s", value.Type())
	}
	text, err := luajson.Encode(value)
	if err != nil {
		return health{}, err
	}
	var found health
	if err := json.Unmarshal(text, &found); err != nil {
		return health{}, err
	}
	switch found.Status {
	case "Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown":
		return found, nil
	default:
		return health{Status: "Unknown", Message: "Lua returned an invalid health status"}, nil
	}
}

// decoded is what the script sees of a value.
func decoded(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		list := l.CreateTable(len(value), 0)
		for _, item := range value {
			list.Append(decoded(l, item))
		}
		return list
	case map[string]any:
		table := l.CreateTable(0, len(value))
		for name, item := range value {
			table.RawSetH(lua.LString(name), decoded(l, item))
		}
		return table
	default:
		return lua.LNil
	}
}
