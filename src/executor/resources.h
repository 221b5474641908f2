/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine lets this process use: cores and memory. Thread: any. */
#ifndef HF_EXECUTOR_RESOURCES_H
#define HF_EXECUTOR_RESOURCES_H

#include <stdint.h>

/* Cores that this process may run on (its affinity); at least 1. */
unsigned resources_threads(void);
/* 80 % of the machine's memory, or of the control group's limit where that is lower. */
uint64_t resources_memory_bytes(void);
/*
 * The lowest memory limit of the control group that `membership` (the text of /proc/self/cgroup) names and of those
 * above it, below the mount point `root` (/sys/fs/cgroup); UINT64_MAX: none. Versions 1 and 2.
 * Source: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
 */
uint64_t resources_group_limit(const char *membership, const char *root);

#endif
