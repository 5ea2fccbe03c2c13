package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/vmware/govmomi/simulator"
	sso "github.com/vmware/govmomi/ssoadmin/types"
	"github.com/vmware/govmomi/vim25/types"
)

// login counts one user's attempts.
type login struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// control answers what a test wants to know about the server or change in it, and no client of a vCenter would ask.
type control struct {
	service *simulator.Service
	users   map[string]string
	all     *vcenters

	requests atomic.Int64

	// Whether calls need privileges.
	enforce       atomic.Bool
	administrator string
	authorization *authorization
	principals    *principals
	check         func(*types.Login) bool
	gate          gate

	mu       sync.Mutex
	calls    map[string]map[string]int
	logins   map[string]*login
	denied   map[string]map[string]bool
	groups   map[string]map[string]bool
	policy   sso.AdminPasswordPolicy
	readOnly bool
	// The privileges that calls of an account needed and had.
	used map[string]map[string]bool
	// The datastores that meet a storage policy, by its identifier.
	placements map[string][]string
}

func newControl(service *simulator.Service, users map[string]string, all *vcenters) *control {
	c := &control{service: service, users: users, all: all, logins: map[string]*login{}, denied: map[string]map[string]bool{}}
	c.calls = map[string]map[string]int{}
	c.groups, c.policy, c.placements = map[string]map[string]bool{}, defaultPolicy(), map[string][]string{}
	c.used = map[string]map[string]bool{}
	service.HandleFunc("/ctl/gate", c.gate.serveGate)
	service.HandleFunc("/ctl/placement", c.servePlacement)
	service.HandleFunc("/ctl/used", c.serveUsed)
	service.HandleFunc("/ctl/directory", c.serveDirectory)
	service.HandleFunc("/ctl/enforce", func(_ http.ResponseWriter, r *http.Request) { c.enforce.Store(r.FormValue("on") == "true") })
	service.HandleFunc("/ctl/logins", c.serveLogins)
	service.HandleFunc("/ctl/fault", c.serveFault)
	service.HandleFunc("/ctl/deny", c.serveDeny)
	service.HandleFunc("/ctl/set", c.serveSet)
	service.HandleFunc("/ctl/id", c.serveID)
	service.HandleFunc("/ctl/requests", c.serveRequests)
	service.HandleFunc("/ctl/calls", c.serveCalls)
	service.HandleFunc("/ctl/start", c.serveStart)
	return c
}

// serveStart starts one more vCenter in this process: its body is a JSON list of arguments, as on the command line.
func (c *control) serveStart(w http.ResponseWriter, r *http.Request) {
	var arguments []string
	err := json.NewDecoder(r.Body).Decode(&arguments)
	var o options
	if err == nil {
		o, err = parse(arguments)
	}
	var ready []byte
	if err == nil {
		ready, err = c.all.start(o)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = w.Write(ready)
}

func (c *control) serveLogins(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(c.logins)
}

// count counts the requests that come from clients of a vCenter.
func (c *control) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/ctl/") {
			c.requests.Add(1)
		}
		next.ServeHTTP(w, r)
	})
}

// record remembers what a client has called, by its user agent without the version: a method, or of the REST service verb, path and action
// without identifiers.
func (c *control) record(r *http.Request) {
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	call, _ := read(body(r))
	if call == "" || r.Method != http.MethodPost {
		path, _, _ := strings.Cut(r.URL.Path, "id:")
		call = r.Method + " " + strings.TrimPrefix(path, "/rest/com/vmware/cis/")
		if r.URL.RawQuery != "" {
			call += "?" + r.URL.RawQuery
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[agent] == nil {
		c.calls[agent] = map[string]int{}
	}
	c.calls[agent][call]++
}

// serveCalls answers with the calls of a client and how often each was made: ?agent=vdo. With ?forget=true they are forgotten afterwards.
func (c *control) serveCalls(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	agent := r.FormValue("agent")
	_ = json.NewEncoder(w).Encode(c.calls[agent])
	if r.FormValue("forget") == "true" {
		delete(c.calls, agent)
	}
}

func (c *control) serveRequests(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(c.requests.Load())
}

// watch counts log-ins around the check that the simulator's user directory has installed, and knows more users.
func (c *control) watch(sessions *simulator.SessionManager) {
	check := sessions.ValidLogin
	c.check = func(req *types.Login) bool {
		ok := check(req)
		if password, known := c.users[req.UserName]; known {
			ok = ok || password == req.Password
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		seen := c.logins[req.UserName]
		if seen == nil {
			seen = &login{}
			c.logins[req.UserName] = seen
		}
		if ok {
			seen.Succeeded++
		} else {
			seen.Failed++
		}
		return ok
	}
	sessions.ValidLogin = c.check
}

// isAdministrator says whether an account may manage users.
func (c *control) isAdministrator(user string) bool {
	return account(user) == account(c.administrator) || c.isMember(user, "Administrators@vsphere.local")
}

// serveFault makes the next calls of a method fail: ?method=Login&fault=NotAuthenticated&count=1. Without a method, no
// call fails any more.
func (c *control) serveFault(w http.ResponseWriter, r *http.Request) {
	method, fault := r.FormValue("method"), r.FormValue("fault")
	if method == "" {
		c.service.ClearFaultRules()
		return
	}
	kind, ok := faults[fault]
	count, err := strconv.Atoi(r.FormValue("count"))
	if !ok || err != nil {
		http.Error(w, "unknown fault or count", http.StatusBadRequest)
		return
	}
	c.service.AddFaultRule(&simulator.FaultInjectionRule{
		MethodName: method, ObjectType: "*", ObjectName: "*", Probability: 1, FaultType: kind, MaxCount: count, Enabled: true,
	})
}

var faults = map[string]simulator.FaultType{
	"Generic":               simulator.FaultTypeGeneric,
	"NotAuthenticated":      simulator.FaultTypeNotAuthenticated,
	"NoPermission":          simulator.FaultTypeNoPermission,
	"InvalidArgument":       simulator.FaultTypeInvalidArgument,
	"ManagedObjectNotFound": simulator.FaultTypeManagedObjectNotFound,
	"InvalidState":          simulator.FaultTypeInvalidState,
	"ResourceInUse":         simulator.FaultTypeResourceInUse,
}

// serveDeny takes privileges from a user: ?user=U&privilege=P&privilege=Q, everywhere or on ?object=host-21 alone. Without a
// privilege the user has all again.
func (c *control) serveDeny(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	user := account(r.FormValue("user"))
	if len(r.Form["privilege"]) == 0 {
		delete(c.denied, user)
		return
	}
	if c.denied[user] == nil {
		c.denied[user] = map[string]bool{}
	}
	for _, privilege := range r.Form["privilege"] {
		c.denied[user][r.FormValue("object")+" "+privilege] = true
	}
}

// use notes a privilege that a call needed and had.
func (c *control) use(user, privilege string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[account(user)] == nil {
		c.used[account(user)] = map[string]bool{}
	}
	c.used[account(user)][privilege] = true
}

// serveUsed tells the privileges that calls of ?user=U made use of, as the keys of an object.
func (c *control) serveUsed(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = json.NewEncoder(w).Encode(c.used[account(r.FormValue("user"))])
}

func (c *control) grants(user, object, privilege string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	user = account(user)
	return !c.denied[user][" "+privilege] && !c.denied[user][object+" "+privilege]
}
