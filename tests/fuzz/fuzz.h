/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a target of fuzzing is: a file fuzz_<target>.c with this one function. It is
 * linked to libFuzzer (make fuzz) and to replay.c (make test); make_seeds.c gives it
 * real data to start from, in seeds/<target>/.
 */
#ifndef HF_TESTS_FUZZ_H
#define HF_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Decodes any bytes, without a crash, a leak or an undefined operation; abort() when what is decoded is not right.
 * Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif
