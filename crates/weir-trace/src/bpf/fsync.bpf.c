// SPDX-License-Identifier: GPL-2.0
/*
 * What tasks inside fsync and its kin wait for. The programs only bracket, stamp and count; what a wait was is
 * judged in user space, from the stack it was slept in and from the requests that completed meanwhile.
 *
 * Nearly every hook leaves at once while no sync is under way (`inside`). Everything is bounded: a table of tasks, a
 * ring, tables of last dirtiers, stalls and submitters; each way to lose something has its counter in `lost`.
 */
#include "fsync_state.h"
#include "fsync_calls.h"
#include "fsync_pauses.h"
#include "fsync_requests.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- brackets ---- */

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
