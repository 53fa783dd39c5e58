/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps could be one, and what becomes of them. */
#include "model/region/site.h"

#include "model/onnx/read.h"
#include "model/operator/shape.h"
#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SITES 8
#define VALUE_BYTES (2 * 4 * 4 * 6 * 6.0) /* f32[1,4,6,6], written and read */

struct chain {
    struct wpk_model_fixture model;
    struct wpk_graph graph;
    struct wpk_graph_regions regions;
    struct wpk_graph_site sites[SITES];
    int count;
};

static void begin(struct chain *c)
{
    *c = (struct chain){.model = {.opset = 13}};
    wpk_model_fixture_input(&c->model, "x", "f32[1,4,6,6]");
    wpk_model_fixture_constant(&c->model, "w", "f32[4,4,3,3]", NULL);
    wpk_model_fixture_constant(&c->model, "v", "f32[4,4,1,1]", NULL);
}

static void conv(struct chain *c, const char *from, const char *to, bool is_wide)
{
    char inputs[32];

    (void)snprintf(inputs, sizeof inputs, "%s,%s", from, is_wide ? "w" : "v");
    wpk_model_fixture_node(&c->model, "Conv", inputs, to, is_wide ? "pads:I=1,1,1,1" : "");
}

static void find(struct chain *c, const char *output)
{
    struct wpk_buf problems = {0};

    wpk_model_fixture_output(&c->model, output);
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(&c->model, SIZE_MAX), &c->graph, NULL),
                     WPK_OK);
    assert_int_equal(wpk_graph_infer(&c->graph, &problems), WPK_OK);
    wpk_buf_fini(&problems);
    assert_int_equal(wpk_graph_regions_find(&c->graph, &c->regions, NULL), WPK_OK);
    assert_int_equal(wpk_graph_sites_find(&c->graph, &c->regions, SITES, c->sites, &c->count),
                     WPK_OK);
}

static void end(struct chain *c)
{
    wpk_graph_regions_fini(&c->regions);
    wpk_graph_fini(&c->graph);
    wpk_model_fixture_fini(&c->model);
}

/* Two pairs of the same regions are one site; the second time the other one is between. */
static void neighbours_are_joined(void **state)
{
    struct chain c;
    struct wpk_graph_region region;
    int joined = 0;

    (void)state;
    begin(&c);
    conv(&c, "x", "a", true);
    wpk_model_fixture_node(&c.model, "Relu", "a", "b", "");
    conv(&c, "b", "c", false);
    conv(&c, "c", "d", true);
    wpk_model_fixture_node(&c.model, "Relu", "d", "e", "");
    conv(&c, "e", "y", false);
    find(&c, "y");
    assert_int_equal(c.regions.count, 2);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.sites[0].count, 2);
    assert_true(c.sites[0].bytes == 2 * VALUE_BYTES);
    assert_int_equal(c.sites[1].count, 1);

    assert_int_equal(wpk_graph_site_region(&c.graph, &c.regions, &c.sites[0], &region, NULL),
                     WPK_OK);
    assert_string_equal(region.name, "Conv1_Conv2");
    assert_int_equal(region.node_count, 3);
    assert_int_equal(wpk_graph_site_join(&c.graph, &c.sites[0], &region, &c.regions, &joined, NULL),
                     WPK_OK);
    assert_int_equal(joined, 2);
    assert_int_equal(c.regions.count, 3);
    assert_int_equal(c.regions.list[0].count, 0);
    assert_int_equal(c.regions.list[1].count, 0);
    assert_int_equal(c.regions.list[2].count, 2);
    int steps = 0;
    for (int n = 0; n < c.graph.node_count; n++) {
        const struct wpk_graph_region_use *use = &c.regions.uses[n];
        steps += use->region >= 0;
        assert_true(use->region < 0 || (use->region == 2 && use->node_count == 3));
        /* its input, the constants of both, and its output; nothing between */
        assert_int_equal(use->argument_count, use->region < 0 ? 0 : 4);
        for (int a = 0; a < use->argument_count; a++) {
            const char *name = c.graph.values[use->arguments[a].value].name;
            assert_null(strstr("abde", name));
        }
    }
    assert_int_equal(steps, 2);
    /* The other site's groups are not what they were. */
    assert_int_equal(wpk_graph_site_join(&c.graph, &c.sites[1], &region, &c.regions, &joined, NULL),
                     WPK_OK);
    assert_int_equal(joined, 0);
    end(&c);
}

/* A value that something else reads, or that is part of another's memory, stays. */
static void others_are_no_sites(void **state)
{
    struct chain c;

    (void)state;
    begin(&c);
    conv(&c, "x", "a", true);
    conv(&c, "a", "b", false);
    conv(&c, "a", "c", true);
    wpk_model_fixture_node(&c.model, "Concat", "b,c", "y", "axis:i=1");
    find(&c, "y");
    assert_int_equal(c.count, 0);
    end(&c);

    begin(&c);
    conv(&c, "x", "a", true);
    wpk_model_fixture_node(&c.model, "Relu", "a", "b", "");
    wpk_model_fixture_output(&c.model, "b");
    conv(&c, "b", "y", false);
    find(&c, "y");
    assert_int_equal(c.count, 0);
    end(&c);

    begin(&c);
    conv(&c, "x", "a", true);
    wpk_model_fixture_node(&c.model, "Flatten", "a", "b", "axis:i=2");
    wpk_model_fixture_node(&c.model, "ReduceMax", "b", "y", "axes:I=1");
    find(&c, "y");
    assert_int_equal(c.count, 0);
    end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_are_joined),
        cmocka_unit_test(others_are_no_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
