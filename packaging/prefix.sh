# What the two ways of installing below a prefix share. POSIX sh.
# shellcheck shell=sh

# only_ours FOLDER : refuses a folder, there or to be made, that another account than root and the caller can change, or change
# the way to: what is installed there is run by root.
only_ours() {
  ours_at=$1
  while [ ! -d "$ours_at" ]; do ours_at=$(dirname -- "$ours_at"); done
  ours_at=$(cd -P -- "$ours_at" && pwd) || exit 1
  while :; do
    # shellcheck disable=SC2046 # owner and mode are words; a group's name may be several
    set -- $(stat -c '%u %a' "$ours_at")
    ours_group=$(stat -c %G "$ours_at")
    case $1 in 0 | "$(id -u)") ;; *) ours_refused "belongs to another account" ;; esac
    # A folder that others may write to keeps their hands off what is not theirs only where it is sticky (1777).
    case $2 in 1???) ;; *[2367]) ours_refused "may be written to by everybody" ;; esac
    # Debian gives /usr/local to its group staff where the administrator wants that.
    case $ours_group-$2 in root-* | staff-* | *-1???) ;; *[2367]?) ours_refused "may be written to by the group $ours_group" ;; esac
    [ "$ours_at" != / ] || break
    ours_at=$(dirname -- "$ours_at")
  done
}
ours_refused() {
  echo "weir: nothing is changed: $ours_at $1, who could replace what root runs" >&2
  echo "hint: another prefix, as /usr/local or /opt/weir" >&2
  exit 1
}
