/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as text: is it well formed, and where in it does a value stand?
 *
 * cJSON answers neither: it takes `01`, raw control characters, bytes that are not UTF-8 and cuts
 * strings at \u0000, and its tree has no positions. So the text is checked before cJSON sees it,
 * and walked a second time only to say where a failure is. Used by json.c. */
#ifndef WPK_COMMON_JSON_TEXT_H
#define WPK_COMMON_JSON_TEXT_H

#include "common/err.h"

/* One step from a value into it: a member's name, or with a NULL key an item's index. */
struct wpk_json_step {
    const char *key;
    size_t index;
};

struct wpk_json_place {
    size_t offset; /* bytes from the start of the text to the value */
    size_t size;   /* bytes of the value */
    int line;      /* of the value, from 1 */
    int column;    /* in characters, from 1 */
    int key_line;  /* of its name, where it is a member; else as line and column */
    int key_column;
};

/* Is `text` one value of RFC 8259, in UTF-8, nested at most depth_max deep?
 *
 *   errors  WPK_EPARSE, WPK_ERANGE (depth): with line and column in `diag`
 */
WPK_MUST_CHECK wpk_err wpk_json_check(const char *text, size_t size, int depth_max,
                                      struct wpk_diag *diag);

/* Find a value in a text that wpk_json_check() accepted. Of members with the same name it is the
 * last. Where the path leads nowhere, the place is that of the last value on the way, and the
 * result is false. */
bool wpk_json_locate(const char *text, size_t size, const struct wpk_json_step *steps,
                     size_t step_count, struct wpk_json_place *place);
/* With an array's item at `offset` of such a text: where the one begins that is `count` further. */
size_t wpk_json_skip(const char *text, size_t size, size_t offset, size_t count);

#endif
