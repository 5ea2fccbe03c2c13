package main

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// authorization answers questions about privileges as control says. The simulator's own grants everything. What a
// denied user really does is not hindered: only the answers are real.
type authorization struct {
	*simulator.AuthorizationManager
	control *control
}

func (a *authorization) HasPrivilegeOnEntities(ctx *simulator.Context, req *types.HasPrivilegeOnEntities) soap.HasFault {
	user := ""
	if ctx.Session != nil {
		user = ctx.Session.UserName
	}
	return &methods.HasPrivilegeOnEntitiesBody{
		Res: &types.HasPrivilegeOnEntitiesResponse{Returnval: a.available(user, req.Entity, req.PrivId)},
	}
}

func (a *authorization) HasUserPrivilegeOnEntities(_ *simulator.Context, req *types.HasUserPrivilegeOnEntities) soap.HasFault {
	return &methods.HasUserPrivilegeOnEntitiesBody{
		Res: &types.HasUserPrivilegeOnEntitiesResponse{Returnval: a.available(req.UserName, req.Entities, req.PrivId)},
	}
}

func (a *authorization) available(user string, entities []types.ManagedObjectReference, privileges []string) []types.EntityPrivilege {
	var all []types.EntityPrivilege
	for _, entity := range entities {
		one := types.EntityPrivilege{Entity: entity}
		for _, id := range privileges {
			one.PrivAvailability = append(one.PrivAvailability, types.PrivilegeAvailability{PrivId: id, IsGranted: a.control.grants(user, entity.Value, id)})
		}
		all = append(all, one)
	}
	return all
}

func (a *authorization) FetchUserPrivilegeOnEntities(_ *simulator.Context, req *types.FetchUserPrivilegeOnEntities) soap.HasFault {
	answer := a.AuthorizationManager.FetchUserPrivilegeOnEntities(req)
	body, ok := answer.(*methods.FetchUserPrivilegeOnEntitiesBody)
	if !ok || body.Res == nil {
		return answer
	}
	for i, result := range body.Res.Returnval {
		var left []string
		for _, id := range result.Privileges {
			if a.control.grants(req.UserName, result.Entity.Value, id) {
				left = append(left, id)
			}
		}
		body.Res.Returnval[i].Privileges = left
	}
	return body
}

// install puts it in the place of the simulator's own.
func (a *authorization) install(all *simulator.Registry, content types.ServiceContent) {
	if own, ok := all.Get(*content.AuthorizationManager).(*simulator.AuthorizationManager); ok {
		a.AuthorizationManager = own
		all.Put(a)
	}
}
