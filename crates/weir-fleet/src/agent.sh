# shellcheck shell=sh disable=SC2015 # each "A && B || C" here is meant: C follows where A or B fails
# What runs on a host: the argument of one ssh command. It holds no single quote, so that every login shell passes it on as it is.
# It reads one command a line from standard input and answers in lines that begin with a mark. When standard input ends, for
# whatever reason, it ends weir and removes its folder.
umask 077
LC_ALL=C
export LC_ALL
unset CDPATH ENV BASH_ENV TMOUT
if [ "$3" = sudo ] && [ "$(id -u)" != 0 ]; then
  exec sudo -n -- sh -c "$1" weir-fleet "$1" "$2" root "$4" "$5"
fi
mark=$2 need=$4 most=$5 d="" job="" why=""
say() { printf "%s %s\n" "$mark" "$*"; }

# Ends weir: asked first, and once, so that it restores settings and removes its files. A second signal would end it at once.
stop() {
  [ -n "$job" ] || return 0
  n=0 p=
  while [ ! -e "$d/ended" ] && [ $n -lt 150 ]; do
    if [ -z "$p" ]; then
      p=$(cat "$d/pid" 2>/dev/null)
      case $p in *[!0-9]*) p= ;; ?*) kill -TERM "$p" 2>/dev/null ;; esac
    fi
    sleep 0.1 2>/dev/null || sleep 1
    n=$((n + 1))
  done
  if [ ! -e "$d/ended" ]; then
    for p in "-$(cat "$d/group" 2>/dev/null)" "$p"; do
      case $p in *[0-9]*) kill -KILL "$p" 2>/dev/null ;; esac
    done
  fi
  wait "$job" 2>/dev/null
  job=
}
end() {
  trap "" HUP INT TERM PIPE
  stop
  case $d in */weir-fleet.*) rm -rf -- "$d" ;; esac
}
trap end EXIT
trap "exit 129" HUP
trap "exit 130" INT
trap "exit 143" TERM
trap "exit 141" PIPE

for tool in chmod cat date dd df find gzip head mktemp rm sha256sum sleep timeout uname wc; do
  command -v "$tool" >/dev/null 2>&1 || { say "lacks $tool"; exit 3; }
done

# A private folder where programs may run and the binary has space; what agents that were killed left there goes.
for base in "${TMPDIR:-/tmp}" /var/tmp "$HOME"; do
  case $base in /?*) ;; *) continue ;; esac
  [ -d "$base" ] && [ -w "$base" ] || continue
  # Its owner, and those who may write there without the sticky bit, may rename what lies there.
  [ -n "$(find "$base/." -maxdepth 0 \( -user 0 -o -user "$(id -u)" \) \( -perm -1000 -o ! -perm -0020 ! -perm -0002 \) 2>/dev/null)" ] || { why="$why $base is open to others;"; continue; }
  find "$base" -maxdepth 1 -type d -name "weir-fleet.*" -user "$(id -u)" -mmin +1440 2>/dev/null | while read -r old; do
    [ -f "$old/agent" ] && [ ! -L "$old/agent" ] || continue
    p=$(cat "$old/agent" 2>/dev/null)
    case $p in ""|*[!0-9]*) continue ;; esac
    kill -0 "$p" 2>/dev/null || rm -rf -- "$old"
  done
  free=$(df -Pk "$base" 2>/dev/null | { read -r p; read -r p p p n p; echo "$n"; })
  case $free in ""|*[!0-9]*) free=0 ;; esac
  if [ "$free" -lt "$need" ]; then why="$why $base has $free KiB free and $need KiB are needed;"; continue; fi
  d=$(mktemp -d "$base/weir-fleet.XXXXXXXXXX" 2>/dev/null) || { why="$why no folder can be made in $base;"; d=; continue; }
  echo $$ >"$d/agent"
  printf "#!/bin/sh\nexit 0\n" >"$d/try" 2>/dev/null
  chmod 700 "$d/try" && "$d/try" 2>/dev/null && break
  why="$why $base lets no program run;"
  rm -rf -- "$d"
  d=
done
[ -n "$d" ] || { say "no-folder$why"; exit 3; }
say "ready $(uname -m) $(id -u)"

run() {
  rm -rf "$d/ended" "$d/pid" "$d/group" "$d/store" "$d/files"
  mkdir "$d/files"
  say "begun $(date +%s.%N)"
  (
    trap - EXIT HUP INT TERM PIPE
    # The number is weir's own: GNU timeout passes a signal on to weir and then to its group, in which weir is.
    WEIR_STORE=$d/store timeout -k 15 "$most" sh -c "echo \$\$ >\"\$0/pid\" && exec \"\$0/weir\" \"\$@\"" "$d" "$@" </dev/null >"$d/out" 2>"$d/err" &
    echo $! >"$d/group"
    wait $!
    code=$?
    : >"$d/ended"
    say "done $code"
  ) &
  job=$!
}

# give FILE LIMIT NAME : sent bytes, size, name, and so many of its first bytes.
give() {
  size=$(($(wc -c <"$1")))
  cut=$size
  [ "$cut" -le "$2" ] || cut=$2
  say "file $cut $size $3"
  head -c "$cut" "$1"
}

while read -r verb rest; do
  case $verb in
    time) say "time $(date +%s.%N)" ;;
    put)
      dd bs=65536 count="${rest%% *}" iflag=fullblock 2>/dev/null | { gzip -dc >"$d/weir" 2>"$d/err"; cat >/dev/null; }
      sum=$(sha256sum <"$d/weir")
      if [ "${sum%% *}" != "${rest##* }" ]; then say "bad $(head -c 300 "$d/err" | head -n 1)"; exit 3; fi
      chmod 700 "$d/weir" && say put
      ;;
    run) eval "run $rest" ;;
    stop) stop ;;
    text) give "$d/$rest" 16777216 "$rest"; say end ;;
    records)
      for f in "$d"/store/*.json "$d"/files/*; do
        [ -f "$f" ] && [ ! -L "$f" ] || continue
        case ${f##*/} in .*|*[!A-Za-z0-9._-]*) continue ;; esac
        case $f in "$d"/store/*) give "$f" "$rest" record ;; *) give "$f" "$rest" "${f##*/}" ;; esac
      done
      say end
      ;;
    bye) exit 0 ;;
    *) exit 3 ;;
  esac
done
