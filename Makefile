# `make doctor` and `make test` need git, curl, make and a Rust toolchain; each says first what else it installs.
.PHONY: help doctor check test test-guest test-servers test-packages test-spark packages deny docs build bench bench-flood bench-trace bench-tune bench-guard install uninstall

PREFIX ?= /usr/local
# The folder whose storage `make doctor` examines; it makes a folder of its own in it and removes that afterwards.
DIR ?= .
# The architecture of `make packages`, if not this machine's: ARCH=arm64.
ARCH ?=
# Further options: make doctor ARGS=--quick, make bench ARGS=--quick.
ARGS ?=

help:
	@echo "make doctor            examine the storage under DIR (default: here); report in weir-doctor-report.html"
	@echo "make check             format, scripts, lint and unit tests: no root, no server, a few minutes"
	@echo "make test              every check and test there is; those that need root run where root"
	@echo "make test-guest        weir on Linux 5.10, 6.1, 6.12 and 7.2, in virtual machines (about 10 minutes each)"
	@echo "make test-servers      every weir db command on MySQL 9.7, MariaDB 11.8, PostgreSQL 18 (root, about 15 minutes)"
	@echo "make packages          .deb, .rpm and .tar.gz into target/packages/out, built in a tree of Debian 11 (root, about 20 minutes); ARCH=arm64"
	@echo "make test-packages     installs, uses and removes them on Debian 11, 12 and unstable, by rpm, and arm64 under qemu (root, about 5 minutes)"
	@echo "make test-spark        the fleet's questions on a Spark cluster of two workers on loopback (about 4 minutes)"
	@echo "make deny              licences, sources and vulnerabilities of the crates, by cargo-deny"
	@echo "make docs              the documents as a book in target/book, by mdBook (built once)"
	@echo "make bench             weir against fio and sysbench, interleaved (about 15 minutes)"
	@echo "make bench-flood       a database beside a bulk copy, on a throttled loop device (root)"
	@echo "make bench-trace       block-layer traces against blktrace's and bcc's tools, offline and live (root)"
	@echo "make bench-tune        searches for settings: the race against a grid and random search, simulated (2 minutes)"
	@echo "make bench-guard       the guard against static dirty limits, on throttled loop devices (root, 5 hours; ARGS=--quick)"
	@echo "make install           weir, weir-fleet, manual pages and shell completions under PREFIX (default: /usr/local), below DESTDIR"

doctor:
	@scripts/doctor "$(DIR)" $(ARGS)

check:
	@scripts/test format shell lint python unit

test:
	@scripts/test

test-guest:
	@scripts/test-guest

test-servers:
	@scripts/test-servers

packages:
	@scripts/packages $(ARCH)

test-packages:
	@scripts/test-packages

test-spark:
	@scripts/test-spark

deny:
	@scripts/deny

docs:
	@scripts/docs

build:
	@scripts/build

bench:
	@scripts/bench bench/engines $(ARGS)

bench-flood:
	@scripts/bench bench/flood $(ARGS)

bench-trace:
	@scripts/bench bench/trace/run $(ARGS)

bench-tune:
	@scripts/bench bench/tune $(ARGS)

bench-guard:
	@scripts/bench bench/guard/gauntlet $(ARGS)

install:
	@scripts/install "$(PREFIX)"

uninstall:
	@scripts/install --remove "$(PREFIX)"
