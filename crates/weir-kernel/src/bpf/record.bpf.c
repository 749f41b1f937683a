// SPDX-License-Identifier: GPL-2.0
/*
 * The recorder: one program per tracepoint, which writes a record of 5 to 7 words into its CPU's ring. What the words
 * mean is said in docs/reference/trace-record.md; user space copies them to the file as they are.
 *
 * A ring is one value of an array map that user space maps. A program reserves by an atomic add, since an interrupt
 * may record in between on the same CPU, and stores the first word last: it is 0 until the record is complete, and
 * user space puts zeros back before it moves the tail. A record that begins before the ring's end may run over it
 * by the SPILL bytes that follow, so that every record is in one piece.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "GPL";

#define SPILL 64
/* Room that is never given away, so that interrupts between the check and the reservation find some. */
#define SLACK 1024
#define NAMES 256
#define DEVICES 16
/* A thread's name and cgroup are told again after so long. */
#define NAME_AGE_NS (1ULL << 30)

enum kind { Q = 1, M, F, G, I, D, R, C, BIO_C, X, A, RQ_MERGE, P, U, UT, NAME };

/* Types as far as they are read here; libbpf takes the names up to ___. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct gendisk___rec {
	int major;
	int first_minor;
};
struct block_device___rec {
	struct gendisk___rec *bd_disk;
};
struct request_queue___rec {
	struct gendisk___rec *disk;
};
struct bvec_iter___rec {
	u64 bi_sector;
	u32 bi_size;
};
struct bio___rec {
	struct block_device___rec *bi_bdev;
	u32 bi_opf;
	struct bvec_iter___rec bi_iter;
	void *bi_private;
	u8 bi_status;
};
struct request___rec {
	struct request_queue___rec *q;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	u64 start_time_ns;
	struct bio___rec *bio;
};
struct request___old {
	struct gendisk___rec *rq_disk;
};
struct task_struct___rec {
	struct task_struct___rec *group_leader;
	char comm[16];
};
#pragma clang attribute pop

/* Set before the programs are loaded. */
const volatile u64 base_ns;
const volatile u64 ring_mask = (1 << 20) - 1;
const volatile u32 devices_len;
const volatile u32 devices[DEVICES];
/* Bios are not recorded: D tells when its G was. */
const volatile bool issue_tells_g;

/* All programs are attached. One that comes first would record what a later one misses the other end of. */
volatile bool recording;

struct lane {
	u64 head;
	u64 dropped;
	u64 pad[6];
	/* User space's: how far it has read. */
	u64 tail;
	u64 pad_tail[7];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lane);
} lanes SEC(".maps");

struct ring {
	u8 bytes[(1 << 20) + SPILL];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ring);
} rings SEC(".maps");

/* Which thread's name was told last in each place: thread << 32 | when, in units of 2^20 ns. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NAMES);
	__type(key, u32);
	__type(value, u64);
} names SEC(".maps");

/*
 * The time is taken after this: a reader that does not see the place yet knows that the record will be younger than its look,
 * however long this processor stands still meanwhile.
 */
static __always_inline u64 *reserve(u32 cpu, u32 words)
{
	struct lane *lane = bpf_map_lookup_elem(&lanes, &cpu);
	u8 *ring;
	u64 at;

	if (!lane)
		return 0;
	at = *(volatile u64 *)&lane->head - *(volatile u64 *)&lane->tail;
	if (at > ring_mask - SLACK) {
		__sync_fetch_and_add(&lane->dropped, 1);
		return 0;
	}
	ring = bpf_map_lookup_elem(&rings, &cpu);
	if (!ring)
		return 0;
	at = __sync_fetch_and_add(&lane->head, words * 8);
	return (u64 *)(ring + (at & ring_mask));
}

static __always_inline void commit(u64 *record, u64 first)
{
#ifdef __TARGET_ARCH_x86
	/* Stores are seen in their order. */
	asm volatile("" ::: "memory");
	*(volatile u64 *)record = first;
#else
	__sync_lock_test_and_set(record, first);
#endif
}

static __always_inline u64 first_word(u32 kind, u64 now)
{
	return (u64)kind << 56 | (now - base_ns);
}

static __always_inline bool wanted(u32 device)
{
	u32 i;

	if (!recording)
		return false;
	if (!devices_len)
		return true;
	for (i = 0; i < DEVICES; i++)
		if (i < devices_len && devices[i] == device)
			return true;
	return false;
}

static __always_inline u32 number_of(struct gendisk___rec *disk)
{
	return disk ? (u32)disk->major << 20 | (disk->first_minor & 0xfffff) : 0;
}

static __always_inline u32 device_of_request(struct request *rq)
{
	struct request___old *old = (void *)rq;

	if (bpf_core_field_exists(old->rq_disk))
		return number_of(old->rq_disk);
	return number_of(((struct request___rec *)rq)->q->disk);
}

static __always_inline u32 device_of_bio(struct bio *bio)
{
	return number_of(((struct bio___rec *)bio)->bi_bdev->bd_disk);
}

/* Tells who a thread is, this one or its process's first, unless that was told lately on this CPU. */
static __always_inline void name(u32 cpu, u64 process, u32 thread, bool first, u64 now)
{
	u32 place = cpu * NAMES + thread % NAMES;
	u64 *told = bpf_map_lookup_elem(&names, &place);
	struct task_struct___rec *task, *leader;
	u64 *record;

	if (!told)
		return;
	if (*told >> 32 == thread && (u32)(now >> 20) - (u32)*told < NAME_AGE_NS >> 20)
		return;
	record = reserve(cpu, 5);
	if (!record)
		return;
	*told = (u64)thread << 32 | (u32)(now >> 20);
	record[1] = bpf_get_current_cgroup_id();
	if (first) {
		task = (void *)bpf_get_current_task();
		leader = BPF_CORE_READ(task, group_leader);
		bpf_core_read(record + 2, 16, &leader->comm);
	} else {
		bpf_get_current_comm(record + 2, 16);
	}
	record[4] = process << 32 | thread;
	commit(record, first_word(NAME, bpf_ktime_get_ns()));
}

