// SPDX-License-Identifier: GPL-2.0
/*
 * How long syncs take, as they happen: durations by device, those under way with their start, and who is held back for
 * dirty pages. Four tables of fixed size that user space maps into its memory and reads without a call; it never waits
 * for an event, nor an event for it. src/syncs/tables.rs has the same structures.
 *
 * How calls are bracketed is the matter of sync_brackets.h.
 */
#include "syncs_state.h"
#include "sync_brackets.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- whose ---- */

static __always_inline struct task_struct___sync *leader_of(struct task_struct___sync *task)
{
	return task->group_leader;
}

/* A process goes by the name of its first thread; threads have names of their own. */
static __always_inline bool is_wanted(u32 tgid)
{
	struct task_struct___sync *task = (void *)bpf_get_current_task_btf();

	if (is_everybody)
		return true;
	if (only_listed && !bpf_map_lookup_elem(&listed, &tgid))
		return false;
	if (only_comm[0]) {
		char comm[COMM] = {};

		bpf_probe_read_kernel(comm, sizeof(comm), &leader_of(task)->comm);
		if (!is_only_comm(comm))
			return false;
	}
	return is_in_only_cgroup() && descends();
}

static __always_inline u64 written_by(struct task_struct___sync *task)
{
	return bpf_core_field_exists(task->ioac.write_bytes) ? BPF_CORE_READ(task, ioac.write_bytes) : 1;
}

/* To files of any kind, messages included. */
static __always_inline u64 passed_to_write(struct task_struct___sync *task)
{
	return bpf_core_field_exists(task->ioac.wchar) ? BPF_CORE_READ(task, ioac.wchar) : 1;
}

/* The current task's process; 0 where the table is full. */
static __noinline struct process *process_of(u32 tgid)
{
	struct process *process = FIND(processes, process, tgid, tgid, PROCESSES);
	struct task_struct___sync *leader;
	struct state *s;

	if (process && !process->is_gone)
		return process;
	if (process) {
		/* Who had the number before has ended, and user space has not looked since. */
		process->class = UNJUDGED;
		process->device = 0;
		process->syncs = process->pauses = process->pause_ticks = 0;
		process->is_gone = 0;
	} else {
		process = TAKE(processes, process, tgid, tgid, PROCESSES);
	}
	if (!process) {
		lose(LOST_PROCESS);
		return 0;
	}
	leader = leader_of((void *)bpf_get_current_task_btf());
	process->start_ns = BPF_CORE_READ(leader, start_boottime);
	s = state();
	if (s)
		__sync_fetch_and_add(&s->processes, 1);
	return process;
}

/* ---- on what ---- */

/* The device that the pages of an open file are written back to, a whole disk unless a partition itself is open. */
static __always_inline u32 device_of(struct file___sync *file)
{
	struct inode___sync *host = BPF_CORE_READ(file, f_mapping, host), *named = BPF_CORE_READ(file, f_inode);
	struct backing_dev_info___sync *bdi;
	struct device___sync *owner;

	if (!host || !named)
		return 0;
	if ((BPF_CORE_READ(named, i_mode) & S_IFMT_BITS) == S_IFBLK_BIT)
		return BPF_CORE_READ(named, i_rdev);
	bdi = BPF_CORE_READ(host, i_sb, s_bdi);
	if (!bdi || !(BPF_CORE_READ(bdi, capabilities) & BDI_WRITEBACK))
		return 0;
	owner = BPF_CORE_READ(bdi, owner);
	if (owner)
		return BPF_CORE_READ(owner, devt);
	/* Any account can mount what a program of its own serves, as often as there are places. */
	if (BPF_CORE_READ(host, i_sb, s_magic) == FUSE_MAGIC)
		return 0;
	/* btrfs and network file systems have a bdi of their own: the number of the file system stands for it. */
	return BPF_CORE_READ(host, i_sb, s_dev);
}

/* ---- what is dirty on it ---- */

static __always_inline struct device_syncs *place_of(u32 device)
{
	struct device_syncs *place;
	u64 key = device;

	place = FIND(devices, device_syncs, device, key, DEVICES);
	return place ? place : TAKE(devices, device_syncs, device, key, DEVICES);
}

