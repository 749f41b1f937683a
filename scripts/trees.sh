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
  local folder=$1 suite=$2 packages=$3 from
  shift 3
  from=$(mirror)
  [ -n "$from" ] || die "apt's sources on this machine name no archive of Debian's" "WEIR_MIRROR=URL names one"
  # A mirror's list may be older than its own validity.
  mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --include="$packages" "$@" \
    "$suite" "$folder" "deb [signed-by=$keyring_of_trees] $from $suite main" >"$folder.log" 2>&1 ||
    { tail -n 20 "$folder.log" >&2; die "$folder could not be made"; }
}

# tree_once FOLDER SUITE PACKAGE,… [OPTION…] : the same, made once: it has its name when it is whole.
tree_once() {
  local folder=$1 part
  shift
  [ ! -d "$folder" ] || return 0
  say "makes $folder (a minute or two)"
  mkdir -p "$(dirname "$folder")"
  part=$(mktemp -d "$folder.XXXXXX")
  # shellcheck disable=SC2064 # this tree's
  trap "rm -rf --one-file-system $(printf %q "$part") $(printf %q "$part.log")" EXIT
  debian_tree "$part" "$@"
  chmod 755 "$part"
  mv -T "$part" "$folder"
  rm -f "$part.log"
  trap - EXIT
}
