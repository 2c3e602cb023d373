#!/bin/sh
# Puts one file where it is installed:
#
#   put.sh file <mode> <source> <target>       a copy
#   put.sh text <version> <source> <target>    a text with @VERSION@ replaced
#   put.sh link <path> <target>                a link to a path
#
# It is made beside its place and then moved there: a program that runs keeps the file that it has, there is one at any
# time, and what a link in its place leads to is left alone.
set -eu

kind=$1 what=$2
shift 2
for target; do :; done
dir=$(dirname "$target")
new=$dir/.$(basename "$target").new$$

# A directory that is there keeps its mode.
[ -d "$dir" ] || install -d -m 755 "$dir"
trap 'rm -f "$new"' EXIT
case $kind in
file) install -m "$what" "$1" "$new" ;;
text)
    install -m 644 /dev/null "$new"
    sed "s/@VERSION@/$what/" "$1" >"$new"
    ;;
link) ln -s "$what" "$new" ;;
esac
mv -fT "$new" "$target"
