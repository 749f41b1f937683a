# What of weir runs on this kernel. Run inside the guest; the host judges what it leaves (lab/kernel-guest/verify).
# shellcheck shell=sh
# Every run of weir leaves /out/NAME.out, NAME.err and NAME.code; oplog's logs are /out/*.ops.

# run NAME COMMAND… : runs it and keeps what it said; never fails itself.
run() {
  name=$1
  shift
  echo "$*" >"/out/$name.command"
  "$@" >"/out/$name.out" 2>"/out/$name.err"
  echo $? >"/out/$name.code"
}

# beside NAME COMMAND… : runs it in the background and waits until it has said something: then it measures.
beside() {
  run "$@" &
  running=$!
  tries=0
  while [ ! -s "/out/$1.out" ] && [ $tries -lt 300 ] && kill -0 $running 2>/dev/null; do
    sleep 0.1
    tries=$((tries + 1))
  done
}

# load NAME DEVICE : reads one at a time, then writes eight at a time.
load() {
  oplog direct "/dev/$2" read 200 4096 1 random 67108864 >"/out/$1.ops"
  oplog direct "/dev/$2" write 400 16384 8 random 67108864 >>"/out/$1.ops"
}

# The block layer's counts are then those of the application.
without_merges() {
  scheduler "$1" mq-deadline
  echo 2 >"/sys/block/$1/queue/nomerges"
}

scenario_check_live() { # weir trace live from all of its sources; load begins and ends while it measures
  without_merges vda
  for source in bpf tracefs diskstats; do
    beside live-$source weir trace live -d vda --source $source --interval 1s --duration 7s --json
    load live-$source vda
    wait $running
  done
  beside live-detail weir trace live -d vda --source bpf --detail --slow 1us --interval 1s --duration 7s --json
  load live-detail vda
  wait $running
  mkdir /sys/fs/cgroup/load
  beside live-cgroup weir trace live -d vda --source bpf --cgroup /sys/fs/cgroup/load --duration 7s --json
  oplog direct /dev/vda write 100 4096 1 random 67108864 >/dev/null
  sh -c 'echo $$ >/sys/fs/cgroup/load/cgroup.procs; exec oplog direct /dev/vda read 200 4096 1 random 67108864' >/out/live-cgroup.ops
  wait $running
  # Somebody must keep it busy for a %util.
  oplog direct /dev/vda read 4000 4096 4 random 67108864 >/out/util.ops &
  run util weir trace util vda --duration 2s --format json
  wait $!
  beside live-text weir trace live -d vda --interval 1s --duration 4s
  load live-text vda
  wait $running
}

scenario_check_record() { # weir trace record from all of its sources, read back by weir and by blkparse
  without_merges vda
  run record-auto weir trace record -d vda --out /tmp/record-auto.weirtrace -- true
  for source in bpf ftrace relay; do
    run record-$source weir trace record -d vda --source $source --out /out/record-$source.weirtrace -- \
      sh -c ". /checks.sh; load record-$source vda"
    # A kernel may lack the source; what it says then is judged, and there is nothing to read.
    [ "$(cat /out/record-$source.code)" = 0 ] || continue
    run record-$source-read weir trace read /out/record-$source.weirtrace --format json
    run record-$source-blktrace weir trace record -d vda --source $source --blktrace --out /out/genuine-$source -- \
      sh -c ". /checks.sh; load record-$source-blktrace vda"
    run record-$source-blktrace-read weir trace read /out/genuine-$source --format json
    run blkparse-$source blkparse -q -a complete -f '%d %S %n\n' -i /out/genuine-$source
  done
}

mounted() {
  modprobe "$1"
  case $1 in
    ext4) mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$2" ;;
    xfs) mkfs.xfs -q -f "$2" ;;
    btrfs) mkfs.btrfs -q -f "$2" ;;
  esac
  mount -t "$1" "$2" /mnt
  sync
}

# synced FS HOW FOLDER : what weir says of syncs on it.
synced() {
  run "fsync-$1-$2" weir trace fsync --json -- \
    sh -c "exec oplog commit ${3:-/mnt}/data 30 4096 4194304 $2 >/out/fsync-$1-$2.ops"
}

# overlaid : /tmp/merged, whose files are made on /mnt, as those of a container without a volume.
overlaid() {
  modprobe overlay
  mkdir -p /mnt/upper /mnt/work /tmp/lower /tmp/merged
  mount -t overlay overlay -o lowerdir=/tmp/lower,upperdir=/mnt/upper,workdir=/mnt/work /tmp/merged
}

