/* SPDX-License-Identifier: Apache-2.0 */
/* The schema, spelled for made_schema, of the batches that the target of IPC reads. */
#ifndef HF_TESTS_FUZZ_SHAPE_H
#define HF_TESTS_FUZZ_SHAPE_H

#define FUZZ_IPC_SHAPE "+s(i;u;+l(l);b;+us:0,1(i;u);+s(d:5,1,32;z);+w:2(s);n;+m(+s(u;i)))"

#endif
