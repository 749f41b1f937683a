/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs of the fsync trace remember: settings, counters, tables, and the records they write. */
#ifndef WEIR_FSYNC_STATE_H
#define WEIR_FSYNC_STATE_H

#include "sync_calls.h"

enum { WAITS = 8, FRAMES = 24, BDI = 16 };
enum { RECORD_SYNC = 1, RECORD_IO = 2, RECORD_STACK = 3 };
enum { LOST_TASK, LOST_SYNC, LOST_IO, LOST_STACK, LOST_STALL, LOST_RING, LOSSES };

/* blk_types.h: operations are the low 8 bits; these have not moved since 4.10. */
enum { OP_MASK = 0xff, OP_READ = 0, OP_WRITE = 1, OP_FLUSH = 2, OP_DISCARD = 3, OP_SECURE_ERASE = 5, OP_WRITE_ZEROES = 9 };
/* REQ_META there, likewise. */
enum { META_BIT = 1 << 12 };

const volatile u32 only_tgid;
/* Which argument of block_bio_queue is the bio. */
const volatile u32 bio_at_queue;
/* Which of block_rq_issue is the request. */
const volatile u32 request_at_issue;
/* Waits at least this long always have their stack taken, shorter ones with probability wait/this ... */
const volatile u64 stack_every_ns = 1000000;
/* ... but of one sync of a task in so much time, of its first WAITS: few syncs must not be left to chance. */
#define ALL_STACKS_EVERY_NS 100000000ULL
enum { NO_STACK, STACK_BY_CHANCE, STACK_FOR_SURE };

/* What a task does: nothing that counts, a sync that is looked into, or a short one whose ends alone are stamped. */
enum { AWAY, LOOKED_INTO, SKIMMED };
/* A sync this long is always looked into, from here on at the latest. */
#define LONG_NS 1000000ULL
/* So many syncs of a task that follow a long one are looked into. */
enum { LOOKS_AFTER_LONG = 4 };
/* While a sync that is not looked into is long, those that have taken this long are from their next wake-up on. */
#define PROMOTED_FROM_NS (LONG_NS / 4)
/* That lasts until so long after the last sign of such a sync. */
#define FOLLOW_NS 2000000ULL
/* Of a task whose syncs are shorter than this on average, not all are looked into ... */
#define SKIM_BELOW_NS 400000
/* ... but one in so much time of syncing: a look takes 4 to 8 microseconds, so that is a third of a percent of the time. */
#define LOOK_EVERY_NS 2400000
enum { SKIM_MAX = 48 };

/*
 * What nearly every event of the machine reads stands apart from what every sync writes: a line of the cache that two
 * processors share costs more than all the rest of a program.
 */
#define LINE_OF_ITS_OWN __attribute__((aligned(64)))
/* Syncs under way that are looked into; tasks in a pause. */
u64 inside LINE_OF_ITS_OWN;
u64 stalling;
/* While a sync that is not looked into is long: since when, and until when. */
u64 following;
u64 following_since_ns;
u64 following_until_ns;
/* Syncs that are not looked into have been under way, or ended less than so long ago: completions look for long ones among them. */
u64 skimming;
#define SKIMMING_NS 1000000000ULL
/* Tells user space to attach on_issue. */
u64 issue_wanted;
/* When a sync that is not looked into last began or ended, to SKIMMED_STEP_NS. */
u64 skimmed_ns LINE_OF_ITS_OWN;
#define SKIMMED_STEP_NS 250000
/* Syncs under way that are not looked into. */
u64 skimmed LINE_OF_ITS_OWN;
/* Counts nothing: adding to it is a barrier, but on arm64; there user space mends what slips through. */
u64 barriers LINE_OF_ITS_OWN;
/* Tasks whose syncs are looked into or that pause, by the low bits of their ids: a look here spares most switches two searches of the table. */
enum { WATCHED = 8192 };
u32 watched[WATCHED] LINE_OF_ITS_OWN;
u64 lost[LOSSES];
/* Threads with a place in `tasks`. */
enum { TASKS = 8192, PASSING_LOOKS = 64 };
s32 tasks_held;

struct wait {
	u64 start_ns;
	u64 end_ns;
	u64 runnable_ns;
	u64 stack;
};

struct sync {
	u32 type;
	u32 tid;
	u32 tgid;
	u32 device;
	u32 file_system;
	u8 call;
	u8 waits_held;
	u8 under_way;
	u8 done;
	u64 inode;
	u64 start_ns;
	u64 end_ns;
	u64 waiting_since_ns;
	u64 run_delay_ns;
	u64 stall_ns;
	u64 stall_slept_ns;
	char comm[COMM];
	char bdi[BDI];
	/* What was before that was not looked into. */
	u64 seen_from_ns;
	struct wait waits[WAITS];
	/* What the last call was on: the next is mostly on the same, and need not be identified again. */
	u64 last_file;
	u64 last_host;
	u64 mean_ns;
	u32 skim_left;
	u32 looks_left;
	/* Whether each wait of this one has its stack taken, and when the last such sync began. */
	u64 all_stacks;
	u64 all_stacks_ns;
	/* What a skimmed sync is on, and how often its task had slept when it began. */
	u64 file;
	u64 sleeps;
	/* Its place is given up with each end: there were few when it was taken. */
	u64 is_passing;
};

