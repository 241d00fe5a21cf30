// Copyright (c) 2026, slurm_ops.kubernetes authors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// The volume controller of Kubernetes writes the first on a claim once it is the provisioner's turn, and looks
	// for the second on a volume to know that deleting it is not its own business.
	claimAnnotation  = "volume.kubernetes.io/storage-provisioner"
	volumeAnnotation = "pv.kubernetes.io/provisioned-by"
	// Our finalizer keeps a deleted PersistentVolume until its directory is gone.
	finalizer = "slurm-ops.kubernetes/volume-directory"
)

// provisioner holds no state of its own: what is to be done follows from the claims and volumes alone, so that it may
// be killed at any point and goes on from there.
type provisioner struct {
	name      string
	directory string
	client    kubernetes.Interface
	claims    corelisters.PersistentVolumeClaimLister
	volumes   corelisters.PersistentVolumeLister
	classes   storagelisters.StorageClassLister
	queue     workqueue.TypedRateLimitingInterface[item]
	events    record.EventRecorder
}

// item is a claim (with a namespace) or a volume (without one).
type item struct{ namespace, name string }

func newProvisioner(name, directory string, client kubernetes.Interface, factory informers.SharedInformerFactory) *provisioner {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	p := &provisioner{
		name:      name,
		directory: directory,
		client:    client,
		claims:    factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes:   factory.Core().V1().PersistentVolumes().Lister(),
		classes:   factory.Storage().V1().StorageClasses().Lister(),
		queue:     workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[item]()),
		events:    broadcaster.NewRecorder(scheme.Scheme, core.EventSource{Component: name}),
	}
	enqueue := cache.ResourceEventHandlerFuncs{
		AddFunc:    p.enqueue,
		UpdateFunc: func(_, changed any) { p.enqueue(changed) },
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().PersistentVolumeClaims().Informer(),
		factory.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(enqueue); err != nil {
			klog.Fatalf("cannot watch: %v", err) // only possible on an informer that has been stopped
		}
	}
	factory.Storage().V1().StorageClasses().Informer()
	return p
}

func (p *provisioner) enqueue(object any) {
	if accessor, ok := object.(meta.Object); ok {
		p.queue.Add(item{accessor.GetNamespace(), accessor.GetName()})
	}
}

// work handles one item after another until the context ends. One worker is enough: a volume is one mkdir and one write.
func (p *provisioner) work(ctx context.Context) {
	go func() { <-ctx.Done(); p.queue.ShutDown() }()
	for {
		next, stopped := p.queue.Get()
		if stopped {
			return
		}
		if err := p.handle(ctx, next); err != nil {
			klog.ErrorS(err, "will try again", "namespace", next.namespace, "name", next.name)
			p.queue.AddRateLimited(next)
		} else {
			p.queue.Forget(next)
		}
		p.queue.Done(next)
	}
}

func (p *provisioner) handle(ctx context.Context, next item) error {
	if next.namespace == "" {
		volume, err := p.volumes.Get(next.name)
		if err != nil {
			return ignoreNotFound(err)
		}
		return p.reclaim(ctx, volume)
	}
	claim, err := p.claims.PersistentVolumeClaims(next.namespace).Get(next.name)
	if err != nil {
		return ignoreNotFound(err)
	}
	return p.provision(ctx, claim)
}

// provision makes the volume of a claim that waits for one. The volume's name follows from the claim, so doing it twice
// makes one volume.
func (p *provisioner) provision(ctx context.Context, claim *core.PersistentVolumeClaim) error {
	if claim.DeletionTimestamp != nil || claim.Spec.VolumeName != "" || claim.Annotations[claimAnnotation] != p.name {
		return nil
	}
	class, err := p.classes.Get(className(claim))
	if err != nil {
		return err
	}
	if what := unsupported(claim); what != "" {
		p.events.Eventf(claim, core.EventTypeWarning, "ProvisioningFailed", "the sandbox does not offer %s", what)
		return nil
	}
	volume := newVolume(p.name, p.directory, claim, class)
	if err := os.MkdirAll(volume.Spec.Local.Path, 0o755); err != nil {
		p.events.Eventf(claim, core.EventTypeWarning, "ProvisioningFailed", "no directory: %v", err)
		return err
	}
	if _, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volume, meta.CreateOptions{}); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		p.events.Eventf(claim, core.EventTypeWarning, "ProvisioningFailed", "no volume: %v", err)
		return err
	}
	p.events.Eventf(claim, core.EventTypeNormal, "ProvisioningSucceeded", "made volume %s", volume.Name)
	return nil
}