static __always_inline int of_bio(u32 kind, struct bio *raw, u32 words, u64 sixth, u64 seventh)
{
	struct bio___rec *bio = (void *)raw;
	u64 both = bpf_get_current_pid_tgid(), *record, now, extra;
	u32 device = device_of_bio(raw), cpu, process = both >> 32, thread = both;

	if (!wanted(device))
		return 0;
	cpu = bpf_get_smp_processor_id();
	if (kind == Q) {
		now = bpf_ktime_get_ns();
		/* Threads of a server have names of their own: its name is told before theirs. */
		if (process != thread)
			name(cpu, process, process, true, now);
		name(cpu, process, thread, false, now);
	}
	record = reserve(cpu, words);
	if (!record)
		return 0;
	now = bpf_ktime_get_ns();
	record[1] = (u64)raw;
	record[2] = bio->bi_iter.bi_sector;
	record[3] = (u64)device << 32 | bio->bi_iter.bi_size;
	/* Who completes a bio says nothing; how it ended does. */
	extra = kind == BIO_C ? bio->bi_status : thread;
	record[4] = extra << 32 | bio->bi_opf;
	if (words > 5)
		record[5] = sixth;
	if (words > 6)
		record[6] = seventh;
	commit(record, first_word(kind, now));
	return 0;
}

static __always_inline int of_request(u32 kind, struct request *raw, u32 words, u32 bytes, u32 extra)
{
	struct request___rec *rq = (void *)raw;
	u32 device = device_of_request(raw), cpu;
	u64 *record, now;

	if (!wanted(device))
		return 0;
	cpu = bpf_get_smp_processor_id();
	record = reserve(cpu, words);
	if (!record)
		return 0;
	now = bpf_ktime_get_ns();
	if (kind == D && issue_tells_g) {
		u64 started = rq->start_time_ns, since = now - started;

		extra = !started || started > now ? 0 : since < ~0u ? since : ~0u;
	}
	record[1] = (u64)raw;
	record[2] = rq->__sector;
	record[3] = (u64)device << 32 | bytes;
	record[4] = (u64)extra << 32 | rq->cmd_flags;
	if (words > 5)
		record[5] = (u64)rq->bio;
	commit(record, first_word(kind, now));
	return 0;
}

#define LENGTH(rq) (((struct request___rec *)(rq))->__data_len)

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_queue, struct bio *bio)
{
	return of_bio(Q, bio, 5, 0, 0);
}

SEC("tp_btf/block_getrq")
int BPF_PROG(on_getrq, struct bio *bio)
{
	return of_bio(G, bio, 5, 0, 0);
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(on_backmerge, struct bio *bio)
{
	return of_bio(M, bio, 5, 0, 0);
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(on_frontmerge, struct bio *bio)
{
	return of_bio(F, bio, 5, 0, 0);
}

SEC("tp_btf/block_split")
int BPF_PROG(on_split, struct bio *bio, u32 new_sector)
{
	/* The front piece's end leads to the bio that was cut (bio_chain). */
	u64 parent = (u64)((struct bio___rec *)bio)->bi_private;
	struct bio___rec *front = (void *)bio;

	return of_bio(X, bio, 7, parent, front->bi_iter.bi_sector + (front->bi_iter.bi_size >> 9));
}

SEC("tp_btf/block_bio_remap")
int BPF_PROG(on_remap, struct bio *bio, u32 device, u64 sector)
{
	return of_bio(A, bio, 7, (u64)device, sector);
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete, void *queue, struct bio *bio)
{
	return of_bio(BIO_C, bio, 5, 0, 0);
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(on_insert, struct request *rq)
{
	return of_request(I, rq, 6, LENGTH(rq), 0);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *rq)
{
	return of_request(D, rq, 6, LENGTH(rq), 0);
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_requeue, struct request *rq)
{
	return of_request(R, rq, 5, LENGTH(rq), 0);
}

SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_rq_merge, struct request *rq)
{
	return of_request(RQ_MERGE, rq, 5, LENGTH(rq), 0);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *rq, int error, u32 bytes)
{
	return of_request(C, rq, 5, bytes, error);
}

/* A plug is of a thread, not of a device: a recording of some devices has those of the devices' queues. */
static __always_inline int of_queue(u32 kind, struct request_queue___rec *queue, u32 requests)
{
	u32 device = number_of(queue->disk), cpu, thread;
	u64 *record, now;

	if (!wanted(device))
		return 0;
	cpu = bpf_get_smp_processor_id();
	thread = bpf_get_current_pid_tgid();
	record = reserve(cpu, 5);
	if (!record)
		return 0;
	now = bpf_ktime_get_ns();
	record[2] = requests;
	record[3] = (u64)device << 32;
	record[4] = (u64)thread << 32;
	commit(record, first_word(kind, now));
	return 0;
}

SEC("tp_btf/block_plug")
int BPF_PROG(on_plug, struct request_queue___rec *queue)
{
	return of_queue(P, queue, 0);
}

SEC("tp_btf/block_unplug")
int BPF_PROG(on_unplug, struct request_queue___rec *queue, u32 requests, bool explicit)
{
	return of_queue(explicit ? U : UT, queue, requests);
}
