/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test of a choice: known inputs, and the values that must come out at some points. */
#include "runtime/kernel/kernel.h"
#include "runtime/scratch.h"
#include "schema/convert.h"
#include "schema/draw.h"

#include <math.h>

struct test {
    const struct wpk_choice *choice;
    struct wpk_tensor_data inputs[WPK_ABI_ARGUMENTS_MAX]; /* data owned, and below */
    struct wpk_tensor_data outputs[WPK_ABI_ARGUMENTS_MAX];
    struct wpk_tensor_data constants[WPK_ABI_ARGUMENTS_MAX];
};

/* The argument's values, dense.   owns  caller gives them back; NULL is out of memory */
static void *draw(const struct wpk_choice *choice, const struct wpk_choice_list *names, size_t i,
                  const struct wpk_argument_list *list)
{
    const struct wpk_tensor_type *type = &list->argument[i].type;
    void *dense = wpk_memory_take(list->logical_size[i]);

    if (dense != NULL) {
        wpk_draw_tensor(choice->test.seed, names->tensor[i].canonical, type->dtype,
                        choice->test.domain, wpk_tensor_type_elements(type), dense);
    }
    return dense;
}

/* Take memory for tensor `i` of a list, in the kernel's layout. */
static struct wpk_tensor_data take(const struct wpk_argument_list *list, size_t i)
{
    return (struct wpk_tensor_data){.name = list->name[i],
                                    .data = wpk_memory_take(list->physical_size[i]),
                                    .size = list->physical_size[i]};
}

static wpk_err make_inputs(const struct wpk_kernel *kernel, struct test *test)
{
    const struct wpk_choice *choice = test->choice;
    bool made = true;

    for (size_t i = 0; made && i < kernel->constants.count; i++) {
        test->constants[i] = (struct wpk_tensor_data){
            .name = kernel->constants.name[i],
            .data = draw(choice, &choice->constants, i, &kernel->constants),
            .size = kernel->constants.logical_size[i]};
        made = test->constants[i].data != NULL;
    }
    for (size_t i = 0; made && i < kernel->inputs.count; i++) {
        test->inputs[i] = take(&kernel->inputs, i);
        void *dense = draw(choice, &choice->inputs, i, &kernel->inputs);
        made = test->inputs[i].data != NULL && dense != NULL;
        if (made) {
            wpk_tensor_pack(&kernel->inputs.argument[i].type, dense, test->inputs[i].data);
        }
        wpk_memory_give(dense);
    }
    for (size_t i = 0; made && i < kernel->outputs.count; i++) {
        test->outputs[i] = take(&kernel->outputs, i);
        made = test->outputs[i].data != NULL;
    }
    return made ? WPK_OK : WPK_ENOMEM;
}

static wpk_err compute(struct wpk_kernel *kernel, const struct test *test, struct wpk_diag *diag)
{
    struct wpk_context *context = NULL;

    wpk_err err = wpk_kernel_prepare(kernel, test->constants, kernel->constants.count, diag);
    err = err == WPK_OK ? wpk_context_new(NULL, &context) : err;
    if (err == WPK_OK) {
        err = wpk_kernel_run(kernel, context, test->inputs, kernel->inputs.count, test->outputs,
                             kernel->outputs.count);
    }
    wpk_context_free(context);
    return err;
}

static wpk_err compare_output(const struct wpk_kernel *kernel, const struct test *test, size_t o,
                              struct wpk_diag *diag)
{
    const struct wpk_choice_expected *expected = &test->choice->test.output[o];
    const struct wpk_tensor_type *type = &kernel->outputs.argument[o].type;
    size_t element = wpk_dtype_size(type->dtype);
    char *dense = wpk_memory_take(kernel->outputs.logical_size[o]);
    wpk_err err = WPK_OK;

    if (dense == NULL) {
        return WPK_ENOMEM;
    }
    wpk_tensor_unpack(type, test->outputs[o].data, dense);
    for (int i = 0; i < expected->count && err == WPK_OK; i++) {
        double value = 0;
        if (expected->point[i] >= wpk_tensor_type_elements(type)) {
            err = wpk_fail(diag, WPK_ECORRUPT, "the self-test names a point outside '%s'",
                           kernel->outputs.name[o]);
            break;
        }
        wpk_convert_widen(type->dtype, dense + (size_t)expected->point[i] * element, 1, &value);
        if (!(fabs(value - expected->value[i]) <= expected->tolerance)) {
            err = wpk_fail(diag, WPK_ECORRUPT,
                           "self-test: '%s' is %.9g at %lld, not %.9g within %.3g",
                           kernel->outputs.name[o], value, (long long)expected->point[i],
                           expected->value[i], expected->tolerance);
        }
    }
    wpk_memory_give(dense);
    return err;
}

wpk_err wpk_self_test_run(struct wpk_kernel *kernel, const struct wpk_choice *choice,
                          struct wpk_diag *diag)
{
    struct test test = {.choice = choice};

    wpk_err err = make_inputs(kernel, &test);
    err = err == WPK_OK ? compute(kernel, &test, diag) : err;
    for (size_t o = 0; o < kernel->outputs.count && err == WPK_OK; o++) {
        err = compare_output(kernel, &test, o, diag);
    }
    for (size_t i = 0; i < WPK_ABI_ARGUMENTS_MAX; i++) {
        wpk_memory_give(test.constants[i].data);
        wpk_memory_give(test.inputs[i].data);
        wpk_memory_give(test.outputs[i].data);
    }
    return err;
}
