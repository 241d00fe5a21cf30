#!/usr/bin/env bash
# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# build.sh list   print the archives that there should be, one a line
# build.sh build  make those that are missing, and print them
#
# The name of an archive holds the hash of everything that its images are made of.
#
# Environment: IMAGES_DIRECTORY (cache), IMAGES_VERSIONS ("26.05 24.11"), IMAGES_REGISTRY (first part of the names),
# IMAGES_BASE (reference; empty: a Debian 13 made here), IMAGES_MIRROR (empty: the one this machine uses),
# IMAGES_APT_OPTIONS, IMAGES_SERIAL (any text), IMAGES_PUSH (true: push to IMAGES_REGISTRY too),
# SLURM_OPS_PROGRESS (file that progress lines are added to).
#
# Everything buildah keeps lives in IMAGES_DIRECTORY: the machine's own images and storage settings are not touched.
# Needs root (mounts, other users' files in layers); it works in a mount namespace of its own, so that nothing stays
# mounted however it ends.
set -euo pipefail
umask 022

context=$(dirname "$(readlink -f "$0")")
collection=$(readlink -f "$context/../../..")
# A checkout has the one, an installed collection the other.
manifest=galaxy.yml
[[ -f $collection/$manifest ]] || manifest=MANIFEST.json
slurm_targets=(slurmctld slurmdbd slurmrestd slurmd login)
service_targets=(mariadb openldap)
service_tag=debian13
operator_targets=(operator)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The files that this collection runs with. Not its tests and guides: a change of these is to make no image anew.
files_of_collection() {
  find "$manifest" COPYING README.md meta playbooks plugins roles -type f \
    ! -name '*.pyc' ! -path 'roles/images/files/collections/*' -print0 | LC_ALL=C sort -z
}

version_of_collection() {
  sed -nE 's/^ *"?version"?: *"?([^",]+).*/\1/p' "$collection/$manifest"
}

