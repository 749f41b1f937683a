/* SPDX-License-Identifier: GPL-2.0 */
/* Whose syncs count, and what they are on. */
#ifndef WEIR_FSYNC_CALLS_H
#define WEIR_FSYNC_CALLS_H

#include "fsync_state.h"

static __always_inline bool comm_matches(void)
{
	char comm[COMM];

	if (!only_comm[0])
		return true;
	bpf_get_current_comm(comm, sizeof(comm));
	return is_only_comm(comm);
}

static __always_inline bool is_wanted(void)
{
	return is_in_only_cgroup() && descends() && comm_matches();
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

static __always_inline struct sync *state_of(u32 tid)
{
	struct sync *s = bpf_map_lookup_elem(&tasks, &tid);

	if (s)
		return s;
	if (!bpf_map_update_elem(&tasks, &tid, &blank_sync, BPF_NOEXIST))
		__sync_fetch_and_add(&tasks_held, 1);
	s = bpf_map_lookup_elem(&tasks, &tid);
	if (s)
		s->is_passing = tasks_held > TASKS / 2;
	else
		LOSE(LOST_TASK);
	return s;
}

static __always_inline void forget(u32 tid)
{
	if (!bpf_map_delete_elem(&tasks, &tid))
		__sync_fetch_and_add(&tasks_held, -1);
}

#endif
