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
    '{print now, $5, $7 * 512, bulk + 0}' /sys/block/vda/stat
}

# way NAME THREADS [OPTION] : commits of 16 KiB, an fsync each, for some seconds.
way() {
  before=$(disk)
  rate=$(cd /mnt && timeout 60 weir fileio --file-num=1 --threads="$2" --file-total-size=96M --file-fsync-all=on \
    --file-test-mode=rndwr --time=6 --file-block-size=16384 $3 run 2>/dev/null | awk '/writes\/s/{print $2}')
  echo "$before $(disk)" | awk -v way="$1" -v threads="$2" -v rate="$rate" -v OFS='\t' \
    '{s = $5 - $1; print way, threads, rate, ($6 - $2) / s, ($7 - $3) / s, ($8 - $4) / s}' >>/out/ways.tsv
}

# limited HIGH WBPS : the limits of the bulk writer's cgroup.
limited() {
  echo "$1" >$bulk/memory.high
  echo "$(cat /sys/block/vda/dev) wbps=$2" >$bulk/io.max
}

ways_begin() {
  mounted "$1" /dev/vda
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
