// SPDX-License-Identifier: GPL-2.0
/*
 * What tasks inside fsync and its kin wait for. The programs only bracket, stamp and count; what a wait was is
 * judged in user space, from the stack it was slept in and from the requests that completed meanwhile.
 *
 * Nearly every hook leaves at once while no sync is under way (`inside`). Everything is bounded: a table of tasks, a
 * ring, tables of last dirtiers, stalls and submitters; each way to lose something has its counter in `lost`.
 */
#include "kernel.h"
#include "fsync_types.h"

char LICENSE[] SEC("license") = "GPL";

enum { CALLS = 512, WAITS = 8, FRAMES = 24, COMM = 16, BDI = 16, ANCESTORS = 8 };
/* What a call is; the same numbers in src/fsync/record.rs. */
enum { FSYNC = 1, FDATASYNC, WRITE, PWRITEV2, SYNC_FILE_RANGE, MSYNC, SYNCFS, SYNC };
enum { RECORD_SYNC = 1, RECORD_IO = 2, RECORD_STACK = 3 };
enum { LOST_TASK, LOST_SYNC, LOST_IO, LOST_STACK, LOST_STALL, LOSSES };

/* open(2): O_DSYNC and its stronger form share this bit on every architecture that runs this. */
#define O_DSYNC_BIT 010000
/* pwritev2(2): RWF_DSYNC and RWF_SYNC; msync(2): MS_SYNC. */
enum { RWF_SYNCS = 0x2 | 0x4, MS_SYNC_BIT = 4 };
enum { S_IFMT_BITS = 0170000, S_IFBLK_BIT = 0060000 };
/* blk_types.h: operations are the low 8 bits; these have not moved since 4.10. */
enum { OP_MASK = 0xff, OP_READ = 0, OP_WRITE = 1, OP_FLUSH = 2 };

const volatile u8 calls[CALLS];
const volatile u32 only_tgid;
const volatile u32 only_descendants_of;
const volatile u64 only_cgroup;
const volatile u32 only_cgroup_level;
const volatile char only_comm[COMM];
/* Waits at least this long always have their stack taken, shorter ones with probability wait/this. */
const volatile u64 stack_every_ns = 1000000;

u64 inside;
u64 stalling;
/* Tasks that are watched, by the low bits of their ids: a look here spares most switches two searches of the table. */
enum { WATCHED = 8192 };
u32 watched[WATCHED];
u64 issue_wanted;
u64 lost[LOSSES];

struct wait {
	u64 start_ns;
	u64 end_ns;
	u64 runnable_ns;
	u64 has_stack;
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
	struct wait waits[WAITS];
	/* What the last call was on: the next is mostly on the same, and need not be identified again. */
	u64 last_file;
	u64 last_host;
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
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct sync);
} tasks SEC(".maps");

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

/* ---- which calls, which tasks ---- */

static __always_inline struct file___sync *file_of(u64 fd)
{
	struct task_struct___sync *task = (void *)bpf_get_current_task_btf();
	struct file___sync **open, *file = 0;
	struct files_struct___sync *files = task->files;
	struct fdtable___sync *table;

	if (!files)
		return 0;
	table = files->fdt;
	if (!table || fd >= table->max_fds)
		return 0;
	open = table->fd;
	bpf_probe_read_kernel(&file, sizeof(file), open + fd);
	return file;
}

