# What other ways than a guard keep of commits beside a bulk writer in a cgroup of its own, on a throttled disk. Run inside
# the guest, with the functions of checks.sh. Each line of /out/ways.tsv: way, threads, commits/s, device writes/s, device
# bytes/s, bulk writer's bytes/s (io.stat).
# shellcheck shell=sh

bulk=/sys/fs/cgroup/bulk

# bulk_begins FILE_FLAG : dd, over one file, in a cgroup of its own, until it is killed.
bulk_begins() {
  sh -c "echo 0 >$bulk/cgroup.procs; while :; do dd if=/dev/zero of=/mnt/dump bs=1M count=400 conv=notrunc $1 2>/dev/null; done" &
  sleep 3
}

bulk_ends() {
  echo 1 >$bulk/cgroup.kill
  wait
  sync
}

# disk : seconds, writes, bytes, and the bulk writer's bytes, so far.
disk() {
  awk -v now="$(cut -d' ' -f1 /proc/uptime)" -v bulk="$(sed -n 's/.* wbytes=\([0-9]*\).*/\1/p' $bulk/io.stat)" \
    '{print now, $5, $7 * 512, bulk + 0}' "/sys/block/${ways_disk:-vda}/stat"
}

# way NAME THREADS [OPTION] : commits of 16 KiB, an fsync each, for some seconds.
way() {
  before=$(disk)
  # shellcheck disable=SC2086 # no option is no word
  rate=$(cd /mnt && timeout 60 weir fileio --file-num=1 --threads="$2" --file-total-size=96M --file-fsync-all=on \
    --file-test-mode=rndwr --time="${ways_seconds:-6}" --file-block-size=16384 $3 run 2>/dev/null | awk '/writes\/s/{print $2}')
  echo "$before $(disk)" | awk -v way="$1" -v threads="$2" -v rate="$rate" -v OFS='\t' \
    '{s = $5 - $1; print way, threads, rate, ($6 - $2) / s, ($7 - $3) / s, ($8 - $4) / s}' >>/out/ways.tsv
}

# limited HIGH WBPS : the limits of the bulk writer's cgroup.
limited() {
  echo "$1" >$bulk/memory.high
  echo "$(cat /sys/block/vda/dev) wbps=$2" >$bulk/io.max
}

ways_begin() {
  mounted "$1" "/dev/${ways_disk:-vda}"
  echo "+io +memory" >/sys/fs/cgroup/cgroup.subtree_control
  mkdir $bulk /sys/fs/cgroup/db
  echo $$ >/sys/fs/cgroup/db/cgroup.procs
  dd if=/dev/zero of=/mnt/test_file.0 bs=1M count=96 2>/dev/null
  sync
  way idle 1
  way idle 8
}

# both NAME : one thread, and eight.
both() {
  way "$1" 1
  way "$1" 8
}

scenario_ways_limits() { # static memory.high and io.max of a bulk writer's cgroup; arg=FS
  ways_begin "${1:-xfs}"
  bulk_begins ""
  for way in 16M:max 24M:max 48M:max 24M:34000000 48M:30000000 48M:34000000 48M:37000000 96M:34000000; do
    limited ${way%:*} ${way#*:}
    sleep 1
    both "$way"
  done
  bulk_ends
  bulk_begins oflag=direct
  for way in 30000000 34000000 37000000; do
    limited max $way
    sleep 1
    both "direct:$way"
  done
  bulk_ends
  umount /mnt
}

# weighted NAME HIGH : one thread and eight beside a flood whose cgroup has this memory.high.
weighted() {
  limited "$2" max
  bulk_begins ""
  both "$1"
  bulk_ends
}

scenario_ways_others() { # io.weight by BFQ and by io.cost, io.latency, BFQ's idle class; each alone, and with memory.high; arg=FS
  ways_begin "${1:-xfs}"
  number=$(cat /sys/block/vda/dev)
  for high in max 24M; do
    weighted "none $high" $high
    # BFQ takes io.bfq.weight, and the classes of ionice.
    modprobe bfq
    echo bfq >/sys/block/vda/queue/scheduler
    for group in bulk db; do
      weight=$([ $group = bulk ] && echo 1 || echo 1000)
      for file in io.bfq.weight io.weight; do echo "default $weight" >/sys/fs/cgroup/$group/$file; done
    done 2>/dev/null
    weighted "bfq weight 1:1000 $high" $high
    echo mq-deadline >/sys/block/vda/queue/scheduler
    # A model of the device as it is; latency to be held as low as BFQ would.
    if echo "$number ctrl=user model=linear rbps=40000000 rseqiops=400 rrandiops=400 wbps=20000000 wseqiops=200 wrandiops=200" \
      >/sys/fs/cgroup/io.cost.model 2>/dev/null; then
      echo "$number enable=1 ctrl=user rpct=95.00 rlat=10000 wpct=95.00 wlat=20000 min=50.00 max=100.00" >/sys/fs/cgroup/io.cost.qos
      weighted "io.cost weight 1:1000 $high" $high
      echo "$number enable=0" >/sys/fs/cgroup/io.cost.qos
    fi
    if echo "$number target=10000" >/sys/fs/cgroup/db/io.latency 2>/dev/null; then
      weighted "io.latency 10 ms $high" $high
      echo "$number target=0" >/sys/fs/cgroup/db/io.latency
    fi
  done
  umount /mnt
}

# With clock=virtual memory=3000: a disk in memory, of 400 writes a second and 40 MB/s.
scenario_ways_quota() { # cpu.max of a bulk writer that rewrites a file whose pages count for another cgroup; arg=FS
  ways_disk=nbd0
  modprobe nbd nbds_max=1
  mkfifo /tmp/limits
  slowdisk /dev/nbd0 1000 500 </tmp/limits &
  exec 3>/tmp/limits
  echo "400 40000000" >&3
  sleep 2
  ways_begin "${1:-xfs}"
  echo "+cpu" >/sys/fs/cgroup/cgroup.subtree_control
  mkdir /sys/fs/cgroup/reader
  sh -c "echo 0 >/sys/fs/cgroup/reader/cgroup.procs; dd if=/dev/zero of=/mnt/dump bs=1M count=400 2>/dev/null; sync"
  bulk_begins ""
  for share in "max 100000" "10000 100000" "1000 100000" "5000 1000000" "2000 1000000" "1000 1000000"; do
    echo "$share" >$bulk/cpu.max
    # What is dirty is written first.
    sleep 12
    both "cpu.max $share"
  done
  echo 1 >$bulk/cgroup.kill
  exec 3>&-
}
