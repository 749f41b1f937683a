# What the scripts of every package do; scripts/packages puts it in front of each of them. POSIX sh, without other programs
# than a system has that has none of weir's needs: systemd may be absent (a container), or not run (an image).
# shellcheck shell=sh
set -e
units='weir-guard.service weir-recorder.service'
# Services that ran before an upgrade, to run again after it. Only root writes there.
were_running=/var/lib/weir/were-running
# The package's own program, whatever another of that name lies earlier in PATH or stands in the environment.
weir=/usr/bin/weir

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

# The program goes: nobody would know the old values of settings, nor which files it wrote.
undo_everything() {
  rm -f "$were_running"
  if command -v systemctl >/dev/null 2>&1; then
    for unit in $units; do
      if is_booted; then systemctl stop "$unit" 2>/dev/null || true; fi
      systemctl --quiet disable "$unit" 2>/dev/null || true
    done
  fi
  "$weir" guard uninstall >/dev/null || echo "weir: what \`weir guard install\` wrote was not all removed" >&2
  "$weir" recorder uninstall >/dev/null || echo "weir: what \`weir recorder install\` wrote was not all removed" >&2
  # Without a setting to restore it says so, and that is no failure.
  "$weir" knobs rollback --stale >/dev/null 2>&1 || true
  "$weir" knobs rollback --all >/dev/null 2>&1 || echo "weir: not every setting was restored: see /var/lib/weir/journal" >&2
}

after_removal() {
  if is_booted; then systemctl daemon-reload || true; fi
  # The lock is all that an empty journal has.
  if [ "$(ls -A /var/lib/weir/journal 2>/dev/null)" = lock ]; then rm -f /var/lib/weir/journal/lock; fi
  # Folders without anything in them; records and archives stay.
  for folder in /var/lib/weir/journal /var/lib/weir/runs /var/lib/weir /run/weir /run/weir-recorder /etc/weir; do
    rmdir "$folder" 2>/dev/null || true
  done
}