scenario_check_fsync() { # weir trace fsync on ext4, xfs, btrfs and overlayfs: every sync, all of its time
  mounted ext4 /dev/vda
  for how in fsync fdatasync dsync; do synced ext4 $how; done
  run fsync-ext4-text weir trace fsync -- oplog commit /mnt/data 10 4096 4194304 fsync
  umount /mnt
  mounted xfs /dev/vda
  synced xfs fdatasync
  overlaid
  synced overlay fdatasync /tmp/merged
  umount /tmp/merged
  umount /mnt
  mounted btrfs /dev/vda
  synced btrfs fsync
  umount /mnt
}

scenario_check_flood() { # who causes the wait: commits beside a flood, on a disk throttled by the host
  echo 4194304 >/proc/sys/vm/dirty_background_bytes
  echo 33554432 >/proc/sys/vm/dirty_bytes
  for fs in ext4 xfs; do
    mounted $fs /dev/vda
    oplog flood /mnt/flood 30 >/tmp/flood &
    flood=$!
    sleep 5
    run flood-$fs weir trace fsync --json -- \
      sh -c "exec oplog commit /mnt/data 8 4096 4194304 fdatasync >/out/flood-$fs.ops"
    wait $flood
    umount /mnt
  done
}

scenario_check_doctor() { # weir doctor --quick, with size=3G: it leaves a GiB free
  mounted ext4 /dev/vda
  run doctor weir doctor --quick --size 16M --json /mnt
  umount /mnt
}

# settings NAME : the dirty limits, the disk's share of them where the kernel has one, and its queue, to compare.
settings() {
  for file in /proc/sys/vm/dirty_* /sys/block/vda/bdi/strict_limit /sys/block/vda/bdi/max_ratio_fine \
    /sys/block/vda/queue/nr_requests /sys/block/vda/queue/read_ahead_kb /sys/block/vda/queue/scheduler; do
    [ ! -e "$file" ] || cat "$file"
  done >"/out/$1.settings"
}

# killed FILE… : for each a change with a term, whose process gets SIGKILL as soon as the file shows it; all must go back,
# long before the term where the change was not whole.
killed() {
  for file; do
    # By the shell alone, which takes no time; of a number under /proc/sys it gets the first digit.
    read -r was <"$file"
    weir knobs apply vm.dirty_bytes=15MB vm.dirty_background_bytes=7MB vda/nr_requests=32 vda/read_ahead_kb=64 \
      --confirm-within 8s >/dev/null 2>&1 &
    applying=$! now=$was
    while [ "$now" = "$was" ] && kill -0 $applying 2>/dev/null; do read -r now <"$file"; done
    kill -KILL $applying 2>/dev/null
    wait $applying
    echo "$file: $was, then $now; its process ended with $?"
    until_true 30 is_as "knobs-before" || return 1
  done
}

# is_as NAME : whether the settings are those kept under that name.
is_as() { settings now && cmp "/out/$1.settings" /out/now.settings; }

scenario_check_knobs() { # a change taken back, one that nobody confirms, and some whose process is killed in the midst of them
  settings knobs-before
  run knobs-apply weir knobs apply vm.dirty_bytes=15MB vm.dirty_background_bytes=7MB vda/nr_requests=32
  settings knobs-applied
  run knobs-rollback weir knobs rollback --all
  settings knobs-rolled
  run knobs-unconfirmed weir knobs apply vm.dirty_bytes=15MB --confirm-within 2s
  sleep 6
  settings knobs-gone
  run knobs-killed killed /proc/sys/vm/dirty_background_bytes /proc/sys/vm/dirty_bytes \
    /sys/block/vda/queue/nr_requests /sys/block/vda/queue/read_ahead_kb
  run knobs-journal weir knobs journal
}

# until_true SECONDS COMMAND… : repeats it until it succeeds; fails when the time is over.
until_true() {
  left=$1
  shift
  while ! "$@" >/dev/null 2>&1; do
    [ "$left" -gt 0 ] || return 1
    left=$((left - 1))
    sleep 1
  done
}

is_holding() {
  weir guard status --json >/tmp/state && grep -q '"mood": *"holding"' /tmp/state && grep -q '"bulk_active": *true' /tmp/state
}

scenario_check_guard() { # a guarded flood, with disk=throttling…: it sees syncs, turns a limit, and leads it back when killed
  mounted ext4 /dev/vda
  settings guard-before
  weir guard run /mnt --no-history --log /out/guard.log --json >/out/guard.summary 2>/out/guard.said &
  guard=$!
  until_true 30 weir guard status
  oplog commit /mnt/ring 30 4096 1048576 ring >/out/guard-ring.ops
  sleep 2
  run guard-ring weir guard status --json
  oplog commit /mnt/data 100000 4096 4194304 fdatasync >/dev/null &
  commits=$!
  sleep 8
  oplog flood /mnt/flood 60 &
  flood=$!
  run guard-holds until_true 60 is_holding
  settings guard-held
  run guard-status weir guard status --json
  kill -KILL $guard
  run guard-led-back until_true 30 is_as guard-before
  kill $flood $commits
  wait
  umount /mnt
}

