/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl show: a model's plan as an SVG. Each step has a row with the nodes that it computes; a
 * line goes to each step that reads what it writes. Below, the nodes that are no step, and why. */
#include "client/command.h"
#include "client/run_model.h"
#include "common/chart.h"
#include "common/fs.h"
#include "common/markup.h"
#include "common/page.h"
#include "model/onnx/read.h"
#include "schema/model_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_SIZE_MAX ((size_t)1 << 40)
#define NAME_MAX_SHOWN 84 /* characters of a row's nodes */

enum {
    WIDTH = 1180,
    LEFT = 150, /* room for the lines that pass rows by */
    BOX = 700,
    ROW = 30,
    BOX_HEIGHT = 22,
    TOP = 60,
    LANE = 9 /* between such lines */
};

struct drawing {
    const struct wpk_model_plan *plan;
    const struct wpk_model_plan_shape *shape; /* what is drawn of it */
    int *writer;  /* owned; [value_count] step that writes a value; -1: none */
    bool is_part; /* of a page; else a file */
    struct wpk_buf out;
};

static double row_y(int row)
{
    return TOP + row * (double)ROW;
}

/* Row 0 has the inputs, row i + 1 has step i, and the last one the outputs. */
static void put_row(struct drawing *d, int row, const char *left, const char *text,
                    const char *right)
{
    char shown[NAME_MAX_SHOWN + 8];
    size_t size = strlen(text);

    wpk_buf_printf(
        &d->out, "<rect class=\"box\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n",
        LEFT, row_y(row), BOX, BOX_HEIGHT);
    if (size > NAME_MAX_SHOWN) {
        size = NAME_MAX_SHOWN;
        while (((unsigned char)text[size] & 0xC0) == 0x80) {
            size--; /* no part of a character */
        }
    }
    snprintf(shown, sizeof(shown), "%.*s%s", (int)size, text, text[size] != '\0' ? "…" : "");
    wpk_svg_text(&d->out, LEFT - 6, row_y(row) + 16, "end", "faint", left);
    wpk_svg_text(&d->out, LEFT + 8, row_y(row) + 16, "start", "", shown);
    wpk_svg_text(&d->out, LEFT + BOX + 10, row_y(row) + 16, "start", "faint", right);
}

/* A line from a row to a later one: straight to the next one, else around those between. */
static void put_line(struct drawing *d, int from, int to)
{
    double x = LEFT + 20;
    double y = row_y(from) + BOX_HEIGHT;

    if (to == from + 1) {
        wpk_buf_printf(&d->out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1f\"/>\n", x, y, row_y(to));
        return;
    }
    int lane = (to - from - 2) % 9;
    double bend = LEFT - 40 - lane * (double)LANE;
    wpk_buf_printf(&d->out, "<path class=\"axis\" d=\"M%d %.1fH%.1fV%.1fH%d\"/>\n", LEFT,
                   row_y(from) + BOX_HEIGHT - 5.0, bend, row_y(to) + 5.0, LEFT);
}

/* The row that a step reads a value from; -1: it is a constant. */
static int source_row(const struct drawing *d, int value)
{
    switch (d->shape->values[value].place) {
    case WPK_MODEL_PLAN_INPUT:
        return 0;
    case WPK_MODEL_PLAN_DATA:
        return -1;
    default:
        return d->writer[value] + 1;
    }
}

static void put_step(struct drawing *d, int step)
{
    const struct wpk_model_plan_step *s = &d->shape->steps[step];
    static const struct wpk_model_plan_kernel none = {.time_ns = 0};
    const struct wpk_model_plan_kernel *kernel =
        s->kernel < 0 ? &none : &d->plan->kernels[s->kernel];
    char left[24];
    char right[160];
    const struct wpk_model_plan_loop *loop = wpk_model_plan_find_loop(d->shape, step);
    int used = 0;

    if (loop != NULL) {
        used = snprintf(right, sizeof(right), "%lld × ", (long long)loop->times);
    }
    used += snprintf(right + used, sizeof(right) - (size_t)used, "%s",
                     s->kernel < 0 ? wpk_model_plan_host_name(s->host.op) : kernel->name);

    if (kernel->time_ns > 0) {
        used += snprintf(right + used, sizeof(right) - (size_t)used, ", %.1f µs",
                         (double)kernel->time_ns / 1e3);
    }
    if (kernel->vendor_ns > 0) {
        snprintf(right + used, sizeof(right) - (size_t)used, " (%.40s %.1f)", kernel->vendor,
                 (double)kernel->vendor_ns / 1e3);
    }
    snprintf(left, sizeof(left), "%d", step);
    put_row(d, step + 1, left, s->node, right);
    for (int a = 0; a < s->argument_count; a++) {
        int value = s->arguments[a].value;
        int row = source_row(d, value);
        bool drawn = false;
        for (int b = 0; b < a; b++) {
            drawn = drawn || source_row(d, s->arguments[b].value) == row;
        }
        if (row >= 0 && row <= step && !drawn) {
            put_line(d, row, step + 1);
        }
    }
}

