# Private limits of a bulk writer's cgroup, on a throttled disk. Run inside the guest, with the functions of checks.sh.
# shellcheck shell=sh

# commits NAME THREADS SECONDS : weir's own fileio, 16 KiB and an fsync each.
commits() {
  (cd /mnt && run "$1" timeout 90 weir fileio --file-num=1 --threads="$2" --file-total-size=96M --file-fsync-all=on \
    --file-test-mode=rndwr --time="$3" --file-block-size=16384 run)
}

# written : sectors that the disk has taken.
written() { awk '{print $7}' /sys/block/vda/stat; }

# measured NAME THREADS SECONDS : commits, and in NAME.disk the bytes a second that the disk took meanwhile.
measured() {
  before=$(written) since=$(cut -d' ' -f1 /proc/uptime)
  commits "$@"
  echo "$(written) $before $(cut -d' ' -f1 /proc/uptime) $since" | awk '{print ($1 - $2) * 512 / ($3 - $4)}' >"/out/$1.disk"
}

bulk_group() { for bulk in /sys/fs/cgroup/weir-exec-*; do [ -e "$bulk/io.max" ] && echo "$bulk"; done; }
private_limits() { cat "$(bulk_group)/memory.high" "$(bulk_group)/io.max"; }
# is_strict 0|1 : whether the disk's share is counted strictly. Linux 6.1 has no such switch.
is_strict() { [ ! -e /sys/block/vda/bdi/strict_limit ] || [ "$(cat /sys/block/vda/bdi/strict_limit)" = "$1" ]; }
is_held() { ! grep -q max "$(bulk_group)/memory.high" && is_strict 1; }
is_not_held() { grep -q max "$(bulk_group)/memory.high" && ! grep -q "wbps=[0-9]" "$(bulk_group)/io.max" && is_strict 0; }

flooded() {
  weir guard exec -- sh -c 'trap "kill \$!; wait; exit 5" TERM; while :; do dd if=/dev/zero of=/mnt/dump bs=1M count=400 conv=notrunc 2>/dev/null & wait $!; done' \
    >/out/exec.out 2>/out/exec.said &
  flood=$!
}

held_by() {
  weir guard run /mnt --no-history --log "/out/$1.log" --json >"/out/$1.summary" 2>"/out/$1.said" &
  guard=$!
  until_true 30 weir guard status
}

scenario_check_private() { # a flood in a cgroup of its own: held by memory.high and io.max, which are led back; arg=FS
  mounted "${1:-xfs}" /dev/vda
  mkdir /sys/fs/cgroup/db
  echo $$ >/sys/fs/cgroup/db/cgroup.procs
  dd if=/dev/zero of=/mnt/test_file.0 bs=1M count=96 2>/dev/null
  sync
  held_by private-guard
  for threads in 1 8; do measured private-idle-t$threads $threads 12; done
  flooded
  sleep 2
  for threads in 1 8; do
    measured private-flood-t$threads $threads 25
    private_limits >"/out/private-flood-t$threads.limits"
  done
  run private-status weir guard status --json
  kill -TERM $guard
  wait $guard
  run private-back-term is_not_held
  held_by private-again
  commits private-more 1 40 &
  more=$!
  run private-holds-again until_true 40 is_held
  kill -KILL $guard
  run private-back-kill until_true 30 is_not_held
  wait $more
  # Without a guard, for comparison.
  measured private-alone-t1 1 8
  kill -TERM $flood
  wait $flood
  echo $? >/out/private-exec.code
  cp /out/exec.said /out/private-exec.out
  : >/out/private-exec.err
  run private-gone sh -c '! ls -d /sys/fs/cgroup/weir-exec-*'
  until_true 20 umount /mnt
}

has_quota() { ! grep -q "^max" "$(bulk_group)/cpu.max"; }
has_no_limits() { grep -q "^max 100000$" "$(bulk_group)/cpu.max" && is_not_held; }

scenario_check_quota() { # a flood over a file that another cgroup has in memory: held by cpu.max, which is led back; arg=FS
  mounted "${1:-xfs}" /dev/vda
  echo "+cpu +io +memory" >/sys/fs/cgroup/cgroup.subtree_control
  mkdir /sys/fs/cgroup/db /sys/fs/cgroup/reader
  echo $$ >/sys/fs/cgroup/db/cgroup.procs
  dd if=/dev/zero of=/mnt/test_file.0 bs=1M count=96 2>/dev/null
  sh -c 'echo 0 >/sys/fs/cgroup/reader/cgroup.procs; dd if=/dev/zero of=/mnt/dump bs=1M count=400 2>/dev/null'
  sync
  held_by quota-guard
  measured quota-idle-t2 2 12
  flooded
  (until_true 40 has_quota && touch /tmp/had_quota) &
  holds=$!
  measured quota-flood-t2 2 40
  wait $holds
  run quota-holds test -e /tmp/had_quota
  kill -KILL $guard
  run quota-back-kill until_true 30 has_no_limits
  kill -TERM $flood
  wait $flood
  until_true 20 umount /mnt
}

# A dump by cron, in the cgroup that a service of the system's would have; nobody tells the guard of it.
cron_begins() {
  mkdir -p /sys/fs/cgroup/system.slice/cron.service /crontabs
  # Without its account no job of it is begun.
  mkdir -p /etc
  echo root:x:0:0:root:/:/bin/sh >/etc/passwd
  echo "+io +memory" >/sys/fs/cgroup/cgroup.subtree_control
  echo "+io +memory" >/sys/fs/cgroup/system.slice/cgroup.subtree_control
  # Ten dumps of half a gigabyte, one after another.
  cat >/bin/dump <<'END'
#!/bin/sh
for dump in 1 2 3 4 5 6 7 8 9 10; do dd if=/dev/zero of=/mnt/dump bs=1M count=400 conv=notrunc 2>/dev/null; done
END
  chmod 755 /bin/dump
  echo '* * * * * [ -e /tmp/dumped ] || { touch /tmp/dumped; exec dump; }' >/crontabs/root
  sh -c 'echo $$ >/sys/fs/cgroup/system.slice/cron.service/cgroup.procs; exec busybox crond -f -c /crontabs' >/out/crond.out 2>&1 &
  cron=$!
}

scenario_private_cron() { # a dump by cron beside commits, and a guard with the service's defaults; arg=FS
  mounted "${1:-xfs}" /dev/vda
  mkdir /sys/fs/cgroup/db
  echo $$ >/sys/fs/cgroup/db/cgroup.procs
  dd if=/dev/zero of=/mnt/test_file.0 bs=1M count=96 2>/dev/null
  sync
  weir guard run --no-history --log /out/private-cron.log --json >/out/private-cron.summary 2>/out/private-cron.said &
  guard=$!
  until_true 30 weir guard status
  measured private-idle-t2 2 12
  cron_begins
  until_true 90 test -e /tmp/dumped
  measured private-flood-t2 2 40
  cat /sys/fs/cgroup/system.slice/cron.service/memory.high /sys/fs/cgroup/system.slice/cron.service/io.max >/out/private-flood-t2.limits
  kill -TERM "$guard"
  wait "$guard"
  run private-back-cron sh -c 'grep -q max /sys/fs/cgroup/system.slice/cron.service/memory.high && ! grep -q "wbps=[0-9]" /sys/fs/cgroup/system.slice/cron.service/io.max'
  run private-strict-cron is_strict 0
  kill "$cron"
  echo 1 >/sys/fs/cgroup/system.slice/cron.service/cgroup.kill
  until_true 20 umount /mnt
}
