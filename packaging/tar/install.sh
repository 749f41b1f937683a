#!/bin/sh
# Copies the program, its manual pages, completions and documents to a folder, or removes exactly those.
#
#   install.sh [--remove] [PREFIX]     PREFIX: /usr/local
#
# No service is made: `weir guard install` and `weir recorder install` do that.
set -eu
remove=
if [ "${1:-}" = --remove ]; then remove=yes; shift; fi
prefix=${1:-/usr/local}
case $prefix in /*) ;; *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
cd "$(dirname "$0")"
# shellcheck source=packaging/prefix.sh
. ./prefix.sh
umask 022
only_ours "$prefix"
[ "$remove" ] || mkdir -p "$prefix"
[ -d "$prefix" ] || exit 0
# From here on without links, which somebody could turn meanwhile.
prefix=$(cd -P -- "$prefix" && pwd)
(cd files && find . -type d | sed 's|^\./||') | while read -r folder; do
  [ ! -d "$prefix/$folder" ] || only_ours "$prefix/$folder"
done
name=$(ls files/bin)
# Folders that an install made, in the order of making.
made=$prefix/share/doc/$name/.folders

if [ "$remove" ]; then
  if [ "$name" = weir ] && [ "$(id -u)" = 0 ] && [ -x "$prefix/bin/weir" ]; then
    # shellcheck source=packaging/hooks.sh
    . ./hooks.sh
    # Services and settings first, with this package's own program.
    weir=$PWD/files/bin/weir
    installed=$prefix/bin/weir
    undo_everything
    after_removal
  fi
  folders=$(sort -r "$made" 2>/dev/null || true)
  (cd files && find . -type f) | while read -r file; do rm -f "$prefix/$file"; done
  rm -f "$made"
  printf '%s\n' "$folders" | while read -r folder; do
    case $folder in *..*) continue ;; "$prefix"/*) ;; *) continue ;; esac
    if [ ! -d "$folder" ] || rmdir "$folder" 2>/dev/null; then continue; fi
    # The other program's files are in it, whose removal comes later.
    for other in "$prefix"/share/doc/weir*/.folders; do [ ! -e "$other" ] || echo "$folder" >>"$other"; done
  done
  exit
fi
list=$(mktemp)
trap 'rm -f "$list"' EXIT
(cd files && find . -type d | sed 's|^\./||') | sort | while read -r folder; do
  [ -d "$prefix/$folder" ] || { mkdir -p "$prefix/$folder" && echo "$prefix/$folder"; }
done >"$list"
(cd files && find . -type f) | while read -r file; do
  mode=644
  if [ -x "files/$file" ]; then mode=755; fi
  install -m "$mode" "files/$file" "$prefix/$file"
done
# A later install adds what it made, and forgets nothing.
cat "$list" >>"$made"
echo "installed: $prefix/bin/$name"