// unsupported says what a claim asks for that a directory cannot be, or nothing.
func unsupported(claim *core.PersistentVolumeClaim) string {
	switch {
	case claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == core.PersistentVolumeBlock:
		return "block volumes"
	case claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil:
		return "volumes with content"
	case claim.Spec.Selector != nil:
		return "a choice of volumes by their labels"
	}
	return ""
}

// newVolume is the PersistentVolume for a claim. Its directory is named after the claim, for people who look.
func newVolume(provisioner, directory string, claim *core.PersistentVolumeClaim, class *storage.StorageClass) *core.PersistentVolume {
	policy := core.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	name := "pvc-" + string(claim.UID)
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{volumeAnnotation: provisioner},
			Finalizers:  []string{finalizer},
		},
		Spec: core.PersistentVolumeSpec{
			Capacity:                      core.ResourceList{core.ResourceStorage: claim.Spec.Resources.Requests[core.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			ClaimRef: &core.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: core.PersistentVolumeSource{
				Local: &core.LocalVolumeSource{Path: filepath.Join(directory, name+"_"+claim.Namespace+"_"+claim.Name)},
			},
			// A local volume must say where it is: on every node, as they share one file system.
			NodeAffinity: &core.VolumeNodeAffinity{Required: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
				MatchExpressions: []core.NodeSelectorRequirement{
					{Key: core.LabelOSStable, Operator: core.NodeSelectorOpIn, Values: []string{"linux"}},
				},
			}}}},
		},
	}
}

// reclaim deletes a released volume, and the directory of one that is being deleted. A volume that is deleted by hand,
// or whose policy is Retain, is never emptied while a claim holds it.
func (p *provisioner) reclaim(ctx context.Context, volume *core.PersistentVolume) error {
	if volume.Annotations[volumeAnnotation] != p.name {
		return nil
	}
	deletes := volume.Spec.PersistentVolumeReclaimPolicy == core.PersistentVolumeReclaimDelete
	if volume.DeletionTimestamp == nil {
		if volume.Status.Phase != core.VolumeReleased || !deletes {
			return nil
		}
		preconditions := meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion}}
		return ignoreNotFound(p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, preconditions))
	}
	if !hasOnlyFinalizer(volume) {
		return nil // still bound: Kubernetes' own protection is there; it comes back here when that is gone
	}
	if deletes {
		if err := p.removeDirectory(volume); err != nil {
			return err
		}
	}
	changed := volume.DeepCopy()
	changed.Finalizers = nil
	_, err := p.client.CoreV1().PersistentVolumes().Update(ctx, changed, meta.UpdateOptions{})
	return ignoreNotFound(err)
}

// removeDirectory removes the directory of a volume, and refuses anything that is not one level below our own.
func (p *provisioner) removeDirectory(volume *core.PersistentVolume) error {
	if volume.Spec.Local == nil {
		return nil
	}
	path := filepath.Clean(volume.Spec.Local.Path)
	if filepath.Dir(path) != filepath.Clean(p.directory) || !strings.HasPrefix(filepath.Base(path), volume.Name+"_") {
		return fmt.Errorf("volume %s: %s is not a directory that was made for it", volume.Name, path)
	}
	return os.RemoveAll(path)
}

func hasOnlyFinalizer(volume *core.PersistentVolume) bool {
	return len(volume.Finalizers) == 1 && volume.Finalizers[0] == finalizer
}

func className(claim *core.PersistentVolumeClaim) string {
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
