/* SPDX-License-Identifier: Apache-2.0 */
/* The values that inputs of models are drawn from. */
#include "model/operator/lower.h"

#include "model/onnx/read.h"
#include "model/operator/shape.h"
#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_MAX = 8 };

struct node {
    const char *op, *inputs, *output, *attributes;
};

static void find(const struct node *nodes, struct wpk_domain *of_i)
{
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_buf problems = {0};
    struct wpk_domain domains[2];
    struct wpk_graph graph;

    wpk_model_fixture_input(&model, "i", "i64[2,3]");
    wpk_model_fixture_input(&model, "x", "f32[2,3]");
    wpk_model_fixture_constant(&model, "rows", "f32[121,3]", NULL);
    wpk_model_fixture_constant(&model, "few", "f32[2,3]", NULL);
    wpk_model_fixture_constant(&model, "two", "i64[1]", "2");
    wpk_model_fixture_constant(&model, "one", "f32[1]", "1");
    wpk_model_fixture_constant(&model, "zero", "i64[1]", "0");
    wpk_model_fixture_constant(&model, "big", "f32[1]", "-1e30");
    wpk_model_fixture_constant(&model, "table", "i64[4]", "7,0,5,2");
    for (int n = 0; n < NODES_MAX && nodes[n].op != NULL; n++) {
        wpk_model_fixture_node(&model, nodes[n].op, nodes[n].inputs, nodes[n].output,
                               nodes[n].attributes);
    }
    wpk_model_fixture_output(&model, "y");
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(&model, SIZE_MAX), &graph, NULL),
                     WPK_OK);
    assert_int_equal(wpk_graph_infer(&graph, &problems), WPK_OK);
    assert_int_equal(wpk_graph_domains(&graph, domains), WPK_OK);
    *of_i = domains[0];
    wpk_buf_fini(&problems);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

static void test_domains(void **state)
{
    static const struct {
        struct node nodes[NODES_MAX];
        struct wpk_domain of_i;
    } rows[] = {
        /* rows of a table; of two tables; moved before */
        {{{"Gather", "rows,i", "y", "axis:i=0"}}, {0, 120}},
        {{{"Gather", "rows,i", "a", "axis:i=0"},
          {"Gather", "few,i", "b", "axis:i=0"},
          {"Add", "a,b", "y", ""}},
         {0, 1}},
        {{{"Unsqueeze", "i,zero", "u", ""},
          {"Add", "u,two", "v", ""},
          {"Gather", "rows,v", "y", "axis:i=0"}},
         {-2, 118}},
        {{{"Gather", "table,i", "t", "axis:i=0"}, {"Gather", "rows,t", "y", "axis:i=0"}}, {0, 3}},
        {{{"GatherElements", "x,i", "y", "axis:i=0"}}, {0, 1}},
        /* masks */
        {{{"Cast", "i", "b", "to:i=9"}, {"Where", "b,x,one", "y", ""}}, {0, 1}},
        {{{"Cast", "i", "f", "to:i=1"}, {"Sub", "one,f", "s", ""}, {"Mul", "s,big", "y", ""}},
         {0, 1}},
        {{{"Equal", "i,zero", "b", ""}, {"Where", "b,x,one", "y", ""}}, {0, 1}},
        /* a number like any other */
        {{{"Cast", "i", "f", "to:i=1"}, {"Add", "f,x", "y", ""}},
         {-WPK_DOMAIN_MOST, WPK_DOMAIN_MOST}},
    };
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct wpk_domain found;
        find(rows[r].nodes, &found);
        if (found.low != rows[r].of_i.low || found.high != rows[r].of_i.high) {
            fail_msg("row %zu: [%g, %g]", r, found.low, found.high);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_domains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
