/* SPDX-License-Identifier: Apache-2.0 */
#include "target/c/print.h"

#include "ir/instruction/instruction.h"
#include "nest/reach.h"
#include "nest/target.h"
#include "target/c/kernel.h"

#include <stdlib.h>
#include <string.h>

/* ---- a kernel and its passes */

struct wpk_c_kernel *wpk_c_kernel_new(const struct wpk_schedule *schedule,
                                      const struct wpk_program *program, const char *symbol)
{
    struct wpk_c_kernel *k = WPK_DEMAND(calloc(1, sizeof(*k)));
    k->nest = schedule->nest;
    k->program = program;
    k->symbol = symbol;
    k->strict = wpk_target_is_strict(schedule->target);
    k->known = WPK_DEMAND(calloc((size_t)program->node_count + 1, sizeof(*k->known)));
    k->used = WPK_DEMAND(calloc((size_t)program->node_count + 1, sizeof(*k->used)));
    for (int e = 0; e < k->nest->entry_count; e++) {
        k->entry_of[k->nest->entry[e].stage] = e;
    }
    return k;
}

void wpk_c_kernel_free(struct wpk_c_kernel *k)
{
    wpk_c_storage_drop(k->storage, &k->storage_count);
    wpk_c_storage_drop(k->surveyed, &k->surveyed_count);
    wpk_forms_fini(&k->forms);
    wpk_buf_fini(&k->functions);
    free(k->known);
    free(k->used);
    free(k);
}

static void print_pass(struct wpk_c_kernel *k, void (*pass)(struct wpk_c_kernel *k, void *user),
                       void *user)
{
    k->text.forms = &k->forms;
    k->text.name_count = 0;
    k->forms.width = 1;
    k->function = 0;
    k->storage_count = 0;
    for (int t = 0; t < k->program->tensor_count; t++) {
        k->storage_of[t] = -1;
    }
    pass(k, user);
    if (k->forms.full) {
        wpk_c_refuse(k, "indices are too long");
    }
}

void wpk_c_print_passes(struct wpk_c_kernel *k, void (*pass)(struct wpk_c_kernel *k, void *user),
                        void *user)
{
    k->surveying = true;
    print_pass(k, pass, user);
    memcpy(k->surveyed, k->storage, sizeof(k->surveyed));
    k->surveyed_count = k->storage_count;
    k->storage_count = 0;
    wpk_forms_fini(&k->forms);
    memset(k->text.type, 0, sizeof(k->text.type));
    memset(k->text.function, 0, sizeof(k->text.function));
    k->surveying = false;
    if (k->refusal == NULL) {
        print_pass(k, pass, user);
    }
}

/* ---- arguments: what is read, then what is written */

static void put_arguments(struct wpk_c_kernel *k, bool call)
{
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < k->program->tensor_count; t++) {
            const struct wpk_tensor *tensor = &k->program->tensors[t];
            int bytes = wpk_c_type_bytes(wpk_c_memory_type(tensor->dtype));
            bool out = tensor->role == WPK_ROLE_OUTPUT;
            bool in = wpk_tensor_is_given(tensor);
            if (pass == 0 ? !in : !out) {
                continue;
            }
            wpk_c_put(&k->text, call ? ", " : ", ");
            if (call) {
                wpk_c_put(&k->text, "wpk_origin(arguments[%d], %d)", ++count, bytes);
            } else {
                wpk_c_storage_put_pointer(k, k->storage[k->storage_of[t]]);
            }
        }
    }
}

/* ---- the whole */

static const char abi_text[] =
    "struct dimension { i32 min, extent, stride; u32 flags; };\n"
    "struct buffer {\n"
    "  unsigned long device; const void *interface; u8 *host; unsigned long flags;\n"
    "  u8 code, bits; u16 lanes; i32 dimensions; struct dimension *dimension; void *padding;\n"
    "};\n"
    "void *halide_malloc(void *user, unsigned long size);\n"
    "void halide_free(void *user, void *memory);\n"
    "int halide_do_par_for(void *user, int (*task)(void *, int, u8 *), int min, int extent,"
    " u8 *closure);\n"
    "INLINE void *wpk_origin(const struct buffer *b, i64 size)\n{\n"
    "  i64 before = 0;\n"
    "  for (i32 d = 0; d < b->dimensions; d++) {\n"
    "    before += (i64)b->dimension[d].min * b->dimension[d].stride;\n  }\n"
    "  return b->host - before * size;\n}\n";

/* Print the function's body into `user`, and the tasks. */
static void print_body(struct wpk_c_kernel *k, void *user)
{
    wpk_buf_reset(user);
    wpk_buf_reset(&k->functions);
    k->text.out = user;
    k->text.depth = 1;
    k->live_count = 0;
    k->function_count = 0;
    for (int t = 0; t < k->program->tensor_count; t++) {
        if (k->program->tensors[t].role != WPK_ROLE_INTERMEDIATE) {
            wpk_c_storage_argument(k, t);
        }
    }
    wpk_c_print_entries(k);
}