static void put_ends(struct drawing *d, int row, const struct wpk_model_plan_end *ends, int count,
                     const char *kind)
{
    struct wpk_buf text = {0};

    for (int i = 0; i < count; i++) {
        wpk_buf_printf(&text, "%s%s", i > 0 ? ", " : "", ends[i].name);
    }
    put_row(d, row, kind, wpk_buf_text(&text), "");
    wpk_buf_fini(&text);
}

/* A line from whoever writes each output. */
static void put_output_lines(struct drawing *d)
{
    int last = d->shape->step_count + 1;

    for (int o = 0; o < d->shape->output_count; o++) {
        const struct wpk_model_plan_value *value = &d->shape->values[d->shape->outputs[o].value];
        for (int v = 0; v < d->shape->value_count; v++) {
            const struct wpk_model_plan_value *of = &d->shape->values[v];
            if (d->writer[v] >= 0 && of->place == value->place && of->offset == value->offset) {
                put_line(d, d->writer[v] + 1, last);
                break;
            }
        }
    }
}

/* The first step that touches a value writes it: inputs and constants apart, nothing is read before
 * it is written. */
static void find_writers(struct drawing *d)
{
    for (int v = 0; v < d->shape->value_count; v++) {
        d->writer[v] = -1;
    }
    for (int s = 0; s < d->shape->step_count; s++) {
        for (int a = 0; a < d->shape->steps[s].argument_count; a++) {
            int v = d->shape->steps[s].arguments[a].value;
            enum wpk_model_plan_place place = d->shape->values[v].place;
            bool is_written = place == WPK_MODEL_PLAN_ARENA || place == WPK_MODEL_PLAN_OUTPUT;
            d->writer[v] = d->writer[v] < 0 && is_written ? s : d->writer[v];
        }
    }
}

static void put_notes(struct drawing *d)
{
    double y = row_y(d->shape->step_count + 2) + 30;

    if (d->shape->note_count > 0) {
        wpk_svg_text(&d->out, LEFT, y, "start", "", "No step computes:");
    }
    for (int i = 0; i < d->shape->note_count; i++) {
        y += 20;
        wpk_svg_text(&d->out, LEFT + 8, y, "start", "", d->shape->notes[i].node);
        wpk_svg_text(&d->out, LEFT + 250, y, "start", "faint", d->shape->notes[i].why);
    }
}

static wpk_err draw(struct drawing *d)
{
    const struct wpk_model_plan *plan = d->plan;
    const struct wpk_model_plan_shape *shape = d->shape;
    int height = (int)row_y(shape->step_count + 2) + 60 + 20 * shape->note_count;
    char title[WPK_MODEL_PLAN_DEVICE_MAX + 96];

    d->writer = WPK_DEMAND(calloc((size_t)shape->value_count + 1, sizeof(*d->writer)));
    find_writers(d);
    wpk_svg_begin(&d->out, WIDTH, height, d->is_part ? NULL : "");
    snprintf(title, sizeof(title), "%d steps, %.1f MB between them, for %d thread%s of %s",
             shape->step_count, (double)shape->arena_size / 1e6, plan->threads,
             plan->threads == 1 ? "" : "s", plan->device);
    wpk_svg_text(&d->out, 20, 30, "start", "", title);
    put_ends(d, 0, shape->inputs, shape->input_count, "in");
    for (int s = 0; s < shape->step_count; s++) {
        put_step(d, s);
    }
    put_ends(d, shape->step_count + 1, shape->outputs, shape->output_count, "out");
    put_output_lines(d);
    put_notes(d);
    wpk_buf_append_text(&d->out, "</svg>\n");
    free(d->writer);
    return wpk_buf_status(&d->out);
}

