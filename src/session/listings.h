/* SPDX-License-Identifier: Apache-2.0 */
/* What SHOW and EXPLAIN answer, as relations. For those who have entered the session. Thread: any. */
#ifndef HF_SESSION_LISTINGS_H
#define HF_SESSION_LISTINGS_H

#include "session/session_internal.h"

/* Holds of the session that were not let go. */
hf_status listing_holds(session *s, relation **out, hf_error *error);
/* Views and cached tables. */
hf_status listing_names(session *s, relation **out, hf_error *error);
/* One setting, or all of them for "all" and "settings". Errors: SETTING_UNKNOWN. */
hf_status listing_settings(session *s, const char *name, relation **out, hf_error *error);
/* The plan of a relation, a row a line. */
hf_status listing_plan(session *s, const relation *r, relation **out, hf_error *error);

#endif