/* Where cgroups write back on their own account, what is the root's says too little. */
static __always_inline void tell_dirty(struct device_syncs *place)
{
	struct backing_dev_info___sync *bdi = (void *)place->bdi;
	struct device___sync *owner = BPF_CORE_READ(bdi, owner);

	place->is_told = 0;
	/* Its memory may be somebody else's by now: the next sync or pause names it anew. */
	if (BPF_CORE_READ(bdi, id) != place->bdi_id || (owner && BPF_CORE_READ(owner, devt) != place->device)) {
		place->bdi = 0;
		return;
	}
	if (BPF_CORE_READ(bdi, wb_list.next) != BPF_CORE_READ(bdi, wb_list.prev))
		return;
	place->dirty_pages = BPF_CORE_READ(bdi, wb.stat[WB_RECLAIMABLE_STAT].count);
	place->writeback_pages = BPF_CORE_READ(bdi, wb.stat[WB_WRITEBACK_STAT].count);
	place->is_told = 1;
}

static __noinline int tell_all_dirty(void)
{
	for (u32 i = 0; i < DEVICES; i++) {
		u32 at = i;
		struct device_syncs *place = bpf_map_lookup_elem(&devices, &at);

		if (place && place->device && place->bdi)
			tell_dirty(place);
	}
	return 0;
}

static __always_inline void name_bdi(struct device_syncs *place, struct backing_dev_info___sync *bdi)
{
	if (place->bdi)
		return;
	place->bdi_id = BPF_CORE_READ(bdi, id);
	place->bdi = (u64)bdi;
}

/* A bdi without an owner does not say whose it is; a sync of its file system has. */
static __noinline u32 device_with(u64 bdi)
{
	for (u32 i = 0; i < DEVICES; i++) {
		u32 at = i;
		struct device_syncs *place = bpf_map_lookup_elem(&devices, &at);

		if (place && place->bdi == bdi)
			return place->device;
	}
	return 0;
}

/* ---- syncs ---- */

static __noinline int remember_bdi(u32 device, struct file___sync *file)
{
	struct device_syncs *place = place_of(device);

	if (place)
		name_bdi(place, BPF_CORE_READ(file, f_mapping, host, i_sb, s_bdi));
	return 0;
}

/* A call that may make something durable begins. */
static __always_inline int begins(u8 call, struct pt_regs___sync *regs)
{
	struct file___sync *file = 0;
	struct flight *flight;
	struct state *s;
	u32 tgid, tid, device;
	u64 both;

	if (call != MSYNC)
		file = file_of(argument(regs, 0));
	if (!makes_durable(call, file, regs))
		return 0;
	both = bpf_get_current_pid_tgid();
	tgid = both >> 32;
	tid = (u32)both;
	s = state();
	if (!s)
		return 0;
	if (tgid == own_tgid) {
		tell_all_dirty();
		__sync_fetch_and_add(&s->beats, 1);
		return 0;
	}
	if (!is_wanted(tgid))
		return 0;
	if (call == MSYNC)
		file = mapped_file(argument(regs, 0));
	if (!file)
		return 0;
	file = stored_file(file);
	device = device_of(file);
	if (!device)
		return 0;
	flight = FIND(flights, flight, tid, tid, FLIGHTS);
	if (!flight) {
		flight = TAKE(flights, flight, tid, tid, FLIGHTS);
		if (!flight) {
			lose(LOST_FLIGHT);
			return 0;
		}
		__sync_fetch_and_add(&s->under_way, 1);
	}
	remember_bdi(device, file);
	flight->tgid = tgid;
	flight->device = device;
	flight->without_write = call == MSYNC;
	flight->start_ns = bpf_ktime_get_ns();
	return 0;
}

/* Whether a sync of this process counts, where user space has not said yet. */
static __always_inline bool counts_unjudged(u32 without_write)
{
	struct task_struct___sync *task = (void *)bpf_get_current_task_btf();
	u64 written = written_by(task), passed = passed_to_write(task);

	if (leader_of(task) != task) {
		written += written_by(leader_of(task));
		passed += passed_to_write(leader_of(task));
	}
	/* Who has written nothing waits for what others wrote: that is no commit. */
	if (!written || (!passed && !without_write && written < told_bytes))
		return false;
	return written < bulk_bytes;
}

