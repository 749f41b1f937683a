# Scenarios that leave recordings of blktrace with the application's own log beside them. Run inside the guest; see guest.
# shellcheck shell=sh
# Every scenario leaves one folder /out/NAME: DEVICE.blktrace.CPU, *.ops (oplog's), facts.txt (settings of the devices).

# trace NAME DEVICE… [-- OPTION…] : starts blktrace into /out/NAME and waits until it records.
trace() {
  name=$1
  shift
  mkdir -p "/out/$name"
  devices='' first=$1
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    devices="$devices -d /dev/$1"
    facts "$1" >>"/out/$name/facts.txt"
    shift
  done
  [ $# = 0 ] || shift
  # shellcheck disable=SC2086
  blktrace $devices -D "/out/$name" "$@" >"/out/$name/blktrace.out" 2>&1 &
  blktrace=$!
  tries=0
  while [ ! -e "/sys/kernel/debug/block/$first/msg" ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  sleep 0.5
}

# untrace : ends it; what blktrace counted goes to the facts.
untrace() {
  sleep 0.5
  kill -INT "$blktrace"
  wait "$blktrace"
  grep dropped "/out/$name/blktrace.out" | sed 's/^/blktrace: /' >>"/out/$name/facts.txt"
}

# phase DEVICE TEXT : a message in the recording, so that its parts can be told apart.
phase() { echo "phase $2" >"/sys/kernel/debug/block/$1/msg"; }

facts() {
  echo "$1 device: $(cat "/sys/block/$1/dev")"
  for file in scheduler nr_requests max_sectors_kb read_ahead_kb rotational write_cache fua nomerges; do
    [ ! -e "/sys/block/$1/queue/$file" ] || echo "$1 $file: $(cat "/sys/block/$1/queue/$file")"
  done
}

scheduler() { echo "$2" >"/sys/block/$1/queue/scheduler"; }

ext4_on() { mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "/dev/$1" && mount -t ext4 "/dev/$1" /mnt && sync && sleep 1; }

scsi_disk() {
  modprobe sd_mod && modprobe scsi_debug "$@" || exit 3
  tries=0
  while [ ! -e /sys/block/sda ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
  sleep 1
}

# commits NAME DEVICE : a buffered write of 8 MiB with its fsync, then 40 commits of each kind, on ext4.
ext4_commits() {
  ext4_on "$2"
  trace "$1" "$2"
  phase "$2" "write in order"
  oplog write /mnt/data 8388608 65536 >"/out/$1/write.ops"
  for how in fsync fdatasync dsync; do
    phase "$2" $how
    oplog commit /mnt/data 40 4096 8388608 $how >"/out/$1/$how.ops"
  done
  untrace
  umount /mnt
}

scenario_boot() { # nothing but the kernel's version: does the guest work?
  uname -a
  ls -l /sys/kernel/btf/vmlinux /dev/vda
  [ ! -e /bin/weir ] || weir --version
}

scenario_ext4_none() { # ext4 on virtio-blk without scheduler, flushes and no FUA
  scheduler vda none
  ext4_commits ext4-none vda
}

scenario_ext4_mq_deadline() { # the same with mq-deadline
  scheduler vda mq-deadline
  ext4_commits ext4-mq-deadline vda
}

scenario_ext4_fua() { # ext4 on a SCSI disk with a cache and FUA
  scsi_disk dev_size_mb=64 ndelay=200000
  ext4_commits ext4-fua sda
}

scenario_merges() { # read-ahead; back and front merges
  scheduler vda mq-deadline
  ext4_on vda
  oplog write /mnt/data 4194304 65536 >/dev/null
  umount /mnt
  mount -t ext4 /dev/vda /mnt
  echo 3 >/proc/sys/vm/drop_caches
  trace merges vda
  phase vda readahead
  oplog read /mnt/data 16384 >/out/merges/readahead.ops
  umount /mnt
  sync
  phase vda back
  oplog direct /dev/vda write 256 4096 32 up 67108864 >/out/merges/back.ops
  phase vda front
  oplog direct /dev/vda write 256 4096 32 down 134217728 >/out/merges/front.ops
  untrace
}

scenario_splits() { # reads and writes larger than the device takes at once
  scheduler vda mq-deadline
  echo 64 >/sys/block/vda/queue/max_sectors_kb
  trace splits vda
  oplog direct /dev/vda read 32 524288 4 random 67108864 >/out/splits/read.ops
  oplog direct /dev/vda write 32 200704 4 random 67108864 >/out/splits/write.ops
  untrace
}

scenario_same_sector() { # four threads at the same sectors, reads beside writes
  scsi_disk dev_size_mb=16 ndelay=1000000 max_queue=32
  scheduler sda none
  trace same-sector sda
  oplog same /dev/sda read 4 40 4096 >/out/same-sector/read.ops
  oplog same /dev/sda read 2 40 4096 >/out/same-sector/mixed-read.ops &
  oplog same /dev/sda write 2 40 4096 >/out/same-sector/mixed-write.ops
  wait $!
  untrace
}

scenario_dm_delay() { # 20 ms reads, 40 ms writes over virtio-blk
  scheduler vda none
  modprobe dm-delay
  echo "0 $(cat /sys/block/vda/size) delay /dev/vda 0 20 /dev/vda 0 40" | dmsetup create slow --noudevsync
  trace dm-delay vda dm-0
  oplog direct /dev/dm-0 read 60 4096 4 random 67108864 >/out/dm-delay/read.ops
  oplog direct /dev/dm-0 write 60 16384 4 random 67108864 >/out/dm-delay/write.ops
  untrace
}

scenario_dm_linear() { # two halves in one: I/O across the border, over a device that splits again
  scheduler vda mq-deadline
  echo 128 >/sys/block/vda/queue/max_sectors_kb
  modprobe dm-mod
  printf '0 8192 linear /dev/vda 4096\n8192 8192 linear /dev/vda 65536\n' | dmsetup create two --noudevsync
  trace dm-linear vda dm-0
  oplog direct /dev/dm-0 write 64 262144 8 up 8388608 >/out/dm-linear/write.ops
  oplog direct /dev/dm-0 read 80 425984 4 random 8388608 >/out/dm-linear/read.ops
  untrace
}

scenario_scsi_debug() { # discards, requeues, passthrough, partial completions, medium errors
  scsi_disk dev_size_mb=64 ndelay=500000 lbpu=1 max_queue=8
  driver=/sys/bus/pseudo/drivers/scsi_debug
  trace scsi-debug sda
  out=/out/scsi-debug
  phase sda read
  oplog direct /dev/sda read 64 4096 4 random 50331648 >$out/read.ops
  phase sda discard
  oplog discard /dev/sda 1048576 4194304 >$out/discard.ops
  oplog discard /dev/sda 8388608 1048576 >>$out/discard.ops
  phase sda requeue
  echo 0x8000 >$driver/opts
  echo 7 >$driver/every_nth
  oplog direct /dev/sda write 64 4096 8 random 50331648 >$out/requeue.ops
  echo 0 >$driver/every_nth
  echo 0 >$driver/opts
  phase sda passthrough
  echo 1 >/sys/block/sda/device/rescan
  phase sda "short transfer"
  # Every fifth read brings only half: the rest is issued again, a partial completion.
  echo 0x100 >$driver/opts
  echo 5 >$driver/every_nth
  oplog direct /dev/sda read 20 16384 1 up 16777216 >$out/short.ops
  echo 0 >$driver/every_nth
  echo 0 >$driver/opts
  phase sda "medium error"
  echo 2 >$driver/opts
  # scsi_debug's bad sectors are 0x1234 to 0x123d.
  oplog direct /dev/sda read 8 8192 4 down 2416640 >$out/medium-error.ops
  echo 0 >$driver/opts
  untrace
}

scenario_drops() { # a recorder that stands still while its small buffers fill
  modprobe null_blk nr_devices=1 gb=1 irqmode=2 completion_nsec=500000 queue_mode=2 submit_queues=2 hw_queue_depth=64
  trace drops nullb0 -- -b 16 -n 4
  oplog direct /dev/nullb0 read 400 4096 16 random 536870912 >/out/drops/before.ops
  sleep 0.5
  kill -STOP "$blktrace"
  oplog direct /dev/nullb0 write 3000 4096 32 random 536870912 >/out/drops/during.ops
  echo "kernel dropped: $(cat /sys/kernel/debug/block/nullb0/dropped)" >>/out/drops/facts.txt
  kill -CONT "$blktrace"
  sleep 1
  oplog direct /dev/nullb0 read 400 4096 16 random 536870912 >/out/drops/after.ops
  untrace
}

scenario_ftrace() { # the kernel's own blk tracer in bin mode, one stream of all CPUs: with ftrace's context, and without
  scheduler vda mq-deadline
  mkdir -p /out/ftrace
  facts vda >/out/ftrace/facts.txt
  cd /sys/kernel/tracing || exit 3
  # The clock of oplog.
  echo mono >trace_clock
  echo blk >current_tracer
  echo bin >trace_options
  ftraced vda read context-info oplog direct /dev/vda read 100 4096 4 random 67108864
  ftraced vda write nocontext-info oplog direct /dev/vda write 100 16384 4 random 67108864
  cd /tmp || exit 3
}

# ftraced DEVICE NAME OPTION COMMAND… : what the tracer says of it to NAME.bin, what oplog says to NAME.ops.
ftraced() {
  device=$1 name=$2
  echo "$3" >trace_options
  shift 3
  echo 1 >"/sys/block/$device/trace/enable"
  cat trace_pipe >"/out/ftrace/$name.bin" &
  reader=$!
  "$@" >"/out/ftrace/$name.ops"
  sleep 1
  echo 0 >"/sys/block/$device/trace/enable"
  sleep 1
  kill $reader
}
