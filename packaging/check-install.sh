#!/bin/sh
# Installs into the oldest fresh Debian that runs what was built and that can be had, does the main job there, and installs
# the .deb as well.
#
#   check-install.sh <dir of the built files> <dir of the demo task> [suite...]
#
# Run from the repository's root, as root; `make check-install` does. Says "skipped" where there is no root user or no
# debootstrap; the test that it runs does the same in a bare directory in every `make test`.
set -eu

built=$1 demo=$2
shift 2
# Suites by age, and the C library of each.
[ "$#" -gt 0 ] || set -- buster:2.28 bullseye:2.31 bookworm:2.36 trixie:2.41
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

if [ "$(id -u)" != 0 ]; then
    echo "skipped: make check-install wants root, for debootstrap and chroot"
    exit 0
fi
if ! command -v debootstrap >/dev/null; then
    echo "skipped: make check-install wants debootstrap"
    exit 0
fi
if ! unshare -m sh -c 'mount --make-rprivate / && mount --rbind /proc /tmp' 2>/dev/null; then
    echo "skipped: make check-install wants to mount, which this root may not"
    exit 0
fi

wanted=$(LC_ALL=C readelf -V "$built/msprof" "$built/libmsprof_agent.so" "$demo/mlp_task" "$demo"/*.so |
    grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
for suite in "$@"; do
    name=${suite%%:*} has=${suite##*:}
    if [ "$(printf '%s\n' "$wanted" "$has" | sort -V | tail -n 1)" != "$has" ]; then
        echo "$name: has glibc $has, and what was built wants $wanted"
        continue
    fi
    # The registry keeps no suite for ever.
    if ! debootstrap --variant=minbase "$name" "$root" "$mirror" >"$root.log" 2>&1; then
        echo "$name: cannot be had: $(grep '^E:' "$root.log" | head -n 1)"
        rm -rf --one-file-system "$root" "$root.log"
        mkdir "$root"
        continue
    fi
    rm -f "$root.log"
    echo "$name: glibc $has, a fresh root with $(chroot "$root" dpkg-query -f '.\n' -W | wc -l) packages"
    for tool in cargo rustc gcc python3; do
        if chroot "$root" sh -c "command -v $tool" >/dev/null; then
            echo "check-install: $tool is in the fresh root: it proves nothing" >&2
            exit 1
        fi
    done
    MSPROF_TEST_ROOT=$root MSPROF_TEST_BUILT=$built MSPROF_TEST_DEMO=$demo cargo test --test fresh_root
    # The .deb finds what it depends on there, and leaves nothing behind.
    sh packaging/dist.sh "$built" "$(uname -m)" "$root/packages"
    # With a /proc that is gone with the shell: msprof asks there where it lies itself.
    unshare -m sh -ec 'mount --make-rprivate / && mount --rbind /proc "$0/proc" && exec chroot "$0" sh -ec "$1"' "$root" '
        dpkg -i /packages/*.deb >/dev/null
        /usr/bin/msprof --version | tee /packages/versions
        grep -q "^libmsprof_agent .*, /usr/lib/libmsprof_agent.so$" /packages/versions
        dpkg -V msprof-agent
        dpkg -P msprof-agent >/dev/null
        ! find /usr/bin /usr/lib /usr/include /usr/share | grep -i msprof
    '
    exit 0
done
echo "skipped: no fresh Debian can be had in which what was built could run"
