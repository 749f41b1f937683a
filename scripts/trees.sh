# Sourced by scripts that make trees: folders with a small Debian in them, by mmdebstrap, out of which programs run.
# shellcheck shell=bash

keyring_of_trees=/usr/share/keyrings/debian-archive-keyring.gpg
# shellcheck disable=SC2034
needs_of_trees=(mmdebstrap:mmdebstrap "$keyring_of_trees:debian-archive-keyring" flock:util-linux)

# Debian's archive of packages that are no security updates, as this machine's apt knows it; WEIR_MIRROR=URL names another.
mirror() {
  if [ -n "${WEIR_MIRROR:-}" ]; then echo "$WEIR_MIRROR"; return; fi
  # shellcheck disable=SC2016 # apt replaces them
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | awk '/\/debian\/?$/ { print; exit }'
}

# debian_tree FOLDER SUITE PACKAGE,… [OPTION…] : a tree with these packages in a folder that is not there yet; further
# options are mmdebstrap's. What it said is in FOLDER.log, and shown where it fails.
debian_tree() {
  local folder=$1 suite=$2 packages=$3 from options=()
  shift 3
  from=$(mirror)
  [ -n "$from" ] || die "apt's sources on this machine name no archive of Debian's" "WEIR_MIRROR=URL names one"
  # Unstable's lists are valid for a week, and a mirror's may be older. Those of the releases have no such date.
  [ "$suite" != sid ] || options=(--aptopt='Acquire::Check-Valid-Until "false"')
  mmdebstrap --variant=minbase --include="$packages" ${options[@]+"${options[@]}"} "$@" \
    "$suite" "$folder" "deb [signed-by=$keyring_of_trees] $from $suite main" >"$folder.log" 2>&1 ||
    { tail -n 20 "$folder.log" >&2; die "$folder could not be made"; }
}

# tree_once FOLDER SUITE PACKAGE,… [OPTION…] : the same, made once: it has its name when it is whole.
tree_once() {
  # One whose files were given to another account is no system.
  [ ! -d "$1" ] || [ "$(stat -c %u "$1")" = 0 ] || rm -rf --one-file-system "$1"
  [ ! -d "$1" ] || return 0
  say "makes $1 (a minute or two)"
  mkdir -p "$(dirname "$1")"
  # In a shell of its own, whose end is none of the caller's.
  (
    part=$(mktemp -d "$1.XXXXXX")
    trap 'rm -rf --one-file-system "$part" "$part.log"' EXIT
    debian_tree "$part" "${@:2}"
    chmod 755 "$part"
    mv -T "$part" "$1"
  )
}

# begin_emulation : programs of arm64 run in trees, by qemu-user, until end_emulation. The kernel learns of it only where it did
# not know (binfmt_misc), and opens qemu here (F), so that no tree needs it.
begin_emulation() {
  local binfmt=/proc/sys/fs/binfmt_misc magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  [ "$(uname -m)" != aarch64 ] || return 0
  install_packages "programs of arm64" qemu-aarch64-static:qemu-user-static arch-test:arch-test
  if [ ! -e $binfmt/status ]; then
    mount -t binfmt_misc binfmt_misc $binfmt || die "this kernel runs no programs of other machines (binfmt_misc)"
    emulation_is_mounted=yes
  fi
  if [ ! -e $binfmt/qemu-aarch64 ]; then
    printf '%s' ":qemu-aarch64:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >$binfmt/register
    emulation_is_told=yes
  fi
}
end_emulation() {
  [ -z "${emulation_is_told:-}" ] || echo -1 >/proc/sys/fs/binfmt_misc/qemu-aarch64
  [ -z "${emulation_is_mounted:-}" ] || umount /proc/sys/fs/binfmt_misc
  emulation_is_told='' emulation_is_mounted=''
}