# archive_of slurm-VERSION|services|operator: its path
archive_of() {
  local -A parts=(
    [slurm]="src rootfs/slurm rootfs/slurmctld rootfs/slurmd rootfs/login"
    [services]="rootfs/mariadb rootfs/openldap"
    [operator]=""
  )
  local key
  key=$({
    # shellcheck disable=SC2086  # several names
    (cd "$context" && find Containerfile build.sh ${parts[${1%%-*}]} -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
    [[ $1 != operator ]] || (cd "$collection" && files_of_collection | xargs -0 sha256sum)
    printf '%s\n' "$(uname -m)" "$IMAGES_REGISTRY" "$IMAGES_BASE" "$IMAGES_MIRROR" "$IMAGES_APT_OPTIONS" "$IMAGES_SERIAL"
  } | sha256sum | cut -c 1-16)
  echo "$IMAGES_DIRECTORY/$1-$key.tar"
}

list() {
  local version
  archive_of services
  archive_of operator
  for version in $IMAGES_VERSIONS; do
    archive_of "slurm-$version"
  done
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

# What is needed to build, without what the packages merely recommend: that would be another container runtime.
install_tools() {
  local missing=() package
  for package in buildah mmdebstrap; do
    command -v "$package" >/dev/null || missing+=("$package")
  done
  [[ -s $keyring ]] || missing+=(debian-archive-keyring)
  if ((${#missing[@]})); then
    progress "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # Package lists may be missing or too old: fetched only then.
    apt-get install --yes --quiet --no-install-recommends "${missing[@]}" >/dev/null 2>&1 || {
      logged tools apt-get update --quiet
      logged tools apt-get install --yes --quiet --no-install-recommends "${missing[@]}"
    }
  fi
}

# The mirror that this machine takes Debian from, if it is a Debian and that is a web server.
find_mirror() {
  local site origin label
  # shellcheck disable=SC2016  # apt-get fills these in.
  while read -r site origin label; do
    if [[ $origin == Debian && $label == Debian && $site =~ ^https?:// ]]; then
      echo "${site%/}"
      return
    fi
  done < <(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' 2>/dev/null)
  echo http://deb.debian.org/debian
}

prepare_storage() {
  local driver=overlay trial=$IMAGES_DIRECTORY/trial
  rm -rf "$IMAGES_DIRECTORY/tmp"
  mkdir -p "$IMAGES_DIRECTORY"/{log,storage,tmp} "$trial"/{lower,upper,work,merged}
  # Overlay does not work on top of every file system (not on another overlay, for instance).
  mount -t overlay -o "lowerdir=$trial/lower,upperdir=$trial/upper,workdir=$trial/work" overlay "$trial/merged" 2>/dev/null \
    && umount "$trial/merged" || driver=vfs
  rm -rf "$trial"
  # Layers that no build uses any more are not worth looking for: all can be made again in two minutes.
  if (($(du --summarize --block-size=1G "$IMAGES_DIRECTORY/storage" | cut -f 1) >= 8)); then
    rm -rf "$IMAGES_DIRECTORY/storage"
  fi
  # What buildah knows about compressed layers it keeps here, whatever its configuration says.
  mkdir -p /var/lib/containers "$IMAGES_DIRECTORY/containers"
  mount --bind "$IMAGES_DIRECTORY/containers" /var/lib/containers
  runroot=$(mktemp -d /run/slurm-ops-images.XXXXXX)
  trap 'rm -rf "$runroot"' EXIT
  printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' \
    "$driver" "$IMAGES_DIRECTORY/storage/$driver" "$runroot" > "$runroot/storage.conf"
  export CONTAINERS_STORAGE_CONF=$runroot/storage.conf TMPDIR=$IMAGES_DIRECTORY/tmp BUILDAH_ISOLATION=chroot
}

# The base that stands in for docker.io/library/debian:trixie where no registry can be reached.
make_base() {
  local container mirror=${IMAGES_MIRROR:-$(find_mirror)}
  base=localhost/slurm-ops-base:$({ printf '%s\n' "$mirror" "$IMAGES_SERIAL"; declare -f make_base; } | sha256sum | cut -c 1-12)
  if buildah inspect --type image "$base" >/dev/null 2>&1; then
    return
  fi
  progress "Debian 13 base from $mirror"
  logged base mmdebstrap --mode=root --variant=minbase --include=ca-certificates \
    --keyring="$keyring" --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='force-unsafe-io' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    trixie "$TMPDIR/base.tar" "$mirror"
  container=$(buildah from scratch)
  logged base buildah add --quiet "$container" "$TMPDIR/base.tar" /
  rm -f "$TMPDIR/base.tar"
  logged base buildah commit --quiet --rm "$container" "$base"
}

# build_target LOG TARGET TAG [OPTION...]
build_target() {
  local log=$1 target=$2 tag=$3
  shift 3
  logged "$log" buildah build --layers --network host --target "$target" "$@" \
    --build-arg "BASE=$base" --build-arg "SLURM_VERSION=$tag" --build-arg "APT_OPTIONS=$IMAGES_APT_OPTIONS" \
    --file "$context/Containerfile" "$context"
}

# add_to_layout LOG LAYOUT IMAGE: put an image into an OCI layout, where images share their layers.
# Not compressed: `buildah push oci:` always compresses, which takes longer than all else, and the archive never travels.
add_to_layout() {
  local log=$1 layout=$2 image=$3 copy=$2.image digest size blob
  logged "$log" buildah push --disable-compression --format oci "$image" "dir:$copy"
  digest=$(sha256sum < "$copy/manifest.json" | cut -c 1-64)
  size=$(stat --format %s "$copy/manifest.json")
  mkdir -p "$layout/blobs/sha256"
  mv "$copy/manifest.json" "$layout/blobs/sha256/$digest"
  for blob in "$copy"/*; do
    # The rest are blobs, named by their digests, and a file with the layout's version.
    if [[ $(basename "$blob") =~ ^[0-9a-f]{64}$ ]]; then
      mv "$blob" "$layout/blobs/sha256/"
    fi
  done
  rm -rf "$copy"
  printf '{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}\n' \
    "$digest" "$size" "$image" >> "$layout.manifests"
}

# build_group NAME TAG TARGET...: build the targets and put them into one archive.
build_group() {
  local name=$1 tag=$2 archive target image layout
  shift 2
  archive=$(archive_of "$name")
  layout=$TMPDIR/$name
  rm -rf "$layout" "$layout".*
  for target; do
    image=$IMAGES_REGISTRY/$target:$tag
    progress "$image"
    build_target "$name" "$target" "$tag" --tag "$image"
  done
  progress "archive of $name"
  for target; do
    image=$IMAGES_REGISTRY/$target:$tag
    add_to_layout "$name" "$layout" "$image"
    if [[ $IMAGES_PUSH == true ]]; then
      progress "push of $image"
      logged "$name" buildah push "$image" "docker://$image"
    fi
  done
  echo '{"imageLayoutVersion":"1.0.0"}' > "$layout/oci-layout"
  printf '{"schemaVersion":2,"manifests":[%s]}\n' "$(paste -sd , "$layout.manifests")" > "$layout/index.json"
  tar -C "$layout" -cf "$layout.tar" .
  mv "$layout.tar" "$archive"
  rm -rf "$layout" "$layout.manifests"
  if [[ $IMAGES_PUSH == true ]]; then
    touch "${archive%.tar}.pushed"
  fi
  echo "$archive"
}

is_missing() {
  local archive
  archive=$(archive_of "$1")
  [[ ! -f $archive ]] || [[ $IMAGES_PUSH == true && ! -f ${archive%.tar}.pushed ]]
}

# Compiler's stage, services and operator; the other lane is Slurm's stage, which takes as long.
build_beside_slurm() {
  local version
  for version; do
    build_target "nss-$version" nss "$version"
  done
  if is_missing services; then
    build_group services "$service_tag" "${service_targets[@]}"
  fi
  if is_missing operator; then
    build_group operator "$(version_of_collection)" "${operator_targets[@]}"
  fi
}

# A copy to build from, readable for everybody, whatever the umask of the checkout was.
take_collection() {
  mkdir -p "$1"
  (cd "$collection" && files_of_collection | xargs -0 cp --parents --target-directory "$1")
  chmod -R u=rwX,go=rX "$1"
  collection=$1
}

build() {
  local version versions=() beside failed=0
  mkdir -p "$IMAGES_DIRECTORY/log"
  # One build at a time in one cache; whoever waited finds the work done.
  exec 9> "$IMAGES_DIRECTORY/lock"
  flock 9
  rm -f "$IMAGES_DIRECTORY"/log/*
  install_tools
  prepare_storage
  # A file that is changed now is not to give its hash to what was built before the change.
  cp -r "$context" "$TMPDIR/context"
  context=$TMPDIR/context
  take_collection "$context/collections/ansible_collections/slurm_ops/kubernetes"
  for version in $IMAGES_VERSIONS; do
    if is_missing "slurm-$version"; then
      versions+=("$version")
    fi
  done
  base=$IMAGES_BASE
  [[ -n $base ]] || make_base
  # Two builds at the same time must not have a step in common: both would make it, and what is made of the one is then
  # not found by who starts from the other, so that the images would not share their layers.
  build_target debian debian none
  build_beside_slurm "${versions[@]}" &
  beside=$!
  for version in "${versions[@]}"; do
    progress "Slurm $version"
    build_target "slurm-$version" slurm "$version" || failed=1
  done
  wait "$beside" || failed=1
  if ((failed)); then
    return 1
  fi
  for version in "${versions[@]}"; do
    build_group "slurm-$version" "$version" "${slurm_targets[@]}"
  done
  # Archives of other inputs; today's may be another checkout's. Those of operator are many, and quickly made.
  list | xargs touch --no-create
  find "$IMAGES_DIRECTORY" -maxdepth 1 \( -name '*.tar' -o -name '*.pushed' \) \
    \( -mtime +0 -o -name 'operator-*' -mmin +60 \) -delete
}

case ${1:-} in
  list) list ;;
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
