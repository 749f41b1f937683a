/* SPDX-License-Identifier: GPL-2.0 */
/* Requests: when they completed, and whose they were. */
#ifndef WEIR_FSYNC_REQUESTS_H
#define WEIR_FSYNC_REQUESTS_H

#include "fsync_state.h"

/* A mask has ones down to the size of the largest folio's pages, far above every address of a page. */
#define MASKS_FROM (-(1UL << 30))

/* The first page of the folio that a page is of. */
static __always_inline struct page___sync *head_of(struct page___sync *page)
{
	struct page___info *tail = (void *)page;
	unsigned long info;

	if (bpf_core_field_exists(page->compound_head))
		info = BPF_CORE_READ(page, compound_head);
	else if (bpf_core_field_exists(tail->compound_info))
		info = BPF_CORE_READ(tail, compound_info);
	else
		return page;
	if (!(info & 1))
		return page;
	return info >= MASKS_FROM ? (void *)((unsigned long)page & info) : (void *)(info - 1);
}

/* Its value is the kernel's (page-flags.h). */
enum pageflags___sync { PG_writeback___sync };

static __always_inline bool is_written_back(struct page___sync *head)
{
	unsigned long flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), head);
	return flags >> bpf_core_enum_value(enum pageflags___sync, PG_writeback___sync) & 1;
}

/*
 * The inode whose page the first part of a bio holds; none for direct I/O and for buffers of a file system's own. A direct write may
 * be of a page that a file of somebody else's is mapped to: only what is written back is that file's. (A file system's metadata is
 * not marked so.)
 */
static __always_inline struct inode___sync *inode_of(struct bio___sync *bio, bool is_write)
{
	struct inode___sync *host;
	struct bio_vec___sync *vector;
	struct page___sync *page;
	unsigned long mapping;
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
	if (!bpf_core_field_exists(page->mapping))
		return 0;
	page = head_of(page);
	mapping = (unsigned long)BPF_CORE_READ(page, mapping);
	/* The two low bits say that it is no file's (page-flags.h, PAGE_MAPPING_FLAGS). */
	if (!mapping || (mapping & 3))
		return 0;
	host = BPF_CORE_READ((struct address_space___sync *)mapping, host);
	if (host && is_write && (BPF_CORE_READ(host, i_mode) & S_IFMT_BITS) == S_IFREG_BIT && !is_written_back(page))
		return 0;
	return host;
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

static __always_inline u32 device_of_bio(struct bio___sync *bio)
{
	struct bio___disk *old = (void *)bio;

	if (bpf_core_field_exists(old->bi_disk))
		return disk_number(old->bi_disk);
	return disk_number(bio->bi_bdev->bd_disk);
}

static __always_inline bool is_kernel_thread(void)
{
	struct task_struct___sync *task = current_task();

	return TASK_READ(task, flags) & PF_KTHREAD_BIT;
}

/* What frees blocks or makes them zeros: it has no page of a file. */
static __always_inline bool is_discard(u32 op)
{
	return op == OP_DISCARD || op == OP_SECURE_ERASE || op == OP_WRITE_ZEROES;
}

/* One in 8 of the bios that no inode explains says who sends such; user space scales by the same factor. */
enum { SUBMITTER_SAMPLE = 8 };

static __always_inline void sample_submitter(struct bio___sync *bio, u32 device, u32 tgid, u32 bytes)
{
	u32 op = bio->bi_opf & OP_MASK;
	struct submitter_key key = {.tgid = tgid, .device = device, .op = is_discard(op) ? OP_DISCARD : op};
	struct submitter *known, first = {};

	if (bpf_get_prandom_u32() % SUBMITTER_SAMPLE)
		return;
	if (op == OP_WRITE) {
		/* The requests of a file's pages and of metadata tell whose they are. */
		if (bio->bi_opf & META_BIT || inode_of(bio, true))
			return;
		/* Kernel threads write for others (dm-crypt, md, swap): they have their part of such writes, all together. */
		if (is_kernel_thread())
			key.tgid = 0;
	}
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
int on_queue(u64 *arguments)
{
	struct bio___sync *bio = argument_at(arguments, bio_at_queue);
	struct mine *mine;
	struct sync *s;
	u32 tid, place, op;
	u64 both;

	if (!inside && !is_followed())
		return 0;
	both = bpf_get_current_pid_tgid();
	tid = (u32)both;
	s = watched[tid % WATCHED] ? bpf_map_lookup_elem(&tasks, &tid) : 0;
	if (s && s->under_way == LOOKED_INTO) {
		place = place_of(bio->bi_iter.bi_sector);
		mine = bpf_map_lookup_elem(&own_bios, &place);
		if (mine) {
			mine->bio = (u64)bio;
			mine->queue_ns = bpf_ktime_get_ns();
			mine->tid = tid;
		}
		return 0;
	}
	op = bio->bi_opf & OP_MASK;
	if (op <= OP_WRITE || is_discard(op))
		sample_submitter(bio, device_of_bio(bio), both >> 32, bio->bi_iter.bi_size);
	return 0;
}

/* Attached once a request came whose issue the kernel did not stamp: most kernels stamp all. */
SEC("tp_btf/block_rq_issue")
int on_issue(u64 *arguments)
{
	struct request___sync *rq = argument_at(arguments, request_at_issue);
	struct issue *issue;
	u32 place;

	if (!inside && !is_followed())
		return 0;
	place = place_of(rq->__sector);
	issue = bpf_map_lookup_elem(&issued, &place);
	if (issue) {
		issue->request = (u64)rq;
		issue->ns = bpf_ktime_get_ns();
	}
	return 0;
}

static __always_inline void name_owner(struct io *io, struct bio___sync *bio)
{
	struct inode___sync *host = inode_of(bio, (io->flags & OP_MASK) == OP_WRITE);
	struct inode_key key = {};
	struct dirtier *who;

	if (!host)
		return;
	io->inode = key.inode = BPF_CORE_READ(host, i_ino);
	io->file_system = key.file_system = BPF_CORE_READ(host, i_sb, s_dev);
	if ((BPF_CORE_READ(host, i_mode) & S_IFMT_BITS) == S_IFBLK_BIT)
		io->raw_device = BPF_CORE_READ(host, i_rdev);
	who = bpf_map_lookup_elem(&dirtiers, &key);
	if (who)
		io->owner_tgid = who->tgid;
}

static __always_inline void name_sender(struct io *io, struct bio___sync *bio, u32 place)
{
	struct mine *mine = bpf_map_lookup_elem(&own_bios, &place);

	if (mine && bio && mine->bio == (u64)bio) {
		io->own_tid = mine->tid;
		io->queue_ns = mine->queue_ns;
		mine->bio = 0;
	}
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request___sync *rq, int error, unsigned int bytes)
{
	struct issue *issue;
	struct io io;
	u32 place, op;

	if (!is_watched_now())
		return 0;
	__builtin_memset(&io, 0, sizeof(io));
	io.type = RECORD_IO;
	place = place_of(rq->__sector);
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
	op = io.flags & OP_MASK;
	if (op == OP_WRITE || op == OP_READ)
		name_owner(&io, rq->bio);
	if (op <= OP_WRITE || is_discard(op))
		name_sender(&io, rq->bio, place);
	if (bpf_ringbuf_output(&events, &io, sizeof(io), RING_NO_WAKEUP))
		LOSE(LOST_IO);
	return 0;
}

#endif
