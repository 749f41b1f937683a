# What the recorder and the guard cost where the processors are the limit. Run inside the guest, with clock=virtual: the rate of reads then tells the
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

# memory PROCESS : its resident memory, and what of that is its alone or its share of what others have as well, in kB.
memory() { awk '$1 == "Rss:" || $1 == "Pss:" {printf "%s %s kB  ", $1, $2} END {print ""}' "/proc/$1/smaps_rollup"; }

# guard_takes NAME SECONDS : the processor time of the guard and of its guardian meanwhile, and their memory.
guard_takes() {
  before=$(ticks "$guard") spare=$(cat "/proc/$guard"/task/*/children | tr -d " ")
  sleep "$2"
  {
    printf '%s\tprocessor\t%s\n' "$1" "$(echo "$before $(ticks "$guard") $2" | awk '{print $2 - $1, "ticks of", 100 * $3}')"
    printf '%s\tguard\t%s\n%s\tguardian\t%s\n' "$1" "$(memory "$guard")" "$1" "$(memory "$spare")"
  } >>/out/cost.tsv
}

scenario_guard_cost() { # what the guard takes while nothing happens, and beside 5,000 syncs a second, where it may hold a cgroup
  modprobe null_blk nr_devices=1 memory_backed=1 gb=1 irqmode=0 queue_mode=2
  mounted xfs /dev/nullb0
  echo "+io +memory" >/sys/fs/cgroup/cgroup.subtree_control
  weir guard run /mnt --no-history 2>/out/guard.said >/out/guard.out &
  guard=$!
  until_true 30 weir guard status
  sleep 10
  guard_takes idle 60
  (cd /mnt && weir bench --dir . --rw randwrite --block 16k --size 64M --direct=false --sync-every 1 --rate 5000 --threads 2 --duration 40s) >/out/commits.out 2>&1 &
  load=$!
  sleep 8
  guard_takes commits 30
  wait $load
  kill -TERM $guard
  wait $guard
  cat /out/commits.out /out/cost.tsv
  umount /mnt
}
