/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that add several terms of a sum in each lane. Terms that lie together in memory are
 * a group of four bytes: of one operand every lane has a group of its own, of the other one all
 * lanes have the same, which is broadcast.
 *
 * A load outside of its tensor reads 0, and its products add nothing: the kernel branches around
 * the instruction there.
 *
 * The last group of a sum may be incomplete. The broadcast operand is then filled with zeros, which
 * the other operand's elements, whatever they are, are multiplied with; these lie in a block of
 * whole groups. Of floats, which may be no number there, the last terms are added one by one. */
#include "ir/instruction/instruction.h"
#include "target/c/kernel.h"
#include "target/c/print.h"

#include <string.h>

#define GROUP_BYTES 4

/* The products of four bytes as those of two pairs, half a byte of `a` at a time: the sums of pairs
 * stay within 16 bits. c has the weight of the half. */
#define MADDUBSW "vpmaddubsw %[b], %[a], %[t]; vpmaddwd %[c], %[t], %[t]; vpaddd %[t], %[s], %[s]"

#define MADDWD "vpmaddwd %[b], %[a], %[t]; vpaddd %[t], %[s], %[s]"

/* An instruction, or several, as compilers' assemblers spell them: s the sums, a and b the
 * operands, t what else they overwrite. */
static const struct row {
    const char *name;
    const char *text;
    const char *constraint; /* of registers */
    int lanes_min;          /* and each power of two up to those of the description */
    bool has_more;          /* it overwrites t */
    bool halves; /* the text stands twice: for the low halves of a's bytes, and the high */
} rows[] = {
    {"vdpbf16ps", "vdpbf16ps %[b], %[a], %[s]", "v", 4, false, false},
    {"vpdpbusd", "vpdpbusd %[b], %[a], %[s]", "v", 4, false, false},
    {"vpdpbusd_vex", "%{vex%} vpdpbusd %[b], %[a], %[s]", "x", 4, false, false},
    {"vpmaddubsw", MADDUBSW, "v", 4, true, true},
    {"vpmaddubsw_vex", MADDUBSW, "x", 4, true, true},
    {"vpmaddwd", MADDWD, "v", 4, true, false},
    {"vpmaddwd_vex", MADDWD, "x", 4, true, false},
};

static const struct row *row_of(const struct wpk_instruction *instruction)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, instruction->name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

bool wpk_c_has_instruction(const struct wpk_instruction *instruction)
{
    return row_of(instruction) != NULL;
}

/* A group of an operand: the number of its first element, with lanes if each has its own. */
struct group {
    int tensor;
    struct wpk_form first;
    bool uniform;
};

/* True if the terms after the first one change no index that may leave the tensor. */
static bool stays_inside(struct wpk_c_kernel *k, int tensor, const struct wpk_form *first,
                         const struct wpk_form *index)
{
    for (int d = 0; d < k->program->tensors[tensor].rank; d++) {
        int64_t low = 0, high = 0;
        struct wpk_form apart = wpk_form_add(&k->forms, &index[d], &first[d], -1);
        wpk_form_range(&k->forms, &index[d], &low, &high);
        if (!wpk_form_is_number(&apart) ||
            (apart.constant != 0 && high >= k->program->tensors[tensor].extent[d])) {
            return false;
        }
    }
    return true;
}

/* True if `terms` elements of the load lie together, from the point on; the sum has `count` of
 * them. */
static bool lie_together(struct wpk_c_kernel *k, struct wpk_c_point point, int axis, int count,
                         int terms, int load, struct group *out)
{
    struct wpk_form first[WPK_RANK_MAX], index[WPK_RANK_MAX], number;
    bool limited = k->program->nodes[load].outside >= 0;
    out->tensor = k->program->nodes[load].tensor;
    for (int t = 0; t < terms; t++) {
        if (!wpk_c_load_indices(k, &point, load, index) ||
            !wpk_c_storage_group(k, out->tensor, index, &number)) {
            return false;
        }
        if (t == 0) {
            memcpy(first, index, sizeof(first));
            out->first = number;
        }
        struct wpk_form apart = wpk_form_add(&k->forms, &number, &out->first, -1);
        if (!wpk_form_is_number(&apart) || apart.constant != t ||
            ((t >= count || limited) && !stays_inside(k, out->tensor, first, index))) {
            return false;
        }
        point.axis[axis].constant++;
    }
    out->uniform = wpk_form_is_uniform(&k->forms, &out->first);
    return true;
}

