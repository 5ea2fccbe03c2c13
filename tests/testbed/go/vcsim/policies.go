package main

import (
	"net/http"
	"slices"

	"github.com/vmware/govmomi/pbm"
	"github.com/vmware/govmomi/pbm/methods"
	policy "github.com/vmware/govmomi/pbm/simulator"
	"github.com/vmware/govmomi/pbm/types"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	vim "github.com/vmware/govmomi/vim25/types"
)

// placement answers which datastores meet a storage policy: those that a test has named for it, else all, as the simulator's own does.
type placement struct {
	*policy.PlacementSolver
	control *control
}

func (p *placement) PbmCheckRequirements(ctx *simulator.Context, req *types.PbmCheckRequirements) soap.HasFault {
	answer := p.PlacementSolver.PbmCheckRequirements(ctx, req)
	body, ok := answer.(*methods.PbmCheckRequirementsBody)
	if !ok || body.Res == nil || len(req.PlacementSubjectRequirement) != 1 {
		return answer
	}
	wanted, ok := req.PlacementSubjectRequirement[0].(*types.PbmPlacementCapabilityProfileRequirement)
	if !ok {
		return answer
	}
	p.control.mu.Lock()
	defer p.control.mu.Unlock()
	named, limited := p.control.placements[wanted.ProfileId.UniqueId]
	for i := range body.Res.Returnval {
		if one := &body.Res.Returnval[i]; limited && !slices.Contains(named, one.Hub.HubId) {
			one.Error = []vim.LocalizedMethodFault{{Fault: &vim.NotSupported{}, LocalizedMessage: "The datastore does not meet the policy."}}
		}
	}
	return body
}

// installPlacement puts it in the place of the simulator's own, once the service is made.
func (c *control) installPlacement() {
	all := c.service.Context.For(pbm.Path).Map
	if all == nil {
		return
	}
	own, ok := all.Get(vim.ManagedObjectReference{Type: "PbmPlacementSolver", Value: "placementSolver"}).(*policy.PlacementSolver)
	if ok {
		all.Put(&placement{PlacementSolver: own, control: c})
	}
}

// servePlacement names the only datastores that meet a policy: ?policy=ID&datastore=datastore-52. Without one all do again.
func (c *control) servePlacement(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	policy := r.FormValue("policy")
	if c.placements[policy] = r.Form["datastore"]; len(r.Form["datastore"]) == 0 {
		delete(c.placements, policy)
	}
}
