# Sourced by the other scripts: finds cargo, says what is missing, installs it, and keeps cargo off the network
# where everything it needs is already here.
# shellcheck shell=bash

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $1"; [ -z "${2:-}" ] || say "hint: $2"; exit 3; }

# mkfs, losetup and the like live where a plain user's PATH does not look.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# A toolchain made by rustup is found without its folder on PATH, also under sudo: then the user's toolchain is
# used as it stands, while crates and build products of root go to root's own CARGO_HOME.
find_cargo() {
  local home
  if ! command -v cargo >/dev/null; then
    PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
  fi
  if ! command -v cargo >/dev/null && [ -n "${SUDO_USER:-}" ]; then
    home=$(getent passwd "$SUDO_USER" | cut -d: -f6)
    PATH=$home/.cargo/bin:$PATH
    export RUSTUP_HOME=${RUSTUP_HOME:-$home/.rustup}
  fi
  export PATH
  no_settings_of_others
  command -v cargo >/dev/null || die "there is no Rust toolchain here" "https://rustup.rs installs one in a minute"
}

# Cargo and rustup take settings from every folder above, and run what these name: as root those of root, and of whose folder
# this is, alone.
no_settings_of_others() {
  local folder name owner
  folder=$(pwd -P)
  [ "$(id -u)" = 0 ] || return 0
  while [ "$folder" != / ]; do
    folder=$(dirname "$folder")
    # It looks again each time it starts: later ones are seen by nobody.
    case $(stat -c %a "$folder") in
      *[2367]) say "warning: any account can make settings for cargo in $folder: root had better build below a folder of its own" ;;
    esac
    for name in .cargo rust-toolchain rust-toolchain.toml; do
      owner=$(stat -c %u "$folder/$name" 2>/dev/null) || continue
      [ "$owner" = 0 ] || [ "$owner" = "$(stat -c %u .)" ] ||
        die "cargo would take settings of another account from $folder/$name" "move this folder to where only you can write"
    done
  done
}

# What a need is called: a command, or a file, and the Debian package that brings it.
# shellcheck disable=SC2034 # the scripts that source this use them
# clang, the static libelf and zlib, and pkg-config, with which libbpf is built, are for the programs that weir runs in the kernel.
needs_of_build=(cc:gcc /usr/include/stdio.h:libc6-dev make:make pkg-config:pkgconf clang:clang /usr/include/libelf.h:libelf-dev /usr/include/zlib.h:zlib1g-dev)
# shellcheck disable=SC2034
needs_of_test=('/usr/lib/python3*/ensurepip/__init__.py:python3-venv' openssl:openssl fio:fio sysbench:sysbench mkfs.xfs:xfsprogs mkfs.ext4:e2fsprogs mkfs.btrfs:btrfs-progs losetup:mount
  setpriv:util-linux shellcheck:shellcheck python3:python3 chromium:chromium mariadbd:mariadb-server-core mariadb-install-db:mariadb-server-core
  my_print_defaults:mariadb-client-core '/usr/lib/postgresql/*/bin/initdb:postgresql' ip:iproute2 sshd:openssh-server ssh:openssh-client)
# shellcheck disable=SC2034
needs_of_guest=(qemu-system-x86_64:qemu-system-x86 busybox:busybox-static blktrace:blktrace blkparse:blktrace dmsetup:dmsetup
  mkfs.xfs:xfsprogs mkfs.ext4:e2fsprogs mkfs.btrfs:btrfs-progs depmod:kmod dpkg-deb:dpkg python3:python3 cc:gcc /usr/include/stdio.h:libc6-dev strip:binutils
  xz:xz-utils zstd:zstd /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring)
# shellcheck disable=SC2034
needs_of_bench=(fio:fio biolatency:libbpf-tools bpftrace:bpftrace sysbench:sysbench python3:python3 mkfs.xfs:xfsprogs losetup:mount btt:blktrace
  mariadbd:mariadb-server-core mariadb-install-db:mariadb-server-core my_print_defaults:mariadb-client-core
  '/usr/lib/postgresql/*/bin/pgbench:postgresql' ip:iproute2 sshd:openssh-server ssh:openssh-client)

# shellcheck disable=SC2034
needs_of_packages=(dpkg-deb:dpkg rpmbuild:rpm python3:python3 readelf:binutils gzip:gzip tar:tar unshare:util-linux)

# shellcheck disable=SC2034
needs_of_servers=(python3:python3 openssl:openssl mariadbd:mariadb-server-core mariadb-install-db:mariadb-server-core my_print_defaults:mariadb-client-core
  '/usr/lib/postgresql/*/bin/initdb:postgresql')

# shellcheck disable=SC2034
needs_of_spark=(curl:curl '/usr/lib/python3*/ensurepip/__init__.py:python3-venv' java:default-jre-headless)

