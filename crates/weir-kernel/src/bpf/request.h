/* SPDX-License-Identifier: GPL-2.0 */
/* What a request says about itself. */
#ifndef WEIR_REQUEST_H
#define WEIR_REQUEST_H

#include "hook.h"

/* Operations whose numbers are the same from 5.10 to 7.2 (linux/blk_types.h). From 32 on they are passthrough. */
enum { OP_READ = 0, OP_WRITE = 1, OP_FLUSH = 2, OP_DISCARD = 3, OP_SECURE_ERASE = 5, OP_PASSTHROUGH = 32 };
#define OP_MASK 0xff

#define FLAG(name) (1U << bpf_core_enum_value(enum req_flag_bits, name))

/* Rows of the statistics; live/cells.rs knows them by the same numbers. */
enum { KIND_READ, KIND_WRITE, KIND_SYNC_WRITE, KIND_DISCARD, KIND_FLUSH, KIND_PASSTHROUGH, KIND_META = 8, KINDS = 16 };

static __always_inline u32 kind_of(u32 flags)
{
	u32 op = flags & OP_MASK;
	u32 meta = flags & FLAG(__REQ_META) ? KIND_META : 0;

	if (op >= OP_PASSTHROUGH)
		return KIND_PASSTHROUGH;
	if (op == OP_READ)
		return KIND_READ | meta;
	if (op == OP_FLUSH)
		return KIND_FLUSH;
	if (op == OP_DISCARD || op == OP_SECURE_ERASE)
		return KIND_DISCARD | meta;
	if (!(op & 1))
		return KIND_READ | meta;
	return (flags & FLAG(__REQ_SYNC) ? KIND_SYNC_WRITE : KIND_WRITE) | meta;
}

/* The low half of a pointer: the verifier takes a moved one for a number, and no other arithmetic on it. */
static __always_inline u32 low_half(void *pointer)
{
	u32 low;

	asm volatile("%0 = %1" : "=w"(low) : "w"((u32)(u64)pointer));
	return low;
}

/* Times this, the upper bits of a number are spread well, whichever of its lower ones differ. */
#define SPREAD 0x9E3779B1U

/* Where what is kept by address lies, of 2^16 places. */
static __always_inline u32 place_of_number(u32 low)
{
	return (low >> 6) * SPREAD >> 16;
}

static __always_inline u32 place_of(void *pointer)
{
	return place_of_number(low_half(pointer));
}

/* Major in the upper half, first minor in the lower; 0 for a request without a disk. */
static __always_inline u64 disk_number(struct gendisk *disk)
{
	if (!disk)
		return 0;
	return (u64)(u32)READ(disk, major) << 32 | (u32)READ(disk, first_minor);
}

static __always_inline u64 device_of_bio(struct bio *bio)
{
	struct bio___5_11 *old = (void *)bio;
	struct block_device *device;

	if (bpf_core_field_exists(old->bi_disk))
		return disk_number(READ(old, bi_disk));
	device = READ(bio, bi_bdev);
	return device ? disk_number(READ(device, bd_disk)) : 0;
}

static __always_inline u64 device_of(struct request *rq)
{
	struct request___5_16 *old = (void *)rq;
	struct request_queue *q;

	if (bpf_core_field_exists(old->rq_disk))
		return disk_number(READ(old, rq_disk));
	q = READ(rq, q);
	return disk_number(READ(q, disk));
}

/* The cgroup that the block layer charges for the bio; none where it knows none. */
static __always_inline struct cgroup *charged_cgroup(struct bio *bio)
{
	struct blkcg_gq *group;
	struct blkcg *charged;

	if (!bpf_core_field_exists(bio->bi_blkg))
		return 0;
	group = READ(bio, bi_blkg);
	if (!group)
		return 0;
	charged = READ(group, blkcg);
	return charged ? READ(charged, css.cgroup) : 0;
}

static __always_inline u64 cgroup_id(struct cgroup *cgroup)
{
	struct kernfs_node *node = READ(cgroup, kn);

	return node ? READ(node, id) : 0;
}

#endif