static __always_inline void count(struct device_syncs *to, u64 ns)
{
	u32 bucket = bucket_of(ns);

	if (bucket >= BUCKETS)
		return;
	__sync_fetch_and_add(&to->buckets[bucket], 1);
	__sync_fetch_and_add(&to->sum_ns, ns);
	if (ns > to->max_ns)
		to->max_ns = ns;
	__sync_fetch_and_add(&to->count, 1);
}

/* Threads fall into 1024 places; user space empties them at each look. */
static __always_inline void mark(struct device_syncs *to, u32 tid)
{
	u32 place = (tid * 0x9e3779b1U) >> 22;
	u64 bit = 1ULL << (place & 63), *word = &to->threads[(place >> 6) & 15];

	if (!(*word & bit))
		__sync_fetch_and_or(word, bit);
}

static __noinline int finish(u32 tgid, u32 tid, u32 device, u64 ns, u32 without_write)
{
	struct process *process = process_of(tgid);
	struct device_syncs *to;
	/* Without a place it is judged by itself: others must not make it unseen by taking all places. */
	u32 class = UNJUDGED;

	if (process) {
		process->is_wanted = 1;
		__sync_fetch_and_add(&process->syncs, 1);
		class = process->class;
	}
	to = place_of(device);
	if (!to) {
		lose(LOST_DEVICE);
		return 0;
	}
	if (is_everybody && !(class == UNJUDGED ? counts_unjudged(without_write) : class == PROTECTED))
		__sync_fetch_and_add(&to->left_out, 1);
	else {
		count(to, ns);
		mark(to, tid);
	}
	return 0;
}

static __always_inline void release(struct state *s, struct flight *flight)
{
	flight->start_ns = 0;
	flight->tid = 0;
	__sync_fetch_and_add(&s->under_way, -1);
}

/* It returns. */
static __always_inline int ends(void)
{
	struct flight *flight;
	struct state *s = state();
	u32 tid;

	if (!s || !s->under_way)
		return 0;
	tid = (u32)bpf_get_current_pid_tgid();
	flight = FIND(flights, flight, tid, tid, FLIGHTS);
	if (!flight)
		return 0;
	finish(flight->tgid, tid, flight->device, bpf_ktime_get_ns() - flight->start_ns, flight->without_write);
	release(s, flight);
	return 0;
}

BRACKETS

/* ---- syncs through io_uring ---- */

/* From where it is handed in, as a call's time is, the wait for operations it is linked to included. */
static __always_inline int ring_begins(struct io_kiocb___sync *operation)
{
	u64 both = bpf_get_current_pid_tgid(), key = (u64)operation;
	struct ring_flight flight;

	if (READ(operation, opcode) != RING_FSYNC)
		return 0;
	/* Nobody is told of its end, so that nobody waits for it. */
	if (BPF_CORE_READ(operation, flags) & RING_SILENT || !is_wanted(both >> 32))
		return 0;
	flight.start_ns = bpf_ktime_get_ns();
	flight.tgid = both >> 32;
	flight.tid = (u32)both;
	bpf_map_update_elem(&ring_flights, &key, &flight, BPF_ANY);
	return 0;
}

/* Since 6.0; then a second argument says something of no matter here. */
HOOK(io_uring_submit_sqe)
int BPF_PROG(on_enter_ring_sqe, struct io_kiocb___sync *operation)
{
	return ring_begins(operation);
}

/* Since 6.4. */
HOOK(io_uring_submit_req)
int BPF_PROG(on_enter_ring_req, struct io_kiocb___sync *operation)
{
	return ring_begins(operation);
}

