package main

import (
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// authorization keeps roles and permissions as a vCenter does, and answers questions about privileges: what control denies is not
// granted, and where privileges are enforced, only what roles and permissions give. The simulator's own grants everything, forgets
// permissions of others, and gives roles no numbers.
type authorization struct {
	*simulator.AuthorizationManager
	control *control
	all     *simulator.Registry
	root    types.ManagedObjectReference

	mu          sync.Mutex
	permissions []types.Permission
}

// account is a user or group in one spelling: VSPHERE.LOCAL\x, x@vsphere.local and x are the same.
func account(name string) string {
	if domain, user, ok := strings.Cut(name, `\`); ok {
		name = user + "@" + domain
	}
	if !strings.Contains(name, "@") {
		name += "@vsphere.local"
	}
	return strings.ToLower(name)
}

// spelled is how a vCenter spells it.
func spelled(name string) string {
	if strings.Contains(name, `\`) {
		return name
	}
	user, domain, ok := strings.Cut(name, "@")
	if !ok {
		domain = "vsphere.local"
	}
	return strings.ToUpper(domain) + `\` + user
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
			one.PrivAvailability = append(one.PrivAvailability, types.PrivilegeAvailability{PrivId: id, IsGranted: a.grants(user, entity, id)})
		}
		all = append(all, one)
	}
	return all
}

func (a *authorization) FetchUserPrivilegeOnEntities(_ *simulator.Context, req *types.FetchUserPrivilegeOnEntities) soap.HasFault {
	var all []types.UserPrivilegeResult
	for _, entity := range req.Entities {
		one := types.UserPrivilegeResult{Entity: entity}
		held := a.effective(req.UserName, entity)
		for _, id := range a.known() {
			if (!a.control.enforce.Load() || held[id]) && a.control.grants(req.UserName, entity.Value, id) {
				one.Privileges = append(one.Privileges, id)
			}
		}
		all = append(all, one)
	}
	return &methods.FetchUserPrivilegeOnEntitiesBody{Res: &types.FetchUserPrivilegeOnEntitiesResponse{Returnval: all}}
}

// known are all privileges of this vCenter.
func (a *authorization) known() []string {
	for _, role := range a.RoleList {
		if role.RoleId == -1 {
			return role.Privilege
		}
	}
	return nil
}

// grants says whether an account has a privilege on an object.
func (a *authorization) grants(user string, entity types.ManagedObjectReference, privilege string) bool {
	if !a.control.grants(user, entity.Value, privilege) {
		return false
	}
	return !a.control.enforce.Load() || a.effective(user, entity)[privilege]
}

// effective is what the nearest permissions give: those of the user itself before those of its groups, which add up. A machine has
// two ways up: its folder and its resource pool.
func (a *authorization) effective(user string, entity types.ManagedObjectReference) map[string]bool {
	held := map[string]bool{}
	for _, start := range a.above(entity) {
		for id := range a.chain(user, entity, start) {
			held[id] = true
		}
	}
	return held
}

func (a *authorization) above(entity types.ManagedObjectReference) []*types.ManagedObjectReference {
	object := a.all.Get(entity)
	if vm, ok := object.(*simulator.VirtualMachine); ok {
		parent := vm.Parent
		if parent == nil {
			parent = vm.ParentVApp
		}
		return []*types.ManagedObjectReference{parent, vm.ResourcePool}
	}
	if entity, ok := object.(mo.Entity); ok {
		return []*types.ManagedObjectReference{entity.Entity().Parent}
	}
	return []*types.ManagedObjectReference{nil}
}

func (a *authorization) chain(user string, entity types.ManagedObjectReference, parent *types.ManagedObjectReference) map[string]bool {
	if held := a.on(user, entity, false); held != nil {
		return held
	}
	for parent != nil {
		if held := a.on(user, *parent, true); held != nil {
			return held
		}
		next, ok := a.all.Get(*parent).(mo.Entity)
		if !ok {
			break
		}
		parent = next.Entity().Parent
	}
	return nil
}

// on is what permissions on one object give an account, if it has any there.
func (a *authorization) on(user string, entity types.ManagedObjectReference, below bool) map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var own, groups map[string]bool
	for _, permission := range a.permissions {
		if *permission.Entity != entity || (below && !permission.Propagate) {
			continue
		}
		if !permission.Group && account(permission.Principal) == account(user) {
			own = a.add(own, permission.RoleId)
		}
		if permission.Group && a.control.isMember(user, permission.Principal) {
			groups = a.add(groups, permission.RoleId)
		}
	}
	if own != nil {
		return own
	}
	return groups
}

func (a *authorization) add(held map[string]bool, id int32) map[string]bool {
	if held == nil {
		held = map[string]bool{}
	}
	for _, role := range a.RoleList {
		if role.RoleId == id {
			for _, privilege := range role.Privilege {
				held[privilege] = true
			}
		}
	}
	return held
}

// hasAny says whether an account has a permission anywhere: without one, no one logs in.
func (a *authorization) hasAny(user string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, permission := range a.permissions {
		if !permission.Group && account(permission.Principal) == account(user) || permission.Group && a.control.isMember(user, permission.Principal) {
			return true
		}
	}
	return false
}

func (a *authorization) AddAuthorizationRole(req *types.AddAuthorizationRole) soap.HasFault {
	answer := a.AuthorizationManager.AddAuthorizationRole(req)
	if body, ok := answer.(*methods.AddAuthorizationRoleBody); ok && body.Res != nil {
		last := &a.RoleList[len(a.RoleList)-1]
		a.mu.Lock()
		defer a.mu.Unlock()
		// The simulator counts from 0 each time that a role was removed, too.
		for _, role := range a.RoleList[:len(a.RoleList)-1] {
			if role.RoleId >= last.RoleId {
				last.RoleId = role.RoleId + 1
			}
		}
		body.Res.Returnval = last.RoleId
	}
	return answer
}

func (a *authorization) RemoveAuthorizationRole(req *types.RemoveAuthorizationRole) soap.HasFault {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, permission := range a.permissions {
		if permission.RoleId == req.RoleId && req.FailIfUsed {
			return &methods.RemoveAuthorizationRoleBody{Fault_: simulator.Fault("", &types.RemoveFailed{})}
		}
	}
	return a.AuthorizationManager.RemoveAuthorizationRole(req)
}

func (a *authorization) SetEntityPermissions(_ *simulator.Context, req *types.SetEntityPermissions) soap.HasFault {
	body := &methods.SetEntityPermissionsBody{}
	if a.all.Get(req.Entity) == nil {
		body.Fault_ = simulator.Fault("", &types.ManagedObjectNotFound{Obj: req.Entity})
		return body
	}
	for _, permission := range req.Permission {
		found := false
		for _, role := range a.RoleList {
			found = found || role.RoleId == permission.RoleId
		}
		if !found {
			body.Fault_ = simulator.Fault("", &types.NotFound{})
			return body
		}
		if !a.control.exists(permission.Principal, permission.Group) {
			body.Fault_ = simulator.Fault("", &types.UserNotFound{Principal: permission.Principal})
			return body
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, permission := range req.Permission {
		a.drop(req.Entity, permission.Principal, permission.Group)
		entity := req.Entity
		permission.Entity, permission.Principal = &entity, spelled(permission.Principal)
		a.permissions = append(a.permissions, permission)
	}
	body.Res = &types.SetEntityPermissionsResponse{}
	return body
}

// drop takes an account's permission on an object away, if it has one.
func (a *authorization) drop(entity types.ManagedObjectReference, principal string, group bool) bool {
	for i, permission := range a.permissions {
		if *permission.Entity == entity && permission.Group == group && account(permission.Principal) == account(principal) {
			a.permissions = append(a.permissions[:i:i], a.permissions[i+1:]...)
			return true
		}
	}
	return false
}

func (a *authorization) RemoveEntityPermission(req *types.RemoveEntityPermission) soap.HasFault {
	a.mu.Lock()
	defer a.mu.Unlock()
	body := &methods.RemoveEntityPermissionBody{}
	if a.drop(req.Entity, req.User, req.IsGroup) {
		body.Res = &types.RemoveEntityPermissionResponse{}
	} else {
		body.Fault_ = simulator.Fault("", &types.NotFound{})
	}
	return body
}

func (a *authorization) RetrieveAllPermissions(_ *types.RetrieveAllPermissions) soap.HasFault {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := append([]types.Permission{}, a.permissions...)
	return &methods.RetrieveAllPermissionsBody{Res: &types.RetrieveAllPermissionsResponse{Returnval: all}}
}

// install puts it in the place of the simulator's own. The administrator may do everything.
func (a *authorization) install(all *simulator.Registry, content types.ServiceContent, administrator string) {
	own, ok := all.Get(*content.AuthorizationManager).(*simulator.AuthorizationManager)
	if !ok {
		return
	}
	a.AuthorizationManager, a.all, a.root = own, all, content.RootFolder
	root := content.RootFolder
	a.permissions = []types.Permission{{Entity: &root, Principal: spelled(administrator), RoleId: -1, Propagate: true}}
	all.Put(a)
	a.control.authorization = a
}