static __always_inline bool comm_matches(void)
{
	char comm[COMM];

	if (!only_comm[0])
		return true;
	bpf_get_current_comm(comm, sizeof(comm));
	for (int i = 0; i < COMM; i++) {
		if (comm[i] != only_comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

static __always_inline bool descends(void)
{
	struct task_struct___sync *task = (void *)bpf_get_current_task_btf();

	for (int i = 0; i < ANCESTORS && task; i++) {
		if (BPF_CORE_READ(task, tgid) == only_descendants_of)
			return true;
		task = BPF_CORE_READ(task, real_parent);
	}
	return false;
}

static __always_inline bool is_wanted(void)
{
	if (only_cgroup && bpf_get_current_ancestor_cgroup_id(only_cgroup_level) != only_cgroup)
		return false;
	if (only_descendants_of && !descends())
		return false;
	return comm_matches();
}

/* Writes count only where they are to be durable when they return. */
static __always_inline bool makes_durable(u8 call, struct file___sync *file, struct pt_regs___sync *regs)
{
	if (call == MSYNC)
		return argument(regs, 2) & MS_SYNC_BIT;
	if (call == PWRITEV2 && (argument(regs, 5) & RWF_SYNCS))
		return true;
	if (call == WRITE || call == PWRITEV2)
		return file && (BPF_CORE_READ(file, f_flags) & O_DSYNC_BIT);
	return true;
}

static __always_inline u32 disk_number(struct gendisk___sync *disk)
{
	return disk ? (u32)BPF_CORE_READ(disk, major) << 20 | (u32)BPF_CORE_READ(disk, first_minor) : 0;
}

static __always_inline void identify(struct sync *s, struct file___sync *file)
{
	struct block_device___sync *device;
	struct inode___sync *named, *host;

	host = file ? BPF_CORE_READ(file, f_mapping, host) : 0;
	if (host && s->last_file == (u64)file && s->last_host == (u64)host && s->inode == BPF_CORE_READ(host, i_ino))
		return;
	s->last_file = (u64)file;
	s->last_host = (u64)host;
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	s->inode = 0;
	s->file_system = 0;
	s->device = 0;
	if (!file)
		return;
	named = BPF_CORE_READ(file, f_inode);
	if (!host || !named)
		return;
	s->inode = BPF_CORE_READ(host, i_ino);
	s->file_system = BPF_CORE_READ(host, i_sb, s_dev);
	if ((BPF_CORE_READ(named, i_mode) & S_IFMT_BITS) == S_IFBLK_BIT) {
		s->device = BPF_CORE_READ(named, i_rdev);
		return;
	}
	device = BPF_CORE_READ(host, i_sb, s_bdev);
	if (device)
		s->device = disk_number(BPF_CORE_READ(device, bd_disk));
}

static long vma_found(struct task_struct *task, struct vm_area_struct___sync *vma, struct file___sync **file)
{
	*file = vma->vm_file;
	return 0;
}

static __always_inline struct file___sync *mapped_file(u64 address)
{
	struct file___sync *file = 0;

	if (bpf_core_enum_value_exists(enum bpf_func_id___sync, BPF_FUNC_find_vma___sync))
		bpf_find_vma((void *)bpf_get_current_task_btf(), address, vma_found, &file, 0);
	return file;
}

static __always_inline struct sync *state_of(u32 tid)
{
	struct sync *s = bpf_map_lookup_elem(&tasks, &tid);

	if (s)
		return s;
	bpf_map_update_elem(&tasks, &tid, &blank_sync, BPF_NOEXIST);
	s = bpf_map_lookup_elem(&tasks, &tid);
	if (!s)
		LOSE(LOST_TASK);
	return s;
}

/* ---- brackets ---- */

static __always_inline void watch(u32 tid, int by)
{
	__sync_fetch_and_add(&watched[tid % WATCHED], by);
}

static __always_inline void stall_over(struct sync *s)
{
	s->stall_ns = 0;
	s->stall_slept_ns = 0;
	__sync_fetch_and_add(&stalling, -1);
	watch(s->tid, -1);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs___sync *regs, long number)
{
	struct task_struct___sync *task;
	struct file___sync *file = 0;
	u64 both;
	struct sync *s;
	u8 call;

	if ((unsigned long)number >= CALLS)
		return 0;
	call = calls[number];
	if (!call)
		return 0;
	both = bpf_get_current_pid_tgid();
	if (only_tgid && both >> 32 != only_tgid)
		return 0;
	if (call != MSYNC && call != SYNC)
		file = file_of(argument(regs, 0));
	if (!makes_durable(call, file, regs) || !is_wanted())
		return 0;
	if (call == MSYNC)
		file = mapped_file(argument(regs, 0));
	s = state_of((u32)both);
	if (!s)
		return 0;
	task = (void *)bpf_get_current_task_btf();
	s->type = RECORD_SYNC;
	s->tid = (u32)both;
	s->tgid = both >> 32;
	s->call = call;
	s->waits_held = 0;
	s->done = 0;
	s->end_ns = 0;
	s->waiting_since_ns = 0;
	identify(s, file);
	s->run_delay_ns = task->sched_info.run_delay;
	s->start_ns = bpf_ktime_get_ns();
	if (!s->under_way) {
		__sync_fetch_and_add(&inside, 1);
		watch(s->tid, 1);
	}
	s->under_way = 1;
	return 0;
}

/* Time on the run queue becomes known with the next event: it belongs to the wait that ended last. */
static __always_inline void settle_run_delay(struct sync *s, struct task_struct___sync *task)
{
	u64 delay = task->sched_info.run_delay;
	u32 last = s->waits_held - 1;

	/* 0: a task that was asleep in its call before the programs came. */
	if (last < WAITS && s->run_delay_ns)
		s->waits[last].runnable_ns = delay - s->run_delay_ns;
	s->run_delay_ns = delay;
}

static __always_inline void emit(struct sync *s)
{
	u32 held = s->waits_held;
	u64 bytes = __builtin_offsetof(struct sync, waits);

	if (held > WAITS)
		held = WAITS;
	bytes += held * sizeof(struct wait);
	if (bpf_ringbuf_output(&events, s, bytes, RING_NO_WAKEUP))
		LOSE(LOST_SYNC);
	s->waits_held = 0;
}

static __always_inline void finish(struct sync *s, struct task_struct___sync *task)
{
	settle_run_delay(s, task);
	s->end_ns = bpf_ktime_get_ns();
	s->done = 1;
	s->under_way = 0;
	__sync_fetch_and_add(&inside, -1);
	watch(s->tid, -1);
	emit(s);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs___sync *regs, long result)
{
	struct task_struct___sync *task;
	struct sync *s;
	u32 tid;

	if (!inside)
		return 0;
	tid = (u32)bpf_get_current_pid_tgid();
	if (!watched[tid % WATCHED])
		return 0;
	s = bpf_map_lookup_elem(&tasks, &tid);
	if (!s || !s->under_way)
		return 0;
	task = (void *)bpf_get_current_task_btf();
	finish(s, task);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_task_gone, struct task_struct___sync *task)
{
	u32 tid = task->pid;
	struct sync *s = bpf_map_lookup_elem(&tasks, &tid);

	if (!s)
		return 0;
	if (s->under_way)
		finish(s, task);
	if (s->stall_ns)
		stall_over(s);
	bpf_map_delete_elem(&tasks, &tid);
	return 0;
}

/* ---- waits ---- */

static __always_inline void take_stack(struct sync *s, struct wait *w, struct task_struct___sync *task)
{
	struct stack *stack;
	long bytes;

	stack = bpf_ringbuf_reserve(&events, sizeof(*stack), 0);
	if (!stack) {
		LOSE(LOST_STACK);
		return;
	}
	bytes = bpf_get_task_stack((void *)task, stack->frames, sizeof(stack->frames), 0);
	if (bytes <= 0) {
		bpf_ringbuf_discard(stack, RING_NO_WAKEUP);
		LOSE(LOST_STACK);
		return;
	}
	stack->type = RECORD_STACK;
	stack->tid = s->tid;
	stack->wait_start_ns = w->start_ns;
	stack->frames_held = (u64)bytes / sizeof(u64);
	bpf_ringbuf_submit(stack, RING_NO_WAKEUP);
	w->has_stack = 1;
}

static __always_inline void wait_begins(struct sync *s, struct task_struct___sync *task, u64 now_ns)
{
	settle_run_delay(s, task);
	if (s->waits_held >= WAITS)
		emit(s);
	s->waiting_since_ns = now_ns;
}

static __always_inline void wait_ends(struct sync *s, struct task_struct___sync *task, u64 now_ns)
{
	u32 i = s->waits_held;
	struct wait *w;
	u64 ns;

	if (i >= WAITS || !s->waiting_since_ns)
		return;
	w = &s->waits[i];
	w->start_ns = s->waiting_since_ns;
	w->end_ns = now_ns;
	w->runnable_ns = 0;
	w->has_stack = 0;
	s->waiting_since_ns = 0;
	ns = now_ns - w->start_ns;
	if (ns >= stack_every_ns || ((u64)bpf_get_prandom_u32() * stack_every_ns >> 32) < ns)
		take_stack(s, w, task);
	s->waits_held = i + 1;
}

static __always_inline void stall_ends(struct sync *s, u64 now_ns)
{
	struct stall_key key = {.tgid = s->tgid};
	struct stall *stall, first = {};
	u64 ns = now_ns - s->stall_slept_ns;

	__builtin_memcpy(key.bdi, s->bdi, BDI);
	stall = bpf_map_lookup_elem(&stalls, &key);
	if (!stall) {
		__builtin_memcpy(first.comm, s->comm, COMM);
		bpf_map_update_elem(&stalls, &key, &first, BPF_NOEXIST);
		stall = bpf_map_lookup_elem(&stalls, &key);
	}
	if (stall) {
		__sync_fetch_and_add(&stall->count, 1);
		__sync_fetch_and_add(&stall->slept_ns, ns);
		if (ns > stall->slept_ns_max)
			stall->slept_ns_max = ns;
	} else {
		LOSE(LOST_STALL);
	}
	stall_over(s);
}

/* The pause follows its tracepoint at once; a switch that comes later is another matter. */
#define PAUSE_FOLLOWS_NS 100000

static __always_inline void leaves(struct task_struct___sync *task, u64 now_ns)
{
	u32 tid = task->pid;
	struct sync *s = bpf_map_lookup_elem(&tasks, &tid);

	if (!s)
		return;
	if (s->under_way) {
		wait_begins(s, task, now_ns);
	} else if (s->stall_ns && !s->stall_slept_ns) {
		if (now_ns - s->stall_ns < PAUSE_FOLLOWS_NS) {
			s->stall_slept_ns = now_ns;
		} else {
			stall_over(s);
		}
	}
}

static __always_inline void comes_back(struct task_struct___sync *task, u64 now_ns)
{
	u32 tid = task->pid;
	struct sync *s = bpf_map_lookup_elem(&tasks, &tid);

	if (!s)
		return;
	if (s->under_way)
		wait_ends(s, task, now_ns);
	else if (s->stall_slept_ns)
		stall_ends(s, now_ns);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct___sync *prev, struct task_struct___sync *next)
{
	u32 from, to;
	u64 now_ns;

	if (!inside && !stalling)
		return 0;
	from = watched[(u32)prev->pid % WATCHED];
	to = watched[(u32)next->pid % WATCHED];
	if (!from && !to)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (from)
		leaves(prev, now_ns);
	if (to)
		comes_back(next, now_ns);
	return 0;
}

/* ---- buffered writers that are made to pause ---- */

static __always_inline void pauses(struct bdi_writeback___sync *wb, long pause)
{
	u64 both = bpf_get_current_pid_tgid();
	struct sync *s;

	if (pause <= 0)
		return;
	s = state_of((u32)both);
	if (!s || s->under_way)
		return;
	s->tid = (u32)both;
	if (!s->stall_ns) {
		__sync_fetch_and_add(&stalling, 1);
		watch(s->tid, 1);
	}
	s->tgid = both >> 32;
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	bpf_probe_read_kernel_str(s->bdi, sizeof(s->bdi), &wb->bdi->dev_name);
	s->stall_slept_ns = 0;
	s->stall_ns = bpf_ktime_get_ns();
}

/* Until 6.17: thresholds one by one; the pause, in jiffies, is the 11th argument. */
SEC("tp_btf/balance_dirty_pages")
int on_pause_12(u64 *args)
{
	pauses((void *)args[0], (long)args[10]);
	return 0;
}

/* Since then they come in one structure, and the pause is the 7th. */
SEC("tp_btf/balance_dirty_pages")
int on_pause_8(u64 *args)
{
	pauses((void *)args[0], (long)args[6]);
	return 0;
}

/* ---- who dirtied which inode last ---- */

static __always_inline void dirtied(struct address_space___sync *mapping)
{
	struct inode___sync *host = mapping ? mapping->host : 0;
	struct inode_key key = {};
	struct last_dirty *last;
	struct dirtier who = {};
	u32 zero = 0, tgid;
	u64 rest;

	if (!host)
		return;
	last = bpf_map_lookup_elem(&last_dirties, &zero);
	if (!last)
		return;
	tgid = bpf_get_current_pid_tgid() >> 32;
	key.inode = host->i_ino;
	key.file_system = host->i_sb->s_dev;
	rest = (u64)key.file_system << 32 | tgid;
	if (last->inode == key.inode && last->file_system_and_tgid == rest)
		return;
	last->inode = key.inode;
	last->file_system_and_tgid = rest;
	who.tgid = tgid;
	bpf_get_current_comm(who.comm, sizeof(who.comm));
	bpf_map_update_elem(&dirtiers, &key, &who, BPF_ANY);
}

SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(on_dirty_folio, void *folio, struct address_space___sync *mapping)
{
	dirtied(mapping);
	return 0;
}

/* Until 5.17 it was a page; the name alone differs. */
SEC("tp_btf/writeback_dirty_page")
int BPF_PROG(on_dirty_page, void *page, struct address_space___sync *mapping)
{
	dirtied(mapping);
	return 0;
}

/* ---- requests ---- */

/* The inode whose page the first part of a bio holds; none for direct I/O and for buffers of a file system's own. */
static __always_inline struct inode___sync *inode_of(struct bio___sync *bio)
{
	struct bio_vec___sync *vector;
	struct page___sync *page;
	unsigned long head, mapping;
	u64 at;

	if (!bio || !bio->bi_iter.bi_size)
		return 0;
	/* A piece of a split bio shares its parent's vector, and bi_vcnt is 0 there. */
	vector = bio->bi_io_vec;
	if (!vector)
		return 0;
	at = bpf_core_type_size(struct bio_vec___sync) * bio->bi_iter.bi_idx;
	page = BPF_CORE_READ((struct bio_vec___sync *)((u64)vector + at), bv_page);
	if (!page)
		return 0;
	head = BPF_CORE_READ(page, compound_head);
	if (head & 1)
		page = (void *)(head - 1);
	mapping = (unsigned long)BPF_CORE_READ(page, mapping);
	/* The two low bits say that it is no file's (page-flags.h, PAGE_MAPPING_FLAGS). */
	if (!mapping || (mapping & 3))
		return 0;
	return BPF_CORE_READ((struct address_space___sync *)mapping, host);
}

static __always_inline u32 device_of(struct request___sync *rq)
{
	struct gendisk___sync *disk;

	if (bpf_core_field_exists(rq->rq_disk))
		disk = rq->rq_disk;
	else
		disk = rq->q->disk;
	return disk ? (u32)disk->major << 20 | (u32)disk->first_minor : 0;
}

/* One in 8 of the bios that no inode explains says who sends such; user space scales by the same factor. */
enum { SUBMITTER_SAMPLE = 8 };

static __always_inline void sample_submitter(struct bio___sync *bio, u32 device, u32 tgid, u32 bytes)
{
	struct submitter_key key = {.tgid = tgid, .device = device, .op = bio->bi_opf & OP_MASK};
	struct submitter *known, first = {};

	if (bpf_get_prandom_u32() % SUBMITTER_SAMPLE)
		return;
	if (key.op == OP_WRITE && inode_of(bio))
		return;
	known = bpf_map_lookup_elem(&submitters, &key);
	if (!known) {
		bpf_get_current_comm(first.comm, sizeof(first.comm));
		bpf_map_update_elem(&submitters, &key, &first, BPF_ANY);
		known = bpf_map_lookup_elem(&submitters, &key);
	}
	if (!known)
		return;
	__sync_fetch_and_add(&known->bytes, bytes);
	__sync_fetch_and_add(&known->ios, 1);
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_queue, struct bio___sync *bio)
{
	struct mine *mine;
	struct sync *s;
	u32 tid, place;
	u64 both;

	if (!inside)
		return 0;
	both = bpf_get_current_pid_tgid();
	tid = (u32)both;
	s = watched[tid % WATCHED] ? bpf_map_lookup_elem(&tasks, &tid) : 0;
	if (s && s->under_way) {
		place = place_of(bio->bi_iter.bi_sector);
		mine = bpf_map_lookup_elem(&own_bios, &place);
		if (mine) {
			mine->bio = (u64)bio;
			mine->queue_ns = bpf_ktime_get_ns();
			mine->tid = tid;
		}
		return 0;
	}
	if ((bio->bi_opf & OP_MASK) <= OP_WRITE)
		sample_submitter(bio, disk_number(bio->bi_bdev->bd_disk), both >> 32, bio->bi_iter.bi_size);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request___sync *rq)
{
	struct issue *issue;
	u32 place;

	if (!inside || !issue_wanted)
		return 0;
	place = place_of(rq->__sector);
	issue = bpf_map_lookup_elem(&issued, &place);
	if (issue) {
		issue->request = (u64)rq;
		issue->ns = bpf_ktime_get_ns();
	}
	return 0;
}

static __always_inline void name_owner(struct io *io, struct bio___sync *bio, u64 sector)
{
	struct inode___sync *host = inode_of(bio);
	struct inode_key key = {};
	struct dirtier *who;
	struct mine *mine;
	u32 place = place_of(sector);

	if (host) {
		io->inode = key.inode = BPF_CORE_READ(host, i_ino);
		io->file_system = key.file_system = BPF_CORE_READ(host, i_sb, s_dev);
		if ((BPF_CORE_READ(host, i_mode) & S_IFMT_BITS) == S_IFBLK_BIT)
			io->raw_device = BPF_CORE_READ(host, i_rdev);
		who = bpf_map_lookup_elem(&dirtiers, &key);
		if (who)
			io->owner_tgid = who->tgid;
	}
	mine = bpf_map_lookup_elem(&own_bios, &place);
	if (mine && bio && mine->bio == (u64)bio) {
		io->own_tid = mine->tid;
		io->queue_ns = mine->queue_ns;
		mine->bio = 0;
	}
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request___sync *rq, int error, unsigned int bytes)
{
	struct io io = {.type = RECORD_IO};
	u32 place = place_of(rq->__sector);
	struct issue *issue;

	if (!inside)
		return 0;
	io.device = device_of(rq);
	io.complete_ns = bpf_ktime_get_ns();
	io.get_ns = rq->start_time_ns;
	io.issue_ns = rq->io_start_time_ns;
	io.bytes = bytes;
	io.flags = rq->cmd_flags;
	if (!io.issue_ns) {
		issue_wanted = 1;
		issue = bpf_map_lookup_elem(&issued, &place);
		if (issue && issue->request == (u64)rq && issue->ns >= io.get_ns)
			io.issue_ns = issue->ns;
	}
	if ((io.flags & OP_MASK) == OP_WRITE || (io.flags & OP_MASK) == OP_READ)
		name_owner(&io, rq->bio, rq->__sector);
	if (bpf_ringbuf_output(&events, &io, sizeof(io), RING_NO_WAKEUP))
		LOSE(LOST_IO);
	return 0;
}
