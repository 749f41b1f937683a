# What the scripts of every package do; scripts/packages puts it in front of each of them. POSIX sh, without other programs
# than a system has that has none of weir's needs: systemd may be absent (a container), or not run (an image).
# shellcheck shell=sh
set -e
units='weir-guard.service weir-recorder.service'
# Services that ran before an upgrade, to run again after it. Only root writes there.
were_running=/var/lib/weir/were-running
# The package's own program, whatever another of that name lies earlier in PATH or stands in the environment.
weir=/usr/bin/weir
# Where the copy stands that is removed.
installed=/usr/bin/weir

is_booted() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; }

# Their end restores the limits that they set.
stop_services() {
  is_booted || return 0
  for unit in $units; do
    if systemctl --quiet is-active "$unit"; then
      mkdir -p /var/lib/weir
      echo "$unit" >>"$were_running"
      systemctl stop "$unit" || true
    fi
  done
}

start_services_again() {
  is_booted || return 0
  systemctl daemon-reload || true
  [ -f "$were_running" ] || return 0
  for unit in $units; do
    if grep -qxF "$unit" "$were_running"; then systemctl start "$unit" || true; fi
  done
  rm -f "$were_running"
  rmdir /var/lib/weir 2>/dev/null || true
}

# The program that a unit runs, of the files that systemd would take the first of.
program_of() {
  for folder in /etc/systemd/system /run/systemd/system /usr/local/lib/systemd/system /usr/lib/systemd/system /lib/systemd/system; do
    [ -f "$folder/$1" ] || continue
    sed -n 's/^ExecStart="\([^"]*\)" .*/\1/p; t; s/^ExecStart=\([^" ]*\) .*/\1/p' "$folder/$1" | head -n 1
    return
  done
}

# is_another PROGRAM : whether it is a copy of weir that stays.
is_another() { [ -n "$1" ] && [ "$1" != "$installed" ] && [ -x "$1" ]; }

# Another copy that a unit runs, if one does.
another_copy() {
  for unit in $units; do
    program=$(program_of "$unit")
    if is_another "$program"; then echo "$program"; return; fi
  done
}

# told COMMAND… : carries out what undoes something, and says what was undone, left or refused.
told() {
  told_code=0
  told_said=$("$@" 2>&1) || told_code=$?
  # Where nothing was to be undone, nothing is to be said.
  printf '%s\n' "$told_said" | grep -vE '^$|[Nn]othing (to|was)' | sed 's/^/weir: /' >&2 || true
  return $told_code
}

# The program $installed goes: nobody would know the old values of settings, nor which files it wrote. What another copy of
# weir runs or has in force stays that one's.
undo_everything() {
  # Who asked for the removal is not to undo anything by himself.
  unset SUDO_USER
  rm -f "$were_running"
  for unit in $units; do
    name=${unit#weir-}
    program=$(program_of "$unit")
    if is_another "$program"; then
      echo "weir: $unit stays, it runs $program" >&2
      continue
    fi
    if command -v systemctl >/dev/null 2>&1; then
      if is_booted; then systemctl stop "$unit" 2>/dev/null || true; fi
      systemctl --quiet disable "$unit" 2>/dev/null || true
    fi
    told "$weir" "${name%.service}" uninstall || echo "weir: what \`weir ${name%.service} install\` wrote was not all removed" >&2
  done
  # What ended processes have left behind is nobody's.
  "$weir" knobs rollback --stale >/dev/null 2>&1 || true
  another=$(another_copy)
  if [ -n "$another" ]; then
    echo "weir: settings stay as they are: \`$another knobs journal\` lists them" >&2
    return 0
  fi
  told "$weir" knobs rollback --all || echo "weir: not every setting was restored: see /var/lib/weir/journal" >&2
}

after_removal() {
  if is_booted; then systemctl daemon-reload || true; fi
  # The lock is all that an empty journal has.
  if [ "$(ls -A /var/lib/weir/journal 2>/dev/null)" = lock ]; then rm -f /var/lib/weir/journal/lock; fi
  # Folders without anything in them; records and archives stay.
  for folder in /var/lib/weir/journal /var/lib/weir/runs /var/lib/weir /run/weir /run/weir-recorder /run/weir-sandbox /etc/weir; do
    rmdir "$folder" 2>/dev/null || true
  done
}