HOOK(io_uring_complete)
int BPF_PROG(on_exit_ring, void *context, struct io_kiocb___sync *operation)
{
	u64 key = (u64)operation, ns;
	struct ring_flight *flight;
	struct file___sync *file;
	u32 device;

	if (BPF_CORE_READ(operation, opcode) != RING_FSYNC)
		return 0;
	flight = bpf_map_lookup_elem(&ring_flights, &key);
	if (!flight)
		return 0;
	ns = bpf_ktime_get_ns() - flight->start_ns;
	file = BPF_CORE_READ(operation, file);
	if (file)
		file = stored_file(file);
	device = file ? device_of(file) : 0;
	/* The kernel's own threads end what a process has left behind. */
	if (device && bpf_get_current_pid_tgid() >> 32 == flight->tgid) {
		remember_bdi(device, file);
		finish(flight->tgid, flight->tid, device, ns, 1);
	}
	bpf_map_delete_elem(&ring_flights, &key);
	return 0;
}

HOOK(sched_process_exit)
int BPF_PROG(on_task_gone, struct task_struct___sync *task)
{
	u32 tid = READ(task, pid), tgid = READ(task, tgid);
	struct state *s = state();
	struct process *process;
	struct flight *flight;

	if (s && s->under_way) {
		flight = FIND(flights, flight, tid, tid, FLIGHTS);
		if (flight)
			release(s, flight);
	}
	/* The last of its threads, whichever that is. */
	if (BPF_CORE_READ(task, signal, live.counter))
		return 0;
	process = FIND(processes, process, tgid, tgid, PROCESSES);
	if (process)
		process->is_gone = 1;
	return 0;
}

/* ---- buffered writers that are made to pause ---- */

static __always_inline void pauses(struct bdi_writeback___sync *wb, long pause)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct backing_dev_info___sync *bdi;
	struct device___sync *owner;
	struct device_syncs *place;
	struct process *process;

	if (pause <= 0 || tgid == own_tgid)
		return;
	process = process_of(tgid);
	if (!process)
		return;
	bdi = BPF_CORE_READ(wb, bdi);
	owner = BPF_CORE_READ(bdi, owner);
	process->device = owner ? BPF_CORE_READ(owner, devt) : device_with((u64)bdi);
	place = process->device ? place_of(process->device) : 0;
	if (place)
		name_bdi(place, bdi);
	process->is_wanted = is_wanted(tgid);
	__sync_fetch_and_add(&process->pauses, 1);
	__sync_fetch_and_add(&process->pause_ticks, pause);
}

/* Until 6.17: thresholds one by one; the pause, in jiffies, is the 11th argument. */
HOOK(balance_dirty_pages)
int on_pause_12(u64 *args)
{
	pauses((void *)args[0], (long)args[10]);
	return 0;
}

/* Since then they come in one structure, and the pause is the 7th. */
HOOK(balance_dirty_pages)
int on_pause_8(u64 *args)
{
	pauses((void *)args[0], (long)args[6]);
	return 0;
}

/* ---- who writes ---- */

struct bpf_iter_meta___sync {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta___sync *meta;
	struct task_struct___sync *task;
} __attribute__((preserve_access_index));

struct told {
	u32 tid;
	u32 tgid;
	u64 start_ns;
	u64 process_start_ns;
	u64 accounted;
	u64 passed;
	u64 calls;
	char comm[COMM];
};

/* Threads that have written something, and the kernel's accounts of it (/proc/PID/io); user space asks. */
SEC("iter/task")
int tell_writers(struct bpf_iter__task *ctx)
{
	struct task_struct___sync *task = ctx->task;
	struct told told = {};

	if (!task || !bpf_core_field_exists(task->ioac.write_bytes))
		return 0;
	told.accounted = task->ioac.write_bytes;
	if (told.accounted < told_bytes || task->flags & PF_KTHREAD_BIT)
		return 0;
	told.passed = task->ioac.wchar;
	told.calls = task->ioac.syscw;
	told.tid = task->pid;
	told.tgid = task->tgid;
	told.start_ns = task->start_boottime;
	told.process_start_ns = leader_of(task)->start_boottime;
	bpf_probe_read_kernel(told.comm, sizeof(told.comm), &leader_of(task)->comm);
	bpf_seq_write(ctx->meta->seq, &told, sizeof(told));
	return 0;
}
