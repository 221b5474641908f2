/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas, spelled for made_schema, of the batches that the targets ipc and codes read. */
#ifndef HF_TESTS_FUZZ_SHAPE_H
#define HF_TESTS_FUZZ_SHAPE_H

#define FUZZ_IPC_SHAPE "+s(i;u;+l(l);b;+us:0,1(i;u);+s(d:5,1,32;z);+w:2(s);n;+m(+s(u;i)))"

#define FUZZ_CODES_SHAPE "+s(u;l)"
#define FUZZ_CODES_COLUMNS 2
#define FUZZ_CODES_BYTES \
  { 1, 2 } /* of a code of each column */

#endif