# A file may be named by a pattern.
is_here() { case $1 in /*) compgen -G "$1" >/dev/null ;; *) command -v "$1" >/dev/null ;; esac; }

# packages_missing NEED… : the packages to install, without repetition.
packages_missing() {
  local need
  for need; do is_here "${need%:*}" || printf '%s\n' "${need#*:}"; done | sort -u
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "that needs root, and there is no sudo here" "as root, run: $*"
  fi
}

# apt_install PACKAGE… : installs, but starts no service, now or at the next boot: a database server among the packages is for
# throw-away instances of the project's own. policy-rc.d is where Debian asks; one that is there already stays as it is, but for
# one that a killed run has left. What apt says is shown where it fails.
apt_install() {
  # shellcheck disable=SC2016 # the inner shell expands it
  as_root env DEBIAN_FRONTEND=noninteractive sh -c '
    policy=/usr/sbin/policy-rc.d mark="# while packages for weir are installed"
    if [ ! -e $policy ] || grep -qxF "$mark" $policy; then
      trap "rm -f $policy" EXIT
      trap "exit 130" INT TERM HUP
      printf "#!/bin/sh\n%s\nexit 101\n" "$mark" >$policy && chmod 755 $policy
    fi
    wanted() { find /etc/systemd/system -path "*.wants/*" -type l 2>/dev/null; }
    clusters() { ls -d /etc/postgresql/*/main 2>/dev/null; }
    wanted_before=$(wanted) clusters_before=$(clusters)
    said=$(apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@" 2>&1 </dev/null) ||
      { code=$?; printf "%s\n" "$said" >&2; exit $code; }
    # new BEFORE : those lines that were not there before.
    new() { while read -r line; do printf "%s\n" "$1" | grep -qxF -- "$line" || printf "%s\n" "$line"; done; }
    wanted | new "$wanted_before" | while read -r link; do rm -f -- "$link"; done
    # Debian makes a database with PostgreSQL, and a service for it.
    clusters | new "$clusters_before" | while read -r cluster; do
      pg_dropcluster "$(basename "$(dirname "$cluster")")" main >&2 || true
    done' sh "$@" >&2
}

# install_packages WHAT NEED… : says what it installs for WHAT, then installs it; does nothing where all is here.
install_packages() {
  local what=$1 packages
  shift
  mapfile -t packages < <(packages_missing "$@")
  if [ ${#packages[@]} = 0 ]; then
    say "$what: installs nothing, every package it needs is here"
    return
  fi
  say "$what: installs from the system's package archive: ${packages[*]}"
  command -v apt-get >/dev/null || die "no apt-get here to install: ${packages[*]}" "install them by hand, then run this again"
  # The lists may be missing or old: refresh them only if the first try fails.
  apt_install "${packages[@]}" 2>/dev/null ||
    { as_root apt-get -qq update >&2 && apt_install "${packages[@]}"; } ||
    die "the packages could not be installed: ${packages[*]}"
}

# python_with [--with-dependencies] PACKAGE==VERSION… : a Python of the project's own, below target/, that has these packages from
# PyPI; prints its path.
python_with() {
  local home dependencies=(--no-deps)
  home=${CARGO_TARGET_DIR:-target}/python-$(printf '%s\n' "$@" | sha256sum | head -c 12)
  if [ "$1" = --with-dependencies ]; then dependencies=(); shift; fi
  case $home in /*) ;; *) home=$PWD/$home ;; esac
  if [ ! -e "$home/complete" ]; then
    say "installs from PyPI into ${home#"$PWD/"}: $*"
    rm -rf "$home"
    if ! python3 -m venv "$home" >&2 || ! "$home/bin/pip" install -q --disable-pip-version-check "${dependencies[@]}" "$@" >&2; then
      die "the Python packages could not be installed: $*"
    fi
    touch "$home/complete"
  fi
  echo "$home/bin/python"
}

# The engines that answer the same SQL as weir-fleet's own, of one version each.
# shellcheck disable=SC2034
engines_of_test=(duckdb==2.0.1 pysail==0.7.2)
# shellcheck disable=SC2034
spark_of_test=(pyspark==4.3.0 py4j==0.10.9.9)
# shellcheck disable=SC2034
s3_of_test=(--with-dependencies 'moto[s3,server]==5.2.5')

# The parts of the toolchain that tests use and a minimal one lacks.
install_components() {
  local missing=()
  cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
  cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
  [ ${#missing[@]} = 0 ] && return
  say "installs parts of the Rust toolchain: ${missing[*]}"
  command -v rustup >/dev/null || die "cargo has no ${missing[*]}, and there is no rustup to add them"
  rustup component add "${missing[@]}" >&2 || die "rustup could not add ${missing[*]}"
}

# Crates come from the network once; from then on cargo is told not to look there.
fetch_crates() { fetch_crates_for "$(own_target)"; }
own_target() { rustc -vV | sed -n 's/^host: //p'; }

# fetch_crates_for TARGET… : for programs of these targets.
fetch_crates_for() {
  local target targets=()
  for target; do targets+=(--target "$target"); done
  if ! cargo fetch --locked --offline "${targets[@]}" >/dev/null 2>&1; then
    say "fetches the crates that Cargo.lock names, into ${CARGO_HOME:-$HOME/.cargo}"
    cargo fetch --locked "${targets[@]}" >&2 || die "the crates could not be fetched" "this is the only step that needs the network"
  fi
  export CARGO_NET_OFFLINE=true
}

# Under sudo, what root built stays the user's, so that the next command without sudo can go on. Trees of other systems stay
# root's, who runs what is in them.
give_back() {
  local path
  [ -n "${SUDO_UID:-}" ] && [ "$(id -u)" = 0 ] || return 0
  for path; do
    [ ! -e "$path" ] || find "$path" \( -path '*/packages/trees' -o -path '*/servers' \) -prune -o \
      -exec chown -h "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" {} +
  done
}
