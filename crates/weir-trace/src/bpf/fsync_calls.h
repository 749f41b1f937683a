/* SPDX-License-Identifier: GPL-2.0 */
/* Which calls count, whose, and on which file. */
#ifndef WEIR_FSYNC_CALLS_H
#define WEIR_FSYNC_CALLS_H

#include "fsync_state.h"

static __always_inline struct file___sync *file_of(u64 fd)
{
	struct task_struct___sync *task = (void *)bpf_get_current_task_btf();
	struct file___sync **open, *file = 0;
	struct files_struct___sync *files = task->files;
	struct fdtable___sync *table;

	if (!files)
		return 0;
	table = files->fdt;
	if (!table || fd >= table->max_fds)
		return 0;
	open = table->fd;
	bpf_probe_read_kernel(&file, sizeof(file), open + fd);
	return file;
}

static __always_inline bool comm_matches(void)
{
	char comm[COMM];

	if (!only_comm[0])
		return true;
	bpf_get_current_comm(comm, sizeof(comm));
	for (int i = 0; i < COMM; i++) {
		if (comm[i] != only_comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

static __always_inline bool descends(void)
{
	struct task_struct___sync *task = (void *)bpf_get_current_task_btf();

	for (int i = 0; i < ANCESTORS && task; i++) {
		if (BPF_CORE_READ(task, tgid) == only_descendants_of)
			return true;
		task = BPF_CORE_READ(task, real_parent);
	}
	return false;
}

static __always_inline bool is_wanted(void)
{
	if (only_cgroup && bpf_get_current_ancestor_cgroup_id(only_cgroup_level) != only_cgroup)
		return false;
	if (only_descendants_of && !descends())
		return false;
	return comm_matches();
}

/* Writes count only where they are to be durable when they return. */
static __always_inline bool makes_durable(u8 call, struct file___sync *file, struct pt_regs___sync *regs)
{
	if (call == MSYNC)
		return argument(regs, 2) & MS_SYNC_BIT;
	if (call == PWRITEV2 && (argument(regs, 5) & RWF_SYNCS))
		return true;
	if (call == WRITE || call == PWRITEV2)
		return file && (BPF_CORE_READ(file, f_flags) & O_DSYNC_BIT);
	return true;
}

static __always_inline u32 disk_number(struct gendisk___sync *disk)
{
	return disk ? (u32)BPF_CORE_READ(disk, major) << 20 | (u32)BPF_CORE_READ(disk, first_minor) : 0;
}

static __always_inline void identify(struct sync *s, struct file___sync *file)
{
	struct block_device___sync *device;
	struct inode___sync *named, *host;

	host = file ? BPF_CORE_READ(file, f_mapping, host) : 0;
	if (host && s->last_file == (u64)file && s->last_host == (u64)host && s->inode == BPF_CORE_READ(host, i_ino))
		return;
	s->last_file = (u64)file;
	s->last_host = (u64)host;
	s->inode = 0;
	s->file_system = 0;
	s->device = 0;
	if (!file)
		return;
	named = BPF_CORE_READ(file, f_inode);
	if (!host || !named)
		return;
	s->inode = BPF_CORE_READ(host, i_ino);
	s->file_system = BPF_CORE_READ(host, i_sb, s_dev);
	if ((BPF_CORE_READ(named, i_mode) & S_IFMT_BITS) == S_IFBLK_BIT) {
		s->device = BPF_CORE_READ(named, i_rdev);
		return;
	}
	device = BPF_CORE_READ(host, i_sb, s_bdev);
	if (device)
		s->device = disk_number(BPF_CORE_READ(device, bd_disk));
}

static long vma_found(struct task_struct *task, struct vm_area_struct___sync *vma, struct file___sync **file)
{
	*file = vma->vm_file;
	return 0;
}

static __always_inline struct file___sync *mapped_file(u64 address)
{
	struct file___sync *file = 0;

	if (bpf_core_enum_value_exists(enum bpf_func_id___sync, BPF_FUNC_find_vma___sync))
		bpf_find_vma((void *)bpf_get_current_task_btf(), address, vma_found, &file, 0);
	return file;
}

static __always_inline struct sync *state_of(u32 tid)
{
	struct sync *s = bpf_map_lookup_elem(&tasks, &tid);

	if (s)
		return s;
	bpf_map_update_elem(&tasks, &tid, &blank_sync, BPF_NOEXIST);
	s = bpf_map_lookup_elem(&tasks, &tid);
	if (!s)
		LOSE(LOST_TASK);
	return s;
}

#endif
