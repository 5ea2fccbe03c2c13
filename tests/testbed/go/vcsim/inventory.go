package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/google/uuid"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

type machine struct {
	name, ip string
}

type machines []machine

func (m *machines) String() string { return fmt.Sprint(len(*m)) }

func (m *machines) Set(v string) error {
	name, ip, ok := strings.Cut(v, "=")
	if !ok || name == "" || net.ParseIP(ip) == nil {
		return fmt.Errorf("%q is not NAME=IP", v)
	}
	*m = append(*m, machine{name, ip})
	return nil
}

// furnish gives the model's objects the names and facts that were asked for. Nothing is served yet, so the objects can
// be changed in place.
func furnish(all *simulator.Registry, o options) error {
	dc, ok := all.Any("Datacenter").(*simulator.Datacenter)
	if !ok {
		return fmt.Errorf("the model has no datacenter")
	}
	if o.datacenters == 1 {
		dc.Name = o.dcName
	}

	network := "VM Network"
	if n := all.Any("DistributedVirtualPortgroup"); n != nil {
		network = n.Entity().Name
	}
	vms := all.All("VirtualMachine")
	if o.machinesEach > 0 {
		for _, vm := range vms {
			multiply(all, vm.(*simulator.VirtualMachine), o.machinesEach)
		}
		for i, vm := range all.All("VirtualMachine") {
			ip := fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, i%250+1)
			dress(vm, machine{vm.Entity().Name, ip}, o.instanceID, network)
		}
		return nil
	}
	if len(vms) != len(o.machines) {
		return fmt.Errorf("the model made %d virtual machines, not %d", len(vms), len(o.machines))
	}
	for i, want := range o.machines {
		dress(vms[i], want, o.instanceID, network)
	}
	return nil
}

// multiply puts copies of a machine beside it until there are so many: to have the simulator make each of thousands takes
// minutes.
func multiply(all *simulator.Registry, vm *simulator.VirtualMachine, count int) {
	folder := all.Get(*vm.Parent).(*simulator.Folder)
	for i := 1; i < count; i++ {
		more := &simulator.VirtualMachine{VirtualMachine: vm.VirtualMachine}
		config, guest := *vm.Config, *vm.Guest
		config.Flags.DiskUuidEnabled = nil
		more.Config, more.Guest = &config, &guest
		more.Self.Value = fmt.Sprintf("%s-%d", vm.Self.Value, i)
		more.Name = fmt.Sprintf("%s_%d", vm.Name, i)
		folder.ChildEntity = append(folder.ChildEntity, all.Put(more).Reference())
	}
}

func dress(entity mo.Entity, want machine, instanceID, network string) {
	vm := entity.(*simulator.VirtualMachine)
	// The simulator derives UUIDs from inventory paths, so two vCenters would hold equal ones.
	space := uuid.NewSHA1(uuid.NameSpaceURL, []byte(instanceID))
	bios := uuid.NewSHA1(space, []byte("bios/"+want.name)).String()
	instance := uuid.NewSHA1(space, []byte("instance/"+want.name)).String()

	vm.Name, vm.Config.Name, vm.Summary.Config.Name = want.name, want.name, want.name
	vm.Config.Uuid, vm.Summary.Config.Uuid = bios, bios
	vm.Config.InstanceUuid, vm.Summary.Config.InstanceUuid = instance, instance
	vm.Config.Version = "vmx-19"
	enabled := true
	vm.Config.Flags.DiskUuidEnabled = &enabled
	vm.Config.ExtraConfig = append(vm.Config.ExtraConfig, &types.OptionValue{Key: "disk.EnableUUID", Value: "TRUE"})

	running := string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
	vm.Guest.HostName, vm.Guest.IpAddress = want.name, want.ip
	vm.Guest.ToolsRunningStatus = running
	vm.Guest.ToolsStatus = types.VirtualMachineToolsStatusToolsOk
	vm.Guest.GuestState = string(types.VirtualMachineGuestStateRunning)
	vm.Guest.Net = []types.GuestNicInfo{{
		Network:        network,
		IpAddress:      []string{want.ip},
		MacAddress:     "00:50:56:00:00:01",
		Connected:      true,
		DeviceConfigId: 4000,
		IpConfig: &types.NetIpConfigInfo{
			IpAddress: []types.NetIpConfigInfoIpAddress{{IpAddress: want.ip, PrefixLength: 24, State: "preferred"}},
		},
	}}
	vm.Summary.Guest = &types.VirtualMachineGuestSummary{
		HostName: want.name, IpAddress: want.ip, ToolsRunningStatus: running, ToolsStatus: types.VirtualMachineToolsStatusToolsOk,
	}
}
