/* SPDX-License-Identifier: Apache-2.0 */
/* UUIDs of version 4. */
#include "base/id.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const int group_bytes[] = {4, 2, 2, 2, 6};

uuid uuid_new(void) {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
    abort(); /* only before the kernel's generator is ready: no id can be made */
  }
  bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40);
  bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
  uuid id;
  char *at = id.text;
  const unsigned char *byte = bytes;
  for (size_t group = 0; group < 5; group++) {
    if (group > 0) {
      *at++ = '-';
    }
    for (int i = 0; i < group_bytes[group]; i++, at += 2) {
      static const char digits[] = "0123456789abcdef";
      at[0] = digits[*byte >> 4];
      at[1] = digits[*byte++ & 15];
    }
  }
  *at = '\0';
  return id;
}

bool uuid_parse(const char *text, uuid *out) {
  if (text == NULL || strlen(text) != 36) {
    return false;
  }
  uuid id;
  for (int i = 0; i < 36; i++) {
    bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? text[i] != '-' : !isxdigit((unsigned char)text[i])) {
      return false;
    }
    id.text[i] = (char)tolower((unsigned char)text[i]);
  }
  id.text[36] = '\0';
  *out = id;
  return true;
}

bool uuid_equal(const uuid *a, const uuid *b) {
  return strcmp(a->text, b->text) == 0;
}

bool uuid_is_none(const uuid *id) {
  return id->text[0] == '\0';
}
