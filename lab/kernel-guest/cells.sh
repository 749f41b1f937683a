# Commits beside a flood that a guard holds by its cgroup's own limits, one cell after another: commits and bulk writer each
# buffered or O_DIRECT, one thread and eight. Run inside the guest; lab/kernel-guest/cells reads what it leaves.
# shellcheck shell=sh
# shellcheck disable=SC2154 # private.sh says guard and flood

# watched NAME : each second the disk's writes and sectors, the bulk writer's processor time, writes and bytes, and its limits.
watched() {
  while [ ! -e /tmp/end ]; do
    echo "$(cut -d' ' -f1 /proc/uptime) $(awk '{print $5, $7}' /sys/block/vda/stat)" \
      "$(cd "$(bulk_group)" 2>/dev/null && cat cpu.stat io.stat memory.high io.max memory.current | grep -v "user_usec\|system_usec\|nr_" | tr '\n' ' ')" \
      "$(head -n 1 /proc/stat)"
    sleep 1
  done >"/out/$1.disk"
}

# cell NAME THREADS COMMIT_OPTION DD_OPTION : commits for half a minute, and a flood from their fifth second on.
cell() {
  rm -f /tmp/end
  watched "$1" &
  watching=$!
  (cd /mnt && weir fileio --file-num=1 --threads="$2" --file-total-size=96M --file-fsync-all=on --file-test-mode=rndwr \
    --file-block-size=16384 --time=30 --report-interval=1 "$3" run) >"/out/$1.commits" 2>&1 &
  committing=$!
  sleep 5
  cut -d' ' -f1 /proc/uptime >"/out/$1.flood"
  weir guard exec -- sh -c "while :; do dd if=/dev/zero of=/mnt/dump bs=1M count=400 conv=notrunc $4 2>/dev/null; done" >/dev/null 2>&1 &
  flooding=$!
  wait "$committing"
  touch /tmp/end
  wait "$watching"
  kill -TERM "$flooding"
  for bulk in /sys/fs/cgroup/weir-exec-*; do echo 1 >"$bulk/cgroup.kill"; done 2>/dev/null
  wait "$flooding"
  # The next flood's pages are to be its own, not this one's.
  rm -f /mnt/dump
  sync
}

scenario_cells() { # commits beside a flood held by private limits; arg=FS or FS,buffered or FS,direct (the bulk writer)
  mounted "${1%,*}" /dev/vda
  mkdir /sys/fs/cgroup/db
  echo $$ >/sys/fs/cgroup/db/cgroup.procs
  dd if=/dev/zero of=/mnt/test_file.0 bs=1M count=96 2>/dev/null
  sync
  held_by cells
  for bulk_way in buffered direct; do
    case $1 in *,*) [ "${1#*,}" = $bulk_way ] || continue ;; esac
    dd_option=$([ $bulk_way = direct ] && echo oflag=direct)
    for commit_way in buffered direct; do
      [ "$bulk_way $commit_way" != "direct direct" ] || continue
      commit_option=--file-extra-flags=$([ $commit_way = direct ] && echo direct)
      for threads in 1 8; do cell "cell-$commit_way-$bulk_way-t$threads" $threads "$commit_option" "$dd_option"; done
    done
  done
  kill -TERM "$guard"
  wait "$guard"
  umount /mnt
}

# fails_begin : commits by two threads, for as long as the scenario lasts.
fails_begin() {
  mounted xfs /dev/vda
  mkdir /sys/fs/cgroup/db
  echo $$ >/sys/fs/cgroup/db/cgroup.procs
  dd if=/dev/zero of=/mnt/test_file.0 bs=1M count=96 2>/dev/null
  sync
  (cd /mnt && timeout 240 weir fileio --file-num=1 --threads=2 --file-total-size=96M --file-fsync-all=on --file-test-mode=rndwr \
    --file-block-size=16384 --time=230 run) >/out/fails.commits 2>&1 &
  committing=$!
}

stays_at() { [ "$(cat "$(bulk_group)/memory.high")" = "$1" ]; }

scenario_private_fails() { # however a guard ends or is interfered with, memory.high and io.max are as before
  fails_begin
  held_by fails-hang
  sleep 3
  flooded
  run private-fails-held until_true 20 is_held
  # It hangs: its guardian process restores the limits.
  kill -STOP "$guard"
  run private-fails-hang until_true 60 is_not_held
  kill -KILL "$guard"
  wait "$guard"
  held_by fails-restart
  run private-fails-restart until_true 30 is_held
  # As a service manager does that applies its properties anew: held again after some seconds.
  echo max >"$(bulk_group)/memory.high"
  run private-fails-reload until_true 20 is_held
  # Another value is another program's, and stays.
  echo 123457536 >"$(bulk_group)/memory.high"
  sleep 8
  run private-fails-others stays_at 123457536
  kill -TERM "$guard"
  wait "$guard"
  run private-fails-others-still stays_at 123457536
  echo max >"$(bulk_group)/memory.high"
  # The cgroup goes while it is held.
  held_by fails-gone
  run private-fails-held-again until_true 30 is_held
  kill -TERM "$flood"
  wait "$flood"
  run private-fails-removed sh -c '! ls -d /sys/fs/cgroup/weir-exec-*'
  sleep 3
  run private-fails-goes-on weir guard status
  # The guard and its guardian process, both at once: what is left says what to restore.
  flooded
  run private-fails-held-third until_true 30 is_held
  pkill -KILL -x weir-guardian 2>/dev/null
  for process in $(pidof weir); do [ "$process" = "$flood" ] || grep -q fileio "/proc/$process/cmdline" || kill -KILL "$process"; done
  sleep 1
  run private-fails-both-before is_held
  run private-fails-rollback weir knobs rollback --stale
  run private-fails-both is_not_held
  kill -TERM "$flood"
  wait "$flood"
  # As a new user would.
  run private-exec-ok weir guard exec -- dd if=/dev/zero of=/mnt/dump bs=1M count=100
  run private-exec-code sh -c 'weir guard exec -- sh -c "exit 7"; [ $? = 7 ]'
  run private-exec-none sh -c 'weir guard exec -- no-such-command; echo "code $?"'
  run private-exec-nothing sh -c 'weir guard exec; echo "code $?"'
  run private-exec-slice weir guard exec --slice backups -- sh -c 'grep backups /proc/self/cgroup'
  run private-exec-int sh -c 'weir guard exec -- sleep 60 & sleep 2; kill -INT $!; wait $!; echo "code $?"'
  adduser -D -H someone 2>/dev/null || echo 'someone:x:1000:1000::/:/bin/sh' >>/etc/passwd
  run private-exec-user su someone -c 'weir guard exec -- sh -c "echo ran"'
  kill "$committing"
  wait "$committing"
  umount /mnt
}
