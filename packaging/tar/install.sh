#!/bin/sh
# Copies weir, its manual pages, completions and documents to a folder, or removes exactly those.
#
#   install.sh [--remove] [PREFIX]     PREFIX: /usr/local
#
# No service is made: `weir guard install` and `weir recorder install` do that.
set -eu
remove=
if [ "${1:-}" = --remove ]; then remove=yes; shift; fi
prefix=${1:-/usr/local}
case $prefix in -*) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
cd "$(dirname "$0")"
if [ "$remove" ]; then
  if [ "$prefix" = /usr/local ] && [ "$(id -u)" = 0 ] && [ -x "$prefix/bin/weir" ]; then
    # Services and settings first, with the program that knows of them.
    "$prefix/bin/weir" guard uninstall
    "$prefix/bin/weir" recorder uninstall
    "$prefix/bin/weir" knobs rollback --all
  fi
  (cd files && find . ! -type d) | while read -r file; do rm -f "$prefix/$file"; done
  (cd files && find . -depth -type d -name weir) | while read -r folder; do
    find "$prefix/$folder" -depth -type d -exec rmdir {} \; 2>/dev/null || true
  done
  exit
fi
(cd files && find . -type d) | while read -r folder; do [ -d "$prefix/$folder" ] || install -d -m 755 "$prefix/$folder"; done
(cd files && find . -type f) | while read -r file; do
  mode=644
  if [ -x "files/$file" ]; then mode=755; fi
  install -m "$mode" "files/$file" "$prefix/$file"
done
echo "installed: $prefix/bin/weir"
