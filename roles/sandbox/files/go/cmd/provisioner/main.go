// Copyright (c) 2026, slurm_ops.kubernetes authors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command provisioner makes a directory and a PersistentVolume of type `local` for each claim of the sandbox's
// StorageClass, and removes both when the claim is gone. All nodes of a sandbox share the file system of one machine,
// so a volume can be used from every node at once: ReadWriteMany costs nothing. The type is `local` and not `hostPath`
// because the kubelet applies a Pod's fsGroup to the former only.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of an account that may write PersistentVolumes")
	directory := flag.String("directory", "", "directory under which each volume gets one of its own")
	name := flag.String("provisioner", "", "provisioner name, as the StorageClass gives it")
	health := flag.String("health-address", "", "host:port that answers /healthz once the caches are filled")
	flag.Parse()
	if err := run(*kubeconfig, *directory, *name, *health); err != nil {
		fmt.Fprintln(os.Stderr, "provisioner:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, directory, name, health string) error {
	if directory == "" || name == "" {
		return fmt.Errorf("--directory and --provisioner are needed")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	volumes := newProvisioner(name, directory, client, factory)
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the cache of %v was not filled", kind)
		}
	}
	failed := make(chan error, 1)
	if health != "" {
		server := &http.Server{Addr: health, Handler: healthHandler(), ReadHeaderTimeout: 5 * time.Second}
		go func() { failed <- server.ListenAndServe() }()
		defer server.Close()
	}
	klog.InfoS("ready", "provisioner", name, "directory", directory)
	go volumes.work(ctx)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

func healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(writer http.ResponseWriter, _ *http.Request) { fmt.Fprint(writer, "ok") })
	return mux
}
