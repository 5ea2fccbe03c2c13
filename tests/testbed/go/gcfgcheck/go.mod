module vdo.vmware.com/testbed/gcfgcheck

go 1.26

require (
	gopkg.in/gcfg.v1 v1.2.3
	gopkg.in/yaml.v2 v2.4.0
)

require gopkg.in/warnings.v0 v0.1.2 // indirect
