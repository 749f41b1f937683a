// SPDX-License-Identifier: GPL-2.0
/*
 * What tasks inside fsync and its kin wait for. The programs only bracket, stamp and count; what a wait was is
 * judged in user space, from the stack it was slept in and from the requests that completed meanwhile.
 *
 * Nearly every hook leaves at once while no sync is looked into (`inside`). Where syncs are short and many, only some
 * are: of the rest the ends are stamped and their lengths counted. One that turns out long is looked into from then on.
 * Everything is bounded: a table of tasks, a ring, tables of lengths, last dirtiers, stalls and submitters; each way to
 * lose something has its counter in `lost`.
 */
#include "fsync_state.h"
#include "fsync_calls.h"
#include "fsync_pauses.h"
#include "fsync_requests.h"
#include "fsync_rings.h"
#include "sync_brackets.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- brackets ---- */

static __always_inline void stall_over(struct sync *s)
{
	s->stall_ns = 0;
	s->stall_slept_ns = 0;
	__sync_fetch_and_add(&stalling, -1);
	watch(s->tid, -1);
}

static __always_inline void look_into(struct sync *s)
{
	s->under_way = LOOKED_INTO;
	__sync_fetch_and_add(&inside, 1);
	watch(s->tid, 1);
}

static __always_inline void look_away(struct sync *s)
{
	__sync_fetch_and_add(&inside, -1);
	watch(s->tid, -1);
}

/* Whether the sync that begins is to be looked into: all of tasks whose syncs are long, else one of some. */
static __always_inline bool is_looked_into(struct sync *s)
{
	u32 one_of;

	/* Of a place that is given up with each end nothing is known: the long ones are looked into all the same. */
	if (s->is_passing)
		return bpf_get_prandom_u32() % PASSING_LOOKS == 0;
	if (!s->mean_ns || s->mean_ns >= SKIM_BELOW_NS)
		return true;
	if (s->looks_left) {
		s->looks_left--;
		return true;
	}
	if (s->skim_left) {
		s->skim_left--;
		return false;
	}
	/* Drawn anew each time: two kinds of syncs in turns must both have their share. */
	one_of = LOOK_EVERY_NS / (u32)s->mean_ns;
	if (one_of > SKIM_MAX)
		one_of = SKIM_MAX;
	s->skim_left = bpf_get_prandom_u32() % (2 * one_of + 1);
	return true;
}

/* A call that may make something durable begins. */
static __always_inline int begins(u8 call, struct pt_regs___sync *regs)
{
	struct task_struct___sync *task;
	struct file___sync *file = 0;
	u64 both = bpf_get_current_pid_tgid();
	struct sync *s;

	if (only_tgid && both >> 32 != only_tgid)
		return 0;
	if (call != MSYNC && call != SYNC) {
		file = file_of(argument(regs, 0));
		/* On no file it fails. */
		if (!file)
			return 0;
	}
	if (!makes_durable(call, file, regs) || !is_wanted())
		return 0;
	if (call == MSYNC)
		file = mapped_file(argument(regs, 0));
	if (file)
		file = stored_file(file);
	s = state_of((u32)both);
	if (!s)
		return 0;
	task = current_task();
	s->type = RECORD_SYNC;
	s->tid = (u32)both;
	s->tgid = both >> 32;
	s->call = call;
	s->waits_held = 0;
	s->done = 0;
	s->end_ns = 0;
	s->waiting_since_ns = 0;
	if (s->under_way == SKIMMED)
		__sync_fetch_and_add(&skimmed, -1);
	else if (s->under_way)
		look_away(s);
	s->seen_from_ns = 0;
	s->start_ns = bpf_ktime_get_ns();
	if (!is_looked_into(s)) {
		s->all_stacks = 0;
		s->under_way = SKIMMED;
		s->file = (u64)file;
		s->sleeps = TASK_READ(task, nvcsw);
		skimmed_at(s->start_ns);
		__sync_fetch_and_add(&skimmed, 1);
		if (!skimming)
			skimming = 1;
		return 0;
	}
	bpf_get_current_comm(s->comm, sizeof(s->comm));
	identify(s, file);
	s->all_stacks = !s->all_stacks_ns || s->start_ns - s->all_stacks_ns >= ALL_STACKS_EVERY_NS;
	if (s->all_stacks)
		s->all_stacks_ns = s->start_ns;
	s->run_delay_ns = TASK_READ(task, sched_info.run_delay);
	look_into(s);
	return 0;
}

