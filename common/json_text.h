/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as text: check that it is well formed, and find the position of a value. Used by json.c.
 *
 * cJSON does neither: it accepts `01`, raw control characters and bytes that are not UTF-8, it cuts
 * strings at \u0000, and its tree has no positions. So the text is checked before cJSON parses it,
 * and walked a second time only to find the position of a failure. */
#ifndef WPK_COMMON_JSON_TEXT_H
#define WPK_COMMON_JSON_TEXT_H

#include "common/err.h"

/* One step into a value: a member's name, or where `key` is NULL an item's index. */
struct wpk_json_step {
    const char *key;
    size_t index;
};

struct wpk_json_place {
    size_t offset; /* bytes from the start of the text to the value */
    size_t size;   /* bytes of the value */
    int line;      /* of the value, from 1 */
    int column;    /* in characters, from 1 */
    int key_line;  /* of a member's name; else equal to line and column */
    int key_column;
};

/* Check that `text` is one value of RFC 8259, in UTF-8, nested at most depth_max deep.
 *
 *   errors  WPK_EPARSE, WPK_ERANGE too deep; `diag` has line and column
 */
wpk_err wpk_json_check(const char *text, size_t size, int depth_max, struct wpk_diag *diag);

/* Find a value in a text that wpk_json_check() accepted; of members with the same name, the last.
 * Returns false where the path does not exist; *place is then that of the last value on the way. */
bool wpk_json_locate(const char *text, size_t size, const struct wpk_json_step *steps,
                     size_t step_count, struct wpk_json_place *place);
/* The offset of the array item `count` items after the one at `offset`, which must exist. */
size_t wpk_json_skip(const char *text, size_t size, size_t offset, size_t count);

#endif
