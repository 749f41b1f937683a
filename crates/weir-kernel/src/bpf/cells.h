/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Distributions in the kernel, without hash maps and without atomics: each CPU writes cells of its own.
 *
 * A cell holds the stages of one kind of I/O (device, kind, size) on one CPU, and names what it holds, so that who reads
 * needs no index. The CPU's directory finds a cell by device (hashed), kind and size. Cells come from one stack
 * of free numbers, filled by the loader; when it is empty, completions are counted as lost.
 *
 * The includer defines STAGES first. Kernels from 6.0 on skip a program that would interrupt itself on its CPU, and count that.
 */
#ifndef WEIR_CELLS_H
#define WEIR_CELLS_H

#include "buckets.h"
#include "request.h"

#define SIZES 32
#define DEVICE_HASHES 64
#define PROBES 8

struct duration_sums {
	u64 sum_ns;
	u64 min_ns;
	u64 max_ns;
};

/* The sums of all stages stand together, in as few cache lines as they need. */
struct cell {
	u64 device;
	u32 kind;
	u32 size;
	u64 ios;
	u64 bytes;
	u64 errors;
	u64 for_others; /* Of the I/Os, those that were not looked at, and counted by one that was drawn: see sampling.h. */
	struct duration_sums sums[STAGES];
	u64 buckets[STAGES][BUCKETS];
};

#define DIRECTORY_CELLS (DEVICE_HASHES * KINDS * SIZES)
struct directory {
	u16 cells[DIRECTORY_CELLS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cell);
} cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct directory);
} directories SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1);
	__uint(value_size, sizeof(u32));
} free_cells SEC(".maps");

/* Counted together by all CPUs: seldom. live/losses.rs knows them by the same numbers. */
enum { LOST_CELLS, LOST_BEFORE_START, LOST_STAMPS, LOST_UNTIMED, LOST_BIOS, LOST_SLOW, LOST_KINDS };

/* What loader and programs tell each other while they run; as live/control.rs. */
struct {
	u64 started_ns; /* 0: nothing counts yet. */
	u64 cells; /* Cells taken, in order from 1. */
	u64 lost[LOST_KINDS];
} control SEC(".data.control") = {};

/* What the loader sets before it loads; as live/control.rs. */
#define PLACES_LISTED 256
const volatile struct {
	u64 slow_ns; /* 0: no request is slow. */
	u32 only_listed;
	u32 issue_is_stamped;
	u64 cgroup; /* 0: all. */
	u32 cgroup_level; /* How deep it lies below the root. */
	u32 only_processes;
	u32 flush_sequence; /* Of rq_flags: the request is a step of a flush sequence. */
	u32 bios_walked; /* By a completion, at most. */
	/* Which argument of the tracepoint is the bio. */
	u32 bio_at_queue;
	u32 bio_at_split;
	u32 bio_at_get_request;
	u32 bio_at_merge;
	/* The same of the request. */
	u32 request_at_insert;
	u32 request_at_issue;
	u32 any_size; /* Lengths are not told apart. */
	u32 sampled; /* Of a queue that completes twice as many, so many requests a second are counted, or more; 0: all. See sampling.h. */
	u64 devices[PLACES_LISTED];
	u64 processes[PLACES_LISTED];
} settings SEC(".rodata.settings") = {};

static __always_inline void lose(u32 what)
{
	__sync_fetch_and_add(&control.lost[what], 1);
}

/* The loader puts each number at most PROBES places behind its hash; 0 is a free place. */
static __always_inline bool is_listed(const volatile u64 *list, u64 number)
{
	u32 hash = hash_of(number);

	for (u32 probe = 0; probe < PROBES; probe++)
		if (list[(hash + probe) % PLACES_LISTED] == number)
			return number != 0;
	return false;
}

static __always_inline bool is_watched(u64 device)
{
	return settings.only_listed ? is_listed(settings.devices, device) : device != 0;
}

static __always_inline bool in_flush_sequence(struct request *rq)
{
	return READ(rq, rq_flags) & settings.flush_sequence;
}

/* log2, rounded up, of a length: SizeClass of weir-blocktrace. */
static __always_inline u32 size_of(u32 bytes)
{
	return settings.any_size || bytes < 2 ? 0 : exponent_of(bytes - 1) + 1;
}

static __always_inline void add_duration(struct cell *cell, u32 stage, u64 ns, u32 ios)
{
	struct duration_sums *sums = &cell->sums[stage];
	u32 bucket = bucket_of(ns);

	if (bucket >= BUCKETS)
		return;
	sums->sum_ns += ns * ios;
	if (ns < sums->min_ns)
		sums->min_ns = ns;
	if (ns > sums->max_ns)
		sums->max_ns = ns;
	cell->buckets[stage][bucket] += ios;
}

static __always_inline u32 new_cell(u64 device, u32 kind, u32 size)
{
	u32 number = 0;
	struct cell *cell;

	if (bpf_map_pop_elem(&free_cells, &number))
		return 0;
	cell = bpf_map_lookup_elem(&cells, &number);
	if (!cell)
		return 0;
	cell->kind = kind;
	cell->size = size;
	for (u32 stage = 0; stage < STAGES; stage++)
		cell->sums[stage].min_ns = ~0ULL;
	cell->device = device;
	__sync_fetch_and_add(&control.cells, 1);
	return number;
}

/*
 * The number of this CPU's cell for such an I/O; 0 where none is left, counted as lost. A global function, which the
 * verifier walks once instead of with every path that leads here.
 */
__noinline u32 find_cell(u64 device, u32 kind, u32 size)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct directory *directory = bpf_map_lookup_elem(&directories, &cpu);
	u32 hash = hash_of(device);

	if (!directory)
		return 0;
	for (u32 probe = 0; probe < PROBES; probe++) {
		u32 at = (((hash + probe) % DEVICE_HASHES) * KINDS + (kind & (KINDS - 1))) * SIZES + (size & (SIZES - 1));
		struct cell *cell;
		u32 number;

		/* The compiler makes the sum an "or", of whose result kernels around 6.1 know no bound. */
		asm volatile("" : "+r"(at));
		at %= DIRECTORY_CELLS;
		number = directory->cells[at];
		if (!number) {
			number = new_cell(device, kind, size);
			if (!number)
				break;
			directory->cells[at] = number;
			return number;
		}
		cell = bpf_map_lookup_elem(&cells, &number);
		if (cell && cell->device == device)
			return number;
	}
	lose(LOST_CELLS);
	return 0;
}

static __always_inline struct cell *cell_of(u64 device, u32 kind, u32 size)
{
	u32 number = find_cell(device, kind, size);

	return number ? bpf_map_lookup_elem(&cells, &number) : 0;
}

#endif
