package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// serveSet changes what the vCenter says of an object: ?kind=VirtualMachine&name=w-1&hardware=vmx-13. Only what is named
// is changed.
func (c *control) serveSet(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	entity := c.find(r.Form.Get("kind"), r.Form.Get("name"))
	if entity == nil {
		http.Error(w, "no such object", http.StatusNotFound)
		return
	}
	var err error
	c.service.Context.AutoUpdate(entity, func() { err = c.set(entity, r.Form) })
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// serveID answers with the identifier of an object: ?kind=HostSystem&name=DC0_C0_H0.
func (c *control) serveID(w http.ResponseWriter, r *http.Request) {
	entity := c.find(r.FormValue("kind"), r.FormValue("name"))
	if entity == nil {
		http.Error(w, "no such object", http.StatusNotFound)
		return
	}
	fmt.Fprint(w, entity.Reference().Value)
}

func (c *control) find(kind, name string) mo.Entity {
	for _, entity := range c.service.Context.Map.All(kind) {
		if entity.Entity().Name == name {
			return entity
		}
	}
	return nil
}

func (c *control) set(entity mo.Entity, form url.Values) error {
	for key := range form {
		value := form.Get(key)
		if key == "kind" || key == "name" {
			continue
		}
		known := false
		switch object := entity.(type) {
		case *simulator.VirtualMachine:
			known = c.setMachine(object, key, value)
		case *simulator.HostSystem:
			known = setHost(object, key, value)
		case *simulator.Datastore:
			known = c.setDatastore(object, key, value)
		case *simulator.Datacenter:
			if known = key == "new-name"; known {
				object.Name = value
			}
		}
		if !known {
			return fmt.Errorf("%s cannot be set to %q", key, value)
		}
	}
	return nil
}

func (c *control) setMachine(vm *simulator.VirtualMachine, key, value string) bool {
	switch key {
	case "hardware":
		vm.Config.Version = value
	case "disk-uuid":
		vm.Config.Flags.DiskUuidEnabled = nil
		var options []types.BaseOptionValue
		for _, option := range vm.Config.ExtraConfig {
			if option.GetOptionValue().Key != "disk.EnableUUID" {
				options = append(options, option)
			}
		}
		if value != "" {
			on := value == "true"
			vm.Config.Flags.DiskUuidEnabled = &on
			options = append(options, &types.OptionValue{Key: "disk.EnableUUID", Value: strings.ToUpper(value)})
		}
		vm.Config.ExtraConfig = options
	case "tools":
		vm.Guest.ToolsRunningStatus = value
	case "host-name":
		vm.Guest.HostName = value
	case "address":
		all := strings.Split(value, ",")
		vm.Guest.IpAddress, vm.Guest.Net = all[0], nil
		if value != "" {
			vm.Guest.Net = []types.GuestNicInfo{{IpAddress: all, DeviceConfigId: 4000}}
		}
	case "adapters":
		// NETWORK=ADDRESS,ADDRESS;NETWORK=...
		vm.Guest.IpAddress, vm.Guest.Net = "", nil
		for i, adapter := range strings.Split(value, ";") {
			if network, all, found := strings.Cut(adapter, "="); found {
				nic := types.GuestNicInfo{Network: network, DeviceConfigId: int32(4000 + i)}
				if all != "" {
					nic.IpAddress = strings.Split(all, ",")
				}
				if vm.Guest.IpAddress == "" && all != "" {
					vm.Guest.IpAddress = nic.IpAddress[0]
				}
				vm.Guest.Net = append(vm.Guest.Net, nic)
			}
		}
	case "power":
		vm.Runtime.PowerState = types.VirtualMachinePowerState(value)
	case "uuid":
		vm.Config.Uuid = value
	case "instance-uuid":
		vm.Config.InstanceUuid = value
	case "snapshot":
		vm.Snapshot = nil
		if value == "true" {
			current := types.ManagedObjectReference{Type: "VirtualMachineSnapshot", Value: "snapshot-1"}
			vm.Snapshot = &types.VirtualMachineSnapshotInfo{CurrentSnapshot: &current}
		}
	case "host":
		host := c.find("HostSystem", value)
		if host == nil {
			return false
		}
		reference := host.Reference()
		vm.Runtime.Host = &reference
	case "vapp":
		return c.moveIntoApp(vm, value)
	case "scsi":
		var devices []types.BaseVirtualDevice
		for _, device := range vm.Config.Hardware.Device {
			if pv, ok := device.(*types.ParaVirtualSCSIController); ok && value == "lsilogic" {
				device = &types.VirtualLsiLogicController{VirtualSCSIController: pv.VirtualSCSIController}
			}
			devices = append(devices, device)
		}
		vm.Config.Hardware.Device = devices
	default:
		return false
	}
	return true
}

// moveIntoApp puts a machine into a vApp of that name, which is made. Such a machine lies in no folder.
func (c *control) moveIntoApp(vm *simulator.VirtualMachine, name string) bool {
	pool, ok := c.service.Context.Map.Get(*vm.ResourcePool).(*simulator.ResourcePool)
	if !ok {
		return false
	}
	pool.CreateVApp(c.service.Context, &types.CreateVApp{This: pool.Self, Name: name, ResSpec: types.DefaultResourceConfigSpec()})
	app := c.find("VirtualApp", name)
	if app == nil {
		return false
	}
	reference := app.Reference()
	vm.Parent, vm.ParentVApp, vm.ResourcePool = nil, &reference, &reference
	return true
}

func setHost(host *simulator.HostSystem, key, value string) bool {
	switch key {
	case "version":
		product := *host.Summary.Config.Product
		product.Version = value
		host.Summary.Config.Product = &product
	case "state":
		host.Runtime.ConnectionState = types.HostSystemConnectionState(value)
		host.Summary.Runtime.ConnectionState = host.Runtime.ConnectionState
	default:
		return false
	}
	return true
}

func (c *control) setDatastore(datastore *simulator.Datastore, key, value string) bool {
	switch key {
	case "url":
		datastore.Summary.Url = value
	case "type":
		datastore.Summary.Type = value
	case "accessible":
		datastore.Summary.Accessible = value == "true"
	case "maintenance":
		datastore.Summary.MaintenanceMode = value
	case "unmount":
		host := c.find("HostSystem", value)
		if host == nil {
			return false
		}
		no := false
		for i, mount := range datastore.Host {
			if mount.Key == host.Reference() {
				datastore.Host[i].MountInfo.Accessible = &no
			}
		}
	default:
		return false
	}
	return true
}
