/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the snapshot of a strategy. The snapshot is refused, or the strategy goes on and saves
 * itself again. The target puts the first two words, which name the version and the space, in front
 * of the bytes, because mutations of them are refused at once. */
#include "search/snapshot.h"

#include "ir/notation/notation.h"
#include "search/strategy/strategy.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define ASKS 4

static struct wpk_space space;
static const struct wpk_strategy_setup setup;

static void derive_space(void)
{
    static const char text[] = "input A f32[24,16]\nconstant B f32[16,24]\noutput Y f32[24,24]\n"
                               "Y[i,j] = sum(k:16) A[i,k] * B[k,j]\n";
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_program program = {0};
    memcpy(options.device.kind, "cpu", 4);
    options.device.cpu.flags = WPK_CPU_SET_AVX2;
    options.device.cpu.vector_bytes = 32;
    options.device.cpu.vector_registers = 16;
    WPK_ASSERT(wpk_program_parse(text, &program, NULL) == WPK_OK);
    WPK_ASSERT(wpk_space_derive(&program, &options, &space, NULL) == WPK_OK);
    wpk_program_fini(&program);
}

static void go_on(const struct wpk_strategy_class *kind, struct wpk_strategy *strategy)
{
    struct wpk_candidate asked[ASKS];
    struct wpk_buf text = {0};
    struct wpk_strategy *again = NULL;
    int filled = 0;
    wpk_err err = wpk_strategy_ask(strategy, ASKS, asked, &filled);
    WPK_ASSERT(err == WPK_OK || err == WPK_EEXHAUSTED);
    for (int i = 0; i < filled; i++) {
        const struct wpk_tell tell = {.ok = i % 2 == 0, .relative = 1.0 + i};
        WPK_ASSERT(wpk_space_is_legal(&space, &asked[i]));
        wpk_strategy_tell(strategy, &tell);
    }
    WPK_ASSERT(wpk_strategy_save(strategy, &text) == WPK_OK);
    WPK_ASSERT(wpk_strategy_load(kind, &space, &setup, wpk_buf_text(&text), &again, NULL) ==
               WPK_OK);
    wpk_strategy_free(again);
    wpk_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (space.variants == NULL) {
        derive_space();
    }
    for (int n = 0; wpk_strategy_at(n) != NULL; n++) {
        const struct wpk_strategy_class *kind = wpk_strategy_at(n);
        struct wpk_strategy *strategy = NULL;
        struct wpk_diag diag = {0};
        struct wpk_buf text = {0};
        wpk_snapshot_begin(&text, kind->version, &space);
        wpk_buf_append(&text, data, size);
        if (wpk_strategy_load(kind, &space, &setup, wpk_buf_text(&text), &strategy, &diag) ==
            WPK_OK) {
            go_on(kind, strategy);
            wpk_strategy_free(strategy);
        } else {
            WPK_ASSERT(diag.text[0] != '\0');
        }
        wpk_buf_fini(&text);
    }
    return 0;
}
