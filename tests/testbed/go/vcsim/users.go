package main

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/ssoadmin"
	"github.com/vmware/govmomi/ssoadmin/methods"
	sso "github.com/vmware/govmomi/ssoadmin/simulator"
	"github.com/vmware/govmomi/ssoadmin/types"
	"github.com/vmware/govmomi/vim25/soap"
	vim "github.com/vmware/govmomi/vim25/types"
)

// principals is the simulator's service of users with what it lacks: a new password is the only one from then on, a password that is
// against the policy is refused, and so is every user while the domain can only be read.
type principals struct {
	*sso.PrincipalManagementService
	discovery *sso.PrincipalDiscoveryService
	control   *control
}

// policies answers what passwords have to be.
type policies struct {
	vim.ManagedObjectReference
	control *control
}

func (p *policies) GetLocalPasswordPolicy(_ *simulator.Context, _ *types.GetLocalPasswordPolicy) soap.HasFault {
	p.control.mu.Lock()
	defer p.control.mu.Unlock()
	return &methods.GetLocalPasswordPolicyBody{Res: &types.GetLocalPasswordPolicyResponse{Returnval: p.control.policy}}
}

func (p *principals) CreateLocalPersonUser(ctx *simulator.Context, req *types.CreateLocalPersonUser) soap.HasFault {
	if fault := p.refuses(req.Password); fault != nil {
		return &methods.CreateLocalPersonUserBody{Fault_: fault}
	}
	return p.PrincipalManagementService.CreateLocalPersonUser(ctx, req)
}

func (p *principals) ResetLocalPersonUserPassword(ctx *simulator.Context, req *types.ResetLocalPersonUserPassword) soap.HasFault {
	body := &methods.ResetLocalPersonUserPasswordBody{}
	if fault := p.refuses(req.NewPassword); fault != nil {
		body.Fault_ = fault
		return body
	}
	found := p.find(ctx, req.UserName)
	if found == nil {
		body.Fault_ = simulator.Fault("", new(vim.NotFound))
		return body
	}
	// The simulator changes a copy.
	p.DeleteLocalPrincipal(ctx, &types.DeleteLocalPrincipal{PrincipalName: req.UserName})
	p.PrincipalManagementService.CreateLocalPersonUser(ctx, &types.CreateLocalPersonUser{UserName: found.Id.Name, UserDetails: found.Details, Password: req.NewPassword})
	body.Res = &types.ResetLocalPersonUserPasswordResponse{}
	return body
}

func (p *principals) find(ctx *simulator.Context, name string) *types.AdminPersonUser {
	user, domain, ok := strings.Cut(account(name), "@")
	if !ok {
		return nil
	}
	answer := p.discovery.FindPersonUser(ctx, &types.FindPersonUser{UserId: types.PrincipalId{Name: user, Domain: domain}})
	if body, ok := answer.(*methods.FindPersonUserBody); ok && body.Res != nil {
		return body.Res.Returnval
	}
	return nil
}

func (p *principals) refuses(password string) *soap.Fault {
	p.control.mu.Lock()
	defer p.control.mu.Unlock()
	length := p.control.policy.PasswordFormat.LengthRestriction
	switch {
	case p.control.readOnly:
		return simulator.Fault("The domain can only be read.", new(vim.NotSupported))
	case len(password) < int(length.MinLength) || len(password) > int(length.MaxLength):
		return simulator.Fault("The password does not meet the policy.", new(vim.InvalidArgument))
	}
	return nil
}

// installUsers puts them in the place of the simulator's own, once the service is made.
func (c *control) installUsers() {
	all := c.service.Context.For(ssoadmin.Path + "/vsphere.local").Map
	if all == nil {
		return
	}
	management, ok := all.Get(vim.ManagedObjectReference{Type: "SsoAdminPrincipalManagementService", Value: "principalManagementService"}).(*sso.PrincipalManagementService)
	discovery, found := all.Get(vim.ManagedObjectReference{Type: "SsoAdminPrincipalDiscoveryService", Value: "principalDiscoveryService"}).(*sso.PrincipalDiscoveryService)
	if !ok || !found {
		return
	}
	c.principals = &principals{PrincipalManagementService: management, discovery: discovery, control: c}
	all.Put(c.principals)
	all.Put(&policies{ManagedObjectReference: vim.ManagedObjectReference{Type: "SsoAdminPasswordPolicyService", Value: "passwordPolicyService"}, control: c})
}

// exists says whether there is such a user, or such a group as a test has named.
func (c *control) exists(name string, group bool) bool {
	c.mu.Lock()
	_, known := c.users[name]
	for user := range c.users {
		known = known || account(user) == account(name)
	}
	for _, groups := range c.groups {
		known = known || group && groups[account(name)]
	}
	c.mu.Unlock()
	return known || c.principals != nil && c.principals.find(c.service.Context, name) != nil
}

func (c *control) isMember(user, group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[account(user)][account(group)]
}

// serveDirectory changes the directory of users: ?join=USER&group=GROUP makes a user a member of a group, ?lock=USER&on=true locks an account,
// ?read-only=true refuses new users and passwords, and ?min=12&max=20 sets the lengths of passwords.
func (c *control) serveDirectory(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if user := r.FormValue("join"); user != "" {
		if c.groups[account(user)] == nil {
			c.groups[account(user)] = map[string]bool{}
		}
		c.groups[account(user)][account(r.FormValue("group"))] = true
	}
	if user := r.FormValue("lock"); user != "" && c.principals != nil {
		if found := c.principals.find(c.service.Context, user); found != nil {
			found.Locked = r.FormValue("on") == "true"
		}
	}
	if value := r.FormValue("read-only"); value != "" {
		c.readOnly = value == "true"
	}
	var length types.AdminPasswordFormatLengthRestriction
	if json.Unmarshal([]byte(r.FormValue("min")), &length.MinLength) == nil && json.Unmarshal([]byte(r.FormValue("max")), &length.MaxLength) == nil {
		c.policy.PasswordFormat.LengthRestriction = length
	}
}

// defaultPolicy is that of a new vCenter.
func defaultPolicy() types.AdminPasswordPolicy {
	return types.AdminPasswordPolicy{PasswordLifetimeDays: 90, PasswordFormat: types.AdminPasswordFormat{
		LengthRestriction:     types.AdminPasswordFormatLengthRestriction{MinLength: 8, MaxLength: 20},
		AlphabeticRestriction: types.AdminPasswordFormatAlphabeticRestriction{MinAlphabeticCount: 2, MinUppercaseCount: 1, MinLowercaseCount: 1},
		MinNumericCount:       1, MinSpecialCharCount: 1, MaxIdenticalAdjacentCharacters: 3,
	}}
}