# recorded LEAST : whether the archive holds so many intervals.
recorded() { [ "$(weir recorder show --dir /tmp/archive --since 1h --json | sed -n 's/^  "intervals": \([0-9]*\),$/\1/p')" -ge "$1" ]; }

scenario_check_recorder() { # commits, then a flood beside them, with disk=throttling…: the recorder names the flood, and its archive is read
  echo 4194304 >/proc/sys/vm/dirty_background_bytes
  echo 33554432 >/proc/sys/vm/dirty_bytes
  mounted ext4 /dev/vda
  weir recorder run --dir /tmp/archive --interval 1s --slow 50ms >/out/recorder.summary 2>/out/recorder.said &
  recorder=$!
  (cd /mnt && weir fileio --file-num=1 --file-total-size=4M prepare) >/dev/null
  (cd /mnt && exec timeout 150 weir fileio --file-num=1 --file-total-size=4M --file-fsync-all=on --file-test-mode=rndwr \
    --file-block-size=4096 --time=100 run) >/out/recorder.fileio &
  commits=$!
  run recorder-begins until_true 90 recorded 30
  oplog flood /mnt/flood 20
  run recorder-snap weir recorder snap --dir /tmp/archive --last 10s --json
  cp "$(sed -n 's/^  "file": "\(.*\)",$/\1/p' /out/recorder-snap.out)" /out/recorder-snap.json
  kill -TERM $recorder
  wait $recorder
  run recorder-show weir recorder show --dir /tmp/archive --since 1h --json
  run recorder-export weir recorder export syncs --dir /tmp/archive --since 1h
  run recorder-list weir recorder list --dir /tmp/archive --json
  kill $commits
  wait $commits
  # What `timeout` started may end a moment after it.
  until_true 20 umount /mnt
}

# With gauntlet=yes time=1200 disk=throttling.iops-write=300,throttling.bps-write=25000000,cache.no-flush=on.
scenario_guard() { # the gauntlet on a disk with a request queue, throttled below it; arg=WHAT,IS,COMPARED
  modprobe bfq
  mounted xfs /dev/vda
  run guard python3 /repository/bench/guard/gauntlet --here /mnt --write-iops 300 --write-bps 25000000 --size 900 --quick \
    --weir /bin/weir --json /out/guard.json --modes buffered --limits "${1:-default,15MB,bfq,wbt,guard}"
  cat /out/guard.out /out/guard.err
}

# With gauntlet=yes size=2G time=1200 disk=throttling.iops-write=400,throttling.bps-write=40000000,cache.no-flush=on.
scenario_gauntlet() { # cells drawn at random, bulk in a cgroup of its own; arg=OPTIONS;OF;THE;GAUNTLET
  mkdir /sys/fs/cgroup/db
  echo $$ >/sys/fs/cgroup/db/cgroup.procs
  # shellcheck disable=SC2046
  run gauntlet python3 /repository/bench/guard/gauntlet --disk /dev/vda --write-iops 400 --write-bps 40000000 --size 1500 --quick \
    --bulk-in exec --weir /bin/weir --json /out/gauntlet.json $(echo "$1" | tr ';' ' ')
  cat /out/gauntlet.out /out/gauntlet.err
}

# With gauntlet=yes clock=virtual memory=4000 time=7200. FOLDER/gauntlet.err grows as it measures.
scenario_drawn_cells() { # cells drawn at random on disks of their own speeds, in memory; arg=OPTIONS;OF;THE;GAUNTLET
  mkdir /sys/fs/cgroup/db
  echo $$ >/sys/fs/cgroup/db/cgroup.procs
  echo "+cpu +io +memory" >/sys/fs/cgroup/cgroup.subtree_control
  modprobe nbd nbds_max=1
  # shellcheck disable=SC2046
  python3 /repository/bench/guard/gauntlet --on slowdisk --size 1500 --quick --weir /bin/weir --json /out/gauntlet.json \
    --log /host/guard.log $(echo "$1" | tr ';' ' ') 2>/host/gauntlet.err
}

scenario_tests() { # a test binary, tests=FILE; arg=NAME runs only those whose name holds it
  run tests tests --test-threads=1 --nocapture "$1"
}
