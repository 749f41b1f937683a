/* SPDX-License-Identifier: GPL-2.0 */
/* Which system calls make data durable, on which file, and whether their caller is one of those asked for. */
#ifndef WEIR_SYNC_CALLS_H
#define WEIR_SYNC_CALLS_H

#include "hook.h"
#include "fsync_types.h"

enum { CALLS = 512, COMM = 16, ANCESTORS = 8 };
/* What a call is; the same numbers in src/fsync/record.rs. */
enum { FSYNC = 1, FDATASYNC, WRITE, PWRITEV2, SYNC_FILE_RANGE, MSYNC, SYNCFS, SYNC };

/* open(2): O_DSYNC and its stronger form share this bit on every architecture that runs this. */
#define O_DSYNC_BIT 010000
/* pwritev2(2): RWF_DSYNC and RWF_SYNC; msync(2): MS_SYNC. */
enum { RWF_SYNCS = 0x2 | 0x4, MS_SYNC_BIT = 4 };
/* sched.h. */
enum { PF_KTHREAD_BIT = 0x00200000 };
/* fs.h: opened by O_PATH. */
enum { FMODE_PATH_BIT = 0x4000 };
enum { S_IFMT_BITS = 0170000, S_IFBLK_BIT = 0060000, S_IFREG_BIT = 0100000 };

/* uapi's magic.h. */
enum { OVERLAYFS_MAGIC = 0x794c7630 };

/* What a call is, by its number; 0 for those that do not count. */
const volatile u8 calls[CALLS];
/* Whose calls; 0 is everybody's. */
const volatile u32 only_descendants_of;
const volatile u64 only_cgroup;
const volatile u32 only_cgroup_level;
const volatile char only_comm[COMM];

static __always_inline struct file___sync *file_of(u64 fd)
{
	struct task_struct___sync *task = current_task();
	struct file___sync **open, *file = 0;
	struct files_struct___sync *files = TASK_READ(task, files);
	struct fdtable___sync *table;

	if (!files)
		return 0;
	table = TASK_READ(files, fdt);
	if (!table || fd >= TASK_READ(table, max_fds))
		return 0;
	open = TASK_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), open + fd);
	return file;
}

/*
 * Whether this is the file of a layer under `above`: its entry is of its own inode or, until 6.7, that of the file above. Memory that is
 * no file's has neither.
 */
static __always_inline bool is_beneath(struct file___sync *it, struct file___sync *above)
{
	struct inode___sync *inode = BPF_CORE_READ(it, f_inode);
	struct dentry___sync *entry = BPF_CORE_READ(it, f_path.dentry);

	return inode && entry && (entry == BPF_CORE_READ(above, f_path.dentry) || BPF_CORE_READ(entry, d_inode) == inode);
}

/*
 * The file that holds the data: of one on overlayfs, as containers have, that of a layer. private_data is that file's address; since 6.13 it
 * is stored there.
 */
static __always_inline struct file___sync *stored_file(struct file___sync *file)
{
	struct file___sync *beneath;

	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) != OVERLAYFS_MAGIC)
		return file;
	beneath = BPF_CORE_READ(file, private_data);
	if (!is_beneath(beneath, file) && bpf_probe_read_kernel(&beneath, sizeof(beneath), beneath))
		return file;
	return is_beneath(beneath, file) ? beneath : file;
}

/* A pipe lies on a file system, too, and a write to it is under way for as long as nobody reads. */
static __always_inline bool is_on_storage(struct file___sync *file)
{
	u16 kind = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT_BITS;

	return kind == S_IFREG_BIT || kind == S_IFBLK_BIT;
}

/* No call reaches a file that is opened by O_PATH, and its owner may say of it what he likes. */
static __always_inline bool is_reached(struct file___sync *file)
{
	return !(BPF_CORE_READ(file, f_mode) & FMODE_PATH_BIT);
}

/* Writes count only where they are to be durable when they return. Every write of the machine may come here. */
static __always_inline bool makes_durable(u8 call, struct file___sync *file, struct pt_regs___sync *regs)
{
	if (call == MSYNC)
		return argument(regs, 2) & MS_SYNC_BIT;
	if (call != WRITE && call != PWRITEV2)
		return !file || is_reached(file);
	if (!file || !((BPF_CORE_READ(file, f_flags) & O_DSYNC_BIT) || (call == PWRITEV2 && (argument(regs, 5) & RWF_SYNCS))))
		return false;
	return is_on_storage(file) && is_reached(file);
}

static long vma_found(struct task_struct *task, struct vm_area_struct___sync *vma, struct file___sync **file)
{
	*file = vma->vm_file;
	return 0;
}

static __always_inline struct file___sync *mapped_file(u64 address)
{
	struct file___sync *file = 0;

	if (KERNEL_HAS(find_vma))
		bpf_find_vma((void *)bpf_get_current_task_btf(), address, vma_found, &file, 0);
	return file;
}

static __always_inline bool is_only_comm(const char comm[COMM])
{
	for (int i = 0; i < COMM; i++) {
		if (comm[i] != only_comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

static __always_inline bool is_in_only_cgroup(void)
{
	return !only_cgroup || bpf_get_current_ancestor_cgroup_id(only_cgroup_level) == only_cgroup;
}

static __always_inline bool descends(void)
{
	struct task_struct___sync *task = current_task();

	if (!only_descendants_of)
		return true;
	for (int i = 0; i < ANCESTORS && task; i++) {
		if (BPF_CORE_READ(task, tgid) == only_descendants_of)
			return true;
		task = BPF_CORE_READ(task, real_parent);
	}
	return false;
}

#endif
