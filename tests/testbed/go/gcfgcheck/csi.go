package main

// csiConfig has the sections and keys of csi-vsphere.conf, with the types the driver gives them.
type csiConfig struct {
	Global struct {
		ClusterID                   string `gcfg:"cluster-id" json:"cluster-id"`
		SupervisorID                string `gcfg:"supervisor-id" json:"supervisor-id"`
		User                        string `gcfg:"user" json:"user"`
		Password                    string `gcfg:"password" json:"password"`
		Port                        string `gcfg:"port" json:"port"`
		InsecureFlag                bool   `gcfg:"insecure-flag" json:"insecure-flag"`
		CAFile                      string `gcfg:"ca-file" json:"ca-file"`
		Thumbprint                  string `gcfg:"thumbprint" json:"thumbprint"`
		Datacenters                 string `gcfg:"datacenters" json:"datacenters"`
		ClusterDistribution         string `gcfg:"cluster-distribution" json:"cluster-distribution"`
		RegisterVolumesCleanup      int    `gcfg:"cnsregistervolumes-cleanup-intervalinmin" json:"cnsregistervolumes-cleanup-intervalinmin"`
		PVCProtectionCleanup        int    `gcfg:"cnspvcprotection-cleanup-intervalinmin" json:"cnspvcprotection-cleanup-intervalinmin"`
		VolumeMigrationCleanup      int    `gcfg:"volumemigration-cr-cleanup-intervalinmin" json:"volumemigration-cr-cleanup-intervalinmin"`
		AuthCheckInterval           int    `gcfg:"csi-auth-check-intervalinmin" json:"csi-auth-check-intervalinmin"`
		OperationRequestCleanup     int    `gcfg:"cnsvolumeoperationrequest-cleanup-intervalinmin" json:"cnsvolumeoperationrequest-cleanup-intervalinmin"`
		PreferredDatastoresInterval int    `gcfg:"csi-fetch-preferred-datastores-intervalinmin" json:"csi-fetch-preferred-datastores-intervalinmin"`
		QueryLimit                  int    `gcfg:"query-limit" json:"query-limit"`
		ListVolumeThreshold         int    `gcfg:"list-volume-threshold" json:"list-volume-threshold"`
	} `json:"Global"`
	VirtualCenter map[string]*struct {
		User                             string `gcfg:"user" json:"user"`
		Password                         string `gcfg:"password" json:"password"`
		Port                             string `gcfg:"port" json:"port"`
		InsecureFlag                     bool   `gcfg:"insecure-flag" json:"insecure-flag"`
		CAFile                           string `gcfg:"ca-file" json:"ca-file"`
		Thumbprint                       string `gcfg:"thumbprint" json:"thumbprint"`
		Datacenters                      string `gcfg:"datacenters" json:"datacenters"`
		TargetvSANFileShareClusters      string `gcfg:"targetvSANFileShareClusters" json:"targetvSANFileShareClusters"`
		TargetvSANFileShareDatastoreURLs string `gcfg:"targetvSANFileShareDatastoreURLs" json:"targetvSANFileShareDatastoreURLs"`
		MigrationDatastoreURL            string `gcfg:"migration-datastore-url" json:"migration-datastore-url"`
	} `json:"VirtualCenter"`
	NetPermissions map[string]*struct {
		IPs         string `gcfg:"ips" json:"ips"`
		Permissions string `gcfg:"permissions" json:"permissions"`
		RootSquash  bool   `gcfg:"rootsquash" json:"rootsquash"`
	} `json:"NetPermissions"`
	Labels struct {
		Zone               string `gcfg:"zone" json:"zone"`
		Region             string `gcfg:"region" json:"region"`
		TopologyCategories string `gcfg:"topology-categories" json:"topology-categories"`
	} `json:"Labels"`
	TopologyCategory map[string]*struct {
		Label string `gcfg:"label" json:"label"`
	} `json:"TopologyCategory"`
	Snapshot struct {
		GlobalMax int `gcfg:"global-max-snapshots-per-block-volume" json:"global-max-snapshots-per-block-volume"`
		VSANMax   int `gcfg:"granular-max-snapshots-per-block-volume-vsan" json:"granular-max-snapshots-per-block-volume-vsan"`
		VVOLMax   int `gcfg:"granular-max-snapshots-per-block-volume-vvol" json:"granular-max-snapshots-per-block-volume-vvol"`
	} `json:"Snapshot"`
}
