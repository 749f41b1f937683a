# What the recorder costs where the processors are the limit. Run inside the guest, with clock=virtual: the rate of reads then tells the
# instructions of each, whatever the host does.
# shellcheck shell=sh

# reads NAME SECONDS [LEAD] : as many reads of 4 KiB as go, 32 in flight, past the page cache; their rate, after so long a lead, goes to
# /out/cost.tsv.
reads() {
  rate=$(cd /mnt && weir bench --dir . --prefix cost --keep --size 64M --rw randread --block 4k --direct=true --engine io_uring --depth 32 \
    --threads 1 --warmup "${3:-0}s" --duration "$2s" --format json | sed -n 's/.*"iops": *\([0-9.]*\).*/\1/p' | head -n 1)
  printf '%s\t%s\n' "$1" "$rate" >>/out/cost.tsv
}

# ticks PROCESS : hundredths of a second of a processor that it has taken.
ticks() { cut -d')' -f2 "/proc/$1/stat" | awk '{print $12 + $13}'; }

scenario_recorder_cost() { # reads on a device that costs nothing, with the recorder and without, in turn
  modprobe null_blk nr_devices=1 memory_backed=1 gb=1 irqmode=0 queue_mode=2
  mounted ext4 /dev/nullb0
  reads warm 1
  for turn in 1 2; do
    reads "without $turn" 3
    weir recorder run --dir /tmp/archive 2>/out/recorder.said &
    recorder=$!
    until_true 30 grep -q "records to" /out/recorder.said
    # What it does as it begins is not of the load.
    sleep 12
    before=$(ticks $recorder)
    reads "recorder beside syncs $turn" 10
    printf 'own ticks\t%s\n' $(($(ticks $recorder) - before)) >>/out/cost.tsv
    # The load syncs as it begins: half a minute later the programs for syncs leave its reads alone.
    before=$(ticks $recorder)
    reads "recorder $turn" 10 42
    printf 'own ticks\t%s\n' $(($(ticks $recorder) - before)) >>/out/cost.tsv
    kill -TERM $recorder
    wait $recorder
  done
  cat /out/recorder.said /out/cost.tsv
  umount /mnt
}
