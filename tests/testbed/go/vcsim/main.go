// Command vcsim serves simulated vCenters for the test bed: each a datacenter with the virtual machines named on the
// command line and nothing else, a password that is really checked, and a certificate of the caller's making. More are
// started in the same process by its control path.
package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/vpx"

	// Each of these adds an endpoint of a real vCenter: storage, policies, sign-on, tags.
	_ "github.com/vmware/govmomi/cns/simulator"
	_ "github.com/vmware/govmomi/lookup/simulator"
	_ "github.com/vmware/govmomi/pbm/simulator"
	_ "github.com/vmware/govmomi/ssoadmin/simulator"
	_ "github.com/vmware/govmomi/sts/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator"
)

type options struct {
	listen, cert, key                     string
	version, build, instanceID            string
	user, passwordFile, usersFile, dcName string
	machines                              machines
	hosts, datastores                     int
	datacenters, machinesEach             int
	exitWhenStdinCloses                   bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vcsim:", err)
		os.Exit(1)
	}
}

func parse(arguments []string) (options, error) {
	var o options
	flag := flag.NewFlagSet("vcsim", flag.ContinueOnError)
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "address to serve on; port 0 picks a free one")
	flag.StringVar(&o.cert, "tls-cert", "", "PEM file: the leaf certificate and its chain")
	flag.StringVar(&o.key, "tls-key", "", "PEM file: the leaf's private key")
	flag.StringVar(&o.version, "version", "8.0.3", "product version to report")
	flag.StringVar(&o.build, "build", "24022515", "product build to report")
	flag.StringVar(&o.instanceID, "instance-uuid", "", "instance UUID of this vCenter; virtual machines derive theirs from it")
	flag.StringVar(&o.user, "user", "administrator@vsphere.local", "the administrator, who can log in")
	flag.StringVar(&o.passwordFile, "password-file", "", "file with that user's password, taken as it is (default: environment VCSIM_PASSWORD)")
	flag.StringVar(&o.usersFile, "users-file", "", "file with more users who can log in: a JSON object of names and passwords")
	flag.StringVar(&o.dcName, "datacenter", "DC0", "name of the datacenter")
	flag.IntVar(&o.hosts, "hosts", 1, "hosts in the cluster of a datacenter")
	flag.IntVar(&o.datastores, "datastores", 1, "datastores of a datacenter; every host has all of them")
	flag.IntVar(&o.datacenters, "datacenters", 1, "datacenters; when there are several, each lies in a folder of its own and has a name of its own")
	flag.IntVar(&o.machinesEach, "machines-each", 0, "virtual machines of made-up names in each datacenter, instead of those named one by one")
	flag.Var(&o.machines, "vm", "NAME=IP of a virtual machine; repeat for more")
	flag.BoolVar(&o.exitWhenStdinCloses, "exit-on-stdin-close", false, "exit when standard input closes")
	if err := flag.Parse(arguments); err != nil {
		return o, err
	}
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.cert == "" || o.key == "" {
		return o, errors.New("-tls-cert and -tls-key are needed")
	}
	if o.instanceID == "" {
		return o, errors.New("-instance-uuid is needed")
	}
	return o, nil
}

func password(o options) (string, error) {
	if o.passwordFile == "" {
		if p := os.Getenv("VCSIM_PASSWORD"); p != "" {
			return p, nil
		}
		return "", errors.New("no password: set VCSIM_PASSWORD or -password-file")
	}
	b, err := os.ReadFile(o.passwordFile)
	return string(b), err
}

// moreUsers reads a JSON object of names, as they are sent at log-in, and passwords.
func moreUsers(file string) (map[string]string, error) {
	users := map[string]string{}
	if file == "" {
		return users, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return users, json.Unmarshal(b, &users)
}

func run() error {
	o, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	var all vcenters
	defer all.end()
	ready, err := all.start(o)
	if err != nil {
		return err
	}
	fmt.Println(string(ready))
	wait(o.exitWhenStdinCloses)
	return nil
}

// vcenters are those of this process.
type vcenters struct {
	mu   sync.Mutex
	ends []func()
}

// start makes one and serves it; it tells where. They are made one after the other: the simulator's models share tables.
func (all *vcenters) start(o options) ([]byte, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	secret, err := password(o)
	if err != nil {
		return nil, err
	}
	more, err := moreUsers(o.usersFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, err
	}

	model := simulator.VPX()
	all.ends = append(all.ends, model.Remove)
	model.ServiceContent = vpx.ServiceContent
	about := &model.ServiceContent.About
	about.Version, about.Build, about.InstanceUuid = o.version, o.build, o.instanceID
	about.FullName = fmt.Sprintf("VMware vCenter Server %s build-%s", o.version, o.build)
	about.ApiVersion = apiVersion(o.version)
	model.Host, model.Cluster, model.ClusterHost, model.Datastore = 0, 1, o.hosts, o.datastores
	model.Machine = len(o.machines)
	if o.machinesEach > 0 {
		model.Machine = 1
	}
	if o.datacenters > 1 {
		model.Datacenter, model.Folder = o.datacenters, o.datacenters
	}
	if err := model.Create(); err != nil {
		return nil, err
	}
	if err := furnish(model.Map(), o); err != nil {
		return nil, err
	}

	// The simulator's directory holds bare names and knows one domain: given "name@domain" it would lock everyone out.
	bare, _, _ := strings.Cut(o.user, "@")
	service := model.Service
	service.RegisterEndpoints = true
	service.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	service.Listen = &url.URL{Host: o.listen, User: url.UserPassword(bare, secret)}
	control := newControl(service, more, all)
	control.administrator = o.user
	(&authorization{control: control}).install(model.Map(), model.ServiceContent, o.user)
	new(collector).install(model.Map(), model.ServiceContent)
	server := service.NewServer()
	all.ends = append(all.ends, server.Close)
	guard := &enforcer{control: control, sessions: map[string]string{}}
	server.Config.Handler = control.count(guard.wrap(server.Config.Handler))
	control.installUsers()
	control.installPlacement()
	control.watch(model.Map().SessionManager())

	host, port, err := net.SplitHostPort(server.URL.Host)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{"address": server.URL.Host, "host": host, "port": port})
}

// end stops serving, the last one first.
func (all *vcenters) end() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for i := len(all.ends) - 1; i >= 0; i-- {
		all.ends[i]()
	}
}

// apiVersion is what a vCenter of that version calls its API: 8.0.3 serves 8.0.3.0.
func apiVersion(version string) string {
	parts := strings.Split(version, ".")
	for len(parts) < 4 {
		parts = append(parts, "0")
	}
	return strings.Join(parts[:4], ".")
}

func wait(stdin bool) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	if stdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop <- syscall.SIGTERM
		}()
	}
	<-stop
}

var _ flag.Value = (*machines)(nil)
