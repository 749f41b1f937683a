// SPDX-License-Identifier: GPL-2.0
/*
 * Full detail: every bio from its Q on, and each part of it after splits. The unit is the piece.
 *
 * Q, G and M are kept by bio, I and D by request, in tables indexed by address: a bio's and a request's place is one
 * cache line, found without a hash map's locks and allocation. Where two in flight share a place, the older one's
 * stamps are lost, and that is counted. At C the request still holds all its bios (block/blk-mq.c, blk_update_request).
 */
#define STAGES 9
#include "slow.h"

char LICENSE[] SEC("license") = "GPL";

/* As in weir-core's Stage. */
enum { Q2G, G2I, G2D, I2D, Q2M, M2D, D2C, Q2C, Q2D };

/*
 * Bios that a completion walks: requests hold up to 128 to 320 segments with usual limits, each at most one bio. Where a
 * kernel's verifier gives up before it has followed so many, the loader asks for fewer.
 */
#define BIOS_WALKED 512

/* Each table is a map of its own: no value may be larger than 4 MiB before 5.17 or so (KMALLOC_MAX_SIZE). */
#define BIOS (1 << 16)
struct bio_stamps {
	u64 bio; /* 0 once it is done. */
	u64 queue_ns;
	u64 get_request_ns;
	u64 merge_ns;
	u64 cgroup;
	u32 pid;
	u32 bytes;
	char comm[16];
} bios[BIOS] SEC(".bss.bios") __attribute__((aligned(64)));

#define REQUESTS (1 << 16)
struct request_stamps {
	u64 rq;
	u64 insert_ns;
	u64 issue_ns;
	u64 unused;
} requests[REQUESTS] SEC(".bss.requests") __attribute__((aligned(64)));

/* What a completion tells the function that adds its pieces, by CPU and program. */
struct completion {
	u64 device;
	u64 now_ns;
	u64 insert_ns;
	u64 issue_ns;
	u64 start_ns;
	u64 sector;
	s32 error;
	u32 is_data; /* The data of a flush sequence, which ends later. */
	u32 is_end; /* The end of one. */
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct completion);
} completions SEC(".maps");
enum { OF_REQUEST, OF_BIO };

static __always_inline struct bio_stamps *stamps_of(struct bio *bio)
{
	struct bio_stamps *stamps = &bios[place_of(bio) % BIOS];

	return stamps->bio == (u64)bio ? stamps : 0;
}

/* The cgroup asked for is the sender's or the one the block layer charges, or above one of these. */
static __always_inline bool is_cgroup_watched(struct bio *bio)
{
	struct cgroup *cgroup;

	if (bpf_get_current_ancestor_cgroup_id(settings.cgroup_level) == settings.cgroup)
		return true;
	cgroup = charged_cgroup(bio);
	for (u32 level = 0; level < 16 && cgroup; level++) {
		struct cgroup_subsys_state *parent;

		if (cgroup_id(cgroup) == settings.cgroup)
			return true;
		parent = READ(cgroup, self.parent);
		if (!parent)
			return false;
		cgroup = READ(parent, cgroup);
	}
	return false;
}

static __always_inline bool is_sender_watched(struct bio *bio, u32 process)
{
	if (settings.only_processes && !is_listed(settings.processes, process))
		return false;
	return !settings.cgroup || is_cgroup_watched(bio);
}

static __always_inline bool is_filtered(void)
{
	return settings.only_processes || settings.cgroup;
}

HOOK(block_bio_queue)
int on_queue(u64 *arguments)
{
	struct bio *bio = argument_at(arguments, settings.bio_at_queue);
	struct bio_stamps *stamps = &bios[place_of(bio) % BIOS];
	u64 process_and_thread = bpf_get_current_pid_tgid();

	if (settings.only_listed && !is_watched(device_of_bio(bio)))
		return 0;
	if (is_filtered()) {
		if (!is_sender_watched(bio, process_and_thread >> 32)) {
			if (stamps->bio == (u64)bio)
				stamps->bio = 0;
			return 0;
		}
		/* At C a bio without stamps is a stranger here, so this is where the loss shows. */
		if (stamps->bio && stamps->bio != (u64)bio)
			lose(LOST_STAMPS);
	}
	stamps->bio = (u64)bio;
	stamps->get_request_ns = 0;
	stamps->merge_ns = 0;
	stamps->pid = process_and_thread;
	stamps->bytes = READ(bio, bi_iter.bi_size);
	if (settings.slow_ns) {
		struct cgroup *charged = charged_cgroup(bio);
		u64 cgroup = charged ? cgroup_id(charged) : 0;

		/* Charged to the root (1) or nobody: the sender's own is nearer to the truth. */
		stamps->cgroup = cgroup > 1 ? cgroup : bpf_get_current_cgroup_id();
		bpf_get_current_comm(stamps->comm, sizeof(stamps->comm));
	}
	stamps->queue_ns = bpf_ktime_get_ns();
	return 0;
}

