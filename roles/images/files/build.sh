#!/bin/bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# build.sh key    print the hash of everything that the images are made of
# build.sh build  make the archives that are missing and print, one a line, those that were made
#
# Environment: IMAGES_DIRECTORY (cache), IMAGES_VERSIONS ("26.05 24.11"), IMAGES_REGISTRY (first part of the names),
# IMAGES_BASE (reference; empty: a Debian 13 made here), IMAGES_MIRROR, IMAGES_APT_OPTIONS, IMAGES_SERIAL (any text),
# IMAGES_PUSH (true: push to IMAGES_REGISTRY too), SLURM_OPS_PROGRESS (file that progress lines are added to).
#
# Everything buildah keeps lives in IMAGES_DIRECTORY: the machine's own images and storage settings are not touched.
# Needs root (mounts, other users' files in layers); it works in a mount namespace of its own, so that nothing stays
# mounted however it ends.
set -euo pipefail
umask 022

context=$(dirname "$(readlink -f "$0")")
slurm_targets=(slurmctld slurmdbd slurmrestd slurmd login)
service_targets=(mariadb openldap)
service_tag=debian13

key() {
  {
    (cd "$context" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
    printf '%s\n' "$(uname -m)" "$IMAGES_REGISTRY" "$IMAGES_BASE" "$IMAGES_MIRROR" "$IMAGES_APT_OPTIONS" "$IMAGES_SERIAL"
  } | sha256sum | cut -c 1-16
}

progress() {
  if [[ -n ${SLURM_OPS_PROGRESS:-} ]]; then
    printf 'images: %s\n' "$*" >> "$SLURM_OPS_PROGRESS"
  fi
}

# logged NAME COMMAND...: its output goes to a log file, of which the end is shown if it fails.
logged() {
  local log=$IMAGES_DIRECTORY/log/$1.log
  shift
  "$@" >> "$log" 2>&1 || {
    echo "build.sh: failed: $*" >&2
    echo "The end of $log:" >&2
    tail -n 40 "$log" >&2
    return 1
  }
}

prepare_storage() {
  local driver=overlay trial=$IMAGES_DIRECTORY/trial
  mkdir -p "$IMAGES_DIRECTORY"/{log,storage,tmp} "$trial"/{lower,upper,work,merged}
  # Overlay does not work on top of every file system (not on another overlay, for instance).
  mount -t overlay -o "lowerdir=$trial/lower,upperdir=$trial/upper,workdir=$trial/work" overlay "$trial/merged" 2>/dev/null \
    && umount "$trial/merged" || driver=vfs
  rm -rf "$trial"
  runroot=$(mktemp -d /run/slurm-ops-images.XXXXXX)
  trap 'rm -rf "$runroot"' EXIT
  printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' \
    "$driver" "$IMAGES_DIRECTORY/storage/$driver" "$runroot" > "$runroot/storage.conf"
  export CONTAINERS_STORAGE_CONF=$runroot/storage.conf TMPDIR=$IMAGES_DIRECTORY/tmp BUILDAH_ISOLATION=chroot
}

# The base that stands in for docker.io/library/debian:trixie where no registry can be reached.
make_base() {
  local container
  base=localhost/slurm-ops-base:$(printf '%s\n' "$IMAGES_MIRROR" "$IMAGES_SERIAL" | sha256sum | cut -c 1-12)
  if buildah inspect --type image "$base" >/dev/null 2>&1; then
    return
  fi
  progress "Debian 13 base from $IMAGES_MIRROR"
  logged base mmdebstrap --mode=root --variant=minbase --include=ca-certificates \
    --keyring=/usr/share/keyrings/debian-archive-keyring.gpg --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='force-unsafe-io' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    trixie "$TMPDIR/base.tar" "$IMAGES_MIRROR"
  container=$(buildah from scratch)
  logged base buildah add --quiet "$container" "$TMPDIR/base.tar" /
  rm -f "$TMPDIR/base.tar"
  logged base buildah commit --quiet --rm "$container" "$base"
}

# build_group NAME TAG TARGET...: build the targets and put them into one archive.
build_group() {
  local name=$1 tag=$2 target image layout
  shift 2
  layout=$TMPDIR/$name.oci
  rm -rf "$layout" "$IMAGES_DIRECTORY/log/$name.log"
  for target; do
    image=$IMAGES_REGISTRY/$target:$tag
    progress "$image"
    logged "$name" buildah build --layers --network host --target "$target" --tag "$image" \
      --build-arg "BASE=$base" --build-arg "SLURM_VERSION=$tag" --build-arg "APT_OPTIONS=$IMAGES_APT_OPTIONS" \
      --file "$context/Containerfile" "$context"
  done
  progress "$name archive"
  for target; do
    image=$IMAGES_REGISTRY/$target:$tag
    # Not compressed: importing and exporting take a third of the time; the archive never travels.
    logged "$name" buildah push --disable-compression --format oci "$image" "oci:$layout:$image"
    if [[ $IMAGES_PUSH == true ]]; then
      progress "pushing $image"
      logged "$name" buildah push "$image" "docker://$image"
    fi
  done
  tar -C "$layout" -cf "$TMPDIR/$name.tar" .
  rm -rf "$layout"
  mv "$TMPDIR/$name.tar" "$IMAGES_DIRECTORY/$name-$key.tar"
  echo "$IMAGES_DIRECTORY/$name-$key.tar"
}

build() {
  local version jobs=() job failed=0
  key=$(key)
  mkdir -p "$IMAGES_DIRECTORY"
  # One build at a time in one cache; whoever waited finds the work done.
  exec 9> "$IMAGES_DIRECTORY/lock"
  flock 9
  prepare_storage
  base=$IMAGES_BASE
  [[ -n $base ]] || make_base
  if [[ ! -f $IMAGES_DIRECTORY/services-$key.tar ]]; then
    build_group services "$service_tag" "${service_targets[@]}" &
    jobs+=($!)
  fi
  for version in $IMAGES_VERSIONS; do
    if [[ ! -f $IMAGES_DIRECTORY/slurm-$version-$key.tar ]]; then
      build_group "slurm-$version" "$version" "${slurm_targets[@]}" &
      jobs+=($!)
    fi
  done
  for job in "${jobs[@]}"; do
    wait "$job" || failed=1
  done
  return "$failed"
}

case ${1:-} in
  key) key ;;
  build)
    if [[ -z ${IMAGES_NAMESPACE:-} ]]; then
      IMAGES_NAMESPACE=1 exec unshare --mount --propagation private -- bash "$0" build
    fi
    build
    ;;
  *)
    sed -n '6,7s/^# //p' "$0" >&2
    exit 2
    ;;
esac
