// SPDX-License-Identifier: GPL-2.0
/*
 * Default detail: requests, from G (the request's own start_time_ns) over D to C.
 *
 * D is the request's io_start_time_ns where the loader knows it to be true (`settings.issue_is_stamped`): the kernel sets it for
 * queues that keep statistics (write-back throttling, kyber), and since 6.9 it may be the plug's, older than the issue.
 * Elsewhere on_issue stamps D itself. It does so without a map: requests come from a fixed set, whose addresses
 * spread well over a large table; where two in flight share a place, the older one's D is lost, and that is counted.
 */
#define STAGES 3
#include "slow.h"
#include "sampling.h"

char LICENSE[] SEC("license") = "GPL";

enum { G2D, D2C, G2C };

/* Set by the loader, which may attach on_issue for a part of the time: stamps of that part are true, and each stands for so many. */
struct {
	u64 from_ns;
	u64 until_ns;
	u64 each;
} issues SEC(".data.issues") = { .until_ns = ~0ULL, .each = 1 };

#define STAMPS (1 << 16)
struct stamp {
	u64 rq;
	u64 issue_ns;
} stamps[STAMPS];

/* Writes under way in a flush sequence: their length, which the last completion no longer tells. */
#define SEQUENCES 1024
struct sequence {
	u64 rq;
	u64 bytes;
} sequences[SEQUENCES];

HOOK(block_rq_issue)
int on_issue(u64 *arguments)
{
	struct request *rq = argument_at(arguments, settings.request_at_issue);
	struct stamp *stamp = &stamps[place_of(rq) % STAMPS];

	if (settings.sampled) {
		struct request_queue *queue = READ(rq, q);
		u64 start_ns = READ(rq, start_time_ns);
		u32 mask = mask_of(rate_of(queue), queue, start_ns);

		if (is_left_out(rq, start_ns, mask) && !in_flush_sequence(rq))
			return 0;
	}
	/* Nothing is read: the line was another CPU's, and stores need not wait for it. */
	stamp->issue_ns = bpf_ktime_get_ns();
	stamp->rq = (u64)rq;
	return 0;
}

static __always_inline u64 issued_at(struct request *rq)
{
	struct stamp *stamp = &stamps[place_of(rq) % STAMPS];

	if (settings.issue_is_stamped)
		return READ(rq, io_start_time_ns);
	if (stamp->rq != (u64)rq)
		return 0;
	/* Its next issue may not be watched, and not every queue renews the start that would tell. */
	if (settings.sampled)
		stamp->rq = 0;
	return stamp->issue_ns;
}

static __always_inline void tell_slow(struct request *rq, u64 device, u64 start_ns, u64 issue_ns, u64 now_ns, u32 bytes, int error)
{
	struct slow_request *slow = bpf_ringbuf_reserve(&slow_requests, sizeof(*slow), 0);
	struct bio *bio = READ(rq, bio);
	struct cgroup *cgroup = bio ? charged_cgroup(bio) : 0;

	if (!slow) {
		lose(LOST_SLOW);
		return;
	}
	__builtin_memset(slow, 0, sizeof(*slow));
	slow->device = device;
	slow->sector = READ(rq, __sector);
	slow->get_request_ns = start_ns;
	slow->issue_ns = issue_ns;
	slow->complete_ns = now_ns;
	slow->cgroup = cgroup ? cgroup_id(cgroup) : 0;
	slow->flags = flags_of(READ(rq, cmd_flags));
	slow->bytes = bytes;
	slow->error = error;
	bpf_ringbuf_submit(slow, 0);
}

/* Why a completed request has no D: its queue keeps no times, on_issue was not there yet, or others pushed it out. */
static __always_inline void explain_no_issue(u64 start_ns)
{
	if (settings.issue_is_stamped)
		lose(LOST_UNTIMED);
	else
		lose(start_ns && start_ns <= control.started_ns ? LOST_BEFORE_START : LOST_STAMPS);
}

static __always_inline void remember_sequence(struct request *rq, u32 bytes)
{
	struct sequence *sequence = &sequences[place_of(rq) % SEQUENCES];

	sequence->rq = (u64)rq;
	sequence->bytes = bytes;
}

static __always_inline u32 recall_sequence(struct request *rq, u64 start_ns)
{
	struct sequence *sequence = &sequences[place_of(rq) % SEQUENCES];

	if (sequence->rq != (u64)rq) {
		lose(start_ns > control.started_ns ? LOST_STAMPS : LOST_BEFORE_START);
		return 0;
	}
	sequence->rq = 0;
	return sequence->bytes;
}

