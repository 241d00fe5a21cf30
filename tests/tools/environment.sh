# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# Sourced by the scripts beside it. `prepare run|dev` makes sure that Python and its packages are there, in the user's
# cache and never in the checkout, and exports what Ansible needs to find this checkout as slurm_ops.kubernetes.
#
# There is no ansible.cfg at the top on purpose: it would change what a user's own playbooks see when the checkout is an
# AWX project, and it cannot name the cache.

SLURM_OPS_CHECKOUT=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
SLURM_OPS_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/slurm_ops.kubernetes
# One machine may hold several checkouts; what belongs to this one carries its mark.
SLURM_OPS_MARK=$(printf '%s' "$SLURM_OPS_CHECKOUT" | sha256sum | cut -c1-12)
export HOME SLURM_OPS_CHECKOUT SLURM_OPS_CACHE SLURM_OPS_MARK

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$*"
    exit 2
}

# as_root REASON COMMAND...: runs it as it is for root, through sudo for others after saying what it is for.
as_root() {
    local reason=$1
    shift
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
        return
    fi
    command -v sudo >/dev/null || die "Root is needed $reason, and there is no sudo. Run as root: $*"
    say "Root is needed $reason; using sudo."
    sudo -- "$@"
}

# Debian and Ubuntu packages, only when something is missing; REASON is told first.
install_packages() {
    local reason=$1
    shift
    command -v apt-get >/dev/null || die "Missing $reason. Install what your distribution has for: $*"
    say "Installing the Debian package(s) $* $reason."
    # shellcheck disable=SC2016  # The inner shell expands it.
    as_root "to install packages" env DEBIAN_FRONTEND=noninteractive sh -c '
        log=$(mktemp)
        { apt-get install -y --no-install-recommends "$@" ||
          { apt-get update && apt-get install -y --no-install-recommends "$@"; }; } >"$log" 2>&1 ||
          { cat "$log" >&2; exit 1; }
        rm -f "$log"' sh "$@" || die "apt-get could not install $*."
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# PYTHON names an interpreter; else the first that is new enough.
find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" || die "PYTHON=$PYTHON is not a Python of 3.11 or newer."
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if is_new_enough "$candidate"; then
            PYTHON=$candidate
            return
        fi
    done
    # Ubuntu 22.04: its python3 is 3.10, but it also packages this one.
    install_packages "because Python 3.11 or newer is needed" python3.11 python3.11-venv
    PYTHON=python3.11
    is_new_enough "$PYTHON" || die "No Python of 3.11 or newer found; set PYTHON to one."
}

# The name says all that decides the content, so a change of pins makes a new one and nothing is upgraded in place.
venv_path() { # run|dev
    local version
    version=$("$PYTHON" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
    printf '%s/venv-%s-%s\n' "$SLURM_OPS_CACHE" "$1" "$(
        { echo "$version"; cat "$SLURM_OPS_CHECKOUT"/requirements-{run,dev,constraints}.txt; } | sha256sum | cut -c1-12
    )"
}

make_venv() { # run|dev PATH
    (
        # Two targets started at once build it once.
        flock 9
        [ -e "$2/.complete" ] && exit 0
        if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
            install_packages "because Python's venv module is missing" \
                "$("$PYTHON" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
        fi
        say "Installing Python packages into $2 (once, about a minute) ..."
        rm -rf -- "$2"
        "$PYTHON" -m venv "$2" || exit 1
        "$2/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
            -r "$SLURM_OPS_CHECKOUT/requirements-$1.txt" || exit 1
        touch "$2/.complete"
    ) 9>"$2.lock" || die "Could not make the Python environment $2."
}

prepare() { # run|dev
    local tree
    mkdir -p -- "$SLURM_OPS_CACHE"
    find_python
    venv=$(venv_path "$1")
    if [ "$1" = run ] && [ -e "$(venv_path dev)/.complete" ]; then
        venv=$(venv_path dev) # has all of it
    fi
    [ -e "$venv/.complete" ] || make_venv "$1" "$venv"

    tree=$SLURM_OPS_CACHE/collections-$SLURM_OPS_MARK
    mkdir -p -- "$tree/ansible_collections/slurm_ops"
    if [ "$(readlink -- "$tree/ansible_collections/slurm_ops/kubernetes")" != "$SLURM_OPS_CHECKOUT" ]; then
        ln -sfn -- "$SLURM_OPS_CHECKOUT" "$tree/ansible_collections/slurm_ops/kubernetes"
    fi

    export SLURM_OPS_COLLECTIONS=$tree
    export PATH=$venv/bin:$PATH
    export ANSIBLE_COLLECTIONS_PATH=$tree ANSIBLE_HOME=$SLURM_OPS_CACHE/ansible ANSIBLE_CONFIG=$SLURM_OPS_CHECKOUT/tests/tools/ansible.cfg
    export ANSIBLE_CALLBACKS_ENABLED=slurm_ops.kubernetes.progress PYTHONDONTWRITEBYTECODE=1
    unset ANSIBLE_STDOUT_CALLBACK ANSIBLE_INVENTORY ANSIBLE_STRATEGY ANSIBLE_ROLES_PATH
    # Ansible refuses to start in a locale without UTF-8, which is what cron, sudo and minimal images give.
    case "$(locale charmap 2>/dev/null)" in
        UTF-8) ;;
        *) export LC_ALL=C.UTF-8 ;;
    esac
}

has_given_cluster() { [ -n "${KUBECONFIG:-}${K8S_AUTH_KUBECONFIG:-}${K8S_AUTH_HOST:-}" ]; }

# sandbox NAME present|absent [ANSIBLE_ARGUMENT...]: a sandbox Kubernetes on this machine. Call `prepare` first.
sandbox() {
    local name settings=()
    # sudo forgets the environment; cache and settings must be the same. What root's Ansible keeps for itself must not
    # lie where the user's wants to write.
    for name in HOME LC_ALL PYTHONDONTWRITEBYTECODE "${!ANSIBLE_@}"; do
        [ -z "${!name:-}" ] || settings+=("$name=${!name}")
    done
    settings+=(PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" XDG_CACHE_HOME="${XDG_CACHE_HOME:-$HOME/.cache}")
    [ "$(id -u)" -eq 0 ] || settings+=(ANSIBLE_HOME="$SLURM_OPS_CACHE/ansible-root")
    as_root "for the sandbox's network namespaces, cgroups, mounts and the Debian packages that it is built from" \
        env "${settings[@]}" ansible-playbook "$SLURM_OPS_CHECKOUT/playbooks/sandbox.yml" \
        --extra-vars "sandbox_name=$1 sandbox_state=$2" "${@:3}"
}
