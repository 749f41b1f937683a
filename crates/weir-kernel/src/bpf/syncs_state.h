/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs that time syncs are told, and their tables; src/syncs/tables.rs has the same structures. */
#ifndef WEIR_SYNCS_STATE_H
#define WEIR_SYNCS_STATE_H

#include "buckets.h"
#include "sync_calls.h"

enum { FLIGHTS = 4096, RING_FLIGHTS = 4096, PROCESSES = 8192, DEVICES = 64, LISTED = 4096, PROBES = 8 };
/* What a process is: not judged yet, one whose syncs are protected, a bulk writer. */
enum { UNJUDGED, PROTECTED, BULK };
enum { LOST_FLIGHT, LOST_PROCESS, LOST_DEVICE, LOST_RING, LOSSES };
/* backing-dev.h: dirty pages are written back; since 5.10. fs/fuse/inode.c. */
enum { BDI_WRITEBACK = 1, FUSE_MAGIC = 0x65735546 };
/* backing-dev-defs.h, enum wb_stat_item. */
enum { WB_RECLAIMABLE_STAT, WB_WRITEBACK_STAT };
/* The uapi's IORING_OP_FSYNC; of an operation's flags IOSQE_CQE_SKIP_SUCCESS. */
enum { RING_FSYNC = 3, RING_SILENT = 1 << 6 };

/* Drawn at the start. Places follow from it: nobody can choose ids that crowd those of others out. */
const volatile u64 seed;
/* The process that reads all this: its own syncs are its heartbeat. */
const volatile u32 own_tgid;
/* Everybody is protected but bulk writers; else only those asked for are, whatever they write. */
const volatile u8 is_everybody;
/* Only processes in `listed`. */
const volatile u8 only_listed;
/* A process that has written this much before it was judged is a bulk writer; as in src/syncs/debt.rs. */
const volatile u64 bulk_bytes = 64 << 20;
/*
 * Threads that have written less are not told of; and who has dirtied less, and passed nothing to write(), may only have
 * read: a file's time of last access dirties a page, too, on ext4 without a journal.
 */
const volatile u64 told_bytes = 64 << 10;

/* A sync under way. */
struct flight {
	u32 tid; /* 0: free. */
	u32 tgid;
	u32 device;
	u32 without_write; /* Its bytes need not have passed through write(). */
	u64 start_ns; /* 0: not begun yet, or over. */
};

/* One through io_uring. */
struct ring_flight {
	u64 start_ns;
	u32 tgid;
	u32 tid;
};

struct process {
	u32 tgid; /* 0: free. */
	u32 class; /* Said by user space. */
	u32 is_wanted;
	u32 is_gone;
	u32 device; /* Where it was held back last. */
	u32 pad;
	u64 start_ns; /* Of its life: ids are used again. */
	u64 syncs;
	u64 pauses;
	u64 pause_ticks;
};

/* Syncs of a device that are protected, and the count of the others. */
struct device_syncs {
	u64 device; /* 0: free. */
	u64 count;
	u64 sum_ns;
	u64 max_ns; /* User space sets it back. */
	u64 left_out;
	u64 bdi; /* Address of what writes its pages back; 0 where it is not known yet. */
	u64 bdi_id; /* No two bdi have one until the next boot. */
	s64 dirty_pages, writeback_pages; /* As they were at user space's last sync. */
	u64 is_told; /* Whether these two are known. */
	u64 threads[16]; /* A bit for each place of a thread that synced; user space empties them. */
	u64 buckets[BUCKETS];
};

struct state {
	u64 beats;
	u64 pad[7];
	u64 under_way;
	u64 more_pad[7];
	u64 lost[LOSSES];
	u64 processes; /* Places of processes that were ever taken: a new one shows in it. */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLIGHTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct flight);
} flights SEC(".maps");

/*
 * By the operation's address. Of one that finds its ring full no end is told: the oldest make room, and user space shows none
 * as under way.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, RING_FLIGHTS);
	__type(key, u64);
	__type(value, struct ring_flight);
} ring_flights SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROCESSES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DEVICES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct device_syncs);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LISTED);
	__type(key, u32);
	__type(value, u32);
} listed SEC(".maps");

static __always_inline struct state *state(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&states, &zero);
}

static __always_inline void lose(u32 what)
{
	struct state *s = state();

	if (s)
		__sync_fetch_and_add(&s->lost[what], 1);
}

/* A finalizer of MurmurHash3 (Appleby): which keys fall together, depends on all bits of the seed. */
static __always_inline u32 mixed(u64 key)
{
	key ^= seed;
	key = (key ^ key >> 33) * 0xff51afd7ed558ccdULL;
	key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ULL;
	return key ^ key >> 33;
}

/*
 * Tables with PROBES places behind a hash. A place is taken by its key; two processors that want the same one are told
 * apart by the exchange. Two that take one for the same key get the same: the first free place, or the one that the other
 * took meanwhile.
 */
#define FIND(table, type, field, key, entries) \
	({ \
		struct type *found = 0; \
		u32 hash = mixed(key); \
		for (u32 probe = 0; probe < PROBES && !found; probe++) { \
			u32 at = (hash + probe) % (entries); \
			struct type *place = bpf_map_lookup_elem(&table, &at); \
			if (place && place->field == (key)) \
				found = place; \
		} \
		found; \
	})

#define TAKE(table, type, field, key, entries) \
	({ \
		struct type *taken = 0; \
		u32 hash = mixed(key); \
		for (u32 probe = 0; probe < PROBES && !taken; probe++) { \
			u32 at = (hash + probe) % (entries); \
			struct type *place = bpf_map_lookup_elem(&table, &at); \
			if (!place) \
				continue; \
			typeof(place->field) was = place->field; \
			if (!was) \
				was = __sync_val_compare_and_swap(&place->field, 0, (key)); \
			if (!was || was == (key)) \
				taken = place; \
		} \
		taken; \
	})

#endif