/*
 * Which completions there are (block/blk-flush.c):
 * - of an ordinary request, with all its bytes, or with a part of them;
 * - of the device's own flush, which may serve several senders: its D2C counts, but not as an I/O;
 * - of the data of a write that is in a flush sequence: D2C and bytes count;
 * - of no bytes, the end of a sequence: of a write, or of a sender's flush (whose bio has no vector of pages). G2C counts, and the I/O.
 *
 * It counts as `ios`, and what its issue tells as `timed`, which is 0 where that was not looked at.
 */
static __noinline int count(struct request *rq, int error, u32 nr_bytes, u32 ios, u32 timed)
{
	u64 device = device_of(rq), start_ns = READ(rq, start_time_ns), now_ns, issue_ns = 0;
	u32 flags, kind, op, bytes = nr_bytes;
	bool is_device_flush, is_data, is_end, is_part;
	struct cell *cell;

	if (!control.started_ns || !is_watched(device))
		return 0;
	flags = READ(rq, cmd_flags);
	op = flags & OP_MASK;
	kind = kind_of(flags);
	is_part = nr_bytes < READ(rq, __data_len);
	is_device_flush = op == OP_FLUSH;
	is_data = !is_device_flush && in_flush_sequence(rq);
	is_end = !is_data && !nr_bytes && op == OP_WRITE;

	now_ns = bpf_ktime_get_ns();
	if (is_data && !is_part)
		remember_sequence(rq, bytes);
	if (is_end) {
		struct bio *bio = READ(rq, bio);

		if (bio && READ(bio, bi_io_vec))
			bytes = recall_sequence(rq, start_ns);
		else
			kind = KIND_FLUSH;
	} else if (!is_part && timed) {
		issue_ns = issued_at(rq);
		/* Of a request that was drawn as it came, and not as it went, the stamp may be of its last life. */
		if (settings.sampled && (issue_ns < start_ns || issue_ns < issues.from_ns || issue_ns > issues.until_ns))
			issue_ns = 0;
		if (!issue_ns && !settings.sampled)
			explain_no_issue(start_ns);
	}

	cell = cell_of(device, kind, size_of(bytes));
	if (!cell)
		return 0;
	cell->bytes += (u64)nr_bytes * ios;
	if (is_part)
		return 0;
	if (issue_ns)
		add_duration(cell, D2C, now_ns - issue_ns, timed);
	if (is_device_flush)
		return 0;
	if (start_ns && issue_ns >= start_ns)
		add_duration(cell, G2D, issue_ns - start_ns, timed);
	if (is_data)
		return 0;
	cell->ios += ios;
	cell->for_others += ios - 1;
	if (error)
		cell->errors++;
	if (start_ns)
		add_duration(cell, G2C, now_ns - start_ns, ios);
	else if (kind != KIND_PASSTHROUGH) /* Most kernels do not time it. */
		lose(LOST_UNTIMED);
	if (settings.sampled)
		keep_rate(rq, now_ns, start_ns ? now_ns - start_ns : 0, ios);
	if (settings.slow_ns && start_ns && now_ns - start_ns >= settings.slow_ns)
		tell_slow(rq, device, start_ns, issue_ns, now_ns, bytes, error);
	return 0;
}

HOOK(block_rq_complete)
int BPF_PROG(on_complete, struct request *rq, int error, unsigned int nr_bytes)
{
	u32 ios = 1, timed = 1;

	if (settings.sampled) {
		struct request_queue *queue = READ(rq, q);
		u64 start_ns = READ(rq, start_time_ns);
		struct queue_rate *rate = rate_of(queue);
		u32 mask = mask_of(rate, queue, start_ns);
		bool is_left = is_left_out(rq, start_ns, mask);
		bool is_exact = error || !nr_bytes || is_unusual(rate, start_ns) || in_flush_sequence(rq);

		if (is_left && !is_exact)
			return 0;
		ios = is_exact ? 1 : mask + 1;
		/* Of those that are left out, on_issue has stamped steps of a flush alone. */
		timed = settings.issue_is_stamped ? ios : issues.each * (in_flush_sequence(rq) ? 1 : is_left ? 0 : mask + 1);
	}
	return count(rq, error, nr_bytes, ios, timed);
}
