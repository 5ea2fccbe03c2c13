package main

import (
	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	vim "github.com/vmware/govmomi/vim25/types"
)

// collector is the default property collector of a session. The simulator knows those who listen for changes by their reference, and the
// default collectors of all sessions have the same one, so that only the session that began last would hear of changes. Each listens under a
// reference of its own here: a CSI controller waits for its tasks while its syncer waits for others.
type collector struct {
	simulator.PropertyCollector
}

// listener passes changes on to a collector.
type listener struct {
	*simulator.PropertyCollector
	ref vim.ManagedObjectReference
}

func (l *listener) Reference() vim.ManagedObjectReference {
	return l.ref
}

// install replaces the default collector. Every session gets a copy.
func (c *collector) install(all *simulator.Registry, content vim.ServiceContent) {
	c.Self = content.PropertyCollector
	all.Put(c)
}

func (c *collector) WaitForUpdatesEx(ctx *simulator.Context, r *vim.WaitForUpdatesEx) soap.HasFault {
	if r.Version != "" {
		return c.PropertyCollector.WaitForUpdatesEx(ctx, r)
	}
	ref := vim.ManagedObjectReference{Type: c.Self.Type, Value: c.Self.Value + "-" + uuid.NewString()}
	ctx.Map.AddHandler(&listener{PropertyCollector: &c.PropertyCollector, ref: ref})
	res := c.PropertyCollector.WaitForUpdatesEx(ctx, r)
	ctx.Map.RemoveHandler(&c.PropertyCollector)
	return res
}

var _ mo.Reference = (*collector)(nil)