static void assemble(struct wpk_c_kernel *k, const struct wpk_buf *body, struct wpk_buf *out)
{
    wpk_c_put_prologue(&k->text, out);
    wpk_buf_append_text(out, abi_text);
    for (int t = 0; t < k->program->tensor_count; t++) {
        if (k->program->tensors[t].role == WPK_ROLE_LITERAL) {
            wpk_c_storage_put_literal(k, t, "static const", out);
        }
    }
    k->text.out = out;
    wpk_buf_append(out, k->functions.data, k->functions.size);
    wpk_buf_append_text(out, "static void kernel(void *user");
    put_arguments(k, false);
    wpk_buf_append_text(out, ")\n{\n");
    wpk_buf_append(out, body->data, body->size);
    wpk_buf_printf(out,
                   "  (void)user;\n}\n__attribute__((visibility(\"default\")))\n"
                   "int %s_argv(void **arguments);\n"
                   "int %s_argv(void **arguments)\n{\n  kernel(*(void **)arguments[0]",
                   k->symbol, k->symbol);
    put_arguments(k, true);
    wpk_buf_append_text(out, ");\n  return 0;\n}\n");
}

static wpk_err print_kernel(const struct wpk_schedule *schedule, const char *symbol,
                            struct wpk_buf *out, struct wpk_diag *diag)
{
    struct wpk_program program;
    struct wpk_buf body = {0};
    struct wpk_device device = {0};
    wpk_err err = wpk_schedule_expand(schedule, &program);
    if (err != WPK_OK) {
        return err;
    }
    wpk_target_read(schedule->target, &device);
    struct wpk_c_kernel *k = wpk_c_kernel_new(schedule, &program, symbol);
    k->vector_bytes = device.cpu.vector_bytes;
    k->in_place = wpk_nest_in_place(schedule->nest);
    wpk_c_print_passes(k, print_body, &body);
    if (k->refusal != NULL) {
        wpk_diag_set_at(diag, k->refused.line, k->refused.column,
                        "the back end c cannot print this kernel: %s", k->refusal);
        err = WPK_EUNSUPPORTED;
    } else {
        assemble(k, &body, out);
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&body);
    wpk_c_kernel_free(k);
    wpk_program_fini(&program);
    return err;
}

wpk_err wpk_c_print(const struct wpk_schedule *schedule, const char *symbol, struct wpk_buf *out,
                    struct wpk_diag *diag)
{
    return wpk_c_accepts(schedule, diag) ? print_kernel(schedule, symbol, out, diag)
                                         : WPK_EUNSUPPORTED;
}

/* True if the target has the instruction of a loop, and a row is there for it. */
static bool accepts_instruction(const struct wpk_schedule *schedule,
                                const struct wpk_nest_loop *loop, struct wpk_diag *diag)
{
    const struct wpk_instruction *instruction = wpk_instruction_at(loop->instruction);
    struct wpk_device device = {0};
    char missing[WPK_CPU_FLAGS_TEXT_MAX];
    wpk_target_read(schedule->target, &device);
    wpk_cpu_flags_list(instruction->flags & ~device.cpu.flags, missing);
    if (missing[0] != '\0') {
        wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                        "%s needs a target with %s: name one, or write unroll outside of lanes",
                        instruction->name, missing);
    }
    return missing[0] == '\0' && wpk_c_has_instruction(instruction);
}

bool wpk_c_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    const struct wpk_nest *nest = schedule->nest;
    for (int i = 0; i < nest->loop_count; i++) {
        const struct wpk_nest_loop *loop = &nest->loop[i];
        if (loop->binding == WPK_BIND_DOT && !accepts_instruction(schedule, loop, diag)) {
            return false;
        }
        if (wpk_bind_is_block(loop->binding) || wpk_bind_is_thread(loop->binding)) {
            wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                            "the back end c has no %s: write parallel, serial or unroll",
                            wpk_bind_name(loop->binding));
            return false;
        }
    }
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
        const char *name = nest->program->tensors[stage->output].name;
        if (entry->slides) {
            wpk_diag_set_at(diag, entry->at.line, entry->at.column,
                            "%s: the back end c keeps no values from one iteration to the next: "
                            "leave slide out",
                            name);
            return false;
        }
        if (entry->scope == WPK_SCOPE_SHARED || entry->scope == WPK_SCOPE_GLOBAL) {
            wpk_diag_set_at(diag, entry->at.line, entry->at.column,
                            "%s: the back end c has no scope %s: write stack or heap", name,
                            wpk_scope_name(entry->scope));
            return false;
        }
    }
    return true;
}
