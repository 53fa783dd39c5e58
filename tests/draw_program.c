/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the random program of a seed, in whole form: draw_program SEED STAGES_MAX. */
#include "ir/notation/notation.h"
#include "tests/random_program.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct wpk_program program = {0};
    struct wpk_buf text = {0};
    struct wpk_rng rng;
    if (argc != 3) {
        fprintf(stderr, "usage: draw_program SEED STAGES_MAX\n");
        return 2;
    }
    const struct wpk_random_options options = {.smooth = true,
                                               .without_pads = true,
                                               .products = true,
                                               .stages_max = (int)strtol(argv[2], NULL, 10)};
    wpk_rng_seed(&rng, strtoull(argv[1], NULL, 10));
    wpk_random_program(&rng, &options, &program);
    wpk_err err = wpk_program_print(&program, &text);
    fputs(wpk_buf_text(&text), stdout);
    wpk_buf_fini(&text);
    wpk_program_fini(&program);
    return err == WPK_OK ? 0 : 1;
}
