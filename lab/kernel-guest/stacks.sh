# What weir says of stacks of block devices: NVMe, LVM, md, dm-crypt. Run inside the guest with stacks=yes;
# the host judges what it leaves (lab/kernel-guest/verify, by verify_stacks.py).
# shellcheck shell=sh
# Every run is called stack-STACK-COMMAND; oplog's logs are stack-STACK-COMMAND.ops.

lvm_() {
  command=$1
  shift
  DM_DISABLE_UDEV=1 lvm "$command" -q --config 'activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0} global{event_activation=0}' -y "$@" 2>&1 ||
    echo "lvm $command $*: exit code $?"
}

stack_modules() {
  for module in nvme md-mod raid1 raid456 dm-mod dm-thin-pool dm-crypt xts; do modprobe $module 2>/dev/null; done
  tries=0
  while [ ! -e /sys/block/nvme2n1 ] && [ $tries -lt 300 ]; do sleep 0.1; tries=$((tries + 1)); done
  echo 2 >/sys/block/nvme0n1/queue/nomerges
}

# Nobody else's I/O in the counts: no journal's thread, no metadata left to write.
quiet() { sync; sleep 1; sync; }

# counted STACK TOP LEG… : direct I/O on the top device; what weir counts on it and on each leg.
counted() {
  stack=$1
  shift
  top=$1
  # The first who opens an array has its partitions looked for.
  dd if="/dev/$top" of=/dev/null bs=4k count=1 2>/dev/null
  quiet
  devices=''
  for device; do
    devices="$devices -d /dev/$device"
    echo 2 >"/sys/block/$device/queue/nomerges"
  done
  (cd /sys/class/block && for device in *; do echo "$device $(cat "$device/dev") $(cat "$device/dm/name" 2>/dev/null)"; done) \
    >"/out/stack-$stack.devices"
  # shellcheck disable=SC2086,SC2154
  for source in bpf tracefs; do
    beside "stack-$stack-live-$source" weir trace live $devices --source $source --interval 1s --duration 6s --json
    stack_load "stack-$stack-live-$source" "$top"
    wait "$running"
  done
  beside "stack-$stack-live-all" weir trace live --interval 1s --duration 6s --json
  stack_load "stack-$stack-live-all" "$top"
  wait "$running"
  # shellcheck disable=SC2086
  run "stack-$stack-record" weir trace record $devices --out /out/$stack.weirtrace -- \
    sh -c ". /stacks.sh; stack_load stack-$stack-record $top"
  run "stack-$stack-record-read" weir trace read "/out/$stack.weirtrace" --json
}

# Above what mkfs wrote last, in pieces that no chunk splits.
stack_load() {
  oplog direct "/dev/$2" read 60 4096 1 random 67108864 >"/out/$1.ops"
  oplog direct "/dev/$2" write 60 16384 4 random 67108864 >>"/out/$1.ops"
}

# examined STACK PATH TOP [WORD…] : what weir says of a mounted path on a device.
examined() {
  stack=$1 path=$2 top=$3
  shift 3
  cat /proc/self/mountinfo >"/out/stack-$stack.mountinfo"
  run "stack-$stack-doctor" weir doctor --duration 20s --size 32MiB --json "$@" "$path"
  run "stack-$stack-knobs" weir knobs list --json "$path"
  run "stack-$stack-fsync" weir trace fsync --json -- \
    sh -c "exec oplog commit $path/data 30 4096 4194304 fdatasync >/out/stack-$stack-fsync.ops"
  beside "stack-$stack-live-flush" weir trace live -d "/dev/$top" --detail --interval 1s --duration 5s --json
  oplog commit "$path/data" 30 4096 4194304 fdatasync >"/out/stack-$stack-live-flush.ops"
  wait "$running"
}

# turned STACK LEG : a knob of the leg's queue is set and put back.
turned() {
  stack=$1 leg=$2
  cat "/sys/block/$leg/queue/scheduler" >"/out/stack-$stack-turned.found"
  run "stack-$stack-apply" weir knobs apply "$leg/scheduler=mq-deadline" "$leg/read_ahead_kb=64"
  { cat "/sys/block/$leg/queue/scheduler"; cat "/sys/block/$leg/queue/read_ahead_kb"; } >"/out/stack-$stack-turned.set"
  run "stack-$stack-rollback" weir knobs rollback
  cat "/sys/block/$leg/queue/scheduler" >"/out/stack-$stack-turned.back"
}

