/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Well-formed UTF-8, eight bytes of ASCII at a time.
 * Source: https://www.unicode.org/versions/Unicode15.0.0/ch03.pdf, table 3-7
 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

static size_t skip_ascii(const uint8_t *bytes, size_t at, size_t length) {
  while (length - at >= 8) {
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    if ((word & UINT64_C(0x8080808080808080)) != 0) {
      break;
    }
    at += 8;
  }
  while (at < length && bytes[at] < 0x80) {
    at++;
  }
  return at;
}

static bool is_continuation(uint8_t byte) {
  return (byte & 0xc0) == 0x80;
}

/* Length of the character of several bytes that starts here, or 0. */
static size_t character_at(const uint8_t *bytes, size_t left) {
  uint8_t lead = bytes[0];
  size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                  : (lead & 0xf0) == 0xe0        ? 3
                  : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                 : 0;
  if (length == 0 || length > left) {
    return 0;
  }
  uint8_t least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (bytes[1] < least || bytes[1] > most) {
    return 0;
  }
  for (size_t i = 2; i < length; i++) {
    if (!is_continuation(bytes[i])) {
      return 0;
    }
  }
  return length;
}

size_t utf8_right_length(const void *text, size_t length) {
  const uint8_t *bytes = text;
  size_t at = 0;
  while ((at = skip_ascii(bytes, at, length)) < length) {
    size_t step = character_at(bytes + at, length - at);
    if (step == 0) {
      return at;
    }
    at += step;
  }
  return length;
}

bool utf8_is_right(const char *text) {
  size_t length = strlen(text);
  return utf8_right_length(text, length) == length;
}
