// Livenessprobe stands in for the sidecar of that name, of which the Go module proxy has no version: it answers /healthz with what the
// driver answers to Probe.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const port = "9808"

func main() {
	address := flag.String("csi-address", "/run/csi/socket", "socket of the driver")
	flag.String("v", "", "taken and not used: there are no messages of that kind")
	flag.Parse()
	connection, err := grpc.NewClient("unix://"+*address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	driver := csi.NewIdentityClient(connection)
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		answer, err := driver.Probe(ctx, &csi.ProbeRequest{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if answer.GetReady() != nil && !answer.GetReady().GetValue() {
			http.Error(w, "the driver is not ready", http.StatusInternalServerError)
		}
	})
	// The place that the test bed has for this port of the pod.
	listen := os.Getenv("TESTBED_PORT_" + port)
	if listen == "" {
		listen = ":" + port
	}
	log.Fatal(http.ListenAndServe(listen, nil))
}