/* The front part is a new bio, whose bi_private is the bio it was cut from; the rest keeps the bio and its stamps. */
HOOK(block_split)
int on_split(u64 *arguments)
{
	struct bio *front = argument_at(arguments, settings.bio_at_split);
	u64 whole = (u64)READ(front, bi_private);
	struct bio_stamps *from = &bios[place_of_number(whole) % BIOS], *to = &bios[place_of(front) % BIOS];

	if (from->bio != whole)
		return 0;
	to->bio = (u64)front;
	to->queue_ns = from->queue_ns;
	to->get_request_ns = 0;
	to->merge_ns = 0;
	to->cgroup = from->cgroup;
	to->pid = from->pid;
	to->bytes = READ(front, bi_iter.bi_size);
	__builtin_memcpy(to->comm, from->comm, sizeof(to->comm));
	return 0;
}

HOOK(block_getrq)
int on_get_request(u64 *arguments)
{
	struct bio *bio = argument_at(arguments, settings.bio_at_get_request);
	struct bio_stamps *stamps = bio ? stamps_of(bio) : 0;

	if (stamps)
		stamps->get_request_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int merged(struct bio *bio)
{
	struct bio_stamps *stamps = stamps_of(bio);

	if (stamps)
		stamps->merge_ns = bpf_ktime_get_ns();
	return 0;
}

HOOK(block_bio_backmerge)
int on_back_merge(u64 *arguments)
{
	return merged(argument_at(arguments, settings.bio_at_merge));
}

HOOK(block_bio_frontmerge)
int on_front_merge(u64 *arguments)
{
	return merged(argument_at(arguments, settings.bio_at_merge));
}

HOOK(block_rq_insert)
int on_insert(u64 *arguments)
{
	struct request *rq = argument_at(arguments, settings.request_at_insert);
	struct request_stamps *stamps = &requests[place_of(rq) % REQUESTS];

	stamps->rq = (u64)rq;
	stamps->insert_ns = bpf_ktime_get_ns();
	return 0;
}

HOOK(block_rq_issue)
int on_issue(u64 *arguments)
{
	struct request *rq = argument_at(arguments, settings.request_at_issue);
	struct request_stamps *stamps = &requests[place_of(rq) % REQUESTS];

	if (stamps->rq != (u64)rq) {
		stamps->rq = (u64)rq;
		stamps->insert_ns = 0;
	}
	stamps->issue_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void tell_slow(struct completion *at, struct bio_stamps *stamps, u64 insert_ns, u32 flags, u32 bytes)
{
	struct slow_request *slow = bpf_ringbuf_reserve(&slow_requests, sizeof(*slow), 0);

	if (!slow) {
		lose(LOST_SLOW);
		return;
	}
	slow->device = at->device;
	slow->sector = at->sector;
	slow->queue_ns = stamps->queue_ns;
	slow->get_request_ns = stamps->get_request_ns;
	slow->insert_ns = insert_ns;
	slow->merge_ns = stamps->merge_ns;
	slow->issue_ns = at->is_end ? 0 : at->issue_ns;
	slow->complete_ns = at->now_ns;
	slow->cgroup = stamps->cgroup;
	slow->flags = flags_of(flags);
	slow->bytes = bytes;
	slow->error = at->error;
	slow->pid = stamps->pid;
	__builtin_memcpy(slow->comm, stamps->comm, sizeof(slow->comm));
	bpf_ringbuf_submit(slow, 0);
}

static __always_inline void add_between(struct cell *cell, u32 stage, u64 from_ns, u64 to_ns)
{
	if (from_ns && to_ns >= from_ns)
		add_duration(cell, stage, to_ns - from_ns, 1);
}

/* What came before D: of a merged bio until its merge, of the others over G and, where a scheduler had it, I. */
static __always_inline void add_stages_to_issue(struct cell *cell, struct bio_stamps *stamps, u64 insert_ns, u64 issue_ns)
{
	u64 queue_ns = stamps->queue_ns, get_request_ns = stamps->get_request_ns;

	add_between(cell, Q2D, queue_ns, issue_ns);
	if (stamps->merge_ns) {
		add_between(cell, Q2M, queue_ns, stamps->merge_ns);
		add_between(cell, M2D, stamps->merge_ns, issue_ns);
		return;
	}
	if (!get_request_ns)
		return;
	add_between(cell, Q2G, queue_ns, get_request_ns);
	if (insert_ns) {
		add_between(cell, G2I, get_request_ns, insert_ns);
		add_between(cell, I2D, insert_ns, issue_ns);
	} else {
		add_between(cell, G2D, get_request_ns, issue_ns);
	}
}

/*
 * Adds one piece of the completion that scratch place `of` holds. `found` says whether `place` in the table of bios is this
 * bio's. A global function, which the verifier walks once and not for every bio of a request.
 */
__noinline int add_piece(u32 of, u32 place, u32 found, u32 flags, u32 bytes)
{
	struct completion *at = bpf_map_lookup_elem(&completions, &of);
	struct bio_stamps *stamps = &bios[place % BIOS];
	u32 kind = kind_of(flags);
	struct cell *cell;
	u64 insert_ns;

	if (!at)
		return 0;
	if (at->is_end && found)
		bytes = stamps->bytes;
	if (at->is_end && !bytes)
		kind = KIND_FLUSH;
	cell = cell_of(at->device, kind, size_of(bytes));
	if (!cell)
		return 0;
	if (!at->is_end) {
		cell->bytes += bytes;
		add_between(cell, D2C, at->issue_ns, at->now_ns);
	}
	if (!at->is_data) {
		cell->ios++;
		if (at->error)
			cell->errors++;
	}
	if (!found) {
		if (kind < KIND_PASSTHROUGH || kind & KIND_META)
			lose(at->start_ns && at->start_ns <= control.started_ns ? LOST_BEFORE_START : LOST_STAMPS);
		return 0;
	}
	/* An I that is older than the piece's own G or M is an earlier life of the request's, or another piece's. */
	insert_ns = at->insert_ns >= stamps->get_request_ns && !stamps->merge_ns ? at->insert_ns : 0;
	if (!at->is_end && at->issue_ns)
		add_stages_to_issue(cell, stamps, insert_ns, at->issue_ns);
	if (at->is_data)
		return 0;
	add_between(cell, Q2C, stamps->queue_ns, at->now_ns);
	if (settings.slow_ns && at->now_ns - stamps->queue_ns >= settings.slow_ns)
		tell_slow(at, stamps, insert_ns, flags, bytes);
	stamps->bio = 0;
	return 0;
}

static __always_inline void add_device_flush(u64 device, u64 issue_ns, u64 now_ns)
{
	struct cell *cell = cell_of(device, KIND_FLUSH, 0);

	if (cell)
		add_between(cell, D2C, issue_ns, now_ns);
}

/* Which completions there are, see stages.bpf.c; in parts, each ends the bios it covers. */
HOOK(block_rq_complete)
int BPF_PROG(on_complete, struct request *rq, int error, unsigned int nr_bytes)
{
	struct request_stamps *stamps = &requests[place_of(rq) % REQUESTS];
	u64 device = device_of(rq);
	u32 of = OF_REQUEST, op, left = nr_bytes;
	struct completion *at;
	struct bio *bio;

	if (!control.started_ns || !is_watched(device))
		return 0;
	at = bpf_map_lookup_elem(&completions, &of);
	if (!at)
		return 0;
	op = READ(rq, cmd_flags) & OP_MASK;
	at->device = device;
	at->now_ns = bpf_ktime_get_ns();
	at->start_ns = READ(rq, start_time_ns);
	at->insert_ns = stamps->rq == (u64)rq ? stamps->insert_ns : 0;
	at->issue_ns = stamps->rq == (u64)rq ? stamps->issue_ns : 0;
	at->error = error;
	at->is_data = op != OP_FLUSH && in_flush_sequence(rq);
	at->is_end = !at->is_data && !nr_bytes && op == OP_WRITE;
	if (op == OP_FLUSH) {
		if (!is_filtered())
			add_device_flush(device, at->issue_ns, at->now_ns);
		return 0;
	}
	bio = READ(rq, bio);
	if (!bio && !is_filtered()) {
		/* Passthrough without data. */
		add_piece(of, 0, false, READ(rq, cmd_flags), nr_bytes);
		return 0;
	}
	for (u32 i = 0; i < BIOS_WALKED && i < settings.bios_walked; i++) {
		u32 place, bytes;
		bool found;

		if (!bio)
			return 0;
		bytes = READ(bio, bi_iter.bi_size);
		if (bytes > left)
			return 0;
		left -= bytes;
		place = place_of(bio) % BIOS;
		found = bios[place].bio == (u64)bio;
		if (found || !is_filtered()) {
			at->sector = READ(bio, bi_iter.bi_sector);
			add_piece(of, place, found, READ(bio, bi_opf), bytes);
		}
		bio = READ(bio, bi_next);
		if (!left)
			return 0;
	}
	lose(LOST_BIOS);
	return 0;
}

/* Only devices without requests (device-mapper, md) come here: their bios have a Q and a C. */
HOOK(block_bio_complete)
int BPF_PROG(on_bio_complete, struct request_queue *q, struct bio *bio)
{
	u64 device = device_of_bio(bio);
	u32 of = OF_BIO, place = place_of(bio) % BIOS;
	bool found = bios[place].bio == (u64)bio;
	struct completion *at;

	if (!control.started_ns || !is_watched(device))
		return 0;
	at = bpf_map_lookup_elem(&completions, &of);
	/* Without its Q neither its length nor its sector is known any more. */
	if (!at || !found)
		return 0;
	__builtin_memset(at, 0, sizeof(*at));
	at->device = device;
	at->now_ns = bpf_ktime_get_ns();
	at->error = READ(bio, bi_status);
	/* A flush is a write without data. */
	at->is_end = !bios[place].bytes && (READ(bio, bi_opf) & OP_MASK) == OP_WRITE;
	add_piece(of, place, true, READ(bio, bi_opf), bios[place].bytes);
	return 0;
}
