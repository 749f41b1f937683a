/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's types as far as the programs here read them. Every structure keeps only the fields used, and
 * libbpf relocates each access to the running kernel's layout (CO-RE), so nothing here states an offset.
 */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __s32 s32;
typedef __u32 u32;
typedef __s64 s64;
typedef __u64 u64;
typedef _Bool bool;
#define true 1
#define false 0

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_F_MMAPABLE = 1 << 10, BPF_F_NO_PREALLOC = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct request_queue {
	struct gendisk *disk;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio_vec;

struct bvec_iter {
	u64 bi_sector;
	unsigned int bi_size;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	u8 bi_status;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct blkcg_gq *bi_blkg;
	struct bio_vec *bi_io_vec;
};

/* Since 6.9 a plug remembers its first time stamp, and requests made and issued under it take that one. */
struct blk_plug {
	u64 cur_ktime;
};

enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 rq_flags;
	u32 __data_len;
	u64 __sector;
	u64 start_time_ns;
	u64 io_start_time_ns;
	struct bio *bio;
};

/* Before 5.17 a request named its disk itself. */
struct request___5_16 {
	struct gendisk *rq_disk;
};

/* Before 5.12 a bio named its disk itself. */
struct bio___5_11 {
	struct gendisk *bi_disk;
};

enum bpf_func_id___known {
	/* Since 5.11. */
	BPF_FUNC_get_current_task_btf___known = 158,
	/* Since 5.17. */
	BPF_FUNC_find_vma___known = 180,
};

#pragma clang attribute pop

#define KERNEL_HAS(function) bpf_core_enum_value_exists(enum bpf_func_id___known, BPF_FUNC_##function##___known)

/*
 * An argument of a tracepoint that is not at the same place in all kernels (a queue came first until 5.11, with requests in early kernels of 5.10 too). The loader finds
 * its place in the kernel's types, the verifier knows it from there and takes the other branches out.
 */
static __always_inline void *argument_at(u64 *arguments, u32 at)
{
	u64 found;

	/* Loads that the compiler made one would be at a place that the verifier does not know. */
	if (at == 0) {
		found = arguments[0];
		asm volatile("" : "+r"(found));
	} else if (at == 1) {
		found = arguments[1];
		asm volatile("" : "+r"(found));
	} else {
		found = arguments[2];
		asm volatile("" : "+r"(found));
	}
	return (void *)found;
}

#endif