# guarded STACK PATH [WORD…] : commits beside a bulk writer in a cgroup of its own, in shadow and for earnest.
guarded() {
  stack=$1 path=$2
  shift 2
  echo "+io +memory" >/sys/fs/cgroup/cgroup.subtree_control
  mkdir -p /sys/fs/cgroup/bulk
  for how in shadow acts; do
    options=''
    [ $how = acts ] || options=--shadow
    guard="stack-$stack-guard-$how"
    limits >"/out/$guard.found"
    # shellcheck disable=SC2086
    run "$guard" weir guard run "$path" "$@" $options --duration 1m --log "/out/$guard.log" --no-history --json &
    tries=0
    while ! weir guard status >/dev/null 2>&1 && [ $tries -lt 60 ]; do
      sleep 0.5
      tries=$((tries + 1))
    done
    committing "$path" &
    commits=$!
    sleep 2
    sh -c "echo \$\$ >/sys/fs/cgroup/bulk/cgroup.procs; exec dd if=/dev/zero of=$path/bulk bs=1M count=1500 2>/dev/null" &
    bulk=$!
    sleep 6
    weir guard status --json >"/out/$guard.status"
    limits >"/out/$guard.during"
    # One that nsenter started does not go with it.
    kill $commits $bulk
    killall -q oplog
    wait $commits $bulk
    kill -TERM "$(pidof weir)"
    tries=0
    while [ ! -s "/out/$guard.code" ] && [ $tries -lt 60 ]; do
      sleep 0.5
      tries=$((tries + 1))
    done
    limits >"/out/$guard.after"
    rm -f "$path/bulk"
    quiet
  done
}

# committing PATH : commits until it is killed. A scenario may say it otherwise.
committing() { exec oplog commit "$1/data" 100000 4096 4194304 fdatasync >/dev/null; }

limits() {
  # Once written, io.max names the device also where nothing is limited.
  cat /sys/fs/cgroup/bulk/memory.high
  grep -v "rbps=max wbps=max riops=max wiops=max" /sys/fs/cgroup/bulk/io.max
  for file in /proc/sys/vm/dirty_* /sys/class/bdi/*/max_ratio /sys/class/bdi/*/strict_limit /sys/class/bdi/*/max_ratio_fine; do
    [ ! -e "$file" ] || echo "$file $(cat "$file")"
  done
}

scenario_stack_nvme() { # NVMe: two namespaces of one controller, two other controllers; ext4 on a partition
  stack_modules
  counted nvme nvme0n2 nvme0n1 nvme1n1
  printf 'n\np\n1\n\n\nw\n' | fdisk /dev/nvme0n1 >/dev/null 2>&1
  mounted ext4 /dev/nvme0n1p1
  quiet
  examined nvme /mnt nvme0n1
  turned nvme nvme0n1
  guarded nvme /mnt
  umount /mnt
}

# in_container COMMAND… : as the container's processes run, with the container's files, processes and cgroup.
in_container() {
  echo 0 >"$container/cgroup.procs"
  exec nsenter -t "$inside" -m -p -r -w "$@"
}

scenario_stack_container() { # a container: namespaces of mounts and processes, a cgroup, its data on a volume it alone has mounted
  stack_modules
  mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/nvme1n1
  unit=docker-4a7c9b1e.scope
  container=/sys/fs/cgroup/system.slice/$unit
  mkdir -p "$container" /run/box/bin /run/box/proc /run/box/var/lib/db
  cp /bin/busybox /bin/oplog /run/box/bin/
  ln -s busybox /run/box/bin/sleep
  # Its own root, and the volume below it: the guest itself has neither of these mounts. A root in the initramfs is changed
  # by chroot alone.
  sh -c "echo 0 >$container/cgroup.procs; exec unshare -m -p -f sh -c '
    mount --make-rprivate /
    mount -t proc proc /run/box/proc && mount -t ext4 /dev/nvme1n1 /run/box/var/lib/db && exec chroot /run/box /bin/sleep 100000'" &
  box=$!
  inside=''
  until_true 30 contained
  data=/proc/$inside/root/var/lib/db
  if [ ! -d "$data/lost+found" ] || grep nvme1n1 /proc/self/mountinfo; then return 1; fi
  cat "/proc/$inside/mountinfo" >/out/stack-container.mountinfo
  quiet
  # In the container's own words the file is /var/lib/db/data, and its process has another number.
  whose_syncs all
  whose_syncs cgroup --cgroup "$container"
  beside stack-container-live-flush weir trace live -d /dev/nvme1n1 --detail --interval 1s --duration 5s --json
  (in_container oplog commit /var/lib/db/data 30 4096 4194304 fdatasync) >/out/stack-container-live-flush.ops
  wait "$running"
  run stack-container-doctor weir doctor --duration 20s --size 32MiB --json --no-flood "$data"
  run stack-container-knobs weir knobs list --json "$data"
  turned container nvme1n1
  # shellcheck disable=SC2317 # guarded calls it
  committing() { in_container oplog commit /var/lib/db/data 100000 4096 4194304 fdatasync >/dev/null; }
  guarded container "$data" --protect "$unit"
  kill -KILL "$inside"
  wait "$box"
  return 0
}

# contained : whether the container's first process is there; `inside` is its number.
contained() {
  inside=''
  while read -r process; do
    [ "$(cat "/proc/$process/comm")" != sleep ] || inside=$process
  done <"$container/cgroup.procs"
  [ -n "$inside" ]
}

# whose_syncs NAME [WORD…] : what weir says of the container's commits, from outside of it. So many that weir looks at the
# process while it lives: of one that is gone the kernel tells no cgroup.
whose_syncs() {
  whose=stack-container-fsync-$1
  shift
  run "$whose" weir trace fsync "$@" --duration 20s --json &
  tracing=$!
  sleep 10
  (in_container oplog commit /var/lib/db/data 500 4096 4194304 fdatasync) >"/out/$whose.ops"
  wait $tracing
}

scenario_stack_lvm() { # LVM: a linear volume over two namespaces, ext4
  stack_modules
  lvm_ pvcreate /dev/nvme0n1 /dev/nvme0n2
  lvm_ vgcreate vg /dev/nvme0n1 /dev/nvme0n2
  lvm_ lvcreate -L 1500M -n one vg
  lvm_ lvcreate -l 100%FREE -n two vg
  counted lvm dm-0 nvme0n1
  mounted ext4 /dev/mapper/vg-one
  quiet
  examined lvm /mnt dm-0
  turned lvm nvme0n1
  guarded lvm /mnt
  umount /mnt
  mounted xfs /dev/mapper/vg-two
  quiet
  examined lvm-two /mnt dm-1 --no-flood
  umount /mnt
}

scenario_stack_thin() { # LVM: a thin volume, its pool on one namespace, xfs
  stack_modules
  lvm_ pvcreate /dev/nvme0n1
  lvm_ vgcreate vg /dev/nvme0n1
  lvm_ lvcreate -L 1500M -T vg/pool
  lvm_ lvcreate -V 2G -T vg/pool -n thin
  dmsetup ls --tree >/out/tree.txt
  thin=$(basename "$(dirname "$(dirname "$(grep -lx vg-thin /sys/block/*/dm/name)")")")
  # Blocks are given out at the first write.
  oplog write "/dev/$thin" 67108864 1048576 >/dev/null
  quiet
  counted thin "$thin" nvme0n1
  mounted xfs /dev/mapper/vg-thin
  quiet
  examined thin /mnt "$thin" --no-flood
  turned thin nvme0n1
  guarded thin /mnt
  umount /mnt
}

