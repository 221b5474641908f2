/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of what earlier attempts wrote is a task's. Pure. Thread: any. */
#include "staging/staging.h"

#include "base/fault.h"

hf_status staging_files(const source_share *share, arena *a, task_input *out, hf_error *error) {
  const char **paths = arena_array(a, share->n_parts, sizeof *paths);
  row_range *ranges = arena_array(a, share->n_parts, sizeof *ranges);
  if (paths == NULL || ranges == NULL) {
    return error_set(error, HF_E_OUT_OF_MEMORY, "no memory for the files of a task");
  }
  bool has_ranges = false;
  uint64_t bytes = 0;
  for (size_t i = 0; i < share->n_parts; i++) {
    paths[i] = share->parts[i].path;
    ranges[i] = (row_range){share->parts[i].first, share->parts[i].count};
    has_ranges = has_ranges || ranges[i].count > 0;
    bytes += share->parts[i].bytes;
  }
  *out = (task_input){
      .n_files = share->n_parts, .files = paths, .ranges = has_ranges ? ranges : NULL, .file_bytes = bytes};
  return HF_OK;
}

block_ref *staging_share_refs(const block_ref *refs, size_t n_refs, uint32_t t, uint32_t n, arena *a,
                              size_t *n_out) {
  block_ref *out = arena_array(a, n_refs, sizeof *out);
  uint64_t begin = (uint64_t)n_refs * t, end = begin + n_refs; /* in n-ths of a location */
  *n_out = 0;
  for (size_t i = 0; out != NULL && i < n_refs; i++) {
    uint64_t at = (uint64_t)i * n, next = at + n;
    uint64_t first = begin > at ? begin : at, last = end < next ? end : next;
    if (first < last) {
      block_ref *ref = &out[(*n_out)++];
      *ref = refs[i];
      if (last - first < n) {
        ref->share_first = (uint32_t)(first - at);
        ref->share_count = (uint32_t)(last - first);
        ref->share_of = n;
      }
    }
  }
  return out;
}

void staging_partitions_of(uint32_t partitions, uint32_t t, uint32_t n, uint32_t *first, uint32_t *count) {
  uint64_t begin = ((uint64_t)partitions * t + n - 1) / n, end = ((uint64_t)partitions * (t + 1) + n - 1) / n;
  *first = (uint32_t)begin;
  *count = (uint32_t)(end - begin) + (end < partitions && FAULT("staging.partition_twice") ? 1 : 0);
}

static uint32_t tasks_of(const staging_dealing *dealing, uint32_t n, uint64_t all) {
  uint64_t most = dealing->partitions < n ? dealing->partitions : n;
  uint64_t wanted = dealing->task_bytes == 0 ? most : all / dealing->task_bytes;
  return (uint32_t)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

uint32_t staging_deal(const staging_dealing *dealing, uint32_t n, uint32_t *out) {
  double all = 0, so_far = 0;
  for (uint32_t p = 0; p < dealing->partitions; p++) {
    all += (double)dealing->bytes[p];
  }
  uint32_t n_tasks = tasks_of(dealing, n, (uint64_t)all), t = 1;
  out[0] = 0;
  for (uint32_t p = 0; p < dealing->partitions && t < n_tasks; p++) {
    double half = (double)dealing->bytes[p] / 2, end = all * t / n_tasks;
    bool is_over = p > out[t - 1] && so_far + half > end;    /* more of it lies behind the border */
    bool is_needed = dealing->partitions - p == n_tasks - t; /* by those who come, one each */
    if (is_over || is_needed) {
      out[t++] = p;
    }
    so_far += (double)dealing->bytes[p];
  }
  out[n_tasks] = dealing->partitions - (FAULT("staging.skip_partition") ? 1 : 0);
  return n_tasks;
}

block_ref *staging_partition_refs(const block_ref *refs, size_t n_refs, uint32_t first, uint32_t count,
                                  arena *a, size_t *n_out) {
  block_ref *out = arena_array(a, n_refs, sizeof *out);
  bool has_none = count == 0 && !FAULT("staging.no_partition"); /* a count of 0 would be all */
  *n_out = out == NULL || has_none ? 0 : n_refs;
  for (size_t i = 0; i < *n_out; i++) {
    out[i] = refs[i];
    out[i].partition_first = first;
    out[i].partition_count = count;
  }
  return out;
}