static bool find_groups(struct wpk_c_kernel *k, const struct wpk_c_point *point, int axis,
                        int count, int terms, const int load[2], struct group group[2])
{
    for (int i = 0; i < 2; i++) {
        if (!lie_together(k, *point, axis, count, count, load[i], &group[i])) {
            return false;
        }
        bool lanes = wpk_form_is_even(&k->forms, &group[i].first) && group[i].first.lane == terms;
        if (!group[i].uniform &&
            (!lanes || !lie_together(k, *point, axis, count, terms, load[i], &group[i]))) {
            return false;
        }
    }
    return group[0].uniform != group[1].uniform;
}

/* The operand as a vector of 32-bit lanes. */
static struct wpk_c_value load_group(struct wpk_c_kernel *k, const struct group *group,
                                     int64_t bytes, int width)
{
    struct wpk_form lane = wpk_form_number(0);
    struct wpk_form first = wpk_form_at_lane(&k->forms, &group->first, &lane);
    struct wpk_c_value value = wpk_c_begin(&k->text, WPK_I32, width);
    if (group->uniform) {
        wpk_c_put_function(&k->text, WPK_C_OF, WPK_C_I32, width);
        wpk_c_put(&k->text, "(wpk_group(&");
        wpk_c_storage_put_element(k, group->tensor, &first);
        wpk_c_put(&k->text, ", %d))", (int)bytes);
    } else {
        enum wpk_c_type type = wpk_c_memory_type(k->program->tensors[group->tensor].dtype);
        wpk_c_put(&k->text, "(");
        wpk_c_put_type(&k->text, WPK_C_I32, width);
        wpk_c_put(&k->text, ")");
        wpk_c_put_function(&k->text, WPK_C_LOAD, type,
                           width * GROUP_BYTES / wpk_c_type_bytes(type));
        wpk_c_put(&k->text, "(&");
        wpk_c_storage_put_element(k, group->tensor, &first);
        wpk_c_put(&k->text, ")");
    }
    wpk_c_end(&k->text);
    return value;
}

/* The low or the high halves of the operand's bytes, as bytes. */
static struct wpk_c_value half_of(struct wpk_c_kernel *k, const struct wpk_c_value *bytes, int high)
{
    struct wpk_c_value value = wpk_c_begin(&k->text, WPK_I32, bytes->width);
    wpk_c_put(&k->text, "t%d >> %d & 0x0f0f0f0f", bytes->name, 4 * high);
    wpk_c_end(&k->text);
    return value;
}

/* The row's text adds to `sum`; high: of halves. */
static void print_row(struct wpk_c_kernel *k, const struct row *row, const struct wpk_c_value *sum,
                      const struct wpk_c_value *a, const struct wpk_c_value *b, int high)
{
    const char *in = row->constraint;
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "__asm__(\"%s\" : [s] \"+%s\"(t%d)", row->text, in, sum->name);
    if (row->has_more) {
        wpk_c_put(&k->text, ", [t] \"=&%s\"(m%d)", in, sum->name);
    }
    wpk_c_put(&k->text, " : [a] \"%s\"(t%d), [b] \"%s\"(t%d)", in, a->name, in, b->name);
    if (row->halves) {
        wpk_c_put(&k->text, ", [c] \"%s\"(", in);
        wpk_c_put_function(&k->text, WPK_C_OF, WPK_C_I32, sum->width);
        wpk_c_put(&k->text, "(%s))", high ? "0x100010" : "0x10001");
    }
    wpk_c_put(&k->text, ")");
    wpk_c_end(&k->text);
}

