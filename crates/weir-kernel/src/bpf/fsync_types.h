/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What fsync.bpf.c and syncs.bpf.c read of the kernel beyond kernel.h. The suffix ___sync makes these views of their own: libbpf
 * ignores it when it relocates (CO-RE "flavours").
 */
#ifndef WEIR_FSYNC_TYPES_H
#define WEIR_FSYNC_TYPES_H

#include "hook.h"

/* The uapi's BPF_RB_NO_WAKEUP: user space looks into the ring by the clock. */
enum { RING_NO_WAKEUP = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk___sync {
	int major;
	int first_minor;
};

struct block_device___sync {
	struct gendisk___sync *bd_disk;
};

struct device___sync {
	u32 devt;
};

struct backing_dev_info___sync;

struct percpu_counter___sync {
	long long count;
};

struct bdi_writeback___sync {
	struct backing_dev_info___sync *bdi;
	struct percpu_counter___sync stat[4];
};

struct list_head___sync {
	struct list_head___sync *next, *prev;
};

struct backing_dev_info___sync {
	u64 id;
	unsigned int capabilities;
	struct device___sync *owner;
	char dev_name[64];
	struct bdi_writeback___sync wb;
	struct list_head___sync wb_list;
};

struct super_block___sync {
	u32 s_dev;
	unsigned long s_magic;
	struct block_device___sync *s_bdev;
	struct backing_dev_info___sync *s_bdi;
};

struct inode___sync {
	u16 i_mode;
	u32 i_rdev;
	unsigned long i_ino;
	struct super_block___sync *i_sb;
};

struct address_space___sync {
	struct inode___sync *host;
};

struct dentry___sync {
	struct inode___sync *d_inode;
};

struct path___sync {
	struct dentry___sync *dentry;
};

struct file___sync {
	unsigned int f_flags;
	unsigned int f_mode;
	struct address_space___sync *f_mapping;
	struct inode___sync *f_inode;
	struct path___sync f_path;
	void *private_data;
};

struct fdtable___sync {
	unsigned int max_fds;
	struct file___sync **fd;
};

struct files_struct___sync {
	struct fdtable___sync *fdt;
};

struct sched_info___sync {
	unsigned long long run_delay;
};

struct task_io_accounting___sync {
	u64 wchar;
	u64 syscw;
	u64 write_bytes;
};

struct atomic___sync {
	int counter;
};

struct signal_struct___sync {
	struct atomic___sync live; /* Threads that have not ended. */
};

struct task_struct___sync {
	int pid;
	int tgid;
	unsigned int flags;
	u64 start_boottime;
	struct task_io_accounting___sync ioac;
	struct task_struct___sync *group_leader;
	struct signal_struct___sync *signal;
	char comm[16];
	struct files_struct___sync *files;
	struct sched_info___sync sched_info;
	unsigned long nvcsw;
	struct task_struct___sync *real_parent;
};

/* An operation of io_uring. */
struct io_kiocb___sync {
	u8 opcode;
	u32 flags;
	struct file___sync *file;
};

struct vm_area_struct___sync {
	struct file___sync *vm_file;
};

/* A folio's first page; a tail points at it with the lowest bit set. */
/* Flags come first, in whatever they are wrapped. */
struct page___sync {
	unsigned long compound_head;
	struct address_space___sync *mapping;
};

/* Since 7.0: the same, or a mask that makes the first page's address of a tail's. */
struct page___info {
	unsigned long compound_info;
};

struct folio___sync {
	struct address_space___sync *mapping;
};

struct bio_vec___sync {
	struct page___sync *bv_page;
};

struct bvec_iter___sync {
	u64 bi_sector;
	unsigned int bi_size;
	unsigned int bi_idx;
};

struct bio___sync {
	struct block_device___sync *bi_bdev;
	struct bio_vec___sync *bi_io_vec;
	struct bvec_iter___sync bi_iter;
	u32 bi_opf;
};

struct bio___disk {
	struct gendisk___sync *bi_disk;
};

struct request_queue___sync {
	struct gendisk___sync *disk;
};

struct request___sync {
	struct request_queue___sync *q;
	struct gendisk___sync *rq_disk;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	u64 start_time_ns;
	u64 io_start_time_ns;
	struct bio___sync *bio;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs___sync {
	unsigned long di, si, dx, r10, r8, r9, orig_ax;
};
#else
struct pt_regs___sync {
	u64 regs[31];
	s32 syscallno;
};
#endif

#pragma clang attribute pop

/* The current task, whose fields TASK_READ reads. */
static __always_inline struct task_struct___sync *current_task(void)
{
	return KERNEL_HAS(get_current_task_btf) ? (void *)bpf_get_current_task_btf() : (void *)bpf_get_current_task();
}

/* Where the kernel gives the task with its type, the program may follow it itself. */
#define TASK_READ(from, field) (KERNEL_HAS(get_current_task_btf) ? (from)->field : BPF_CORE_READ(from, field))

/* An argument of a system call, counted from 0. */
#if defined(__TARGET_ARCH_x86)
static __always_inline u64 argument(struct pt_regs___sync *regs, int i)
{
	return i == 0 ? READ(regs, di) : i == 1 ? READ(regs, si) : i == 2 ? READ(regs, dx) : i == 3 ? READ(regs, r10) :
	       i == 4 ? READ(regs, r8) : READ(regs, r9);
}
#else
#define argument(from, i) READ(from, regs[i])
#endif

/* The number of the system call that a task is in. */
#if defined(__TARGET_ARCH_x86)
#define call_number(from) READ(from, orig_ax)
#else
#define call_number(from) READ(from, syscallno)
#endif

#endif
