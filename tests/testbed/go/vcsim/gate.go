package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
)

// changing are the calls by which an administrator changes roles, permissions, users and sessions.
var changing = map[string]bool{
	"AddAuthorizationRole": true, "UpdateAuthorizationRole": true, "RemoveAuthorizationRole": true, "SetEntityPermissions": true,
	"RemoveEntityPermission": true, "TerminateSession": true, "CreateLocalPersonUser": true, "ResetLocalPersonUserPassword": true,
	"DeleteLocalPrincipal": true,
}

// gate lets so many changes pass, and keeps the next one waiting until it is opened or its client has gone: a test kills the client there.
type gate struct {
	mu      sync.Mutex
	opened  chan struct{}
	left    int
	passed  int
	waiting int
}

// pass says whether the call shall be made.
func (g *gate) pass(method string, r *http.Request) bool {
	if !changing[method] {
		return true
	}
	g.mu.Lock()
	if g.opened == nil || g.left > 0 {
		g.left--
		g.passed++
		g.mu.Unlock()
		return true
	}
	opened := g.opened
	g.waiting++
	g.mu.Unlock()
	made := false
	select {
	case <-opened:
		made = true
	case <-r.Context().Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
	if made {
		g.passed++
	}
	return made
}

// serveGate closes the gate after ?after=N changes, opens it with ?open=true, and tells how many passed since it was closed and wait now.
func (g *gate) serveGate(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if after, err := strconv.Atoi(r.FormValue("after")); err == nil {
		g.opened, g.left, g.passed = make(chan struct{}), after, 0
	}
	if r.FormValue("open") == "true" && g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
	_ = json.NewEncoder(w).Encode(map[string]int{"passed": g.passed, "waiting": g.waiting})
}
