/* SPDX-License-Identifier: Apache-2.0 */
#include "common/suggest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PREFIX_MIN 2 /* letters: a shorter beginning says nothing */

static int min_of(int a, int b)
{
    return a < b ? a : b;
}

/* The edit distance with swaps of neighbours (optimal string alignment), by rows of its table.
 *   source  Damerau, "A technique for computer detection and correction of spelling errors" */
static int distance_of(const char *a, const char *b)
{
    int rows[3][WPK_SUGGEST_SIZE];
    int *before = rows[0];
    int *last = rows[1];
    int *row = rows[2];
    int width = (int)strlen(b);

    for (int j = 0; j <= width; j++) {
        last[j] = j;
    }
    for (int i = 1; a[i - 1] != '\0'; i++) {
        row[0] = i;
        for (int j = 1; j <= width; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = min_of(best, min_of(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = min_of(best, before[j - 2] + 1);
            }
            row[j] = best;
        }
        int *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[width];
}

void wpk_suggest_offer(struct wpk_suggest *suggest, const char *name)
{
    size_t size = strlen(suggest->word);
    size_t name_size = strlen(name);

    if (size == 0 || size >= WPK_SUGGEST_SIZE || name_size >= WPK_SUGGEST_SIZE) {
        return;
    }
    bool begins = size >= PREFIX_MIN && strncmp(name, suggest->word, size) == 0;
    int distance = begins ? 1 : distance_of(suggest->word, name);
    bool near = begins || distance <= ((int)name_size + 1) / 3;
    if (near && (suggest->name[0] == '\0' || distance < suggest->distance)) {
        suggest->distance = distance;
        memcpy(suggest->name, name, name_size + 1);
    }
}

const char *wpk_suggest_text(struct wpk_suggest *suggest)
{
    if (suggest->name[0] == '\0') {
        return "";
    }
    snprintf(suggest->text, sizeof(suggest->text), "; did you mean '%s'?", suggest->name);
    return suggest->text;
}
