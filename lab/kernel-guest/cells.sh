# Commits beside a flood that a guard holds by its cgroup's own limits, one cell after another: commits and bulk writer each
# buffered or O_DIRECT, one thread and eight. Run inside the guest; lab/kernel-guest/cells reads what it leaves.
# shellcheck shell=sh

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
  wait $committing
  touch /tmp/end
  wait $watching
  kill -TERM $flooding
  for bulk in /sys/fs/cgroup/weir-exec-*; do echo 1 >"$bulk/cgroup.kill"; done 2>/dev/null
  wait $flooding
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
      commit_option=--file-extra-flags=$([ $commit_way = direct ] && echo direct)
      for threads in 1 8; do cell "cell-$commit_way-$bulk_way-t$threads" $threads "$commit_option" "$dd_option"; done
    done
  done
  kill -TERM $guard
  wait $guard
  umount /mnt
}
