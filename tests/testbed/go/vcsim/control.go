package main

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// login counts one user's attempts.
type login struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// control answers what a test wants to know about the server and no client of a vCenter would ask.
type control struct {
	mu     sync.Mutex
	logins map[string]*login
}

func (c *control) register(service *simulator.Service) {
	c.logins = map[string]*login{}
	service.HandleFunc("/ctl/logins", func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.logins)
	})
}

// watchLogins counts around the check that the simulator's user directory has installed.
func (c *control) watchLogins(sessions *simulator.SessionManager) {
	check := sessions.ValidLogin
	sessions.ValidLogin = func(req *types.Login) bool {
		ok := check(req)
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
}