/* Short syncs that were not looked into, by length. */
struct skim_key {
	u32 tgid;
	u8 call;
	u8 length_class;
	u16 pad;
};

struct skim {
	u64 count;
	u64 took_ns;
};

struct io {
	u32 type;
	u32 device;
	u64 complete_ns;
	u64 issue_ns;
	u64 get_ns;
	u64 queue_ns;
	u64 inode;
	u32 file_system;
	u32 owner_tgid;
	u32 own_tid;
	u32 bytes;
	u32 flags;
	/* The device whose own pages these are: metadata of the file system on it, or its writer's. */
	u32 raw_device;
};

struct stack {
	u32 type;
	u32 tid;
	u64 wait_start_ns;
	u64 frames_held;
	u64 frames[FRAMES];
};

struct inode_key {
	u64 inode;
	u32 file_system;
	u32 pad;
};

struct dirtier {
	u32 tgid;
	u32 pad;
	char comm[COMM];
};

struct stall_key {
	u32 tgid;
	u32 pad;
	char bdi[BDI];
};

struct stall {
	u64 count;
	u64 slept_ns;
	u64 slept_ns_max;
	char comm[COMM];
};

struct submitter_key {
	u32 tgid;
	u32 device;
	u32 op;
	u32 pad;
};

struct submitter {
	u64 bytes;
	u64 ios;
	char comm[COMM];
};

struct mine {
	u64 bio;
	u64 queue_ns;
	u32 tid;
	u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TASKS);
	__type(key, u32);
	__type(value, struct sync);
} tasks SEC(".maps");

/* User space gives it more places where few processors count. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 2048);
	__type(key, struct skim_key);
	__type(value, struct skim);
} skims SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct inode_key);
	__type(value, struct dirtier);
} dirtiers SEC(".maps");

/* Per CPU: the last inode that was dirtied, and by whom, so that a stream of writes to one file costs next to nothing. */
struct last_dirty {
	u64 inode;
	u64 file_system_and_tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct last_dirty);
} last_dirties SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct stall_key);
	__type(value, struct stall);
} stalls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct submitter_key);
	__type(value, struct submitter);
} submitters SEC(".maps");

/*
 * What is remembered of bios and requests in flight lies in tables with one place for each hash of a sector: a hash map's
 * insertion and deletion cost more than all the rest. A place that two share keeps the later one; the other's Q, or D,
 * is then not known.
 */
enum { PLACES = 4096 };

/* Bios that a task inside a sync submitted itself. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, struct mine);
} own_bios SEC(".maps");

/* When requests went to the driver, where the kernel does not keep it itself. */
struct issue {
	u64 request;
	u64 ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, u32);
	__type(value, struct issue);
} issued SEC(".maps");

/* Fibonacci hashing (Knuth, TAOCP 3, 6.4). */
static __always_inline u32 place_of(u64 sector)
{
	return (u32)((sector * 0x9e3779b97f4a7c15ULL) >> 52);
}

static const struct sync blank_sync;

#define LOSE(what) __sync_fetch_and_add(&lost[what], 1)

static __always_inline void follow(u64 now_ns)
{
	if (!following) {
		following_since_ns = now_ns;
		following = 1;
	}
	if (now_ns + FOLLOW_NS > following_until_ns)
		following_until_ns = now_ns + FOLLOW_NS;
}

/* Whether syncs under way that were not to be looked into are now. */
static __always_inline bool is_followed(void)
{
	return following && skimmed;
}

/* A sync that is not looked into begins or ends. */
static __always_inline void skimmed_at(u64 now_ns)
{
	if (now_ns - skimmed_ns >= SKIMMED_STEP_NS)
		skimmed_ns = now_ns;
}

/* Whether what the devices do matters to some sync: one is looked into, or one that is not becomes long. */
static __always_inline bool is_watched_now(void)
{
	u64 now_ns, idle_ns;

	if (inside)
		return true;
	if (!skimming)
		return false;
	now_ns = bpf_ktime_get_ns();
	/* Another CPU may have set it since. */
	idle_ns = now_ns > skimmed_ns ? now_ns - skimmed_ns : 0;
	if (idle_ns >= LONG_NS + SKIMMED_STEP_NS && skimmed)
		follow(now_ns);
	else if (following && now_ns >= following_until_ns)
		following = 0;
	if (idle_ns >= SKIMMING_NS && !skimmed) {
		following = skimming = 0;
		/* A barrier: a sync that began meanwhile has found it set, and is seen here. */
		__sync_fetch_and_add(&barriers, 1);
		if (*(volatile u64 *)&skimmed)
			skimming = 1;
	}
	return following && skimmed;
}

static __always_inline void watch(u32 tid, int by)
{
	__sync_fetch_and_add(&watched[tid % WATCHED], by);
}

#endif
