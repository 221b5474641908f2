/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statuses and errors: setting, wrapping, moving. Codes are rows of errors.def.
 * Messages: no capital, no full stop, fixed words first and values last. The
 * class, SQL state and default hint come from the code's row.
 * Thread: any; an hf_error belongs to one thread at a time.
 */
#ifndef HF_BASE_ERROR_H
#define HF_BASE_ERROR_H

#include "holdfast/holdfast.h"

#if defined(__GNUC__)
#define HF_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define HF_PRINTF(format_at, args_at)
#endif

/* Returns from the calling function when `expr` is not HF_OK. */
#define HF_TRY(expr)                  \
  do {                                \
    hf_status hf_try_status = (expr); \
    if (hf_try_status != HF_OK) {     \
      return hf_try_status;           \
    }                                 \
  } while (0)

/* Sets code, class, SQL state, message and the row's remedy as hint; returns `code`. `error` may be NULL. */
hf_status error_set(hf_error *error, hf_status code, const char *format, ...) HF_PRINTF(3, 4);

/* As error_set, for an errno value: ENOSPC and EDQUOT become DISK_FULL, ENOMEM OUT_OF_MEMORY, ENOENT `absent`, else IO. */
hf_status error_set_errno(hf_error *error, int error_number, hf_status absent, const char *format, ...)
    HF_PRINTF(4, 5);

/* Replaces the hint. */
void error_hint(hf_error *error, const char *format, ...) HF_PRINTF(2, 3);

/* Replaces the cause (copied). */
void error_cause(hf_error *error, const char *cause);

/* Puts a prefix and ": " before the message. */
void error_wrap(hf_error *error, const char *format, ...) HF_PRINTF(2, 3);

/* Moves *from into *to (either may be NULL: then it is reset) and zeroes *from. */
void error_move(hf_error *to, hf_error *from);

/* Copies; on lack of memory the texts are dropped, the code stays. */
void error_copy(hf_error *to, const hf_error *from);

/* Returns the class of a code's row; HF_CLASS_NONE of HF_OK, HF_CLASS_FATAL of an unknown code. */
hf_error_class error_class_of(hf_status code);

/* Returns the name of a class in lower case; static. */
const char *error_class_name(hf_error_class error_class);

#endif