/* Time on the run queue becomes known with the next event: it belongs to the wait that ended last. */
static __always_inline void settle_run_delay(struct sync *s, struct task_struct___sync *task)
{
	u64 delay = TASK_READ(task, sched_info.run_delay);
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

/* Four to a power of two, below 2^20: 4 * exponent + the two bits that follow the first. */
static __always_inline u8 length_class(u32 ns)
{
	u32 exponent = 0, rest = ns;

	if (rest >> 16) { rest >>= 16; exponent += 16; }
	if (rest >> 8) { rest >>= 8; exponent += 8; }
	if (rest >> 4) { rest >>= 4; exponent += 4; }
	if (rest >> 2) { rest >>= 2; exponent += 2; }
	if (rest >> 1) { exponent += 1; }
	return exponent < 2 ? exponent * 4 : exponent * 4 + (ns >> (exponent - 2) & 3);
}

static __always_inline void count_skimmed(struct sync *s, u64 took_ns)
{
	struct skim_key key = {.tgid = s->tgid, .call = s->call, .length_class = length_class((u32)took_ns)};
	struct skim *skim = bpf_map_lookup_elem(&skims, &key), first = {.count = 1, .took_ns = took_ns};

	if (skim) {
		skim->count++;
		skim->took_ns += took_ns;
	} else if (bpf_map_update_elem(&skims, &key, &first, BPF_ANY)) {
		LOSE(LOST_SYNC);
	}
}

static __always_inline void finish(struct sync *s, struct task_struct___sync *task)
{
	u64 now_ns = bpf_ktime_get_ns(), took_ns = now_ns - s->start_ns, short_ns;
	bool was_skimmed = s->under_way == SKIMMED;

	s->under_way = AWAY;
	/* A single long one must not make short ones look long; it is looked into in any case. */
	short_ns = took_ns < LONG_NS ? took_ns : LONG_NS;
	s->mean_ns = s->mean_ns ? s->mean_ns - s->mean_ns / 16 + short_ns / 16 : short_ns | 1;
	if (took_ns >= LONG_NS)
		s->looks_left = LOOKS_AFTER_LONG;
	if (was_skimmed) {
		skimmed_at(now_ns);
		__sync_fetch_and_add(&skimmed, -1);
		if (took_ns < LONG_NS) {
			count_skimmed(s, took_ns);
			return;
		}
		identify(s, (void *)s->file);
		s->seen_from_ns = now_ns;
	} else {
		look_away(s);
		settle_run_delay(s, task);
	}
	s->end_ns = now_ns;
	s->done = 1;
	emit(s);
}

/* It returns. */
static __always_inline int ends(void)
{
	struct sync *s;
	u32 tid;

	if (!(inside || skimmed))
		return 0;
	tid = (u32)bpf_get_current_pid_tgid();
	s = bpf_map_lookup_elem(&tasks, &tid);
	if (!s || !s->under_way)
		return 0;
	finish(s, current_task());
	if (s->is_passing && !s->stall_ns)
		forget(tid);
	return 0;
}

BRACKETS
BRACKETS_OF_EVERYTHING

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
	forget(tid);
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
	w->stack = s->all_stacks ? STACK_FOR_SURE : STACK_BY_CHANCE;
}

static __always_inline void wait_begins(struct sync *s, struct task_struct___sync *task, u64 now_ns)
{
	settle_run_delay(s, task);
	if (s->waits_held >= WAITS) {
		emit(s);
		s->all_stacks = 0;
	}
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
	w->stack = NO_STACK;
	s->waiting_since_ns = 0;
	ns = now_ns - w->start_ns;
	if (s->all_stacks || ns >= stack_every_ns || ((u64)bpf_get_prandom_u32() * stack_every_ns >> 32) < ns)
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

/* A sync that was not to be looked into has become long: it is from now on. What it slept in began before. */
static __always_inline void promote(struct sync *s, struct task_struct___sync *task, u64 seen_from_ns)
{
	s->seen_from_ns = seen_from_ns;
	identify(s, (void *)s->file);
	s->run_delay_ns = task->sched_info.run_delay;
	look_into(s);
	__sync_fetch_and_add(&skimmed, -1);
}

static __always_inline bool is_to_promote(struct sync *s, u64 now_ns)
{
	return following && now_ns - s->start_ns >= PROMOTED_FROM_NS;
}

static __always_inline void leaves(struct task_struct___sync *task, u64 now_ns)
{
	u32 tid = task->pid;
	struct sync *s = bpf_map_lookup_elem(&tasks, &tid);

	if (!s)
		return;
	if (s->under_way == SKIMMED && is_to_promote(s, now_ns))
		promote(s, task, now_ns);
	if (s->under_way) {
		if (s->under_way == LOOKED_INTO)
			wait_begins(s, task, now_ns);
		else
			s->waiting_since_ns = now_ns;
	} else if (s->stall_ns && !s->stall_slept_ns) {
		if (now_ns - s->stall_ns < PAUSE_FOLLOWS_NS) {
			s->stall_slept_ns = now_ns;
		} else {
			stall_over(s);
			if (s->is_passing)
				forget(tid);
		}
	}
}

static __always_inline void comes_back(struct task_struct___sync *task, u64 now_ns)
{
	u32 tid = task->pid;
	struct sync *s = bpf_map_lookup_elem(&tasks, &tid);

	if (!s)
		return;
	if (s->under_way == SKIMMED && is_to_promote(s, now_ns)) {
		/*
		 * Where nobody saw it fall asleep, it slept when the following began; where that was for the first time, from
		 * its start on, but for the instant that it took to get there.
		 */
		if (s->waiting_since_ns < following_since_ns)
			s->waiting_since_ns = task->nvcsw == s->sleeps + 1 ? s->start_ns : following_since_ns;
		if (s->waiting_since_ns < s->start_ns)
			s->waiting_since_ns = s->start_ns;
		promote(s, task, s->waiting_since_ns);
	}
	if (s->under_way == LOOKED_INTO)
		wait_ends(s, task, now_ns);
	else if (!s->under_way && s->stall_slept_ns) {
		stall_ends(s, now_ns);
		if (s->is_passing)
			forget(tid);
	}
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct___sync *prev, struct task_struct___sync *next)
{
	bool is_all = is_followed(), from, to;
	u64 now_ns;

	if (!inside && !stalling && !is_all)
		return 0;
	/* Those that have to be promoted are not watched yet. */
	from = is_all || watched[(u32)prev->pid % WATCHED];
	to = is_all || watched[(u32)next->pid % WATCHED];
	if (!from && !to)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (from)
		leaves(prev, now_ns);
	if (to)
		comes_back(next, now_ns);
	return 0;
}
