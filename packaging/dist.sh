#!/bin/sh
# Packs what was built into a tarball and a Debian package, the same bytes from the same files.
#
#   dist.sh <dir of the built files> <x86_64 | aarch64> <dir for the packages>
#
# Run from the repository's root; `make dist` does. Times in the packages are SOURCE_DATE_EPOCH, else that of the last
# commit.
set -eu
umask 022

built=$1 arch=$2 out=$3
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
case $arch in
x86_64) machine=X86-64 deb_arch=amd64 ;;
aarch64) machine=AArch64 deb_arch=arm64 ;;
*)
    echo "dist: ARCH is x86_64 or aarch64, not \"$arch\"" >&2
    exit 2
    ;;
esac
for tool in readelf dpkg-deb; do
    command -v "$tool" >/dev/null || {
        echo "dist: $tool is missing (Debian packages binutils, dpkg)" >&2
        exit 1
    }
done
for file in libmsprof_agent.so msprof; do
    if ! LC_ALL=C readelf -h "$built/$file" | grep -q "Machine:.*$machine"; then
        echo "dist: $built/$file is no file for $arch; name another directory with DIST_FROM" >&2
        exit 1
    fi
done
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

# What programs ask of the C library, at least 2.17: older ones were not tried.
newest_glibc() {
    LC_ALL=C readelf -V "$@" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | { cat && echo 2.17; } | sort -Vu | tail -n 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

name=msprof-agent-$version-linux-$arch
make -s install BUILT="$built" DESTDIR="$work/tar" PREFIX="/$name"
tar -C "$work/tar" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    -cf - "$name" | gzip -9n >"$work/$name.tar.gz"
mv "$work/$name.tar.gz" "$out/$name.tar.gz"
echo "$out/$name.tar.gz"

if ! command -v dpkg-deb >/dev/null; then
    echo "dist: no .deb: there is no dpkg-deb" >&2
    exit 0
fi
stage=$work/deb
make -s install BUILT="$built" DESTDIR="$stage" PREFIX=/usr ZSH_DIR=/usr/share/zsh/vendor-completions
gzip -9n "$stage/usr/share/man/man1/msprof.1"
mv "$stage/usr/share/doc/msprof-agent/LICENSE" "$stage/usr/share/doc/msprof-agent/copyright"
depends="libc6 (>= $(newest_glibc "$built/libmsprof_agent.so" "$built/msprof"))"
if LC_ALL=C readelf -d "$built/libmsprof_agent.so" "$built/msprof" | grep -q 'NEEDED.*libgcc_s'; then
    depends="$depends, libgcc-s1 | libgcc1"
fi
# In KiB, each file and directory by itself, whatever the file system makes of them.
size=$(find "$stage" -type f -printf '%s\n' -o -printf '1024\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
mkdir "$stage/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$deb_arch/" -e "s/@DEPENDS@/$depends/" -e "s/@SIZE@/$size/" \
    packaging/debian/control.in >"$stage/DEBIAN/control"
echo "activate-noawait ldconfig" >"$stage/DEBIAN/triggers"
(cd "$stage" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$stage/DEBIAN/md5sums"
find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
deb=$out/msprof-agent_${version}_$deb_arch.deb
dpkg-deb --root-owner-group -Zxz --build "$stage" "$deb" >/dev/null
echo "$deb"
