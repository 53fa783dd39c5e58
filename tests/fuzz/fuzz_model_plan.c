/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a plan whose manifest is the input, under right checksums. The data is 128 zeros. All
 * references of an accepted plan are within its bounds. */
#include "common/crypto.h"
#include "schema/model_plan.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define DATA_SIZE 128
#define HEADER_SIZE 64
#define SHA_AT 32

static void check_values(const struct wpk_model_plan *file, const struct wpk_model_plan_shape *plan)
{
    for (int i = 0; i < plan->value_count; i++) {
        const struct wpk_model_plan_value *value = &plan->values[i];
        uint64_t end = (uint64_t)value->offset + wpk_tensor_type_bytes(&value->type);
        WPK_ASSERT(value->offset >= 0);
        WPK_ASSERT(value->place != WPK_MODEL_PLAN_DATA || end <= file->data_size);
        WPK_ASSERT(value->place != WPK_MODEL_PLAN_ARENA || end <= (uint64_t)plan->arena_size);
        WPK_ASSERT(value->place != WPK_MODEL_PLAN_INPUT || value->offset < plan->input_count);
        WPK_ASSERT(value->place != WPK_MODEL_PLAN_OUTPUT || value->offset < plan->output_count);
    }
}

static void check_steps(const struct wpk_model_plan *file, const struct wpk_model_plan_shape *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        const struct wpk_model_plan_step *step = &plan->steps[i];
        WPK_ASSERT(step->kernel >= -1 && step->kernel < file->kernel_count);
        for (int a = 0; a < step->argument_count; a++) {
            WPK_ASSERT(step->arguments[a].value >= 0);
            WPK_ASSERT(step->arguments[a].value < plan->value_count);
        }
    }
}

/* Every value stays in its place in every iteration. */
static void check_loops(const struct wpk_model_plan *file, const struct wpk_model_plan_shape *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        const struct wpk_model_plan_loop *loop = wpk_model_plan_find_loop(plan, i);
        for (int a = 0; a < plan->steps[i].argument_count; a++) {
            const struct wpk_model_plan_value *value =
                &plan->values[plan->steps[i].arguments[a].value];
            int64_t last = value->offset + value->stride * (loop != NULL ? loop->times - 1 : 0);
            bool is_data = value->place == WPK_MODEL_PLAN_DATA;
            int64_t room = is_data ? (int64_t)file->data_size : plan->arena_size;
            WPK_ASSERT(value->stride == 0 || loop != NULL);
            WPK_ASSERT(value->stride == 0 ||
                       (last >= 0 && last + (int64_t)wpk_tensor_type_bytes(&value->type) <= room));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t aligned =
        (size + WPK_MODEL_PLAN_ALIGNMENT - 1) / WPK_MODEL_PLAN_ALIGNMENT * WPK_MODEL_PLAN_ALIGNMENT;
    size_t whole = HEADER_SIZE + aligned + DATA_SIZE + WPK_MODEL_PLAN_SLACK;
    uint8_t *file = aligned_alloc(WPK_MODEL_PLAN_ALIGNMENT, whole);
    const uint32_t version[] = {WPK_MODEL_PLAN_VERSION, 0};
    const uint64_t sizes[] = {size, DATA_SIZE};
    struct wpk_model_plan plan;
    struct wpk_diag diag = {0};

    WPK_ASSERT(file != NULL);
    memset(file, 0, whole);
    memcpy(file, "WPKPLAN\n", 8);
    memcpy(file + 8, version, sizeof(version));
    memcpy(file + 16, sizes, sizeof(sizes));
    wpk_crypto_sha256(data, size, file + SHA_AT);
    memcpy(file + HEADER_SIZE, data, size);
    bool accepted = wpk_model_plan_decode(file, whole, &plan, &diag) == WPK_OK;
    WPK_ASSERT(accepted || diag.text[0] != '\0');
    for (int i = 0; accepted && i < plan.shape_count; i++) {
        check_values(&plan, &plan.shapes[i]);
        check_steps(&plan, &plan.shapes[i]);
        check_loops(&plan, &plan.shapes[i]);
    }
    wpk_model_plan_fini(&plan);
    free(file);
    return accepted ? 0 : WPK_FUZZ_REJECTED;
}