/* ---- the model's own graph */

/* Print which step computes a node first, or why no step does. */
static void say_fate(const struct drawing *d, const char *node, char out[NAME_MAX_SHOWN])
{
    size_t size = strlen(node);

    out[0] = '\0';
    for (int s = 0; s < d->shape->step_count && size > 0; s++) {
        const char *text = d->shape->steps[s].node; /* names with " + " between them */
        for (const char *at = strstr(text, node); at != NULL; at = strstr(at + 1, node)) {
            if ((at == text || at[-1] == ' ') && (at[size] == '\0' || at[size] == ' ')) {
                snprintf(out, NAME_MAX_SHOWN, "step %d", s);
                return;
            }
        }
    }
    for (int i = 0; i < d->shape->note_count && out[0] == '\0'; i++) {
        if (strcmp(d->shape->notes[i].node, node) == 0) {
            snprintf(out, NAME_MAX_SHOWN, "%s", d->shape->notes[i].why);
        }
    }
}

static void put_graph_lines(struct drawing *d, const struct wpk_graph *graph, const int *values,
                            int count, int row)
{
    for (int i = 0; i < count; i++) {
        const struct wpk_graph_value *value = values[i] < 0 ? NULL : &graph->values[values[i]];
        if (value != NULL && (value->writer >= 0 || value->is_input)) {
            put_line(d, value->writer + 1, row);
        }
    }
}

/* Row 0 has the inputs, row i + 1 has node i, and the last one the outputs. False: the plan knows
 * no node of it. */
static bool draw_graph(struct drawing *d, const struct wpk_graph *graph)
{
    bool known = false;
    char fate[NAME_MAX_SHOWN];
    struct wpk_buf text = {0};
    int last = graph->node_count + 1;

    wpk_svg_begin(&d->out, WIDTH, (int)row_y(last + 1), NULL);
    put_row(d, 0, "in", "inputs", "");
    for (int n = 0; n < graph->node_count; n++) {
        const struct wpk_graph_node *node = &graph->nodes[n];
        wpk_buf_reset(&text);
        wpk_buf_printf(&text, "%s: %s", node->op, node->name);
        say_fate(d, node->name, fate);
        known = known || fate[0] != '\0';
        put_row(d, n + 1, "", wpk_buf_text(&text), fate);
        put_graph_lines(d, graph, node->inputs, node->input_count, n + 1);
    }
    put_row(d, last, "out", "outputs", "");
    put_graph_lines(d, graph, graph->outputs, graph->output_count, last);
    wpk_buf_append_text(&d->out, "</svg>\n");
    wpk_buf_fini(&text);
    return known;
}

/* ---- a plan's page */

/* Find the set of shapes that is wanted. */
static wpk_err choose_shape(struct drawing *d, const struct wpk_option_list *shapes,
                            struct wpk_diag *diag)
{
    const struct wpk_option_list no_files = {.count = 0};
    int input_count = d->plan->shapes[0].input_count;
    struct wpk_plan_shapes sets = {.count = d->plan->shape_count, .input_count = input_count};
    size_t index = 0;

    sets.inputs = WPK_DEMAND(calloc((size_t)(sets.count * input_count) + 1, sizeof(*sets.inputs)));
    for (int i = 0; i < sets.count * input_count; i++) {
        const struct wpk_model_plan_shape *shape = &d->plan->shapes[i / input_count];
        const struct wpk_model_plan_end *input = &shape->inputs[i % input_count];
        sets.inputs[i].name = input->name;
        sets.inputs[i].type = shape->values[input->value].type;
    }
    wpk_err err = wpk_plan_shapes_choose(&sets, shapes, &no_files, &index, diag);
    d->shape = &d->plan->shapes[index];
    free(sets.inputs);
    return err;
}

static void put_drawing(const struct drawing *d, const char *title, struct wpk_buf *out)
{
    wpk_markup(out,
               "<h2>%s</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
               "aria-label=\"%s\">\n",
               title, title);
    wpk_buf_append(out, d->out.data, d->out.size);
    wpk_markup_raw(out, "</div>\n");
}