raid() { # NAME LEVEL DEVICE…
  name=$1 level=$2
  shift 2
  mdadm --create "/dev/$name" --run --level="$level" --raid-devices=$# --assume-clean --bitmap=none "$@" 2>&1
  # The superblock is written once more when the array has been idle.
  sleep 1
}

scenario_stack_raid1() { # md RAID 1 of two controllers, ext4
  stack_modules
  raid md0 1 /dev/nvme0n1 /dev/nvme1n1
  counted raid1 md0 nvme0n1 nvme1n1
  mounted ext4 /dev/md0
  quiet
  examined raid1 /mnt md0
  turned raid1 nvme1n1
  guarded raid1 /mnt
  umount /mnt
}

scenario_stack_raid5() { # md RAID 5 of three controllers, xfs
  stack_modules
  raid md0 5 /dev/nvme0n1 /dev/nvme1n1 /dev/nvme2n1
  counted raid5 md0 nvme0n1 nvme1n1 nvme2n1
  mounted xfs /dev/md0
  quiet
  examined raid5 /mnt md0 --no-flood
  turned raid5 nvme2n1
  guarded raid5 /mnt
  umount /mnt
}

scenario_stack_crypt() { # dm-crypt (LUKS 2), ext4
  stack_modules
  mkdir -p /run/cryptsetup
  printf secret >/tmp/key
  cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 /dev/nvme0n1 /tmp/key
  DM_DISABLE_UDEV=1 cryptsetup open --key-file /tmp/key /dev/nvme0n1 secret
  counted crypt dm-0 nvme0n1
  mounted ext4 /dev/mapper/secret
  quiet
  examined crypt /mnt dm-0 --no-flood
  turned crypt nvme0n1
  guarded crypt /mnt
  umount /mnt
}

scenario_stack_tower() { # LVM on md RAID 1 on partitions of two NVMe disks, xfs
  stack_modules
  for disk in nvme0n1 nvme1n1; do printf 'n\np\n1\n\n\nw\n' | fdisk /dev/$disk >/dev/null 2>&1; done
  raid md0 1 /dev/nvme0n1p1 /dev/nvme1n1p1
  lvm_ pvcreate /dev/md0
  lvm_ vgcreate vg /dev/md0
  lvm_ lvcreate -L 1500M -n db vg
  counted tower dm-0 md0 nvme0n1 nvme1n1
  mounted xfs /dev/mapper/vg-db
  quiet
  examined tower /mnt dm-0
  turned tower nvme0n1
  guarded tower /mnt
  umount /mnt
}