static void print_product(struct wpk_c_kernel *k, const struct wpk_c_point *point,
                          const struct wpk_instruction *instruction,
                          const struct wpk_instruction_product *product, int64_t count,
                          const struct group group[2])
{
    const struct row *row = row_of(instruction);
    int width = k->forms.width, output = point->stage->output;
    struct wpk_c_value operand[2];
    for (int i = 0; i < 2; i++) {
        int64_t size = (int64_t)wpk_dtype_size(instruction->operand[i]);
        operand[i] = load_group(k, &group[i], count * size, width);
        if (product->part[i] != WPK_PART_WHOLE) {
            operand[i] = half_of(k, &operand[i], product->part[i] == WPK_PART_HIGH);
        }
    }
    struct wpk_c_value before = wpk_c_storage_read(k, output, point->axis, width);
    struct wpk_c_value sum = {
        .kind = WPK_C_NAME, .dtype = instruction->sum, .width = width, .mask_bytes = 4};
    sum.name = k->text.name_count++;
    wpk_c_indent(&k->text);
    wpk_c_put_type(&k->text, wpk_c_type_of(sum.dtype), width);
    wpk_c_put(&k->text, " t%d = ", sum.name);
    wpk_c_put_value(&k->text, &before, width);
    wpk_c_end(&k->text);
    if (row->has_more) {
        wpk_c_indent(&k->text);
        wpk_c_put_type(&k->text, WPK_C_I32, width);
        wpk_c_put(&k->text, " m%d", sum.name);
        wpk_c_end(&k->text);
    }
    for (int high = 0; high <= (row->halves ? 1 : 0); high++) {
        struct wpk_c_value a = row->halves ? half_of(k, &operand[0], high) : operand[0];
        print_row(k, row, &sum, &a, &operand[1], high);
    }
    wpk_c_storage_write(k, output, point->axis, width, &sum);
}

bool wpk_c_print_dot(struct wpk_c_kernel *k, const struct wpk_stage *stage,
                     const struct wpk_form *axis, const struct wpk_nest_loop *loop, int64_t count)
{
    const struct wpk_instruction *instruction = wpk_instruction_at(loop->instruction);
    const struct row *row = row_of(instruction);
    struct wpk_instruction_product product[WPK_INSTRUCTION_PRODUCTS_MAX];
    struct group group[WPK_INSTRUCTION_PRODUCTS_MAX][2];
    int width = k->forms.width;
    struct wpk_c_point point;
    WPK_ASSERT(row != NULL);
    bool incomplete = count < instruction->terms && wpk_dtype_is_float(instruction->sum);
    if (incomplete || width < row->lanes_min || width > instruction->lanes) {
        return false;
    }
    memcpy(point.axis, axis, (size_t)stage->axis_count * sizeof(*axis));
    wpk_c_point_begin(k, stage, width, &point);
    int products = wpk_instruction_products(instruction, k->program, stage, product);
    bool together = products > 0;
    for (int i = 0; i < products && together; i++) {
        together = find_groups(k, &point, loop->axis, (int)count, instruction->terms,
                               product[i].load, group[i]);
    }
    if (!together) {
        if (count < instruction->terms) {
            return false;
        }
        wpk_c_refuse(k, "terms of a dot do not lie together in memory: of one operand all lanes "
                        "read the same, of the other one each has a group of its own");
        return true;
    }
    wpk_c_line(&k->text, "{");
    for (int i = 0; i < products; i++) {
        int opened = wpk_c_open_inside(k, &point, product[i].load[0]);
        opened += wpk_c_open_inside(k, &point, product[i].load[1]);
        print_product(k, &point, instruction, &product[i], count, group[i]);
        for (; opened > 0; opened--) {
            wpk_c_line(&k->text, "}");
        }
    }
    wpk_c_line(&k->text, "}");
    return true;
}