/* `graph` may be NULL. */
static void put_page(struct drawing *d, const char *path, const struct wpk_option_list *shapes,
                     const struct wpk_graph *graph, struct wpk_buf *out)
{
    const char *slash = strrchr(path, '/');
    const struct wpk_page page = {.title = slash != NULL ? slash + 1 : path, .is_file = true};
    struct wpk_diag diag = {0};
    wpk_page_begin(out, &page);
    wpk_markup(out, "<h1>The plan <bdi>%s</bdi></h1>\n<dl>\n", page.title);
    wpk_page_term(out, "Device", d->plan->device);
    wpk_markup(out,
               "<dt>Threads</dt><dd>%d</dd>\n<dt>Steps</dt><dd>%d, of %d kernels in the file</dd>\n"
               "<dt>Memory</dt><dd>%.1f MB between the steps, %.1f MB of kernels and constants</dd>"
               "\n</dl>\n<h2>Times</h2>\n",
               d->plan->threads, d->shape->step_count, d->plan->kernel_count,
               (double)d->shape->arena_size / 1e6, (double)d->plan->data_size / 1e6);
    if (wpk_profile_page(path, shapes, out, &diag) != WPK_OK) {
        wpk_markup(out, "<p class=\"note\">It was not run here: %s.</p>\n", diag.text);
    }
    put_drawing(d, "From the model's nodes to steps", out);
    if (graph != NULL) {
        wpk_buf_reset(&d->out);
        put_drawing(d,
                    draw_graph(d, graph)
                        ? "The model's own graph, and which step computes each node"
                        : "The graph of another model: this plan computes none of its nodes",
                    out);
    }
    wpk_page_end(out);
}

wpk_err wpk_plan_show(const char *path, const struct wpk_option_list *shapes, bool is_page,
                      const char *onnx, struct wpk_buf *out, struct wpk_diag *diag)
{
    struct wpk_buf bytes = {.size_max = FILE_SIZE_MAX};
    struct wpk_model_plan plan = {.threads = 0};
    struct wpk_graph graph = {.node_count = 0};
    struct drawing d = {.plan = &plan, .is_part = is_page};

    wpk_err err = wpk_fs_read(path, FILE_SIZE_MAX - 1, &bytes, diag);
    err = err == WPK_ENOENT || err == WPK_EACCES ? WPK_EINVAL : err;
    if (err == WPK_OK) {
        err = wpk_model_plan_decode(wpk_buf_text(&bytes), bytes.size, &plan, diag);
        err = wpk_diag_in_file(diag, err, path);
    }
    err = err == WPK_OK ? choose_shape(&d, shapes, diag) : err;
    err = err == WPK_OK ? draw(&d) : err;
    err = err == WPK_OK && onnx != NULL ? wpk_onnx_read(onnx, &graph, diag) : err;
    if (err == WPK_OK && is_page) {
        put_page(&d, path, shapes, onnx != NULL ? &graph : NULL, out);
    } else if (err == WPK_OK) {
        wpk_buf_append(out, d.out.data, d.out.size);
    }
    wpk_buf_fini(&d.out);
    wpk_graph_fini(&graph);
    wpk_model_plan_fini(&plan);
    wpk_buf_fini(&bytes);
    return err == WPK_OK ? wpk_buf_status(out) : err;
}

enum wpk_exit wpk_command_show(struct wpk_invocation *call)
{
    const char *path = NULL;
    static struct wpk_option_list shapes;
    const struct wpk_option options[] = {
        WPK_ARGS_OUTPUT("where the SVG goes", &path),
        WPK_PLAN_SHAPE_OPTION_ROW(shapes),
        WPK_ARGS_END,
    };
    wpk_err err = WPK_EINVAL;
    struct wpk_buf out = {0};

    if (!wpk_command_begin(call, options, 1, 1)) {
        return call->status;
    }
    if (path == NULL) {
        wpk_diag_set(&call->diag, "-o says where the SVG goes");
    } else {
        err = wpk_plan_show(call->args.operands[0], &shapes, false, NULL, &out, &call->diag);
        err = err == WPK_OK ? wpk_fs_write(path, out.data, out.size, 0666, &call->diag) : err;
        err = err == WPK_ENOENT ? WPK_EINVAL : err;
    }
    wpk_buf_fini(&out);
    return wpk_command_end(call, err);
}
