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

# load PREFIX DEVICE SECONDS : direct random reads and writes, one at a time and eight at a time, until it is over.
load() {
  until=$(($(cut -d. -f1 /proc/uptime) + $3))
  while [ "$(cut -d. -f1 /proc/uptime)" -lt $until ]; do
    oplog direct "/dev/$2" read 64 4096 1 random 67108864 >>"/out/$1.ops"
    oplog direct "/dev/$2" write 64 16384 8 random 67108864 >>"/out/$1.ops"
  done
}

scenario_check_live() { # weir trace live from all of its sources
  scheduler vda mq-deadline
  for source in bpf tracefs diskstats; do
    load live-$source vda 8 &
    sleep 2
    run live-$source weir trace live -d vda --source $source --interval 1s --duration 4s --json
    wait $!
  done
}

scenario_tests() { # a test binary, tests=FILE; arg=NAME runs only those whose name holds it
  run tests tests --test-threads=1 --nocapture "$1"
}
