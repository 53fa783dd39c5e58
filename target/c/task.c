/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a parallel loop is a function that the pool calls. A struct has what the body uses of
 * its surroundings. */
#include "target/c/kernel.h"

#include <inttypes.h>

/* Print a task's closure: pointers and loop variables of its caller. `use` 0: members of a struct,
 * 1: its values, 2: variables of the task. */
static void put_closure(struct wpk_c_kernel *k, int use, int live_count)
{
    for (int i = 0; i < k->storage_count; i++) {
        const struct wpk_c_storage *s = k->storage[i];
        enum wpk_role role = k->program->tensors[s->tensor].role;
        if (k->storage_of[s->tensor] != i || !s->memory || role == WPK_ROLE_LITERAL) {
            continue;
        }
        wpk_c_put(&k->text, use == 1 ? "" : "  ");
        if (use == 0) {
            bool written = role == WPK_ROLE_INTERMEDIATE || role == WPK_ROLE_OUTPUT;
            wpk_c_put(&k->text, "%s%s *", written ? "" : "const ",
                      wpk_c_type_name(wpk_c_memory_type(s->dtype)));
            wpk_c_storage_put_name(k, s->tensor, i);
            wpk_c_put(&k->text, ";\n");
        } else if (use == 1) {
            wpk_c_storage_put_name(k, s->tensor, i);
            wpk_c_put(&k->text, ", ");
        } else {
            wpk_c_storage_put_pointer(k, s);
            wpk_c_put(&k->text, " = around->");
            wpk_c_storage_put_name(k, s->tensor, i);
            wpk_c_put(&k->text, ";\n");
        }
    }
    for (int i = 0; i < live_count; i++) {
        const char *name = k->forms.atom[k->live[i]].name;
        if (use == 0) {
            wpk_c_put(&k->text, "  i64 %s;\n", name);
        } else if (use == 1) {
            wpk_c_put(&k->text, "%s, ", name);
        } else {
            wpk_c_put(&k->text, "  const i64 %s = around->%s;\n", name, name);
        }
    }
}

void wpk_c_task_begin(struct wpk_c_kernel *k, struct wpk_c_task *task)
{
    *task = (struct wpk_c_task){.caller = k->text.out,
                                .depth = k->text.depth,
                                .live_count = k->live_count,
                                .number = ++k->function_count};
    k->text.out = &task->text;
    k->text.depth = 1;
    wpk_c_put(&k->text, "struct around%d {\n", task->number);
    put_closure(k, 0, task->live_count);
    wpk_c_put(&k->text,
              "  char end;\n};\n"
              "static int task%d(void *user, int index, u8 *closure)\n{\n"
              "  const struct around%d *around = (const void *)closure;\n",
              task->number, task->number);
    put_closure(k, 2, task->live_count);
    k->function = task->number;
}

void wpk_c_task_end(struct wpk_c_kernel *k, struct wpk_c_task *task, int64_t iterations)
{
    wpk_c_put(&k->text, "  (void)user;\n  (void)around;\n  return 0;\n}\n");
    wpk_buf_append(&k->functions, task->text.data, task->text.size);
    wpk_buf_fini(&task->text);
    k->text.out = task->caller;
    k->text.depth = task->depth;
    k->live_count = task->live_count;
    k->function = 0;
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "{ struct around%d around = {", task->number);
    put_closure(k, 1, task->live_count);
    wpk_c_put(&k->text, "0}; halide_do_par_for(user, task%d, 0, %" PRId64 ", (u8 *)&around); }\n",
              task->number, iterations);
}
